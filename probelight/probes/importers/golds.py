"""How the golds of a set of items are read: by text, letter or number, in one way for all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from string import ascii_uppercase
from typing import NamedTuple

from probelight.io.errors import RecordError, nearest
from probelight.io.escaping import listed
from probelight.probes.record import GoldForm

READ_AS: dict[GoldForm, str] = {
    "text": "the text of a choice",
    "letter": "a letter (A is the first choice)",
    "index": "a number from 0 (0 is the first choice)",
    "index1": "a number from 1 (1 is the first choice)",
}
_SAY = "(in Python gold=, in a probe's config `gold:`)"


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


class _Gold(NamedTuple):
    where: str
    text: str
    choices: Sequence[str]


class Golds:
    """The golds of one set, which are noted one by one; `form` is what the user says of them."""

    def __init__(self, form: GoldForm | None) -> None:
        self._form = form
        self._misfits: dict[GoldForm, _Gold] = {}  # the first gold that has not this form
        self._clashes: dict[tuple[GoldForm, GoldForm], _Gold] = {}  # the first that differs

    def note(self, gold: str, choices: Sequence[str], where: str) -> None:
        """Take note of an item's gold; RecordError, without `where`, if it names no choice."""
        answers = answers_by_form(gold, choices)
        if not answers or self._form not in {None, *answers}:
            needed = f" as {READ_AS[self._form]}, which --data.gold says" if self._form else ""
            raise RecordError(
                f"the gold {gold[:60]!r} is not one of the choices {listed(choices)}{needed}"
                f"{nearest(gold, choices)}; write the exact text of a choice"
            )
        for form in READ_AS.keys() - answers.keys() - self._misfits.keys():
            self._misfits[form] = _Gold(where, gold, choices)
        for forms in combinations(answers, 2):
            if answers[forms[0]] != answers[forms[1]]:
                self._clashes.setdefault(forms, _Gold(where, gold, choices))

    def form(self) -> GoldForm:
        """Return the form of all golds; RecordError if there is none, or two make other items."""
        fitting = [form for form in READ_AS if form not in self._misfits]
        if self._form or not fitting:
            if self._form:
                return self._form
            misfits = [
                f"{form}: {gold.text!r} ({gold.where})" for form, gold in self._misfits.items()
            ]
            raise RecordError(
                "the golds are written in several ways; write all as the texts of choices. None "
                f"of these ways fits all: {', '.join(sorted(misfits))}"
            )
        for forms in combinations(fitting, 2):
            if gold := self._clashes.get(forms):
                answers = answers_by_form(gold.text, gold.choices)
                readings = [f"{READ_AS[form]}, {gold.choices[answers[form]]!r}" for form in forms]
                raise RecordError(
                    f"{gold.where}: the gold {gold.text!r} can be {' or '.join(readings)}, and all "
                    f"golds fit both; give --data.gold {forms[0]} or --data.gold {forms[1]} {_SAY}"
                )
        return fitting[0]
