"""What a model does, found out on a few tokens when it is loaded, whatever its config says.

Does padding change its output, does it look ahead, and does a faster way of computing its numbers
give the same ones? FNet mixes all places, and the convolutions of ConvBERT and Nystromformer reach
into the padding: such a model reads texts of one length together, in training too, so that nothing
is ever padded.

Shapes: B texts, L tokens, H hidden, V entries of a vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from probelight.io.errors import NoMemoryError
from probelight.io.workload import uncounted
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.loading import longest_text
from probelight.models.networks import evaluating, half_dtype, run_encoder, upcast

# What float32 rounds away, as a share of the largest number: seen is 1.4e-6, and 0.1 of a mistake.
_ROUNDED = 3e-5
# What a model raises whose parts only look like those of a known one.
ODD_MODEL = (RuntimeError, TypeError, AttributeError, ValueError, IndexError)


@contextmanager
def comparable(network: nn.Module) -> Iterator[float]:
    """Make two ways of computing comparable; yield the `tolerance` of `differ_by_rounding`.

    That is in eval mode, without gradients, and with half precision upcast meanwhile. Where that
    does not fit, the tolerance is what half precision rounds away.
    """
    devices = (weight.device.type for weight in network.parameters())
    device = next((name for name in devices if name != "meta"), "cpu")  # some are on a disk
    with uncounted(), ExitStack() as stack:
        stack.callback(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision())
        torch.set_float32_matmul_precision("highest")
        tolerance = _ROUNDED
        try:
            stack.enter_context(upcast(network, reads_again=False))
        except NoMemoryError:
            dtype = half_dtype(network)
            assert dtype is not None
            tolerance = 16 * torch.finfo(dtype).eps
        stack.enter_context(torch.autocast(device, enabled=False))
        stack.enter_context(torch.no_grad())
        stack.enter_context(evaluating(network))
        yield tolerance


def differ_by_rounding(
    expected: Tensor, actual: Tensor, tolerance: float, logits: Tensor | None = None
) -> bool:
    """Return whether two ways of computing the same numbers differ by no more than rounding.

    That grows with the numbers that are added up: `tolerance` is a share of the largest of
    `logits`, from which log-probabilities were made, or of `expected`. NaN is the same as NaN.
    """
    if expected.shape != actual.shape:
        return False
    summed = expected if logits is None else logits
    largest = float(summed.nan_to_num(0, 0, 0).abs().max())
    ours, theirs = actual.cpu().double(), expected.cpu().double()  # not every device has doubles
    return torch.allclose(ours, theirs, rtol=0, atol=tolerance * largest, equal_nan=True)


def predict_alike(expected: Tensor, actual: Tensor, tolerance: float) -> bool:
    """Return whether the log-probabilities of two logits (..., V) differ by rounding alone."""
    ours, theirs = (logits.cpu().double().log_softmax(dim=-1) for logits in (actual, expected))
    return differ_by_rounding(theirs, ours, tolerance, logits=expected)


def sample_ids(config: Any, most: int, *, without: int | None = None) -> list[int]:
    """Return ids of words of a model, at most so many; `without` is that of its padding."""
    return [i for i in range(min(config.vocab_size, 64)) if i != without][-most:]


def ignores_padding(encoder: nn.Module) -> bool:
    """Return whether a short text's output is the same alone and padded, by a little or by much."""
    if next(encoder.parameters()).is_meta:
        return True
    config: Any = encoder.config
    pad = getattr(config, "pad_token_id", None) or 0
    words = sample_ids(config, 5, without=pad)
    # Some families keep a few of their places for themselves.
    for padding in (1, max(2, min(40, longest_text(config) // 2) - len(words))):
        ids = torch.tensor([words + [pad] * padding], device=next(encoder.parameters()).device)
        mask = torch.ones_like(ids)
        mask[:, len(words) :] = 0
        padded = {"input_ids": ids, "attention_mask": mask, "token_type_ids": 0 * ids}
        alone = {name: tensor[:, : len(words)] for name, tensor in padded.items()}
        with comparable(encoder) as tolerance:
            expected, actual = (
                run_encoder(encoder, batch).last_hidden_state[:, : len(words)]
                for batch in (alone, padded)
            )
        if not differ_by_rounding(expected, actual, tolerance):
            return False
    return True


def refuse_looking_ahead(model: PreTrainedModel) -> None:
    """Raise PretrainedError for a model whose predictions depend on tokens behind them.

    What it does decides, not its class or config; without numbers, its config decides alone.
    """
    if model.device.type == "meta":
        return
    config: Any = model.config.get_text_config()
    words = sample_ids(config, min(7, longest_text(config)))
    ids = torch.tensor([words, [*words[:-1], words[0]]], device=model.device)
    with comparable(model) as tolerance:
        logits = model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits
    before_last, with_another = logits[:, :-1].float()
    if not predict_alike(before_last, with_another, tolerance):
        raise PretrainedError(
            f"{type(model).__name__} is no causal language model: another last token changes what "
            "it predicts before it; give it in the class that it was trained in, such as a "
            "...ForMaskedLM, or, if it was trained as a decoder, with is_decoder true (and "
            "use_bidirectional_attention false) in its config"
        )
