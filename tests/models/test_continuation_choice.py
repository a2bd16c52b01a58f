"""A choice among continuations has the scores and gradients of a loop over the raw model."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    GPTNeoConfig,
    LlamaConfig,
    MistralConfig,
)

from probelight.evaluation.scorers import predict, scorer_for
from probelight.io.errors import RecordError, UsageError
from probelight.io.workload import Workload
from probelight.models import causal
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.continuation_choice import (
    ContinuationChoice,
    ContinuationScorer,
    TrainedPacks,
    trained_scorer,
)
from probelight.models.pair_choice import save_head
from probelight.models.registry import ModelSettings
from probelight.probes.record import Record
from probelight.runs.settings import TrainerSettings
from tests.fixtures.answers import answers
from tests.fixtures.architectures import ref_of
from tests.fixtures.causal import FAMILIES, causal_folder

__all__ = ["causal_folder"]
Folder = Callable[[str], Path]

RECORDS = [
    Record(
        "1", "which animal is the largest one ?", ("an old red antelope", "a cat", "the dog"), 0
    ),
    Record("2", "the dog is not", ("warm", "really warm"), 1),
    Record("3", "the [MASK] is smaller than a dog .", ("cat", "naïve snow"), 1),
]


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def logits_of(choice: ContinuationChoice, records: Sequence[Record] = RECORDS) -> Tensor:
    return choice(choice.encoder().encode(records).collate(range(len(records))))


def text_of(record: Record, choice: str) -> tuple[str, str]:
    """What is given, and what is summed: the choice and all that follows it."""
    prefix, mask, suffix = record.stem.partition("[MASK]")
    return (prefix.rstrip(), f" {choice}{suffix}") if mask else (record.stem, f" {choice}")


def loop(folder: Path, model: Any, record: Record, choice: str, divide: str = "sum") -> Tensor:
    """The score of one choice by one call of the raw model."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    context, summed = text_of(record, choice)
    first = tokenizer(context).input_ids
    ids = tokenizer(context + summed).input_ids
    assert ids[: len(first)] == first
    logs = model(torch.tensor([ids])).logits[0].log_softmax(dim=-1)
    steps = [logs[i - 1, ids[i]] for i in range(len(first), len(ids))]
    return (
        torch.stack(steps).sum()
        / {"sum": 1, "mean_token": len(steps), "mean_char": len(choice)}[divide]
    )


@pytest.mark.parametrize("scoring", ["sum", "mean_token", "mean_char"])
def test_scores_and_gradients_are_those_of_a_loop(
    family: str, scoring: Any, causal_folder: Folder
) -> None:
    folder = causal_folder(family)
    raw = AutoModelForCausalLM.from_pretrained(folder).eval()
    choice = ContinuationChoice(ref_of(folder), scoring)
    assert isinstance(choice.reader, TrainedPacks)
    assert choice.reader.packing.packs == (family != "mistral")  # which looks 5 tokens back
    logits = logits_of(choice)
    hand = [[loop(folder, raw, r, c, scoring) for c in r.choices] for r in RECORDS]
    for row, logs in zip(logits, hand, strict=True):
        torch.testing.assert_close(row[: len(logs)], torch.stack(logs), rtol=1e-5, atol=1e-5)
        assert row[len(logs) :].tolist() == [-torch.inf] * (3 - len(logs))
    labels = torch.tensor([r.answer for r in RECORDS])
    torch.nn.functional.cross_entropy(logits, labels).backward()
    theirs = [
        -torch.stack(row).log_softmax(0)[r.answer] for row, r in zip(hand, RECORDS, strict=True)
    ]
    torch.stack(theirs).mean().backward()
    for (name, ours), twin in zip(choice.model.named_parameters(), raw.parameters(), strict=True):
        assert ours.grad is not None
        assert twin.grad is not None
        torch.testing.assert_close(ours.grad, twin.grad, rtol=1e-4, atol=1e-5, msg=name)


def test_a_step_of_unlike_items_is_little_padding(causal_folder: Folder) -> None:
    choice = ContinuationChoice(ref_of(causal_folder("llama")), "sum")
    items = [Record(f"{n}", " ".join(["cat"] * n), ("dog", "a dog"), 0) for n in range(1, 17)]
    workload = Workload()
    choice(choice.encoder().encode(items).collate(range(16))).sum().backward()
    measured = workload.measured()
    assert 0 <= measured["padding_read"] < 0.05 * measured["tokens_read"]


def test_logits_in_parts_are_the_same(
    causal_folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    choice = ContinuationChoice(ref_of(causal_folder("gpt2")), "sum")
    at_once = logits_of(choice)
    for places in (1, 7):  # of some twenty that are read
        monkeypatch.setattr(causal, "_MAX_LOGITS", places * 400)
        with torch.no_grad():
            torch.testing.assert_close(logits_of(choice), at_once, rtol=0, atol=1e-5)


def test_a_window_of_all_of_a_text_lets_choices_be_packed(
    causal_folder: Folder, tmp_path: Path
) -> None:
    torch.manual_seed(1)
    sizes = {"vocab_size": 400, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 48}
    config = MistralConfig(
        **sizes, num_attention_heads=2, num_key_value_heads=1, head_dim=16, sliding_window=20
    )
    raw = AutoModelForCausalLM.from_config(config).eval()
    raw.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(causal_folder("mistral")).save_pretrained(tmp_path)
    choice = ContinuationChoice(ref_of(tmp_path), "sum", max_length=20)
    assert isinstance(choice.reader, TrainedPacks)
    assert choice.reader.packing.packs
    # Packed, the first item has more tokens than the window; none of its texts has.
    hand = [loop(tmp_path, raw, RECORDS[0], c) for c in RECORDS[0].choices]
    torch.testing.assert_close(logits_of(choice)[0], torch.stack(hand), rtol=1e-5, atol=1e-5)


def test_a_model_that_ignores_the_mask_reads_each_text_whole(
    causal_folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = logits_of(ContinuationChoice(ref_of(causal_folder("llama")), "sum"))
    # As of a family that takes any mask and sees everything before a token.
    monkeypatch.setattr(causal, "visible", lambda segments, dtype, size=0: (segments >= 0).long())
    choice = ContinuationChoice(ref_of(causal_folder("llama")), "sum")
    assert isinstance(choice.reader, TrainedPacks)
    assert not choice.reader.packing.packs
    torch.testing.assert_close(logits_of(choice), plain, rtol=0, atol=1e-5)
    scorer = ContinuationScorer(choice, "causal_sum")
    predicted = predict(scorer, {"x": RECORDS}, TrainerSettings(accelerator="cpu"))["x"]
    assert predicted.notices == (
        "choices were read one by one, not behind their common stem, which is slower: "
        "LlamaForCausalLM does not predict packed choices as alone",
    )


@pytest.mark.parametrize("largest", [30, 60])
def test_logits_as_large_as_real_models_have_are_packed(
    largest: float, causal_folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their rounding is more than 1e-5; what a wrong mask changes is far more than rounding."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 400, "hidden_size": 64, "num_hidden_layers": 8, "intermediate_size": 48}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64}
    raw = AutoModelForCausalLM.from_config(LlamaConfig(**sizes, **heads, initializer_range=0.3))
    with torch.no_grad():
        raw.lm_head.weight *= largest / raw(torch.arange(50, 64)[None]).logits.abs().max()
    raw.eval().save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(causal_folder("llama")).save_pretrained(tmp_path)
    choice = ContinuationChoice(ref_of(tmp_path), "sum")
    assert isinstance(choice.reader, TrainedPacks)
    assert choice.reader.packing.packs
    assert choice.notices == ()
    hand = [[loop(tmp_path, raw, r, c) for c in r.choices] for r in RECORDS]
    for row, logs in zip(logits_of(choice), hand, strict=True):
        torch.testing.assert_close(row[: len(logs)], torch.stack(logs), rtol=0, atol=1e-4 * largest)
    monkeypatch.setattr(causal, "visible", lambda segments, dtype, size=0: (segments >= 0).long())
    assert not TrainedPacks(raw, choice.tokenizer, 64).packing.packs


def test_letters_are_asked_for_behind_a_list_of_the_choices(causal_folder: Folder) -> None:
    folder = causal_folder("gpt2")
    choice = ContinuationChoice(ref_of(folder), "letter")
    raw = AutoModelForCausalLM.from_pretrained(folder).eval()
    record = Record("1", "the dog", ("warm", "cat"), 1)
    prompt = Record("2", "Question: the dog\nA. warm\nB. cat\nAnswer:", ("A", "B"), 1)
    hand = torch.stack([loop(folder, raw, prompt, letter) for letter in "AB"])
    torch.testing.assert_close(logits_of(choice, [record])[0], hand, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("head", ["mlp", "linear"])
def test_a_head_reads_the_last_token(family: str, head: str, causal_folder: Folder) -> None:
    folder = causal_folder(family)
    choice = ContinuationChoice(ref_of(folder, seed=3), "last_token", head=head)
    choice.network.eval()
    raw = AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    read: list[Tensor] = []
    raw.get_output_embeddings().register_forward_pre_hook(lambda _, inputs: read.append(inputs[0]))
    for row, record in zip(logits_of(choice), RECORDS, strict=True):
        for logit, text in zip(row, record.choices, strict=False):
            raw(torch.tensor([tokenizer("".join(text_of(record, text))).input_ids]))
            expected = choice.head(read[-1][:, -1])[0, 0]
            torch.testing.assert_close(logit, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("family", ["t5", "t5_untied", "bart"])
def test_an_encoder_decoder_model_has_the_scores_that_it_has_untrained(
    family: str, seq2seq: Folder
) -> None:
    folder = seq2seq(family)
    record = Record("1", "a cat is [MASK] than a dog .", ("much smaller", "larger"), 0)
    choice = ContinuationChoice(ref_of(folder), setup="mc_mlm")
    logits = logits_of(choice, [record])[0]
    raw = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for score, text in zip(logits, record.choices, strict=True):
        if family == "bart":
            source, start = "a cat is<mask> than a dog .", [tokenizer.eos_token_id]
            target = tokenizer(f"a cat is {text}").input_ids[:-1]
            first = len(tokenizer("a cat is").input_ids) - 1
        else:
            source, start = "a cat is <extra_id_0> than a dog .", [0]
            target = tokenizer(f"<extra_id_0> {text} <extra_id_1>").input_ids[:-1]
            first = 1
        ids = tokenizer(source, return_tensors="pt").input_ids
        decoder = torch.tensor([[*start, *target[:-1]]])
        logs = raw(input_ids=ids, decoder_input_ids=decoder).logits[0].log_softmax(dim=-1)
        expected = sum(logs[i, target[i]] for i in range(first, len(target)))
        torch.testing.assert_close(score, expected, rtol=1e-5, atol=1e-5)
    logits.sum().backward()
    assert all(p.grad is not None for p in choice.model.parameters())


@pytest.mark.parametrize("family", ["t5_untied", "bart"])
def test_a_head_on_a_decoder_has_read_all_of_the_answer(family: str, seq2seq: Folder) -> None:
    records = [Record("1", "a cat is [MASK] .", ("much smaller", "much larger"), 0)]
    choice = ContinuationChoice(ref_of(seq2seq(family)), "last_token", "mc_mlm", "linear")
    logits = logits_of(choice, records)[0]
    # The answers differ in their last piece alone.
    assert abs(logits[0] - logits[1]) > 1e-6
    logits[0].backward()
    unused = [n for n, p in choice.network.named_parameters() if p.requires_grad and p.grad is None]
    assert unused == []


def test_what_is_refused(causal_folder: Folder, tmp_path: Path) -> None:
    folder = str(causal_folder("gpt2"))
    with pytest.raises(UsageError, match="pooler is only for encoders; give mlp or linear"):
        ContinuationChoice(ref_of(folder), "last_token", head="pooler")
    settings = ModelSettings(folder, kind="causal", scoring="last_token")
    with pytest.raises(
        PretrainedError, match="needs a trained head, which this model does not have"
    ):
        trained_scorer(settings, "mc_qa")
    for path in Path(folder).iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    saved = {"format": 1, "head": "likelihood", "kind": "causal", "setup": "mc_qa"}
    (tmp_path / "choice_head.json").write_text(json.dumps({**saved, "scoring": "sum"}))
    assert ContinuationChoice(ref_of(tmp_path)).scoring == "sum"
    with pytest.raises(PretrainedError, match="saved with scoring 'sum', so scoring='letter' does"):
        ContinuationChoice(ref_of(tmp_path), "letter")


def test_a_family_with_masks_of_its_own_is_never_packed(
    causal_folder: Folder, tmp_path: Path
) -> None:
    torch.manual_seed(1)
    config = GPTNeoConfig(
        vocab_size=400,
        hidden_size=32,
        num_layers=2,
        num_heads=2,
        attention_types=[[["global", "local"], 1]],
        window_size=16,
        max_position_embeddings=64,
    )
    raw = AutoModelForCausalLM.from_config(config).eval()
    raw.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(causal_folder("gpt2")).save_pretrained(tmp_path)
    choice = ContinuationChoice(ref_of(tmp_path), "sum", max_length=16)
    choice.network.eval()
    # The first item's texts have fewer tokens than the window, and together more.
    hand = [[loop(tmp_path, raw, r, c) for c in r.choices] for r in RECORDS]
    for row, logs in zip(logits_of(choice), hand, strict=True):
        torch.testing.assert_close(row[: len(logs)], torch.stack(logs), rtol=1e-5, atol=1e-5)


def test_texts_that_are_not_packed_are_counted_one_by_one(causal_folder: Folder) -> None:
    choice = ContinuationChoice(ref_of(causal_folder("mistral")), "sum")
    assert choice.encoder().encode(RECORDS).num_sequences.tolist() == [3, 2, 2]
    assert choice.notices[0].endswith("it looks back 5 tokens, and max_length is 64")


@pytest.fixture
def trained_folder(causal_folder: Folder, tmp_path: Path) -> Callable[..., str]:
    """A folder as a training leaves it: `trained_folder(scoring="letter", ...)`."""

    def make(**settings: Any) -> str:
        for path in causal_folder("gpt2").iterdir():
            (tmp_path / path.name).write_bytes(path.read_bytes())
        saved = {"head": "likelihood", "kind": "causal", "setup": "mc_qa", "scoring": "sum"}
        save_head(tmp_path, (saved | settings)["head"], {}, {**saved, **settings})
        return str(tmp_path)

    return make


def test_what_a_folder_was_trained_with_holds_for_its_own_setup(
    trained_folder: Callable[..., str],
) -> None:
    folder = trained_folder(scoring="letter", max_length=20)
    assert ContinuationChoice(ref_of(folder)).scoring == "letter"
    assert ContinuationChoice(ref_of(folder), setup="mc_mlm").scoring == "sum"
    assert scorer_for(ModelSettings(folder, kind="causal"), "mc_mlm").mode == "causal_likelihood"
    assert ContinuationChoice(ref_of(folder), max_length=256).max_length == 20  # the default
    assert ContinuationChoice(ref_of(folder), max_length=30).max_length == 30


@pytest.mark.parametrize("scoring", ["sum", "mean_char"])
def test_zero_shot_reads_as_much_as_was_trained(
    scoring: str, trained_folder: Callable[..., str]
) -> None:
    folder = trained_folder(scoring=scoring, max_length=12)
    scorer = scorer_for(ModelSettings(folder, kind="causal"), "mc_qa")
    records = [r for r in RECORDS if "[MASK]" not in r.stem]
    scores = torch.stack([answers(scorer.choice_scores(), record)[0] for record in records[:1]])
    choice = ContinuationChoice(ref_of(folder))
    torch.testing.assert_close(scores, logits_of(choice, records[:1]), rtol=1e-5, atol=1e-5)


def test_a_trained_scoring_leaves_the_other_questions_to_the_model(
    trained_folder: Callable[..., str], causal_folder: Folder
) -> None:
    folder = trained_folder(scoring="mean_char")
    scorer = scorer_for(ModelSettings(folder, kind="causal"), "mc_qa")
    assert scorer.mode == "fine_tuned"
    plain = scorer_for(ModelSettings(str(causal_folder("gpt2")), kind="causal"), "mc_qa")
    for record in RECORDS:
        ours, raw = (answers(s.log_likelihoods(), record)[0] for s in (scorer, plain))
        torch.testing.assert_close(ours, raw, rtol=0, atol=1e-6)
    fresh = ModelSettings(folder, kind="causal", random_weights=True)
    assert scorer_for(fresh, "mc_qa").mode == "causal_mean_char"


def test_an_empty_choice_is_refused(causal_folder: Folder) -> None:
    choice = ContinuationChoice(ref_of(causal_folder("gpt2")), "mean_char")
    with pytest.raises(RecordError, match="a choice is empty, so it has no likelihood"):
        choice.encoder().encode([Record("1", "the dog is", ("warm", " "), 0)])
