"""Every branch of the rule, from scores that are written down."""

from __future__ import annotations

import pytest

from reports.kit.measured import Estimate
from reports.overview.case import Case, Control, Score
from reports.overview.verdicts import RULES, Evidence, Judged, Word, judge

HIGH = Estimate(0.80, 0.75, 0.85)
MIDDLE = Estimate(0.60, 0.55, 0.65)  # above chance of 0.5, below the 0.75 half of the way
LOW = Estimate(0.50, 0.45, 0.55)
GAIN, NO_GAIN = Estimate(0.1, 0.02, 0.18), Estimate(0.1, -0.02, 0.22)


def lower(value: float) -> Control:
    return Control("without its language", value, is_lower=True)


def as_good(value: float) -> Control:
    return Control("without its language", value, is_lower=False)


def before(measured: Estimate, *controls: Control) -> Score:
    return Score("before training", measured, controls)


def after(measured: Estimate, *controls: Control) -> Score:
    return Score("after 1,000 examples", measured, controls)


@pytest.mark.parametrize(
    ("case", "word", "in_part"),
    [
        (Case(0.5, None, before(HIGH)), "knew it", False),
        (Case(0.5, None, before(HIGH, lower(0.5))), "knew it", False),
        (Case(0.5, None, before(MIDDLE)), "knew it", True),
        # 0.80 was no more than the most frequent answer, 0.76, may give.
        (Case(0.5, 0.76, before(HIGH)), "cannot tell", False),
        (Case(0.5, 0.60, before(LOW)), "not shown", False),
        (Case(0.5, None, before(HIGH, as_good(0.78))), "cannot tell", False),
        (Case(0.5, None, before(LOW)), "not shown", False),
        (Case(0.5, None, before(Estimate(0.3, 0.25, 0.35))), "not shown", False),
        # Ten of twenty: known by half would be 0.75.
        (Case(0.5, None, before(Estimate(0.5, 0.24, 0.76))), "cannot tell", False),
        (Case(None, None, before(HIGH)), "cannot tell", False),
        (Case(0.5, None, before(Estimate(0.8))), "cannot tell", False),
        (Case(0.5), "cannot tell", False),
        # With training.
        (Case(0.5, None, before(LOW), after(LOW), NO_GAIN), "not shown", False),
        (Case(0.5, None, before(LOW), after(HIGH, lower(0.6)), GAIN), "learned it", False),
        (Case(0.5, None, before(LOW), after(HIGH), GAIN), "learned it", False),
        (Case(0.5, None, before(LOW), after(HIGH, as_good(0.79)), GAIN), "cannot tell", False),
        (Case(0.5, None, before(LOW), after(MIDDLE), NO_GAIN), "cannot tell", False),
        # Known in part, and then learned; but not where a control learns it too.
        (Case(0.5, None, before(MIDDLE), after(HIGH, lower(0.6)), GAIN), "learned it", False),
        (Case(0.5, None, before(MIDDLE), after(HIGH, as_good(0.8)), GAIN), "knew it", True),
        (Case(0.5, None, before(MIDDLE), after(LOW), NO_GAIN), "knew it", True),
        # What was known stays so, whatever training adds.
        (Case(0.5, None, before(HIGH), after(HIGH, lower(0.6)), GAIN), "knew it", False),
        # The control scores as much before, and no longer after.
        (
            Case(0.5, None, before(MIDDLE, as_good(0.58)), after(HIGH, lower(0.6)), GAIN),
            "learned it",
            False,
        ),
        (Case(0.5, None, before(LOW), after(MIDDLE, lower(0.5)), GAIN), "learned it", True),
        # A head that begins untrained has no score before.
        (Case(0.5, None, None, after(HIGH, lower(0.5))), "learned it", False),
        (Case(0.5, None, None, after(LOW)), "not shown", False),
        # Items were not recorded: 0.75 is above 0.55, but 0.55 is not.
        (Case(0.5, None, before(LOW), after(HIGH)), "learned it", False),
        (Case(0.5, None, before(LOW), after(MIDDLE)), "cannot tell", False),
        (Case(0.5, None, before(LOW), after(Estimate(0.8))), "cannot tell", False),
    ],
)
def test_the_rule_by_hand(case: Case, word: Word, in_part: bool) -> None:
    found = judge(case)
    assert (found.word, found.in_part) == (word, in_part)
    assert found.word in RULES
    assert len(found.evidence) <= 2


@pytest.mark.parametrize(
    ("case", "judged"),
    [
        (
            Case(1 / 3, 0.34, before(HIGH, lower(0.377))),
            Judged(
                "knew it",
                (Evidence("before training", 0.8), Evidence("the most frequent answer", 0.34)),
                "Before training 80.0% (75.0–85.0), above the most frequent answer (34.0%); "
                "without its language it scores 37.7%.",
            ),
        ),
        (
            Case(0.5, None, before(MIDDLE), after(HIGH, as_good(0.79)), GAIN),
            Judged(
                "knew it",
                (Evidence("before training", 0.6), Evidence("chance", 0.5)),
                "Before training 60.0% (55.0–65.0), above chance (50.0%). No control was run "
                "beside it. What it gained after 1,000 examples came without its language too.",
                in_part=True,
            ),
        ),
        (
            Case(0.5, None, before(MIDDLE), after(HIGH), GAIN),
            Judged(
                "learned it",
                (Evidence("before", 0.6), Evidence("after 1,000 examples", 0.8)),
                "After 1,000 examples 80.0% (75.0–85.0), from 60.0% before training. No control "
                "was run beside it. It knew a part of it before.",
            ),
        ),
        (
            Case(0.5, None, before(LOW), after(HIGH, lower(0.6), lower(0.7)), GAIN),
            Judged(
                "learned it",
                (Evidence("after 1,000 examples", 0.8), Evidence("without its language", 0.7)),
                "After 1,000 examples 80.0% (75.0–85.0), from 50.0% before training; without its "
                "language it scores 70.0%.",
            ),
        ),
        (
            Case(0.5, None, before(LOW), after(HIGH, lower(0.6), as_good(0.79)), GAIN),
            Judged(
                "cannot tell",
                (Evidence("after 1,000 examples", 0.8), Evidence("without its language", 0.79)),
                "After 1,000 examples 80.0% (75.0–85.0), which cannot be told from what it scores "
                "without its language (79.0%).",
            ),
        ),
        (
            Case(0.5, None, before(LOW), after(MIDDLE), NO_GAIN),
            Judged(
                "cannot tell",
                (Evidence("before", 0.5), Evidence("after 1,000 examples", 0.6)),
                "After 1,000 examples 60.0% (55.0–65.0), above chance, but not beyond doubt above "
                "the 50.0% before training.",
            ),
        ),
        (
            Case(0.5, None, before(LOW), after(LOW), NO_GAIN),
            Judged(
                "not shown",
                (Evidence("after 1,000 examples", 0.5), Evidence("chance", 0.5)),
                "After 1,000 examples 50.0% (45.0–55.0), before training 50.0% (45.0–55.0): not "
                "above chance (50.0%).",
            ),
        ),
        (
            Case(0.5, None, before(Estimate(0.3, 0.25, 0.35))),
            Judged(
                "not shown",
                (Evidence("before training", 0.3), Evidence("chance", 0.5)),
                "Before training 30.0% (25.0–35.0): below chance (50.0%).",
            ),
        ),
        (
            Case(None, None, before(LOW)),
            Judged(
                "cannot tell",
                (Evidence("before training", 0.5),),
                "There is no chance level to hold its score against.",
            ),
        ),
    ],
)
def test_what_a_verdict_says(case: Case, judged: Judged) -> None:
    assert judge(case) == judged


def test_what_was_known_in_part_is_printed_so() -> None:
    assert judge(Case(0.5, None, before(MIDDLE))).said == "knew it, in part"
