from __future__ import annotations

from collections.abc import Callable

from probelight.reports.inoculation.doses import doses
from probelight.reports.inoculation.runs import inoculations
from probelight.results.load import Results


def test_splits_and_ways_of_choosing_are_lines_of_their_own(
    inoculated: Callable[..., Results],
) -> None:
    for way, split in (("train", "dev"), ("train", "test"), ("paper", "test")):
        results = inoculated(selection=way, report_split=split)
    lines = doses(inoculations(results))
    remarks = [series.remarks for series in lines]
    assert remarks == ["chosen on the reported items (test)", "dev", "test"]
