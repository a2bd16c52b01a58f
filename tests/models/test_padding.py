"""A text has the scores that transformers gives it alone, whatever longer texts are beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor
from transformers import AutoModel, AutoModelForMaskedLM, AutoModelForMultipleChoice, AutoTokenizer

from probelight.evaluation.scorers import predict
from probelight.models.checks import ignores_padding
from probelight.models.masked import MaskedLM, MaskedScorer, PseudoLogLikelihood
from probelight.models.pair_choice import PairChoice
from probelight.probes.record import Record
from probelight.runs.settings import TrainerSettings
from tests.fixtures.answers import answers
from tests.fixtures.architectures import ARCHITECTURES, SHARED, ref_of

Tiny = Callable[..., Any]
Folder = Callable[[str], Path]

SIZES = {**SHARED, "initializer_range": 0.3}
MOBILE = {"embedding_size": 32, "intra_bottleneck_size": 16, "num_feedforward_networks": 1}
PADDING_COUNTS: dict[str, Callable[[], Any]] = {
    "fnet": lambda: transformers.FNetConfig(**SIZES),
    "convbert": lambda: transformers.ConvBertConfig(**SIZES, embedding_size=32),
    "yoso": lambda: transformers.YosoConfig(**SIZES),
    "nystromformer": lambda: transformers.NystromformerConfig(**SIZES),
    "mobilebert": lambda: transformers.MobileBertConfig(**SIZES, **MOBILE),
}
SHORT = Record("short", "a cat is [MASK] .", ("smaller", "older", "not really larger"), 0)
LONG = Record(
    "long", "the cat was ready to rest in a [MASK] which is not much really .", ("dog",), 0
)
PAIRS = [
    Record("1", "which animal is best ?", ("a cat", "a dog really not much older than the cat"), 0),
    Record("2", "is the cat older or younger than the dog , not really ?", ("older", "red"), 1),
]


def folder_of(model: Any, path: Path, checkpoint: Folder) -> str:
    model.save_pretrained(path)
    AutoTokenizer.from_pretrained(checkpoint("bert")).save_pretrained(path)
    return str(path)


def model_of(architecture: str, kind: Any = AutoModelForMaskedLM) -> Any:
    """A model all of whose weights are random, those of its padding too."""
    torch.manual_seed(0)
    model = kind.from_config(PADDING_COUNTS[architecture]()).eval()
    for weight in model.parameters():
        weight.data.add_(0.1 * torch.randn_like(weight))
    return model


@pytest.fixture(params=PADDING_COUNTS)
def folder(request: pytest.FixtureRequest, checkpoint: Folder, tmp_path: Path) -> str:
    return folder_of(model_of(request.param), tmp_path / request.param, checkpoint)


@torch.no_grad()
def logits_alone(folder: str, text: str, masked_token: int | None = None) -> tuple[Tensor, Tensor]:
    """The token ids (L,) of one text, one of them masked, and transformers' logits (L, V)."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(text, return_tensors="pt")
    if masked_token is not None:
        inputs["input_ids"][0, masked_token] = tokenizer.mask_token_id
    if "FNet" in type(model := AutoModelForMaskedLM.from_pretrained(folder)).__name__:
        inputs.pop("attention_mask")
    return inputs["input_ids"][0], model.eval()(**inputs).logits[0]


@pytest.mark.parametrize("architecture", [*ARCHITECTURES, *PADDING_COUNTS])
def test_whether_padding_counts_is_found_by_what_the_model_does(
    architecture: str, tiny_model: Tiny
) -> None:
    counts = architecture in PADDING_COUNTS
    model = model_of(architecture) if counts else tiny_model(architecture)
    model.train()
    for _ in ("float32", "bfloat16"):
        assert ignores_padding(model.base_model) != counts
        assert all(module.training for module in model.modules())
        model.bfloat16()
    for weight in model.parameters():
        weight.data.fill_(torch.nan)
    assert ignores_padding(model.base_model)  # NaN alone is NaN beside others


def test_words_at_a_mask_have_the_scores_of_the_text_alone(folder: str) -> None:
    scorer = MaskedScorer(MaskedLM(ref_of(folder), multi_token="pseudo_log_likelihood"))
    tokenizer = scorer.masked.tokenizer
    plain = Record("plain", SHORT.stem, SHORT.choices[:2], 0)
    ids, logits = logits_alone(folder, SHORT.stem)
    at_mask = logits[int((ids == tokenizer.mask_token_id).nonzero())]
    expected = at_mask[tokenizer.convert_tokens_to_ids(list(plain.choices))]
    for records in ([plain], [LONG, plain, LONG]):
        scores = answers(scorer.choice_scores(), *records)[records.index(plain)][:2]
        # Logits of an item may differ by one number.
        torch.testing.assert_close(scores - scores[0], expected - expected[0], rtol=0, atol=1e-4)
    predicted = predict(scorer, {"x": [LONG, SHORT]}, TrainerSettings(accelerator="cpu"))["x"]
    assert "texts of one length were read together: padding changes what" in predicted.notices[-1]


@pytest.mark.thorough
def test_pseudo_log_likelihoods_are_those_of_the_text_alone(folder: str) -> None:
    scorer = PseudoLogLikelihood(MaskedLM(ref_of(folder)))
    expected = []
    for choice, pieces in zip(SHORT.choices, (1, 1, 3), strict=True):
        text = SHORT.stem.replace("[MASK]", choice)
        gold, _ = logits_alone(folder, text)
        places = range(4, 4 + pieces)  # behind [CLS] a cat is
        logs = [logits_alone(folder, text, i)[1][i].log_softmax(-1)[gold[i]] for i in places]
        expected.append(torch.stack(logs).sum())
    for records in ([SHORT], [LONG, SHORT]):
        scores = answers(scorer.log_likelihoods(), *records)[-1]
        torch.testing.assert_close(scores, torch.stack(expected), rtol=0, atol=1e-4)


@pytest.mark.parametrize("head", ["mlp", "pooler", "multiple_choice"])
def test_pairs_have_the_logits_and_gradients_of_each_pair_alone(
    head: Any, checkpoint: Folder, tmp_path: Path
) -> None:
    saved = model_of("fnet", AutoModelForMultipleChoice if head == "multiple_choice" else AutoModel)
    pairs = PairChoice(ref_of(folder_of(saved, tmp_path, checkpoint)), head)
    assert pairs.notices
    pairs.network.eval()
    raw, tokenizer = saved.eval(), pairs.tokenizer

    def logit(record: Record, choice: str) -> Tensor:
        inputs = tokenizer(record.stem, choice, return_tensors="pt")
        ids, types = inputs["input_ids"], inputs["token_type_ids"]
        if head == "multiple_choice":
            return raw(input_ids=ids[:, None], token_type_ids=types[:, None]).logits[0, 0]
        output = raw(input_ids=ids, token_type_ids=types)
        read = output.pooler_output if head == "pooler" else output.last_hidden_state[:, 0]
        return pairs.head(read)[0, 0]

    logits = pairs(pairs.encoder().encode(PAIRS).collate([0, 1]))
    expected = torch.stack([torch.stack([logit(r, c) for c in r.choices]) for r in PAIRS])
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-4)
    logits.log_softmax(-1)[:, 0].sum().backward()
    expected.log_softmax(-1)[:, 0].sum().backward()
    theirs = dict(raw.named_parameters())
    for name, weight in pairs.transformer.named_parameters():
        if weight.grad is not None:
            torch.testing.assert_close(weight.grad, theirs[name].grad, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", ["T5", "MT5", "UMT5", "LongT5", "Bart", "MBart", "PLBart", "LED"])
def test_encoder_decoder_models_ignore_padding(kind: str) -> None:
    """Each text's scores beside longer ones are held against transformers' in test_seq2seq."""
    torch.manual_seed(0)
    sizes = {"d_model": 32, "d_kv": 16, "d_ff": 48, "num_heads": 2, "num_layers": 2}
    sizes |= {"encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 2}
    sizes |= {"encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "decoder_attention_heads": 2}
    sizes |= {"attention_window": 8} if kind == "LED" else {}
    config = getattr(transformers, f"{kind}Config")(vocab_size=60, **sizes)
    model = getattr(transformers, f"{kind}ForConditionalGeneration")(config)
    assert ignores_padding(model.get_encoder())
