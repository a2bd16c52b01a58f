from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from probelight.commands.diagnose.measures import (
    Comparisons,
    Completion,
    Continuation,
    Contrast,
    Negation,
    PerturbedSet,
    comparisons_of,
    diagnostic_rows,
    perturbed_lines,
    perturbed_rows,
    perturbed_sets,
)
from probelight.commands.diagnose.word_predictions import WordPrediction, WordPredictions
from probelight.probes.diagnostics.sets import load_set
from probelight.results.model_outputs import ModelOutputs
from probelight.results.row import Row, Subset
from tests.fixtures import subsets
from tests.fixtures.diagnostics import FILES, NEG_SIMP, write_released
from tests.fixtures.results import wilson

CPRAG_FILE = "lm-diagnostics/datasets/CPRAG-102/CPRAG-102.tsv"
NEG_SIMP_FILE = "lm-diagnostics/datasets/NEG-136/NEG-136-SIMP.tsv"


def continuation(context: int, article: str) -> Continuation:
    subset = Subset.of("article", f"behind {article}", word=article)
    return Continuation(context, article, (subset,))


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    return write_released(tmp_path)


def test_roles_are_compared_between_the_contexts_of_a_pair(mirror: Path) -> None:
    comparisons = comparisons_of(load_set("role", mirror))
    # Line -b is before line -a; "worked for" counts by its first word.
    assert comparisons.contrasts == [Contrast(1, (0,)), Contrast(3, (2,))]
    assert [completion.expected for completion in comparisons.completions] == [
        ("tipped",), ("served", "worked"), ("seen",), ("eaten",),
    ]  # fmt: skip
    # Quartiles of 0.1, 0.2, 0.3, 0.4 with linear interpolation: 0.175, 0.25, 0.325.
    [bins] = zip(*(completion.subsets for completion in comparisons.completions), strict=True)
    assert [round(subset["upper"], 9) for subset in bins if subset.kind == "cloze"] == [
        0.25, 0.4, 0.325, 0.175,
    ]  # fmt: skip


def test_a_statement_and_its_negation_are_held_together_once_an_article(mirror: Path) -> None:
    comparisons = comparisons_of(load_set("neg_simp", mirror))
    # "A trout is a" comes of both its words; "An ant is an" and "An ant is a" of one each.
    assert comparisons.negations == [Negation(0, 1), Negation(4, 5), Negation(6, 7)]
    assert comparisons.articles == [
        *(continuation(context, "a") for context in (0, 1)),
        *(continuation(context, "an") for context in (4, 5)),
        *(continuation(context, "a") for context in (6, 7)),
    ]
    assert [completion.subject for completion in comparisons.completions] == ["trout", "ant"]
    natural = comparisons_of(load_set("neg_nat", mirror))
    assert natural.negations == [
        Negation(0, 1, (subsets.statements("", "natural"),)),
        Negation(4, 5, (subsets.statements("", "less natural"),)),
    ]


def test_what_a_set_does_not_have_is_not_asked(mirror: Path, tmp_path: Path) -> None:
    for name in ("cprag", "role", "role_1500", "neg_1500_simp_gen"):
        comparisons = comparisons_of(load_set(name, mirror))
        assert (comparisons.negations, comparisons.articles) == ([], [])
        assert not any(completion.subject for completion in comparisons.completions)
    odd = NEG_SIMP.replace("A trout is not", "Not").replace("An ant is not", "not ant is")
    released = FILES[CPRAG_FILE].replace("She ate the", "She ate A")
    write_released(tmp_path / "odd", {NEG_SIMP_FILE: odd, CPRAG_FILE: released})
    comparisons = comparisons_of(load_set("neg_simp", tmp_path / "odd"))
    assert [completion.subject for completion in comparisons.completions] == ["", ""]
    # An article ends a context of three prompts.
    assert comparisons_of(load_set("cprag", tmp_path / "odd")).articles == [continuation(3, "a")]


@pytest.mark.paper_data
def test_the_quarters_of_role_88_are_those_of_table_8(data_mirror: Path) -> None:
    comparisons = comparisons_of(load_set("role", data_mirror))
    sizes = Counter(subset.text for item in comparisons.completions for subset in item.subsets)
    # Its percentages are those of so many items: 12.0 is 3/25, 17.4 is 4/23, 11.8 is 2/17.
    assert sizes == {"cloze <=.17": 25, "cloze <=.23": 23, "cloze <=.33": 23, "cloze <=.77": 17}
    assert len(comparisons.contrasts) == 44


@pytest.mark.paper_data
def test_naturalness_is_counted_over_both_polarities_and_apart(data_mirror: Path) -> None:
    comparisons = comparisons_of(load_set("neg_nat", data_mirror))
    sizes = Counter(subset.text for pair in comparisons.contrasts for subset in pair.subsets)
    assert sizes == {
        "affirmative": 16, "negative": 16, "natural": 16, "less natural": 16,
        "affirmative natural": 8, "negative natural": 8,
        "affirmative less natural": 8, "negative less natural": 8,
    }  # fmt: skip


HIGH, LOW = (subsets.constraint("high"),), (subsets.constraint("low"),)
COMPARED = Comparisons(
    [Completion(0, ("tea",), HIGH), Completion(2, ("bus", "car"), LOW)],
    [Contrast(0, (1,), HIGH), Contrast(2, (3,), LOW)],
)
WORDS = (("tea",), (), ("a", "b", "c", "car", "d"), ())


def measured(cases: Comparisons, outputs: ModelOutputs) -> dict[tuple[str, str], tuple[float, int]]:
    rows = diagnostic_rows(cases, outputs, Row(protocol="diagnose"))
    values = {(row.metric, row.subset_text): (row.value, row.num_items or 0) for row in rows}
    assert len(values) == len(rows)
    return values


def test_shares_of_the_set_and_of_its_parts() -> None:
    shares = {  # of the set, of its item of high and of its item of low constraint
        "accuracy@1": (0.5, 1.0, 0.0),
        "accuracy@5": (1.0, 1.0, 1.0),
        "sensitivity": (1.0, 1.0, 1.0),
        "sensitivity_margin": (0.5, 1.0, 0.0),
    }
    sizes = {"": 2, "high constraint": 1, "low constraint": 1}
    assert measured(COMPARED, ModelOutputs(WORDS, 5, (0.5, 0.4, 0.2, 0.195))) == {
        (metric, subset): (value, sizes[subset])
        for metric, values in shares.items()
        for subset, value in zip(sizes, values, strict=True)
    }


def test_accuracy_goes_as_far_down_as_the_words() -> None:
    comparisons = Comparisons([Completion(0, ("w3",))])
    ten = ModelOutputs((tuple(f"w{number}" for number in range(9)),), 10)
    assert measured(comparisons, ten) == {
        ("accuracy@1", ""): (0.0, 1),
        ("accuracy@5", ""): (1.0, 1),
        ("accuracy@10", ""): (1.0, 1),
    }


def test_errors_that_repeat_the_subject() -> None:
    words = (("flower", "daisy"), ("Ant",), ("bird", "robin"), ("house",), (), ("x",))
    texts = ["flower daisy", "insect ant", "fish robin", "x house", "x house"]
    texts.append("y ")  # without a subject it is none of the errors
    pairs = [text.split(" ") for text in texts]
    completions = [Completion(n, (pair[0],), subject=pair[1]) for n, pair in enumerate(pairs)]
    values = measured(Comparisons(completions), ModelOutputs(words, 2))
    assert values["repeated_subject", ""] == (0.5, 4)  # ant and house, of ant, bird, house and none
    right = Comparisons(completions[:1])
    assert measured(right, ModelOutputs(words[:1], 2)) == {("accuracy@1", ""): (1.0, 1)}


def test_articles_that_are_obeyed() -> None:
    comparisons = Comparisons(
        articles=[continuation(0, "an"), continuation(1, "a"), continuation(3, "a")],
        negations=[Negation(0, 1, (subsets.statements("", "natural"),)), Negation(2, 3)],
    )
    outputs = ModelOutputs((("ant",), ("ant", "tool"), ("hour",), ("hour",)), 2)
    assert measured(comparisons, outputs) == {
        ("article_obedience", ""): (1 / 3, 3),
        ("article_obedience", "behind an"): (1.0, 1),
        ("article_obedience", "behind a"): (0.0, 2),
        ("unchanged_by_not", ""): (1.0, 2),
        ("unchanged_by_not", "natural"): (1.0, 1),
    }
    assert measured(comparisons, ModelOutputs(((),) * 4, 0)) == {}  # no words were recorded


COMPLETIONS = [Completion(0, ("tea",)), Completion(1, ("bus", "car")), Completion(2, ("zebra",))]
# Three draws: the first item is right in all, the second in one, the third has no entry.
DRAWN = PerturbedSet("shuffled", COMPLETIONS, [[f"{i} {draw}" for i in "abc"] for draw in range(3)])
SAID = {"a 0": "tea", "a 1": "tea", "a 2": "tea", "b 0": "x", "b 1": "car", "b 2": "x"}


def answers(**overrides: str) -> WordPredictions:
    contexts = [context for draw in DRAWN.contexts for context in draw]
    words = {context: (SAID | overrides).get(context, "no") for context in contexts}
    by_context = {c: WordPrediction((word, "y"), {}, frozenset()) for c, word in words.items()}
    return WordPredictions(by_context, 2, ())


def test_mean_spread_and_what_survives() -> None:
    outputs = ModelOutputs((("tea",), ("bus",), ("no",)), 2, split=frozenset({"zebra"}))
    mean, spread, survived = perturbed_rows(DRAWN, answers(), outputs, Row(model="m"))
    # Draws: 1/2, 2/2, 1/2; their mean is 2/3, the squares of what they differ sum to 1/6.
    assert (mean.metric, mean.perturbation, mean.num_items) == ("accuracy@1", "shuffled", 2)
    assert mean.value == pytest.approx(2 / 3)
    assert (mean.ci_low, mean.ci_high) == pytest.approx(wilson(2 / 3, 2))
    assert (spread.metric, spread.ci_low) == ("accuracy@1_sd", None)
    assert spread.value == pytest.approx((1 / 6 / 2) ** 0.5)
    # Both were right before; one is right in all draws, the other in one of three.
    assert (survived.metric, survived.num_items) == ("survival@1", 2)
    assert survived.value == pytest.approx((1 + 1 / 3) / 2)


def test_what_is_not_drawn_has_no_spread_and_nothing_may_survive() -> None:
    outputs = ModelOutputs((("x",), ("x",), ("no",)), 2)
    once = PerturbedSet("truncated", COMPLETIONS, DRAWN.contexts[:1])
    [row] = perturbed_rows(once, answers(), outputs, Row())
    assert (row.metric, row.num_items) == ("accuracy@1", 3)
    assert row.value == pytest.approx(1 / 3)
    none = ModelOutputs(outputs.predictions, 2, split=frozenset({"tea", "bus", "car", "zebra"}))
    assert perturbed_rows(once, answers(), none, Row()) == []


def test_draws_and_lines_of_a_set(tmp_path: Path) -> None:
    data = load_set("cprag", write_released(tmp_path))
    shuffles, cuts, shuffled_cuts = perturbed_sets(data, 3)
    assert [len(perturbed.contexts) for perturbed in (shuffles, cuts, shuffled_cuts)] == [3, 1, 3]
    assert [perturbed.name for perturbed in perturbed_sets(data, 0)] == ["truncated"]
    assert cuts.contexts == [["He caught the pass. He loved", "She lit a candle. ate the"]]
    by_context = dict.fromkeys(cuts.contexts[0], WordPrediction(("it", "cake"), {}, frozenset()))
    _, line = perturbed_lines(cuts, data, WordPredictions(by_context, 5, ()))
    assert line == {
        "perturbation": "truncated",
        "context": "She lit a candle. She ate the",
        "perturbed": "She lit a candle. ate the",
        "expected": ["cake"],
        "predictions": ["it", "cake"],
        "right@1": 0.0,
        "right@5": 1.0,
    }
