"""Every branch of the rule, from scores that are written down."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from probelight.reports.numbers import Estimate
from probelight.reports.overview.verdicts import (
    RULES,
    Case,
    ControlScore,
    Score,
    Word,
    above,
    judge,
)

HIGH = Estimate(0.80, 0.75, 0.85)
MIDDLE = Estimate(0.60, 0.55, 0.65)  # above chance of 0.5, below the 0.75 half of the way
LOW = Estimate(0.50, 0.45, 0.55)
GAIN, NO_GAIN = 0.02, -0.02  # lower ends of intervals


def lower(value: float) -> ControlScore:
    return ControlScore("without language", value, is_lower=True, is_alike=True)


def as_good(value: float) -> ControlScore:
    return ControlScore("without language", value, is_lower=False, is_alike=True)


def alone(value: float, is_lower: bool) -> ControlScore:
    return ControlScore("from the choices alone", value, is_lower, is_alike=False)


def before(measured: Estimate, *controls: ControlScore, auc: Estimate | None = None) -> Score:
    return Score(**vars(measured), when="before training", controls=controls, auc=auc)


def after(measured: Estimate, *controls: ControlScore) -> Score:
    return Score(**vars(measured), when="after 1,000 examples", controls=controls)


NO_BETTER = before(MIDDLE, as_good(0.58))
DEMO = (  # of an inoculation
    before(Estimate(0.277, 0.23, 0.33), alone(0.262, False)),
    after(Estimate(0.35, 0.296, 0.408), alone(0.32, False)),
)


@pytest.mark.parametrize(
    ("case", "word", "in_part"),
    [
        (Case(0.5, None, before(HIGH, lower(0.5))), "knew it", False),
        (Case(0.5, None, before(MIDDLE, lower(0.5))), "knew it", True),
        # A baseline of a part speaks against a score.
        (Case(0.5, None, before(HIGH, lower(0.5), alone(0.7, False))), "cannot tell", False),
        # 0.80 was no more than the most frequent answer, 0.76, may give.
        (Case(0.5, 0.76, before(HIGH, lower(0.5))), "cannot tell", False),
        (Case(0.5, 0.60, before(LOW)), "not shown", False),
        (Case(0.5, None, before(HIGH, as_good(0.78))), "cannot tell", False),
        # What is not shown needs no control, and none changes it.
        (Case(0.5, None, before(LOW)), "not shown", False),
        (Case(0.5, None, before(LOW, as_good(0.5))), "not shown", False),
        # Ten of twenty: known by half would be 0.75.
        (Case(0.5, None, before(Estimate(0.5, 0.24, 0.76))), "cannot tell", False),
        (Case(0.5, None, before(Estimate(0.8), lower(0.5))), "cannot tell", False),
        (Case(0.5), "cannot tell", False),
        # With training.
        (Case(0.5, None, before(LOW, lower(0.4)), after(HIGH), GAIN), "cannot tell", False),
        (Case(0.5, None, before(LOW), after(HIGH, alone(0.6, True)), GAIN), "cannot tell", False),
        # What was known, if in part, stays so, whatever training adds, and whatever learns it too.
        (Case(0.5, None, before(MIDDLE, lower(0.5)), after(LOW), NO_GAIN), "knew it", True),
        (Case(0.5, None, before(HIGH, lower(0.5)), after(HIGH), GAIN), "knew it", False),
        # A control scores as much before, and no longer after.
        (Case(0.5, None, NO_BETTER, after(HIGH, lower(0.6)), GAIN), "learned it", False),
        # And the demo's: what the choices alone give is against both.
        (Case(0.2, None, *DEMO, GAIN), "cannot tell", False),
        (Case(0.5, None, before(LOW), after(MIDDLE, lower(0.5)), GAIN), "learned it", True),
        # A head that begins untrained has no score before.
        (Case(0.5, None, None, after(HIGH, lower(0.5))), "learned it", False),
        (Case(0.5, None, None, after(HIGH)), "cannot tell", False),
        (Case(0.5, None, None, after(LOW)), "not shown", False),
        # Items were not recorded: 0.75 is above 0.55, but 0.55 is not.
        (Case(0.5, None, before(LOW), after(HIGH, lower(0.6))), "learned it", False),
        (Case(0.5, None, before(LOW), after(MIDDLE, lower(0.5))), "cannot tell", False),
        (Case(0.5, None, before(LOW), after(Estimate(0.8), lower(0.5))), "cannot tell", False),
    ],
)
def test_the_rule_by_hand(case: Case, word: Word, in_part: bool) -> None:
    verdict = judge(case)
    assert (verdict.word, verdict.in_part) == (word, in_part)
    assert verdict.word in RULES
    assert len(verdict.evidence) <= 2


@pytest.mark.parametrize(
    ("case", "words", "evidence", "reason"),
    [
        (
            Case(1 / 3, 0.34, before(HIGH, alone(0.3, True), lower(0.377))),
            "knew it",
            (("before training", 0.8), ("the most frequent answer", 0.34)),
            "Before training 80.0% (75.0–85.0), above the most frequent answer (34.0%); "
            "compared with 37.7% without language, 30.0% from the choices alone.",
        ),
        (
            Case(0.5, None, before(MIDDLE, lower(0.5)), after(HIGH, as_good(0.79)), GAIN),
            "knew it, in part",
            (("before training", 0.6), ("chance", 0.5)),
            "Before training 60.0% (55.0–65.0), above chance (50.0%); compared with 50.0% without "
            "language. Its gain after 1,000 examples also appears without language.",
        ),
        (
            Case(0.5, None, before(MIDDLE, lower(0.5)), after(HIGH, lower(0.6)), GAIN),
            "knew it, in part",
            (("before training", 0.6), ("after 1,000 examples", 0.8)),
            "Before training 60.0% (55.0–65.0), above chance (50.0%); compared with 50.0% without "
            "language. Training raised it further: after 1,000 examples 80.0% (75.0–85.0); "
            "compared with 60.0% without language.",
        ),
        (
            Case(0.5, None, before(LOW), after(MIDDLE), NO_GAIN),
            "cannot tell",
            (("before", 0.5), ("after 1,000 examples", 0.6)),
            "After 1,000 examples 60.0% (55.0–65.0), above chance, but not clearly above "
            "the 50.0% before training.",
        ),
        (
            Case(0.5, None, before(LOW), after(LOW), NO_GAIN),
            "not shown",
            (("after 1,000 examples", 0.5), ("chance", 0.5)),
            "After 1,000 examples 50.0% (45.0–55.0), before training 50.0% (45.0–55.0): not "
            "above chance (50.0%). This set would usually show an accuracy of 57.2% or more as "
            "above chance.",
        ),
        (
            Case(0.5, 0.6, before(LOW, auc=Estimate(0.76, 0.66, 0.85))),
            "cannot tell",
            (("before training", 0.5), ("AUC", 0.76)),
            "Before training 50.0% (45.0–55.0): not above the most frequent answer (60.0%). But "
            "its scores tell the right answers apart (AUC 76.0% (66.0–85.0); chance is 50.0%): it "
            "parts them, but prefers one answer.",
        ),
        (
            Case(1 / 3, None, before(Estimate(0.4, 0.159, 0.701))),
            "cannot tell",
            (("before training", 0.4), ("chance", 1 / 3)),
            "Before training 40.0% (15.9–70.1): too few items to distinguish chance from knowing "
            "half of it. This set would usually show an accuracy of 76.4% or more as above chance.",
        ),
        (
            Case(
                0.5,
                None,
                before(LOW),
                after(MIDDLE, replace(as_good(0.59), when="after 125 examples")),
                GAIN,
            ),
            "cannot tell",
            (("after 1,000 examples", 0.6), ("without language after 125 examples", 0.59)),
            "After 1,000 examples 60.0% (55.0–65.0); without language after 125 examples it is "
            "59.0%, which is not clearly lower.",
        ),
        (
            Case(None, None, before(LOW)),
            "cannot tell",
            (("before training", 0.5),),
            "There is no chance level to compare its score with.",
        ),
    ],
)
def test_a_verdict_names_its_evidence_and_reason(
    case: Case, words: str, evidence: tuple[tuple[str, float], ...], reason: str
) -> None:
    verdict = judge(case)
    assert (verdict.words, verdict.evidence, verdict.reason) == (words, evidence, reason)


ORDER: list[Word] = ["not shown", "cannot tell", "learned it", "knew it"]


def height(case: Case) -> tuple[int, bool]:
    """How much a verdict says of a model: what it says, and then whether in full."""
    verdict = judge(case)
    return ORDER.index(verdict.word), not verdict.in_part


def drawn_score(draw: random.Random, when: str) -> Score | None:
    """A score with controls that are lower where their intervals lie below its own."""
    if draw.random() < 0.15:
        return None
    value, width = draw.random(), draw.choice([0.02, 0.1, 0.3])
    ends = () if draw.random() < 0.1 else (value - width, value + width)
    score = Score(**vars(Estimate(value, *ends)), when=when)
    for _ in range(draw.randrange(4)):
        score = controlled(score, draw.random(), draw.random() < 0.5)
    return score


def controlled(score: Score, value: float, is_alike: bool) -> Score:
    estimate = Estimate(value, value - 0.05, value + 0.05)
    control = ControlScore("without", value, above(score, estimate), is_alike)
    return replace(score, controls=(*score.controls, control))


def test_scores_that_part_the_answers_lift_nothing_but_not_shown() -> None:
    """Over drawn cases: an AUC above 50% turns “not shown” into “cannot tell”, and no more."""
    draw, lifted = random.Random(1), 0
    for _ in range(1_000):
        score = drawn_score(draw, "before training")
        if score is None:
            continue
        middle = draw.random()
        auc = Estimate(middle, middle - 0.1, middle + 0.1)
        case = Case(0.5, draw.choice([None, draw.random()]), score)
        without, with_auc = judge(case), judge(replace(case, start=replace(score, auc=auc)))
        if without.word == "not shown" and middle - 0.1 > 0.5:
            assert (with_auc.word, with_auc.evidence[1]) == ("cannot tell", ("AUC", middle))
            lifted += 1
        else:
            assert with_auc.word == without.word
    assert lifted > 50


def test_evidence_against_a_model_never_raises_its_verdict() -> None:
    """Over drawn cases: a further control or baseline, or a higher score of one."""
    draw = random.Random(0)
    seen, lowered = Counter[Word](), 0
    for _ in range(2_500):
        start, end = drawn_score(draw, "before training"), drawn_score(draw, "after 9 examples")
        gain = draw.choice([None, draw.uniform(-0.3, 0.3)])
        majority = draw.choice([None, draw.random()])
        case = Case(draw.choice([0.2, 0.5, 0.5, None]), majority, start, end, gain)
        seen[judge(case).word] += 1
        for at, score in (("start", start), ("end", end)):
            if score is None:
                continue
            # A baseline of a part of the input in any case; a like-for-like control beside another,
            # or one that scores as much: the first one that is lower is what a claim waits for.
            worse = [controlled(score, draw.random(), is_alike=False)]
            alike = controlled(score, draw.random(), is_alike=True)
            if any(c.is_alike for c in score.controls) or not alike.controls[-1].is_lower:
                worse.append(alike)
            for index, control in enumerate(score.controls):
                fewer = (*score.controls[:index], *score.controls[index + 1 :])
                higher = control.value + draw.random() * (1 - control.value)
                worse.append(controlled(replace(score, controls=fewer), higher, control.is_alike))
            for harder in worse:
                weaker = replace(case, **{at: harder})
                assert height(weaker) <= height(case), (case, weaker)
                lowered += height(weaker) < height(case)
    assert min(seen[word] for word in ORDER) > 50
    assert lowered > 50
