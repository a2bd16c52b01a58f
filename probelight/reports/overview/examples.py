"""One item of a skill, with what the models answered: what the numbers are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from probelight.reports.kit.text import count
from probelight.reports.overview.skills import Verdict
from probelight.reports.zero_shot.facts import WHOLE
from probelight.results.load import Results, Run, UnreadableResultError
from probelight.results.predictions import ItemLine, read_item_lines

TYPICAL = (
    "The example of a skill is the item in the middle by how far the right answer was ahead of the "
    "best wrong one, for the first model; of a diagnostic, the context in the middle by the "
    "probability of its word."
)
MOST_MODELS = 4
MOST_CHOICES = 6
LONGEST_QUESTION, LONGEST_CHOICE = 260, 90  # characters
AFTER_INOCULATION = "report_probe"  # the set of the probe's items after it


@dataclass(frozen=True)
class Choice:
    """An answer of an item.

    Attributes:
        is_right: Whether it is the right one.
        models: Those of the models shown that chose it.
    """

    text: str
    is_right: bool
    models: tuple[str, ...]


@dataclass(frozen=True)
class Example:
    """An item and its answers.

    Attributes:
        when: When the models were asked.
        silent: Models that said nothing.
        more_choices: Choices that are not shown, neither right nor chosen.
        more_models: Models whose answers are not shown.
        address: Of the item in the page's explorer.
    """

    question: str
    choices: tuple[Choice, ...]
    when: str
    silent: tuple[str, ...]
    more_choices: int
    more_models: int
    address: str


def example(results: Results, row: Sequence[Verdict]) -> Example | None:
    """The example of the verdicts on one skill; None where no run left its answers.

    What was learned is shown as it was answered after training, all else as before it.
    """
    learned = any(verdict.judged.word == "learned it" for verdict in row)
    found: dict[str, tuple[Run, ItemLine]] = {}
    asked = None
    for verdict in row:
        if len(found) == MOST_MODELS:
            break
        run, lines = _answers(results, verdict.runs[:: -1 if learned else 1])
        if run is None:
            continue
        line = _typical(lines) if asked is None else lines.get(asked)
        if line is not None:
            asked = line.asked
            found[verdict.model] = run, line
    if not found:
        return None
    return _shown(found, len(row) - len(found))


def _answers(
    results: Results, runs: Sequence[Run]
) -> tuple[Run | None, Mapping[tuple[object, ...], ItemLine]]:
    """The first of the runs that left answers, and its items as they were asked, undisturbed.

    Of several seeds the first one's. Files that cannot be read are told of where all items stand.
    """
    for run in runs:
        try:
            lines = read_item_lines(results, run)
        except UnreadableResultError:
            continue
        own = [line for line in lines if line.control in WHOLE]
        if run.protocol == "inoculation":
            own = [line for line in own if line.set == AFTER_INOCULATION]
        found: dict[tuple[object, ...], ItemLine] = {}
        for line in own:
            found.setdefault(line.asked, line)
        if found:
            return run, found
    return None, {}


def _typical(lines: Mapping[tuple[object, ...], ItemLine]) -> ItemLine | None:
    """The item whose margin is the median, the lower of two; of equal ones the first."""
    known = [(margin, at, line) for at, line in enumerate(lines.values())
             if (margin := _margin(line)) is not None]  # fmt: skip
    known.sort(key=lambda one: one[:2])
    return known[(len(known) - 1) // 2][2] if known else None


def _margin(line: ItemLine) -> float | None:
    """The right answer's score minus the best other one's; None where there are no such two."""
    right = line.scores[line.answer]
    others = [s for i, s in enumerate(line.scores) if i != line.answer and s is not None]
    return None if right is None or not others else right - max(others)


def _shown(found: Mapping[str, tuple[Run, ItemLine]], more_models: int) -> Example:
    run, item = next(iter(found.values()))
    chose: dict[int, list[str]] = {}
    for model, (_, line) in found.items():
        if line.prediction is not None:
            chose.setdefault(line.prediction, []).append(model)
    kept = sorted({*chose, item.answer})
    real = [place for place, text in enumerate(item.choices) if text or place in kept]
    kept = sorted(
        [*kept, *[place for place in real if place not in kept][: MOST_CHOICES - len(kept)]]
    )
    return Example(
        question=cut(item.question, LONGEST_QUESTION),
        choices=tuple(
            Choice(
                cut(item.choices[place], LONGEST_CHOICE),
                place == item.answer,
                tuple(chose.get(place, ())),
            )
            for place in kept
        ),
        when=_when(run),
        silent=tuple(model for model, (_, line) in found.items() if line.prediction is None),
        more_choices=len(real) - len(kept),
        more_models=more_models,
        address=address(run, f"{item.id}@{item.position}"),
    )


def _when(run: Run) -> str:
    sizes = [row.num_train or row.dose for row in run.rows if row.num_train or row.dose]
    return f"after {count(sizes[0])} examples" if sizes else "before training"


def address(run: Run, item: str) -> str:
    """Of an item, ID@POSITION, in the page's explorer."""
    asked = {"probe": run.probe, "model": run.model, "item": item}
    return "#items?" + "&".join(f"{name}={quote(value, safe='@')}" for name, value in asked.items())


def cut(text: str, longest: int) -> str:
    """A long text without its middle: what is asked stands at its end."""
    if len(text) <= longest:
        return text
    end = longest // 3
    return f"{text[: longest - end - 3].rstrip()} … {text[-end:].lstrip()}"
