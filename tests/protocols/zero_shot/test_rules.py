"""Rules by which one model's choices are scored, against loops over the raw transformers model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

from probelight.io.errors import UsageError
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.metrics.scoring_rules import RULES
from probelight.models.checkpoint_files import BUNDLED_DIR
from probelight.models.scorer import Scorer, TrainedScorer
from probelight.probes.record import Record, Setup
from probelight.protocols.engine.models import scorer_for
from probelight.protocols.engine.predictions import Predictions, predict
from probelight.protocols.engine.settings import DEFAULT_MODEL, ModelSettings
from probelight.protocols.jobs.job import TrainerSettings
from probelight.protocols.zero_shot import measures
from probelight.protocols.zero_shot.command import chosen_rules
from probelight.protocols.zero_shot.measures import Panel, panel_of
from probelight.results.predictions import RuleAnswer
from probelight.results.row import Row

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


@pytest.fixture(scope="module")
def log_likelihood() -> LogLikelihood:
    """Of a choice in or behind a stem, the sum of log p of each piece, masked alone; the pieces."""
    tokenizer = AutoTokenizer.from_pretrained(BUNDLED_DIR)
    model = AutoModelForMaskedLM.from_pretrained(BUNDLED_DIR, dtype=torch.float32).eval()

    def found(stem: str, choice: str) -> tuple[float, int]:
        # A question's choice is behind its stem, which may be "[MASK]" alone.
        before, _, after = stem.rpartition("[MASK]") if stem.endswith(".") else (stem, "", "")
        texts = (before, choice, after)
        parts = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
        ids = [tokenizer.cls_token_id, *parts[0], *parts[1], *parts[2], tokenizer.sep_token_id]
        total = 0.0
        for place in range(1 + len(parts[0]), 1 + len(parts[0]) + len(parts[1])):
            masked = torch.tensor([ids])
            masked[0, place] = tokenizer.mask_token_id
            with torch.no_grad():
                logits = model(masked).logits[0, place]
            total += float(logits.log_softmax(0)[ids[place]])
        return total, len(parts[1])

    return found


def asked(
    setup: Setup, records: list[Record], domain: str, model: ModelSettings = DEFAULT_MODEL
) -> Panel:
    scorer = scorer_for(model, setup)
    own = predict(scorer, {"mine": records}, TRAINER)["mine"]
    return panel_of(scorer, own, RULES, setup, domain, TRAINER)


def assert_by_hand(
    panel: Panel, records: list[Record], domain: str, free: Sequence[str], score: LogLikelihood
) -> None:
    """The scores by every rule; `score(stem, choice)` is a log-likelihood and its pieces."""
    for place, record in enumerate(records):
        known = [score(record.stem, choice) for choice in record.choices]
        sums = torch.tensor([total for total, _ in known], dtype=torch.float64)
        behind = {
            stem: torch.tensor([score(stem, c)[0] for c in record.choices], dtype=torch.float64)
            for stem in (domain, *free)
        }
        ratio = sums.softmax(0) / torch.stack([behind[stem].softmax(0) for stem in free]).mean(0)
        expected = {
            "sum": sums,
            "mean_token": sums / torch.tensor([number for _, number in known]),
            "mean_char": sums / torch.tensor([len(choice) for choice in record.choices]),
            "pmi": sums - behind[domain],
            "calibrated": ratio / ratio.sum(),
        }
        for rule, found in panel.by_rule.items():
            assert found.scores[place] == pytest.approx(expected[rule].tolist(), abs=1e-4), rule


def test_questions_by_every_rule(log_likelihood: LogLikelihood) -> None:
    panel = asked("mc_qa", QA, "It is")
    assert list(panel.by_rule) == list(RULES)
    assert_by_hand(panel, QA, "It is", ("N/A", "[MASK]", ""), log_likelihood)
    # An untrained model goes by the mean per token, which the rule gives to the last bit.
    assert panel.by_rule["mean_token"].scores == panel.own.scores


FREE = ("N/A [MASK] .", "[MASK] [MASK] .", "[MASK] .")


def test_masks_by_every_rule_and_one_piece_words_by_their_sum_alone(
    log_likelihood: LogLikelihood,
) -> None:
    panel = asked("mc_mlm", MLM, "[MASK] .")
    assert list(panel.by_rule) == ["sum", "mean_char", "pmi", "calibrated"]
    [notice] = panel.notices
    assert notice.startswith("mean_token gives every item of mine the answer of sum")
    assert_by_hand(panel, MLM, "[MASK] .", FREE, log_likelihood)
    assert panel.by_rule["sum"].best == panel.own.best


def test_a_causal_model_by_every_rule(causal_folder: Callable[[str], Path]) -> None:
    folder = str(causal_folder("gpt2"))
    model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    records = [
        Record("1", "a cat is [MASK] than a dog .", ("smaller", "not really larger"), 0),
        Record("2", "the snow is [MASK] , not warm .", ("red", "a dog"), 0),
    ]

    def score(stem: str, choice: str) -> tuple[float, int]:
        before, _, after = stem.rpartition("[MASK]")
        given = tokenizer(before.strip())["input_ids"] or [tokenizer.bos_token_id]
        ids = tokenizer(f"{' ' * bool(before)}{choice}{after}")["input_ids"]
        with torch.no_grad():
            logs = model(torch.tensor([[*given, *ids]])).logits[0].log_softmax(-1)
        return sum(float(logs[len(given) + i - 1, one]) for i, one in enumerate(ids)), len(ids)

    domain = "so [MASK] it is"
    panel = asked("mc_mlm", records, domain, ModelSettings(folder, kind="causal"))
    assert list(panel.by_rule) == list(RULES)
    assert_by_hand(panel, records, domain, FREE, score)


def test_each_choice_is_asked_for_once_behind_a_stem(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, Any]] = []
    whole = measures.ask

    def ask(scorer: Scorer, question: Any, sets: dict[str, Any], trainer: Any) -> Any:
        given.append(sets)
        return whole(scorer, question, sets, trainer)

    monkeypatch.setattr(measures, "ask", ask)
    asked("mc_mlm", MLM, "[MASK] .")
    [sets] = given
    _, others = sets.values()
    # The domain stem is the content-free one of the empty text; four words are in two items.
    texts = [(record.stem, *record.choices) for record in others]
    assert len(texts) == len(set(texts)) == 3 * 4
    assert {stem for stem, _ in texts} == {"[MASK] .", "N/A [MASK] .", "[MASK] [MASK] ."}


def test_what_was_not_asked_for_is_not_there() -> None:
    scorer = scorer_for(ModelSettings(), "mc_qa")
    own = predict(scorer, {"mine": QA}, TRAINER)["mine"]
    found = panel_of(scorer, own, ["mean_char"], "mc_qa", "", TRAINER)
    assert list(found.by_rule) == ["mean_char"]


def test_rows_and_lines_by_hand() -> None:
    records = [Record(str(i), "a [MASK]", ("x", "y"), 0) for i in range(4)]
    own = Predictions("p", records, [[2, 1], [1, 2], [1, 1], [2, 1]])
    other = Predictions("p", records, [[2, 1], [2, 1], [2, 1], [float("nan"), 1]])
    panel = Panel(own, {"pmi": other, "sum": own})
    rows = panel.rows(["a", "b", "c", "c"], Row(model="m", mode="zero_shot"))
    assert [(row.metric, row.scoring, row.value, row.num_groups) for row in rows] == [
        ("accuracy", "pmi", 0.75, 3),
        ("flipped_share", "pmi", 0.75, 3),  # the second, the tie, and what is answered no more
        ("accuracy", "sum", 0.625, 3),
        ("flipped_share", "sum", 0.0, 3),
    ]
    assert {row.mode for row in rows} == {"zero_shot"}
    lines = panel.lines(["a", "b", "c", "c"])
    assert [line.interval_group for line in lines] == [0, 1, 2, 2]
    assert [line.best for line in lines] == [(0,), (1,), (0, 1), (0,)]
    by_rule = [line.by_rule or {} for line in lines]
    assert by_rule[2]["pmi"] == RuleAnswer(scores=(2.0, 1.0), best=(0,))
    assert by_rule[3]["pmi"].best == ()
    assert by_rule[2]["sum"].best == (0, 1)


def test_a_head_that_was_fine_tuned_has_no_log_likelihoods() -> None:
    scorer = TrainedScorer(SentenceChoice("embedded", num_choices=2))
    own = Predictions("mine", QA, [[1.0, 0.0, 0.0], [1.0, 0.0]])
    with pytest.raises(UsageError, match=r"TrainedScorer \(mode fine_tuned\) gives no log-likeli"):
        panel_of(scorer, own, ["sum"], "mc_qa", "", TRAINER)


@pytest.mark.parametrize(
    ("given", "rules"),
    [([], []), (["pmi", "sum"], ["sum", "pmi"]), ([*reversed(RULES)], [*RULES])],
)
def test_rules_are_those_that_are_named(given: list[str], rules: list[str]) -> None:
    assert chosen_rules(given) == rules
