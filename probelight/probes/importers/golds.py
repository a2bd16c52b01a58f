"""How the golds of a set of items are read: by text, letter or number, in one way for all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from string import ascii_uppercase

from probelight.io.errors import RecordError, nearest
from probelight.io.escaping import listed
from probelight.probes.record import GoldForm

READ_AS: dict[GoldForm, str] = {
    "text": "the text of a choice",
    "letter": "a letter (A is the first choice)",
    "index": "a number from 0 (0 is the first choice)",
    "index1": "a number from 1 (1 is the first choice)",
}


def answers_by_form(gold: str, choices: Sequence[str]) -> dict[GoldForm, int]:
    """Return the index of the choice that a gold names, by each form that it can have."""
    answers: dict[GoldForm, int] = {}
    texts = [text.strip() for text in choices]
    if gold.strip() in texts:
        answers["text"] = texts.index(gold.strip())
    if len(gold) == 1 and gold in ascii_uppercase[: len(choices)]:
        answers["letter"] = ascii_uppercase.index(gold)
    if gold.isascii() and gold.isdecimal() and len(gold) < 5 and str(int(gold)) == gold:
        if int(gold) < len(choices):
            answers["index"] = int(gold)
        if 0 < int(gold) <= len(choices):
            answers["index1"] = int(gold) - 1
    return answers


class Golds:
    """The golds of one set, which are noted one by one; `form` is what the user says of them."""

    def __init__(self, form: GoldForm | None) -> None:
        self._form = form
        # The first gold, its choices and place: of those that have not a form, and of those that
        # name two choices in two forms.
        self._misfits: dict[GoldForm, tuple[str, Sequence[str], str]] = {}
        self._clashes: dict[tuple[GoldForm, ...], tuple[str, Sequence[str], str]] = {}

    def note(self, gold: str, choices: Sequence[str], where: str) -> None:
        """Take note of an item's gold; RecordError, without `where`, if it names no choice."""
        answers = answers_by_form(gold, choices)
        if not answers or self._form not in {None, *answers}:
            needed = f" as {READ_AS[self._form]}, which --data.gold says" if self._form else ""
            raise RecordError(
                f"the gold {gold[:60]!r} is not one of the choices {listed(choices)}{needed}"
                f"{nearest(gold, choices)}; write the exact text of a choice"
            )
        for form in READ_AS.keys() - answers.keys():
            self._misfits.setdefault(form, (gold, choices, where))
        for forms in combinations(answers, 2):
            if answers[forms[0]] != answers[forms[1]]:
                self._clashes.setdefault(forms, (gold, choices, where))

    def form(self) -> GoldForm:
        """Return the form of all golds; RecordError if there is none, or two make other items."""
        fitting = [self._form] if self._form else [f for f in READ_AS if f not in self._misfits]
        for forms in combinations(fitting, 2):
            if forms in self._clashes:
                gold, choices, where = self._clashes[forms]
                answers = answers_by_form(gold, choices)
                readings = [f"{READ_AS[form]}, {choices[answers[form]]!r}" for form in forms]
                raise RecordError(
                    f"{where}: the gold {gold!r} can be {' or '.join(readings)}, and all golds fit "
                    f"both; give --data.gold {forms[0]} or --data.gold {forms[1]} (in Python "
                    "gold=, in a probe's config `gold:`)"
                )
        if not fitting:
            misfits = [
                f"{form}: {gold!r} ({where})" for form, (gold, _, where) in self._misfits.items()
            ]
            raise RecordError(
                "the golds are written in several ways; write all as the texts of choices. None "
                f"of these ways fits all: {', '.join(sorted(misfits))}"
            )
        return fitting[0]
