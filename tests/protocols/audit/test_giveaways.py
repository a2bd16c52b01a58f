from __future__ import annotations

import math
from pathlib import Path

import pytest

from probelight.build.giveaways import TRAIN, WORDFREQ
from probelight.metrics.intervals import wilson
from probelight.probes.catalog import ProbeConfig
from probelight.probes.record import Record
from probelight.probes.source import ProbeData
from probelight.protocols.audit.audit import part_rows, rule_rows
from probelight.protocols.audit.items import AuditData, AuditSettings, load_audit
from probelight.results.row import Row

CONFIG = ProbeConfig("tiny", "mc_qa", 2, 0.5, group_by="cluster")


def item(number: int, answer: int, *choices: str) -> Record:
    return Record(str(number), "what?", choices, answer, {"cluster": f"c{number // 2}"})


# Each second item has the longer answer right; "not" is in wrong answers alone.
ITEMS = [item(n, 0, "a long one" if n % 2 else "an x", "not one") for n in range(12)]
DATA = AuditData(CONFIG, {}, tuple(ITEMS[:2]), (), {"test": tuple(ITEMS[2:])}, ())


def test_rules_are_measured_on_what_is_not_counted() -> None:
    rows = list(rule_rows(DATA, TRAIN, Row(protocol="audit")))
    chance, *measured = rows
    assert (chance.metric, chance.value, chance.split) == ("chance", 0.5, "test")
    by_hand = {
        "the longest answer": 0.5,
        "the shortest answer": 0.5,
        # "one" is in the wrong answer of one train item, "not" in those of both.
        "words that are right in train": 1.0,
        "the answer at place 1": 1.0,
        "the answer at place 2": 0.0,
    }
    assert {row.scoring: row.value for row in measured}.items() >= by_hand.items()
    assert all((row.num_items, row.num_groups) == (10, 5) for row in measured)


def test_the_rule_of_the_asked_word_with_ties_and_groups() -> None:
    def asked(number: int, *choices: str) -> Record:
        meta = {"cluster": f"c{number // 2}", "surface_form": "poking"}
        return Record(str(number), "In 'poking it', 'poking' is", choices, 0, meta)

    # Of six the right answer has it in two, a wrong one in one, both in one, none in two.
    items = [
        *(asked(0, "a poke", "x"), asked(1, "poked", "x"), asked(2, "y", "it pokes")),
        *(asked(3, "poke", "poking"), asked(4, "x", "y"), asked(5, "x", "a poker")),
    ]
    data = AuditData(CONFIG, {}, (), (), {"test": tuple(items)}, ())
    rows = {row.scoring: row for row in rule_rows(data, TRAIN, Row())}
    rule, opposite = (rows[f"an answer {word} the asked word"] for word in ("with", "without"))
    assert rule.value == pytest.approx((2 + 0 + 3 * 0.5) / 6)
    assert opposite.value == pytest.approx((0 + 1 + 3 * 0.5) / 6)
    assert (rule.num_items, rule.num_groups) == (6, 3)
    assert rule.ci_low is not None
    assert rule.ci_low < rule.value
    rules = {row.scoring for row in rule_rows(DATA, TRAIN, Row())}  # whose notes name no word
    assert "the most words of the question" in rules
    assert "an answer with the asked word" not in rules


@pytest.mark.parametrize("kind", ["word", "answer"])
def test_words_with_chance_and_pmi(kind: str) -> None:
    data = AuditData(CONFIG, {"all": ProbeData(CONFIG, tuple(ITEMS), (), ())}, (), (), {}, ())
    subsets = {f"{kind}=not", f"{kind}=not one"}
    share, chance, pmi = (r for r in part_rows(data, kind, Row()) if r.subset_text in subsets)
    found = (share.metric, share.value, share.num_items, share.num_groups)
    assert found == ("right_share", 0.0, 12, 6)
    assert share.ci_high is not None
    assert share.ci_high > wilson(0, 12)[1]  # by groups
    assert (chance.metric, chance.value) == ("chance", 0.5)
    assert (pmi.metric, pmi.value) == ("pmi", pytest.approx(math.log2(5 / 11)))


@pytest.mark.slow
@pytest.mark.paper_data
def test_the_released_hypernymy_gives_away_what_a_plain_loop_counts(data_mirror: Path) -> None:
    pytest.importorskip("wordfreq")
    data = load_audit("hypernymy", AuditSettings(), str(data_mirror))
    rules = {row.scoring: row for row in rule_rows(data, WORDFREQ, Row()) if row.split == "test"}
    assert rules["the longest answer"].value == pytest.approx(0.24622892635314997)
    assert rules["the commonest words"].value == pytest.approx(0.37244897959183676)
    assert rules["the rarest words"].value == pytest.approx(0.05368234250221828)
    words = part_rows(data, "word", Row())
    told = {(row.subset_text, row.metric): row.value for row in words}
    assert told["word=white", "pmi"] == pytest.approx(-4.217230716220668)
    assert told["word=white", "right_share"] == 0.0
    assert told["word=concrete", "right_share"] == pytest.approx(55 / 67)
