"""Released sets whose items are made of several columns: RACE, BoolQ, COPA and others.

Sets that only call their columns in their own way need no layout, see `columns`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from string import ascii_uppercase
from typing import Any, Literal, NamedTuple

from probelight.io.errors import RecordError
from probelight.probes.importers.cells import choices_of, mapping_of, text_of

Cells = dict[str, Any]


class ReleasedLayout(NamedTuple):
    """The columns of a released set."""

    needed: frozenset[str]  # the columns that tell it from other sets, in lower case
    fields_of: Callable[[Cells], Cells]  # makes the fields of an item of the cells of these columns
    optional: frozenset[str] = frozenset()  # columns that some copies of the set do not have

    @property
    def columns(self) -> frozenset[str]:
        """All columns that are read."""
        return self.needed | self.optional


def _texts(cells: Cells, *columns: str) -> list[str]:
    return [text_of(cells[column], f"`{column}`").strip() for column in columns]


def _race(cells: Cells) -> Cells:
    """Make the article the stem, and the question, filled in with each option, the choices.

    A choice is never cut before the end of an article is (as in RoBERTa's RACE recipe).
    """
    question = text_of(cells["question"], "`question`")
    labels, options = choices_of(cells["options"], "`options`")
    blank_question = question if "_" in question else f"{question} _"
    choices = {
        "text": [blank_question.replace("_", option, 1) for option in options],
        "label": [*(labels or ascii_uppercase[: len(options)])],
    }
    return {
        "sentence": text_of(cells["article"], "`article`"),
        "choices": choices,
        "gold": cells["answer"],
        "source": cells.get("example_id", "race"),
        "notes": {"question": question},
    }


def _boolq(cells: Cells) -> Cells:
    """Ask the question after its passage; the choices are no and yes."""
    passage, question = _texts(cells, "passage", "question")
    gold = cells["answer" if "answer" in cells else "label"]
    answer = _NO_YES.get(str(gold).lower(), "")
    if not answer and gold is not None:
        raise RecordError(
            f"the answer {gold!r} is not true or false, as BoolQ's are; for other questions about "
            "a passage write passage and question in one column, and add a column of choices"
        )
    stem = f"{passage} {question.removesuffix('?')}?"
    notes = {"passage": passage}  # for texts of prompts
    return {"sentence": stem, "choices": ["no", "yes"], "gold": answer, "notes": notes}


_NO_YES = {"false": "no", "no": "no", "0": "no", "true": "yes", "yes": "yes", "1": "yes"}


def _copa(cells: Cells) -> Cells:
    """Let the premise end in "because" or "so", and the choices go on from there.

    Brown et al. (2020, appendix G) ask it so.
    """
    premise, *choices = _texts(cells, "premise", "choice1", "choice2")
    connective = {"cause": "because", "effect": "so"}.get(str(cells["question"]))
    if connective is None:
        raise RecordError(f"`question` is {cells['question']!r}, not cause or effect as in COPA")
    return {
        "sentence": f"{premise.removesuffix('.')} {connective}",
        "choices": [choice[:1].lower() + choice[1:] for choice in choices],
        "gold": cells["label"],
    }


def _social_iqa(cells: Cells) -> Cells:
    """Ask the question after its context."""
    context, question, *choices = _texts(cells, "context", "question", *_ANSWERS)
    return {"sentence": f"{context} {question}", "choices": choices, "gold": cells["label"]}


_ANSWERS = ("answera", "answerb", "answerc")


def _truthful_qa(cells: Cells) -> Cells:
    """Take the choices of mc1, of which exactly one has the label 1."""
    targets = mapping_of(cells["mc1_targets"], "`mc1_targets`")
    texts, truths = [*targets], [*targets.values()]  # as in the authors' own file
    if targets.keys() == {"choices", "labels"}:
        texts, truths = targets["choices"], targets["labels"]
    if not isinstance(truths, list) or [t for t in truths if t != 0] != [1]:
        raise RecordError("`mc1_targets` must have the label 1 for one choice and 0 for all others")
    labels = [*range(1, len(truths) + 1)]
    choices = {"text": texts, "label": labels}
    return {"sentence": cells["question"], "choices": choices, "gold": labels[truths.index(1)]}


def _hellaswag(cells: Cells) -> Cells:
    """Put the activity before the context, and take out the marks of WikiHow.

    lm-evaluation-harness reads it so (`process_docs` in lm_eval/tasks/hellaswag/utils.py).
    """
    activity, first, last = (
        text_of(cells[column], f"`{column}`") for column in ("activity_label", "ctx_a", "ctx_b")
    )
    _, endings = choices_of(cells["endings"], "`endings`")
    context, *choices = (
        re.sub(r"\[.*?\]", "", text.strip().replace(" [title]", ". ")).replace("  ", " ")
        for text in (f"{activity}: {first} {last.capitalize()}", *endings)
    )
    return {"sentence": context, "choices": choices, "gold": cells["label"]}


RELEASED = (
    ReleasedLayout(
        frozenset({"article", "question", "options", "answer"}), _race, frozenset({"example_id"})
    ),
    ReleasedLayout(frozenset({"passage", "question", "answer"}), _boolq),
    ReleasedLayout(frozenset({"passage", "question", "label"}), _boolq),  # SuperGLUE's copy
    ReleasedLayout(frozenset({"premise", "question", "choice1", "choice2", "label"}), _copa),
    ReleasedLayout(frozenset({"context", "question", *_ANSWERS, "label"}), _social_iqa),
    ReleasedLayout(frozenset({"question", "mc1_targets"}), _truthful_qa),
)

# Those that a probe's config names, as a file with these columns is read in another way.
LayoutName = Literal["hellaswag"]
NAMED_LAYOUTS: Mapping[LayoutName, ReleasedLayout] = {
    "hellaswag": ReleasedLayout(
        frozenset({"activity_label", "ctx_a", "ctx_b", "endings", "label"}),
        _hellaswag,
        frozenset({"ctx"}),
    )
}
