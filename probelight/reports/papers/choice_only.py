"""Table 7 of Richardson & Sabharwal 2020, group 1: transformers that see the choices alone.

The other baselines go by vectors that the paper does not name well enough to have the same, so
they stand beside its rows in the audit's own table, without a difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from probelight.reports.audit.facts import CHOICE_ONLY, PROTOCOL
from probelight.reports.kit.published import PublishedProbe, published_probes
from probelight.reports.papers.beside import Beside, Ours, Printed, together
from probelight.reports.released import hub_model, released_file
from probelight.results.load import Results, Run

_NAMES = {
    "bert-large-uncased-whole-word-masking": "choice_only_bert",
    "roberta-large": "choice_only_roberta",
}
_SHOWN = {"choice_only_bert": "Choice-only, BERT", "choice_only_roberta": "Choice-only, RoBERTa"}
_HUMAN = "human"


def choice_only_rows(results: Results) -> Sequence[Beside]:
    """Group 1 of the table with the paper's own encoders, of the probes that the results have."""
    ours = [one for run in results.of(PROTOCOL) for one in _ours(run)]
    rows = []
    for probe in dict.fromkeys(row.probe for row in published_probes()):
        known = [row for row in published_probes() if row.probe == probe]
        people = next((row.test_accuracy for row in known if row.model == _HUMAN), None)
        for split in ("dev", "test"):
            name = _name(probe, split)
            printed = [
                Printed(name, _SHOWN[row.model], value)
                for row in known
                if row.model in _SHOWN and (value := _on(row, split)) is not None
            ]
            own = [one for one in ours if one.name == name]
            rows += together(printed, own, people if split == "test" else None)
    return rows


def _on(row: PublishedProbe, split: str) -> float | None:
    return row.dev_accuracy if split == "dev" else row.test_accuracy


def _name(probe: str, split: str) -> str:
    return f"{probe}, {split}, %"


def _ours(run: Run) -> Iterator[Ours]:
    """The splits of the paper of which a run measured every item."""
    model = _NAMES.get(hub_model(run) or "")
    for row in run.rows if model else ():
        whole = (row.metric, row.control, row.subset) == ("accuracy", CHOICE_ONLY, None)
        file = released_file(run, row.split)
        if whole and model and file is not None and row.num_items == file.num_items:
            about = "" if row.seed is None else f"seed {row.seed}"
            yield Ours(
                _name(run.probe, row.split), run.model, _SHOWN[model], row, row.num_items, about
            )
