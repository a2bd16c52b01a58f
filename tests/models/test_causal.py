"""Causal scores are those of a plain loop over the raw model, one text at a time."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2Model

from probelight.encoding.packed import Packing, packed
from probelight.io.errors import RecordError
from probelight.models import causal, in_memory
from probelight.models.causal import CausalScorer, PackedReader, check, load
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.continuation_choice import TrainedPacks
from probelight.models.in_memory import TextSettings
from probelight.models.registry import ModelSettings
from probelight.probes.record import MASK, Record
from tests.fixtures.answers import answers, in_batches
from tests.fixtures.causal import FAMILIES

Folder = Callable[[str], Path]

MLM = [
    Record("1", "a cat is [MASK] than a dog .", ("smaller", "larger", "not really larger"), 0),
    Record("2", "a cat is [MASK] than a dog .", ("older", "smaller"), 0),
    Record("3", "[MASK] is larger than the cat, and the dog is not.", ("the antelope", "snow"), 0),
    Record("4", "the old ante[MASK] is never warm.", ("lope", "red"), 0),
    Record("5", "snow is naïve and\n[MASK] .", ("naïve", "naïve snow", "warm"), 1),
]
QA = [
    Record("6", "which animal is the largest one ?", ("the antelope", "a dog", "a red cat"), 0),
    Record("7", "which animal is the smallest one ? ", ("the cat", " the cat and the dog"), 0),
    Record("8", "which", ("one",), 0),
]
WHOLE = [
    Record("9", "", ("a cat is smaller than a dog .", "a cat is smaller than a naïve dog ."), 0),
    Record("10", "", ("the snow is warm .", "snow is never warm", "an old antelope"), 0),
]


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def scorer_of(folder: Path, **options: object) -> CausalScorer:
    scorer = load(ModelSettings(str(folder), kind="causal", **options), "mc_mlm")  # type: ignore[arg-type]
    assert isinstance(scorer, CausalScorer)
    return scorer


@cache
def raw(folder: Path) -> tuple[Any, Any]:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
    return model.requires_grad_(False), AutoTokenizer.from_pretrained(folder)


def by_hand(folder: Path, context: str, ending: str) -> tuple[float, int]:
    """log P(rest | before), and how many tokens that is, from the logits of the whole text."""
    model, tokenizer = raw(folder)
    context = context.rstrip()
    encoding = tokenizer(context + ending, return_offsets_mapping=True)
    special = sum(i == tokenizer.bos_token_id for i in encoding["input_ids"])
    ids, spans = encoding["input_ids"], encoding["offset_mapping"]
    first = special
    while context and spans[first][1] <= len(context):
        first += 1
    if first == 0:
        start = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else 1
        ids, first = [start, *ids], 1
    logs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    return sum(float(logs[i - 1, ids[i]]) for i in range(first, len(ids))), len(ids) - first


def expected(folder: Path, record: Record) -> list[tuple[float, int]]:
    prefix, mask, suffix = record.stem.partition(MASK)
    gap = prefix[len(prefix.rstrip()) :] if mask else " "
    gap = gap if prefix.strip() else ""
    return [by_hand(folder, prefix, gap + c.strip() + suffix) for c in record.choices]


def test_scores_are_those_of_the_whole_model_one_text_at_a_time(
    family: str, causal_folder: Folder
) -> None:
    folder = causal_folder(family)
    scorer = scorer_of(folder)
    assert scorer.reader.packs == (family != "mistral")  # which looks 5 tokens back
    assert scorer.reader.keeps_keys
    records = [*MLM, *QA, *WHOLE]
    hand = [expected(folder, record) for record in records]
    largest = 0.0
    for size in (1, 3, len(records)):
        for scores, row in zip(
            in_batches(scorer.log_likelihoods(), records, size), hand, strict=True
        ):
            for score, (total, _) in zip(scores.tolist(), row, strict=False):
                largest = max(largest, abs(score - total))
                assert score == pytest.approx(total, rel=1e-7, abs=1e-5)
            assert scores[len(row) :].tolist() == [-torch.inf] * (len(scores) - len(row))
    print(f"{family}: {sum(map(len, hand))} texts, largest difference {largest:.1e}")
    count = scorer.log_likelihoods().num_tokens
    assert count is not None
    assert count(records) == [[size for _, size in row] for row in hand]


def test_a_sentence_goes_by_the_sum_and_a_question_by_the_mean(causal_folder: Folder) -> None:
    folder = causal_folder("gpt2")
    settings = ModelSettings(str(folder), kind="causal")
    for setup, record in (("mc_mlm", MLM[0]), ("mc_qa", QA[0]), ("minimal_pair", WHOLE[1])):
        scorer = load(settings, setup)  # type: ignore[arg-type]
        [row] = answers(scorer.choice_scores(), record)
        by_rule = [v / (size if setup == "mc_qa" else 1) for v, size in expected(folder, record)]
        assert row.tolist() == pytest.approx(by_rule, abs=1e-5)
        assert scorer.mode == "causal_likelihood"
    fresh, twin = (scorer_of(folder, random_weights=True).fingerprint() for _ in range(2))
    assert fresh == twin != scorer.fingerprint()


@pytest.mark.parametrize("family", ["gpt2", "mistral"])
def test_numbers_depend_neither_on_how_texts_are_laid_out_nor_on_the_parts(
    family: str, causal_folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = scorer_of(causal_folder(family))
    records = [*MLM, *QA, *WHOLE]
    together = answers(scorer.log_likelihoods(), *records)

    def same() -> None:
        torch.testing.assert_close(
            answers(scorer.log_likelihoods(), *records), together, rtol=0, atol=1e-5
        )

    for most_logits in (1, 3_000):  # one row at a time; some
        with monkeypatch.context() as patch:
            patch.setattr(causal, "_MAX_LOGITS", most_logits)
            same()
    for row_tokens, min_prefix in ((1, 1), (40, 1), (40, 3), (10_000, 2)):
        with monkeypatch.context() as patch:
            patch.setattr(causal, "ROW_TOKENS", row_tokens)
            patch.setattr(causal, "MIN_PREFIX", min_prefix)
            same()
    scorer.reader.packs = False
    same()
    scorer.reader.keeps_keys = False
    same()


def sizes_read(scorer: CausalScorer, *records: Record) -> tuple[list[tuple[int, ...]], list[int]]:
    """Shapes of the ids of each call of the model, and how many places its head was asked for."""
    shapes: list[tuple[int, ...]] = []
    places: list[int] = []
    words, head = scorer.model.get_input_embeddings(), scorer.model.get_output_embeddings()
    hooks = [
        words.register_forward_pre_hook(lambda _, inputs: shapes.append(tuple(inputs[0].shape)))
    ]
    hooks += [head.register_forward_hook(lambda _, __, logits: places.append(logits.shape[1]))]
    answers(scorer.log_likelihoods(), *records)
    for hook in hooks:
        hook.remove()
    return shapes, places


def test_a_common_beginning_is_read_once(causal_folder: Folder) -> None:
    scorer = scorer_of(causal_folder("gpt2"))
    twin = Record("x", QA[0].stem, ("the antelope", "the red cat", "the antelope is warm"), 0)
    stem = len(scorer.tokenizer(f"{twin.stem} the")["input_ids"])
    sizes = [len(scorer.tokenizer(f"{twin.stem} {c}")["input_ids"]) - stem for c in twin.choices]
    # The last token of a text is only predicted. The second item has the texts of the first.
    tokens = stem + sum(size - 1 for size in sizes)
    assert sizes_read(scorer, twin, twin) == ([(1, tokens)], [sum(sizes) - 1])
    scorer.reader.packs = False
    behind = (3, max(sizes) + 1)
    assert sizes_read(scorer, twin) == ([(1, stem - 2), behind], [0, sum(sizes) + 3])


def test_a_beginning_of_many_items_is_read_once_for_all_of_them(
    causal_folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = scorer_of(causal_folder("gpt2"))
    passage = "snow is naïve and warm , and a cat is an old antelope . "
    records = [Record(str(n), passage + stem, ("warm", "red"), 0) for n, stem in enumerate("abcd")]
    monkeypatch.setattr(causal, "MIN_PREFIX", 10)
    monkeypatch.setattr(causal, "ROW_TOKENS", 8)
    shapes, _ = sizes_read(scorer, *records)
    whole = len(scorer.tokenizer(passage + "a warm")["input_ids"])
    (rows_of_prefix, prefix), (_, longest) = shapes
    assert (rows_of_prefix, len(shapes)) == (1, 2)
    assert prefix >= 10
    assert longest <= 8
    alone = torch.cat([answers(scorer.log_likelihoods(), record) for record in records])
    together = answers(scorer.log_likelihoods(), *records)
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-5)
    assert prefix < whole


def test_the_vocabulary_is_asked_behind_what_stands_before_the_blank(
    family: str, causal_folder: Folder
) -> None:
    folder = causal_folder(family)
    model, tokenizer = raw(folder)
    none = Record("n", "the dog is not [MASK] .", (), 0)
    pieces = Record("p", "a cat is [MASK] .", ("smaller", "snow dog cat"), 0)
    fits = Record("f", "a cat is  [MASK] than a dog .", ("larger", "smaller"), 0)
    starts = Record("s", "[MASK] dog is larger", (), 0)
    records = [fits, none, pieces, Record("q", QA[0].stem, ("cat", "dog"), 1), starts]
    question = scorer_of(folder).vocabulary()
    encoded = question.encoder.encode(records)
    assert encoded.positions == [0, 1, 3, 4]
    assert "1 of 5 records were skipped" in encoded.notices[0]
    batch = encoded.collate(range(4))
    names = [tokenizer.convert_ids_to_tokens(row) for row in batch["candidate_ids"].tolist()]
    space = "\u2581" if family in ("llama", "mistral") else "\u0120"
    assert names[0] == [f"{space}larger", f"{space}smaller"]
    assert names[2] == [f"{space}cat", f"{space}dog"]
    assert batch["choice_mask"].tolist() == [[True] * 2, [False] * 2, [True] * 2, [False] * 2]
    texts = ("a cat is", "the dog is not", QA[0].stem, "")
    start = tokenizer.eos_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
    for row, text in zip(question.answer(batch), texts, strict=True):
        ids = tokenizer(text)["input_ids"] or [start]
        logits = model(torch.tensor([ids])).logits[0, -1]
        logs = logits[: len(tokenizer)].log_softmax(0)
        torch.testing.assert_close(row, logs, rtol=0, atol=1e-5)


def test_features_are_what_the_head_reads_behind_the_whole_stem(
    family: str, causal_folder: Folder
) -> None:
    folder = causal_folder(family)
    model, tokenizer = raw(folder)
    states = answers(scorer_of(folder).features(), MLM[0], QA[1])
    for row, text in zip(states, ("a cat is ___ than a dog .", QA[1].stem.rstrip()), strict=True):
        output = model(torch.tensor([tokenizer(text)["input_ids"]]), output_hidden_states=True)
        logits = output.logits[0, -1]
        torch.testing.assert_close(model.lm_head(row.double()), logits, rtol=0, atol=1e-4)
        torch.testing.assert_close(row.double(), output.hidden_states[-1][0, -1], rtol=0, atol=1e-5)


def test_no_text_is_longer_than_the_model_has_places(causal_folder: Folder) -> None:
    scorer = scorer_of(causal_folder("gpt2"), max_length=5000)
    assert scorer.max_length == 64
    long = Record("l", "snow is warm " * 100, ("warm", "never warm"), 0)
    assert answers(scorer.log_likelihoods(), long).isfinite().all()
    pair = Record("w", "", (long.stem, "snow"), 0)
    with pytest.raises(
        RecordError, match=r"w@0: the choice .* have \d+ tokens, more than max_length=64"
    ):
        answers(scorer.log_likelihoods(), pair)


def test_a_foreign_tokenizer_and_a_model_without_a_head_are_refused(
    causal_folder: Folder, checkpoint: Folder, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(causal_folder("gpt2"), tmp_path / "foreign"))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(checkpoint("bert") / name, folder)
    foreign = ModelSettings(str(folder), kind="causal")
    for asks in (load, check):
        with pytest.raises(PretrainedError, match="55 entries, but the model 400"):
            asks(foreign, "mc_mlm")
    good = ModelSettings(str(causal_folder("gpt2")), kind="causal")
    assert list(check(good, "mc_qa")(QA)) == [0, 1, 2]
    config = GPT2Config(vocab_size=50, n_embd=8, n_layer=1, n_head=1)
    with pytest.raises(PretrainedError, match="GPT2Model has no head over a vocabulary"):
        PackedReader(GPT2Model(config), 64)


def test_log_likelihoods_are_those_of_minicons(causal_folder: Folder) -> None:
    minicons = pytest.importorskip("minicons.scorer")
    folder = causal_folder("gpt2")
    model, tokenizer = (
        kind.from_pretrained(folder) for kind in (AutoModelForCausalLM, AutoTokenizer)
    )
    peer = minicons.IncrementalLMScorer(model, device="cpu", tokenizer=tokenizer)
    # It moves no space to the answer: what is before must not end in one.
    records = [replace(record, stem=record.stem.strip()) for record in QA]
    for record, row in zip(
        records, answers(scorer_of(folder).log_likelihoods(), *records), strict=True
    ):
        choices = [choice.strip() for choice in record.choices]
        theirs = peer.conditional_score(
            [record.stem] * len(choices), choices, reduction=lambda logs: logs.sum().item()
        )
        assert row[: len(theirs)].tolist() == pytest.approx(theirs, rel=1e-6, abs=1e-5)


# Gemma 2 caps logits, and every other layer sees 4 tokens; BLOOM's places are distances, told from
# the attention mask; Mamba keeps no keys.
CONFIGS: dict[str, dict[str, Any]] = {
    "gemma2": {
        "intermediate_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "sliding_window": 4,
        "final_logit_softcapping": 2.0,
    },
    "bloom": {"n_layer": 2, "n_head": 2},
    "mamba": {"num_hidden_layers": 2, "state_size": 4},
}


@pytest.mark.parametrize("name", CONFIGS)
def test_log_probabilities_are_those_of_each_text_alone(name: str) -> None:
    config = AutoConfig.for_model(name, vocab_size=50, hidden_size=16, **CONFIGS[name])
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.add_(0.2 * torch.randn_like(parameter))
    beginning = [3, 4, 5, 6, 7, 8]
    texts = [[*beginning, 9, 10, 11], [*beginning, 12], [*beginning, 9, 13, 14, 15], [3, 20, 21]]
    reader = PackedReader(model, 64)
    assert reader.keeps_keys == (name != "mamba")
    assert reader.packs is False
    packing = Packing(packs=False, reads_prefixes=reader.keeps_keys)
    arrays = [np.array(text) for text in texts]
    batch = packed(arrays, [5, 5, 5, 1], [[0, 1, 2], [3]], packing)
    scores = reader.log_probabilities(batch)[batch["token_mask"]]
    why = {"gemma2": "it looks back 4 tokens, and max_length is 64"}
    others = f"{type(model).__name__} does not predict packed choices as alone"
    assert reader.why_not_packed == why.get(name, others)
    expected = []
    for text, first in zip(texts, (5, 5, 5, 1), strict=True):
        logs = model(torch.tensor([text])).logits[0].log_softmax(-1)
        expected += [float(logs[i - 1, text[i]]) for i in range(first, len(text))]
    assert scores.tolist() == pytest.approx(expected, abs=1e-5)


SIZES = {"vocab_size": 400, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES |= {"intermediate_size": 48, "max_position_embeddings": 64, "initializer_range": 0.3}
# What sees later tokens: encoders that were not made decoders, and a decoder that was made one.
LOOKING_AHEAD: dict[str, Any] = {
    "BertLMHeadModel": lambda: transformers.BertConfig(**SIZES),
    "RobertaForCausalLM": lambda: transformers.RobertaConfig(**SIZES),
    "XLNetLMHeadModel": lambda: transformers.XLNetConfig(
        vocab_size=400, d_model=32, n_layer=2, n_head=2, d_inner=48, initializer_range=0.3
    ),
    "GemmaForCausalLM": lambda: transformers.GemmaConfig(
        **SIZES, num_key_value_heads=1, head_dim=16, use_bidirectional_attention=True
    ),
    "BertGenerationDecoder": lambda: transformers.BertGenerationConfig(**SIZES),
}


@pytest.mark.parametrize("name", LOOKING_AHEAD)
def test_what_sees_later_tokens_is_no_causal_model(name: str, causal_folder: Folder) -> None:
    torch.manual_seed(0)
    network = getattr(transformers, name)(LOOKING_AHEAD[name]()).eval()
    ids = torch.arange(50, 57)[None]
    changed = torch.cat([ids[:, :-1], torch.tensor([[99]])], dim=1)
    assert not torch.allclose(network(ids).logits[0, 0], network(changed).logits[0, 0], atol=0.01)
    tokenizer = AutoTokenizer.from_pretrained(causal_folder("gpt2"))
    refused = f"{name} is no causal language model: another last token changes what it predicts"
    for reads in (CausalScorer, partial(TrainedPacks, max_length=64)):
        with pytest.raises(PretrainedError, match=refused):
            reads(network, tokenizer)


def test_an_encoder_that_was_made_a_decoder_is_one(causal_folder: Folder) -> None:
    torch.manual_seed(0)
    network = transformers.BertLMHeadModel(transformers.BertConfig(**SIZES, is_decoder=True))
    network.bfloat16().eval()  # compared in float32
    tokenizer = AutoTokenizer.from_pretrained(causal_folder("gpt2"))
    scorer = in_memory.scorer_of(network, tokenizer, "minimal_pair", TextSettings())
    assert scorer.mode == "causal_likelihood"
    for weight in network.parameters():  # what has no numbers left is counted where it is scored
        weight.data.fill_(torch.nan)
    in_memory.scorer_of(network, tokenizer, "minimal_pair", TextSettings())
