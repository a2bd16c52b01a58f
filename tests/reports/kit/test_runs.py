from __future__ import annotations

from dataclasses import dataclass

from probelight.reports.kit.runs import runs_of
from probelight.results.load import Run
from probelight.results.row import Row


@dataclass(frozen=True)
class Shown:
    rows: dict[int | None, Row]
    run: Run | None = None
    label: str = "runs/none"


def test_the_runs_are_those_of_the_rows_and_records_inside() -> None:
    rows = {seed: Row(run_dir=f"runs/curve-{seed}", value=0.5) for seed in (2, 1)}
    assert runs_of(Shown(rows)) == ("curve-1", "curve-2")
    assert runs_of((Shown({}, Run(protocol="grid", key="grid-a")), [rows[1]])) == (
        "curve-1",
        "grid-a",
    )


def test_what_holds_no_row_has_no_runs() -> None:
    assert runs_of(Shown({None: Row(value=0.1)})) == ()
    assert runs_of("runs/x") == runs_of(0.5) == runs_of(None) == ()
