"""Masked language models of every family score as the raw model does, one masked text at a time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from transformers import (
    AutoModelForMaskedLM,
    BertConfig,
    DebertaV2Config,
    ModernBertConfig,
    RobertaConfig,
)

from probelight.models.masked import MaskedLM, MaskedScorer, PllForm, PseudoLogLikelihood
from probelight.probes.record import Record
from tests.fixtures.answers import answers, in_batches
from tests.fixtures.architectures import ref_of
from tests.fixtures.tokenizers import byte_bpe, sentencepiece, wordpiece

# Of every tokenizer "antelopes" or "dogs" is several pieces; words are between spaces.
ONE_PIECE = Record("1", "a cat is [MASK] than the dog .", ("smaller", "larger", "younger"), 0)


def records(word: str) -> tuple[Record, ...]:
    """Records of every form; the word is of several pieces."""
    return (
        ONE_PIECE,
        Record("2", f"the {word} is [MASK] than a dog .", (f"{word} smaller", "larger"), 0),
        Record("3", "which one is best ?", (f"the {word}", "a dog", "older"), 0),
        Record("4", "", (f"the {word} is older", f"older is the {word}"), 0),
    )


_TINY: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 40,
}
FAMILIES: dict[str, tuple[Callable[..., Any], Callable[[], Any], str]] = {
    "BERT": (BertConfig, wordpiece, "antelope"),
    "RoBERTa": (RobertaConfig, byte_bpe, "dogs"),
    "ModernBERT": (ModernBertConfig, byte_bpe, "dogs"),
    "DeBERTa-v2": (
        lambda **options: DebertaV2Config(
            relative_attention=True, pos_att_type=["p2c", "c2p"], legacy=False, **options
        ),
        sentencepiece,
        "dogs",
    ),
}


class Family(NamedTuple):
    """A tiny random model of a family, with a tokenizer of its kind."""

    name: str
    model: Any
    tokenizer: Any
    records: tuple[Record, ...]

    def at(self, pieces: list[int], position: int, num_masked: int = 1) -> Tensor:
        """(V,) log-probabilities at a place of a text, which is masked, from the raw model."""
        text = list(pieces)
        text[position : position + num_masked] = [self.tokenizer.mask_token_id] * num_masked
        ids = [self.tokenizer.cls_token_id, *text, self.tokenizer.sep_token_id]
        first = ids.index(self.tokenizer.mask_token_id)
        with torch.no_grad():
            logits = self.model(input_ids=torch.tensor([ids])).logits[0, first]
        return logits.double().log_softmax(dim=0)

    def words(self, text: str) -> list[list[int]]:
        """The pieces of each word of a text, as words between spaces are cut one by one."""
        words = text.split()
        first, *following = [
            self.tokenizer(f"{space}{word}", add_special_tokens=False).input_ids
            for space, word in zip(["", *[" "] * (len(words) - 1)], words, strict=True)
        ]
        token_ids = self.tokenizer(text, add_special_tokens=False).input_ids
        assert [*chain(first, *following)] == token_ids
        return [first, *following]

    def by_hand(self, record: Record, choice: str, by_words: bool) -> list[float]:
        """Log-probability of each piece of a choice, one masked text after the other."""
        prefix, _, suffix = record.stem.partition("[MASK]")
        words = self.words(" ".join(f"{prefix} {choice} {suffix}".split()))
        begin, log_probs = len(prefix.split()), []
        for number in range(begin, begin + len(choice.split())):
            start = sum(map(len, words[:number]))
            for i, piece in enumerate(words[number]):
                num_masked = len(words[number]) - i if by_words else 1
                log_probs.append(float(self.at([*chain(*words)], start + i, num_masked)[piece]))
        return log_probs


def masked_of(family: Family) -> MaskedLM:
    return MaskedLM(ref_of("in memory"), read=lambda *_: (family.model, family.tokenizer))


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Family:
    config, make_tokenizer, word = FAMILIES[request.param]
    tokenizer = make_tokenizer()
    torch.manual_seed(0)
    special = {f"{n}_token_id": getattr(tokenizer, f"{n}_token_id") for n in ("pad", "cls", "sep")}
    model = AutoModelForMaskedLM.from_config(config(vocab_size=len(tokenizer), **_TINY, **special))
    with torch.no_grad():  # fresh biases are 0 and fresh norms 1, which would hide a lost one
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return Family(request.param, model.eval(), tokenizer, records(word))


@pytest.mark.parametrize("form", ["original", "within_word_l2r"])
def test_pseudo_log_likelihoods(family: Family, form: PllForm) -> None:
    hand = [
        [family.by_hand(record, choice, form != "original") for choice in record.choices]
        for record in family.records
    ]
    largest = 0.0
    scorer = PseudoLogLikelihood(masked_of(family), "mean", form)
    for batch_size in (1, 3):
        sums = in_batches(scorer.log_likelihoods(), family.records, batch_size)
        means = in_batches(scorer.choice_scores(), family.records, batch_size)
        for rows in zip(hand, sums, means, strict=True):
            for values, score, mean in zip(*rows, strict=False):
                largest = max(largest, abs(score - sum(values)))
                largest = max(largest, abs(mean - sum(values) / len(values)))
    print(f"{family.name}, {form}: largest difference {largest:.1e}")
    assert largest < 1e-5
    assert scorer.log_likelihoods().num_tokens(family.records) == [[*map(len, row)] for row in hand]


def test_candidates_at_the_mask(family: Family, tmp_path: Path) -> None:
    family.model.save_pretrained(tmp_path)
    family.tokenizer.save_pretrained(tmp_path)
    scorer = MaskedScorer(MaskedLM(ref_of(tmp_path)))
    text = family.words(ONE_PIECE.stem.replace("[MASK]", "smaller"))
    log_p = family.at([*chain(*text)], sum(map(len, text[:3])))
    ids = [family.words(f"a {choice}")[1] for choice in ONE_PIECE.choices]
    expected = [float(log_p[piece]) for [piece] in ids]
    for batch_size in (1, 2):
        records = (ONE_PIECE, Record("5", "the dog is [MASK] .", ("larger", "older"), 1))
        [scores, _] = in_batches(scorer.choice_scores(), records, batch_size)
        shift = scores.double() - torch.tensor(expected).double()
        largest = float(shift.max() - shift.min())
        [logs, _] = in_batches(scorer.vocabulary(), records, batch_size)
        largest = max(largest, *(abs(logs[i] - p) for [i], p in zip(ids, expected, strict=True)))
        print(f"{family.name}, at the mask: largest difference {largest:.1e}")
        assert largest < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("form", ["original", "within_word_l2r"])
def test_whole_sentences_are_scored_as_minicons_does(
    family: Family, form: PllForm, monkeypatch: pytest.MonkeyPatch
) -> None:
    minicons = pytest.importorskip("minicons.scorer")
    # It calls the tokenizer by a name that transformers has given up.
    monkeypatch.setattr(
        type(family.tokenizer), "batch_encode_plus", type(family.tokenizer).__call__, raising=False
    )
    record = family.records[-1]
    peer = minicons.MaskedLMScorer(family.model, "cpu", tokenizer=family.tokenizer)
    theirs = peer.sequence_score(
        list(record.choices), reduction=lambda scores: scores.sum(0).item(), PLL_metric=form
    )
    scorer = PseudoLogLikelihood(masked_of(family), form=form)
    [ours] = answers(scorer.log_likelihoods(), record).tolist()
    largest = max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
    print(f"{family.name}, {form}: largest difference from minicons {largest:.1e}")
    assert largest < 1e-5
