"""What the baselines of an audit scored, beside the paper's and chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from probelight.reports.kit.published import PublishedProbe, published_probes
from probelight.results.load import Results, Run
from probelight.results.row import Row, Subset

PROTOCOL = "audit"
CHOICE_ONLY = "choice_only"  # what a transformer's items were put under
LEAK = 0.15  # this far over chance, what the choices alone give away is too much
GUESSING, PARTIAL, TRAINED = "guessing", "part of the input", "question and choices"
GROUPS = (GUESSING, PARTIAL, TRAINED)
Verdict = Literal["", "gives itself away", "may give itself away"]

# Groups 1 and 2 of table 7 of Richardson & Sabharwal 2020, as tables here call them.
PAPER_NAMES = {
    "random": "guessing",
    "choice_only_glove": "Choice-only, GloVe",
    "choice_only_bert": "Choice-only, BERT",
    "choice_only_roberta": "Choice-only, RoBERTa",
    "choice_to_choice_glove": "Choice-to-choice, GloVe",
    "vec_similarity": "VecSimilarity, word2vec",
    "question_to_choice_glove": "Question-to-choice, GloVe",
    "question_to_choice_elmo": "Question-to-choice, ELMo",
}
# By kind of model: the group, and whether it sees the choices alone.
PARTIAL_KINDS: Mapping[str, tuple[str, bool]] = {
    "choice_only": (PARTIAL, True),
    "choice_to_choice": (PARTIAL, True),
    "vec_similarity": (PARTIAL, False),
}


@dataclass(frozen=True)
class Entry:
    """One model on one split of a probe, ours or the paper's.

    Attributes:
        group: One of `GROUPS`.
        value: The accuracy, a row of ours; the paper has no interval.
        chance: Of the split.
        untouched: Accuracy on the items that have no relative in train, where some have.
        sees_choices: Whether it is ours and sees the choices alone.
    """

    probe: str
    split: str
    group: str
    model: str
    value: Row
    chance: float | None = None
    untouched: Row | None = None
    sees_choices: bool = False
    ours: bool = True

    @property
    def source(self) -> str:
        """Whose number it is; of the paper's, which split where ours is a part of another one."""
        if self.ours:
            return "ours"
        return "paper" if self.split in ("dev", "test") else "paper, test"

    @property
    def over(self) -> float | None:
        """How far it is over chance."""
        return None if self.chance is None else self.value.value - self.chance

    @property
    def verdict(self) -> Verdict:
        """Whether the choices alone answer the probe."""
        return _verdict(self.value, self.chance) if self.sees_choices else ""


@dataclass(frozen=True)
class Rule:
    """A rule that any reader could go by, on one split."""

    probe: str
    split: str
    value: Row
    chance: float

    @property
    def over(self) -> float:
        """How far it is over chance."""
        return self.value.value - self.chance

    @property
    def verdict(self) -> Verdict:
        """Whether the rule answers the probe."""
        return _verdict(self.value, self.chance)


@dataclass(frozen=True)
class Told:
    """A word, or an answer, that goes with being right or with being wrong."""

    probe: str
    what: Subset
    value: Row
    chance: float
    pmi: float


def entries(results: Results) -> list[Entry]:
    """Ours, and the paper's of the same splits of the same probes, by probe, split and group."""
    runs = [run for run in results.of(PROTOCOL) if run.kind]
    times = Counter((run.probe, run.model) for run in runs)
    ours = [entry for run in runs for entry in _ours(run, times[run.probe, run.model] > 1)]
    places = {(entry.probe, entry.split): entry.chance for entry in ours}
    theirs = [
        Entry(probe, split, group, name, Row(value=value), chance, ours=False)
        for (probe, split), chance in places.items()
        for group, name, value in _theirs(probe, split)
    ]
    order = list(places)
    return sorted(
        [*theirs, *ours],
        key=lambda e: (
            order.index((e.probe, e.split)),
            GROUPS.index(e.group),
            e.model if e.ours else "",  # the paper's first, in its order
        ),
    )


def rules(results: Results) -> list[Rule]:
    """All rules, the best first on each split of a probe."""
    found = [
        Rule(run.probe, row.split, row, level)
        for run in results.of(PROTOCOL)
        if not run.kind
        for row in run.rows
        if row.metric == "accuracy" and (level := _level(run, row)) is not None
    ]
    return sorted(found, key=lambda r: (r.probe, r.split, r.chance - r.value.value))


def told(results: Results) -> list[Told]:
    """Words and answers, those that go with being right first."""
    return [
        Told(run.probe, row.subset, row, level, pmi)
        for run in results.of(PROTOCOL)
        for row in run.rows
        if row.metric == "right_share" and row.subset and row.subset.kind == "answer_part"
        if (level := _level(run, row)) is not None
        if (pmi := _beside(run, row, "pmi")) is not None
    ]


def _verdict(value: Row, chance: float | None) -> Verdict:
    """Whether what knows nothing answers the probe; sure where the whole interval says so."""
    if chance is None or value.ci_low is None:
        return ""
    if value.ci_low > chance + LEAK:
        return "gives itself away"
    above = value.value > chance + LEAK and value.ci_low > chance
    return "may give itself away" if above else ""


def _ours(run: Run, several: bool) -> Iterator[Entry]:
    """The entries of a run, called by its seed where there are several."""
    group, sees_choices = PARTIAL_KINDS.get(run.kind, (TRAINED, False))
    model = run.model
    if any(row.control == CHOICE_ONLY for row in run.rows):
        group, sees_choices, model = PARTIAL, True, f"Choice-only, {model}"
    for row in run.rows:
        if row.metric != "accuracy" or row.subset is not None:
            continue
        same = (own for own in run.rows if (own.metric, own.split) == (row.metric, row.split))
        untouched = next(
            (own for own in same if own.subset and own.subset.kind == "untouched"), None
        )
        name = f"{model}, seed {row.seed}" if several else model
        yield Entry(
            *(run.probe, row.split, group, name, row),
            _level(run, row),
            untouched,
            sees_choices,
        )


def _theirs(probe: str, split: str) -> Iterator[tuple[str, str, float]]:
    for published in published_probes():
        value = _on(published, split)
        if published.probe == probe and published.model in PAPER_NAMES and value is not None:
            group = PARTIAL if published.group == "baseline" else TRAINED
            group = GUESSING if published.model == "random" else group
            yield group, PAPER_NAMES[published.model], value


def _on(published: PublishedProbe, split: str) -> float | None:
    return published.dev_accuracy if split == "dev" else published.test_accuracy


def _level(run: Run, row: Row) -> float | None:
    return _beside(run, row, "chance")


def _beside(run: Run, row: Row, metric: str) -> float | None:
    """Another number of the same part of the same split."""
    place = (metric, row.split, row.subset)
    return next((o.value for o in run.rows if (o.metric, o.split, o.subset) == place), None)
