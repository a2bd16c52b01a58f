"""Scores by every rule, against loops over the raw model; accuracy by paradigm, by hand."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

from probelight import cli
from probelight.evaluation import measures, rules
from probelight.evaluation.asking import chosen_rules
from probelight.evaluation.evaluate import Evaluation, evaluate
from probelight.evaluation.rules import ByRule
from probelight.evaluation.scorers import scorer_for
from probelight.metrics.intervals import wilson
from probelight.metrics.scoring_rules import RULES
from probelight.models.registry import ModelSettings
from probelight.models.scorer import Scorer
from probelight.probes.catalog import ProbeConfig
from probelight.probes.record import GroupBy, Record, Setup
from probelight.probes.source import ProbeData, config_of
from probelight.results.measured import Predictions
from probelight.results.predictions import RuleAnswer
from probelight.results.row import Row
from probelight.runs.settings import TrainerSettings
from tests.fixtures.checkout import SMALL_DIR
from tests.fixtures.rows import read_predictions, read_result, read_results

WORDS = [rule for rule in RULES if rule != "letter"]  # by the words of the choices
SMALL = ModelSettings("dictionary-lm", kind="transformer")
TRAINER = TrainerSettings(accelerator="cpu", progress_bar=False)
LogLikelihood = Callable[[str, str], tuple[float, int]]
MLM = [
    Record("1", "A cat is a kind of [MASK].", ("animal", "tool", "fruit"), 0),
    Record("2", "The opposite of cold is [MASK] .", ("hot", "animal"), 0),
]
QA = [
    Record("1", "What is a cat?", ("an animal with fur", "tool", "a fruit"), 0),
    Record("2", "What is hot?", ("fire", "an animal with fur"), 0),
]


class Answered(NamedTuple):
    """The answers by the model's own scores and by each rule."""

    plain: Predictions
    by_rule: dict[str, Predictions]
    notices: tuple[str, ...]


@pytest.fixture(scope="module")
def log_likelihood() -> LogLikelihood:
    """Of a choice in or behind a stem, the sum of log p of each piece, masked alone; the pieces."""
    tokenizer = AutoTokenizer.from_pretrained(SMALL_DIR)
    model = AutoModelForMaskedLM.from_pretrained(SMALL_DIR, dtype=torch.float32).eval()

    def score(stem: str, choice: str) -> tuple[float, int]:
        # A question's choice is behind its stem, which may be "[MASK]" alone.
        prefix, _, suffix = stem.rpartition("[MASK]") if stem.endswith(".") else (stem, "", "")
        texts = (prefix, choice, suffix)
        pieces = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
        ids = [tokenizer.cls_token_id, *pieces[0], *pieces[1], *pieces[2], tokenizer.sep_token_id]
        total = 0.0
        for i in range(1 + len(pieces[0]), 1 + len(pieces[0]) + len(pieces[1])):
            masked = torch.tensor([ids])
            masked[0, i] = tokenizer.mask_token_id
            with torch.no_grad():
                logits = model(masked).logits[0, i]
            total += float(logits.log_softmax(0)[ids[i]])
        return total, len(pieces[1])

    return score


def by_rules(
    setup: Setup, records: list[Record], domain: str, model: ModelSettings = SMALL
) -> Answered:
    probe = ProbeData(config_of("mine", setup, records, ()), tuple(records), (), ())
    question = ByRule(tuple(WORDS), domain)
    evaluation = evaluate(scorer_for(model, setup), probe, [question], trainer=TRAINER)
    [(_, answers)] = evaluation.answers
    return Answered(evaluation.predictions, answers.by_rule, answers.notices)


def assert_by_hand(
    panel: Answered,
    records: list[Record],
    domain: str,
    free: Sequence[str],
    score: LogLikelihood,
) -> None:
    """The scores by every rule; `score(stem, choice)` is a log-likelihood and its pieces."""
    for i, record in enumerate(records):
        pairs = [score(record.stem, choice) for choice in record.choices]
        sums = torch.tensor([total for total, _ in pairs], dtype=torch.float64)
        priors = {
            stem: torch.tensor([score(stem, c)[0] for c in record.choices], dtype=torch.float64)
            for stem in (domain, *free)
        }
        ratio = sums.softmax(0) / torch.stack([priors[stem].softmax(0) for stem in free]).mean(0)
        expected = {
            "sum": sums,
            "mean_token": sums / torch.tensor([number for _, number in pairs]),
            "mean_char": sums / torch.tensor([len(choice) for choice in record.choices]),
            "pmi": sums - priors[domain],
            "calibrated": ratio / ratio.sum(),
        }
        for rule, answers in panel.by_rule.items():
            assert answers.scores[i] == pytest.approx(expected[rule].tolist(), abs=1e-4), rule


def test_questions_by_every_rule(log_likelihood: LogLikelihood) -> None:
    panel = by_rules("mc_qa", QA, "It is")
    assert list(panel.by_rule) == list(WORDS)
    assert_by_hand(panel, QA, "It is", ("N/A", "[MASK]", ""), log_likelihood)
    # An untrained model goes by the mean per token, which the rule gives to the last bit.
    assert panel.by_rule["mean_token"].scores == panel.plain.scores


FREE = ("N/A [MASK] .", "[MASK] [MASK] .", "[MASK] .")


def test_masks_by_every_rule_and_one_piece_words_by_their_sum_alone(
    log_likelihood: LogLikelihood,
) -> None:
    panel = by_rules("mc_mlm", MLM, "[MASK] .")
    assert list(panel.by_rule) == ["sum", "mean_char", "pmi", "calibrated"]
    [notice] = panel.notices
    assert notice.startswith("mean_token and sum give the same answers to mine")
    assert_by_hand(panel, MLM, "[MASK] .", FREE, log_likelihood)
    assert panel.by_rule["sum"].best == panel.plain.best


def test_a_causal_model_by_every_rule(causal_folder: Callable[[str], Path]) -> None:
    folder = str(causal_folder("gpt2"))
    model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    records = [
        Record("1", "a cat is [MASK] than a dog .", ("smaller", "not really larger"), 0),
        Record("2", "the snow is [MASK] , not warm .", ("red", "a dog"), 0),
    ]

    def score(stem: str, choice: str) -> tuple[float, int]:
        prefix, _, suffix = stem.rpartition("[MASK]")
        context = tokenizer(prefix.strip())["input_ids"] or [tokenizer.bos_token_id]
        ids = tokenizer(f"{' ' * bool(prefix)}{choice}{suffix}")["input_ids"]
        with torch.no_grad():
            logs = model(torch.tensor([[*context, *ids]])).logits[0].log_softmax(-1)
        return sum(float(logs[len(context) + i - 1, t]) for i, t in enumerate(ids)), len(ids)

    domain = "so [MASK] it is"
    panel = by_rules("mc_mlm", records, domain, ModelSettings(folder, kind="causal"))
    assert list(panel.by_rule) == list(WORDS)
    assert_by_hand(panel, records, domain, FREE, score)


def test_each_choice_is_asked_for_once_behind_a_stem(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[dict[str, Any]] = []
    raw_ask = rules.ask

    def ask(scorer: Scorer, question: Any, sets: dict[str, Any], trainer: Any) -> Any:
        calls.append(sets)
        return raw_ask(scorer, question, sets, trainer)

    monkeypatch.setattr(rules, "ask", ask)
    by_rules("mc_mlm", MLM, "[MASK] .")
    [sets] = calls
    _, records = sets.values()
    # The domain stem is the content-free one of the empty text; four words are in two items.
    texts = [(record.stem, *record.choices) for record in records]
    assert len(texts) == len(set(texts)) == 3 * 4
    assert {stem for stem, _ in texts} == {"[MASK] .", "N/A [MASK] .", "[MASK] [MASK] ."}


def test_rows_and_lines_by_hand() -> None:
    records = [Record(str(i), "a [MASK]", ("x", "y"), 0) for i in range(4)]
    sums = Predictions("p", records, [[2, 1], [1, 2], [1, 1], [2, 1]])
    pmi = Predictions("p", records, [[2, 1], [2, 1], [2, 1], [float("nan"), 1]])
    records = [replace(r, meta={"cluster": c}) for r, c in zip(records, "abcc", strict=True)]
    sums, pmi = replace(sums, records=records), replace(pmi, records=records)
    config = config_of("p", "mc_mlm", records, ())
    answers = rules.RuleScores({"pmi": pmi, "sum": sums})
    question, probe = ByRule(("pmi", "sum")), ProbeData(config, tuple(records), (), ())
    evaluation = Evaluation.of(probe, sums, "zero_shot", answers=((question, answers),))
    measured = question.rows(evaluation, answers, Row(model="m", mode="zero_shot"))
    assert [(row.metric, row.scoring, row.value, row.num_groups) for row in measured] == [
        ("accuracy", "pmi", 0.75, 3),
        ("flipped_share", "pmi", 0.75, 3),  # the second, the tie, and what is answered no more
        ("accuracy", "sum", 0.625, 3),
        ("flipped_share", "sum", 0.0, 3),
    ]
    assert {row.mode for row in measured} == {"zero_shot"}
    lines = evaluation.lines()
    assert [line.interval_group for line in lines] == [0, 1, 2, 2]
    assert [line.best for line in lines] == [(0,), (1,), (0, 1), (0,)]
    by_rule = [line.by_rule or {} for line in lines]
    assert by_rule[2]["pmi"] == RuleAnswer(scores=(2.0, 1.0), best=(0,))
    assert by_rule[3]["pmi"].best == ()
    assert by_rule[2]["sum"].best == (0, 1)


@pytest.mark.parametrize(
    ("names", "chosen"),
    [([], []), (["pmi", "sum"], ["sum", "pmi"]), ([*reversed(RULES)], [*RULES])],
)
def test_rules_are_those_that_are_named(names: list[str], chosen: list[str]) -> None:
    assert chosen_rules(names) == chosen


UIDS = ("agreement", "agreement", "order", "order", "order", None)
PAIRS = tuple(
    Record(str(n), "", (f"good {n}", f"bad {n}"), 0, {"paradigm": uid} if uid else {}, n)
    for n, uid in enumerate(UIDS)
)
# By sums: right, wrong, a tie, right, right, wrong.
SUMS = Predictions("pairs", PAIRS, [[-4, -6], [-9, -8], [-5, -5], [-2, -3], [-1, -7], [-8, -6]])
# The means: -2 -2, -3 -8, -5 -2.5, -1 -3, -1 -7, -2 -3.
NUM_TOKENS = [[2, 3], [3, 1], [1, 2], [2, 1], [1, 1], [4, 2]]


def probe(group_by: GroupBy | None, records: tuple[Record, ...] = PAIRS) -> ProbeData:
    config = ProbeConfig("pairs", "minimal_pair", 2, 0.5, group_by=group_by)
    return ProbeData(config, records, (), ())


def test_accuracy_by_paradigm_by_sums_and_by_means_per_token() -> None:
    scores = [
        [total / number for total, number in zip(*row, strict=True)]
        for row in zip(SUMS.scores, NUM_TOKENS, strict=True)
    ]
    means = Predictions("pairs", PAIRS, scores)
    assert (scores[0], scores[5]) == ([-2, -2], [-2, -3])
    row = Row(model="m", mode="causal_likelihood")
    by_mean = measures.paradigm_rows(means, probe(None), replace(row, scoring="mean_token"))
    rows = [*measures.pair_rows(SUMS, probe(None), row), *by_mean]
    values = {(r.scoring, r.metric, r.subset_text): (r.value, r.num_items) for r in rows}
    assert len(values) == len(rows)
    assert {r.mode for r in rows} == {"causal_likelihood"}
    assert values == {
        ("", "accuracy", ""): (3.5 / 6, 6),
        ("", "tied_share", ""): (1 / 6, 6),
        ("", "near_tied_share", ""): (0.0, 6),
        ("", "chance", ""): (0.5, 6),
        ("", "accuracy", "UID=agreement"): (0.5, 2),
        ("", "accuracy", "UID=order"): (2.5 / 3, 3),
        ("mean_token", "accuracy", "UID=agreement"): (0.75, 2),
        ("mean_token", "accuracy", "UID=order"): (2 / 3, 3),
    }
    assert (rows[0].ci_low, rows[0].ci_high) == pytest.approx(wilson(3.5, 6))


def test_items_of_no_paradigm_are_counted_where_others_have_one() -> None:
    notice = "1 of 6 items have no UID and count only in the overall accuracy"
    assert measures.pair_notices(PAIRS) == [notice]
    assert measures.pair_notices(PAIRS[:5]) == measures.pair_notices(PAIRS[5:]) == []


def test_intervals_by_paradigm_are_of_the_whole_and_within_one_of_its_pairs() -> None:
    first_five = Predictions("pairs", PAIRS[:5], SUMS.scores[:5])
    rows = measures.pair_rows(first_five, probe("paradigm", PAIRS[:5]), Row())
    by_uid = {row.subset_text: row for row in rows if row.metric == "accuracy"}
    assert by_uid[""].num_groups == 2
    order = by_uid["UID=order"]
    assert (order.ci_low, order.ci_high) == pytest.approx(wilson(2.5, 3))


BLIMP = [
    ("agreement", "grass is white .", "the grass what white ."),
    ("agreement", "what is the colour of snow", "what is the the colour"),
    ("order", "the sky is blue .", "sky the is blue ."),
    ("order", "blood is red .", "is blood red ."),
    ("order", "coal is black .", "black coal is a ."),
]


def score_pairs(folder: Path, pairs: Iterable[tuple[str, str, str]]) -> list[str]:
    """The command that scores a file in BLiMP's form: a paradigm, a good and a bad sentence."""
    rows = [
        {"sentence_good": good, "sentence_bad": bad, "UID": uid, "pairID": str(n)}
        for n, (uid, good, bad) in enumerate(pairs)
    ]
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    quiet = "--trainer.progress_bar=false"
    return ["zero-shot", f"--data.path={path}", "--data.setup=minimal_pair", quiet]


def test_a_file_in_blimps_form_is_scored_as_a_loop_over_the_plain_model_does(
    tmp_path: Path, tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = score_pairs(tmp_path, BLIMP)
    out = f"--output_dir={tmp_path / 'out'}"
    assert cli.main([*command, out, f"--model.name_or_path={tiny_model}"]) == 0

    tokens = [[token_scores(tiny_model, text) for text in pair] for _, *pair in BLIMP]
    lines = read_predictions(tmp_path / "out", "zero-shot-pairs-*")
    assert [row["id"] for row in lines] == [f"{uid}-{n}" for n, (uid, *_) in enumerate(BLIMP)]
    for row, pair in zip(lines, tokens, strict=True):
        assert row["scores"] == pytest.approx([sum(scores) for scores in pair], abs=1e-4)
        means = [sum(scores) / len(scores) for scores in pair]
        assert row["by_rule"]["mean_token"]["scores"] == pytest.approx(means, abs=1e-4)
    expected = defaultdict[tuple[str, str], list[bool]](list)
    for (uid, *_), (good, bad) in zip(BLIMP, tokens, strict=True):
        for subset in ("", f"UID={uid}"):
            expected["", subset].append(sum(good) > sum(bad))
            expected["mean_token", subset].append(sum(good) / len(good) > sum(bad) / len(bad))
    results = [r for r in read_results(tmp_path / "out/results.csv") if r["metric"] == "accuracy"]
    assert {row["mode"] for row in results} == {"pseudo_log_likelihood"}
    assert {(row["scoring"], row["subset"]): float(row["value"]) for row in results} == {
        key: pytest.approx(sum(right) / len(right)) for key, right in expected.items()
    }
    # Every other question about a place in a sentence is refused by name.
    refused = f"--output_dir={tmp_path / 'other'}"
    for asked_for in ("--ranks=true", "--scoring=sum,pmi"):
        assert cli.main([*command, refused, asked_for]) == cli.USAGE_ERROR
    assert "give only sum, mean_token, mean_char" in capsys.readouterr().err


def token_scores(folder: Path, text: str) -> list[float]:
    """log p of each token with that token masked, one sequence at a time."""
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    [ids] = tokenizer(text, return_tensors="pt")["input_ids"]
    scores = []
    for i in range(1, len(ids) - 1):
        masked = ids.clone()
        masked[i] = tokenizer.mask_token_id
        with torch.no_grad():
            logits = model(masked[None]).logits[0, i]
        scores.append(float(logits.log_softmax(0)[ids[i]]))
    return scores


Folder = Callable[[str], Path]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["causal", "masked", "seq2seq"])
def test_white_space_around_texts_is_not_scored_and_said_once(
    kind: str, causal_folder: Folder, curve_lm: Folder, tmp_path: Path
) -> None:
    # As minicons and lm-evaluation-harness have it, a blank at the end would be a token.
    blanks = [("x", "the cat is larger . ", "the cat is a larger ."), ("x", "a dog", "\ta a dog")]
    models = {"causal": causal_folder("gpt2"), "seq2seq": curve_lm("t5")}
    model = models.get(kind, "dictionary-lm")
    runs = []
    for pairs in (blanks, [(uid, good.strip(), bad.strip()) for uid, good, bad in blanks]):
        out = tmp_path / str(len(runs))
        command = [*score_pairs(tmp_path, pairs), f"--output_dir={out}", "--model.kind=auto"]
        assert cli.main([*command, f"--model.name_or_path={model}"]) == 0
        notices = read_result(out).get("notices", [])
        space_notices = [notice for notice in notices if "white space" in notice]
        runs.append(([line["scores"] for line in read_predictions(out)], space_notices))
    [(with_blanks, [notice]), (clean, none)] = runs
    assert with_blanks == clean
    assert none == []
    assert notice.startswith("2 of 2 items have white space at the end of a choice or stem or arou")
    assert f"not scored (first: {tmp_path / 'pairs.jsonl'}:1)" in notice
