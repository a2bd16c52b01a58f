from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from transformers import AutoModel, PreTrainedModel

from probelight.models.last_layer import EncoderAt, layer_layout
from probelight.models.networks import run_encoder
from tests.fixtures.architectures import CONFIGS, VOCAB_SIZE

REDUCED = ["bert", "distilbert", "electra", "mpnet", "roberta", "xlm_r"]


def make_encoder(architecture: str, attention: str = "sdpa") -> PreTrainedModel:
    """A tiny encoder in double precision, its weights wide enough for attention to matter."""
    torch.manual_seed(0)
    try:
        model = AutoModel.from_config(CONFIGS[architecture](), attn_implementation=attention)
    except ValueError:  # some architectures know eager attention only
        model = AutoModel.from_config(CONFIGS[architecture]())
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2 and "embeddings" not in name:
            nn.init.normal_(parameter, std=0.3)
        if name.endswith("bias"):
            nn.init.normal_(parameter, std=0.1)
    encoder: PreTrainedModel = model.double().eval()
    return encoder


def make_batch(side: str) -> dict[str, Tensor]:
    """Five sequences of 9, 9, 6, 4 and 2 tokens."""
    generator = torch.Generator().manual_seed(1)
    input_ids = torch.randint(5, VOCAB_SIZE, (5, 9), generator=generator)
    lengths = torch.tensor([9, 9, 6, 4, 2])[:, None]
    positions = torch.arange(9)[None]
    mask = positions < lengths if side == "right" else positions >= 9 - lengths
    if side == "none":
        mask = torch.ones_like(mask)
    input_ids[~mask] = 0
    return {
        "input_ids": input_ids,
        "attention_mask": mask.long(),
        "token_type_ids": (positions > 3).long() * mask,
    }


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("side", ["right", "left", "none"])
@pytest.mark.parametrize("architecture", REDUCED)
def test_output_at_a_place_is_that_of_the_plain_encoder(
    architecture: str, side: str, attention: str
) -> None:
    encoder, batch = make_encoder(architecture, attention), make_batch(side)
    reader = EncoderAt(encoder)
    with torch.no_grad():
        assert reader.is_reduced
        states = run_encoder(encoder, batch).last_hidden_state
        for shift in (0, 1):
            real = batch["attention_mask"].flip(1).argmax(1)
            position = (8 - real if side != "left" else torch.full((5,), 8)) - shift
            outputs = reader(batch, position)
            assert outputs.shape == (5, 32)
            expected = states[torch.arange(5), position]
            torch.testing.assert_close(outputs, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("architecture", sorted(CONFIGS))
def test_every_architecture_gives_the_output_at_the_place(architecture: str) -> None:
    encoder, batch = make_encoder(architecture).float(), make_batch("right")
    reader = EncoderAt(encoder)
    position = torch.tensor([8, 0, 3, 1, 1])
    with torch.no_grad():
        states = run_encoder(encoder, batch).last_hidden_state
        outputs = reader(batch, position)
    torch.testing.assert_close(outputs, states[torch.arange(5), position], rtol=0, atol=1e-5)
    with torch.no_grad():
        assert reader.is_reduced == (architecture in {*REDUCED})


def test_the_pooler_reads_cls() -> None:
    encoder, batch = make_encoder("bert"), make_batch("right")
    with torch.no_grad():
        expected = run_encoder(encoder, batch).pooler_output
        pooled = EncoderAt(encoder)(batch, torch.zeros(5, dtype=torch.long), pooled=True)
    torch.testing.assert_close(pooled, expected, rtol=0, atol=1e-10)


def test_only_one_place_goes_through_the_last_feed_forward() -> None:
    encoder, batch = make_encoder("bert"), make_batch("right")
    counted: list[int] = []
    with torch.no_grad():
        reader = EncoderAt(encoder)
        assert reader.is_reduced
        for layer in encoder.encoder.layer:
            layer.intermediate.register_forward_hook(
                lambda module, args, output: counted.append(output.shape[1])
            )
        reader(batch, torch.zeros(5, dtype=torch.long))
    assert counted == [9, 1]


@pytest.mark.parametrize("architecture", REDUCED)
def test_every_weight_has_the_gradient_of_the_plain_encoder(architecture: str) -> None:
    encoder, batch = make_encoder(architecture), make_batch("right")
    reader = EncoderAt(encoder)
    position = torch.tensor([8, 0, 3, 1, 1])
    weights = torch.randn(32, generator=torch.Generator().manual_seed(2)).double()
    assert reader.is_reduced
    gradients = []
    for output in (
        reader(batch, position),
        run_encoder(encoder, batch).last_hidden_state[torch.arange(5), position],
    ):
        encoder.zero_grad()
        (output.tanh() @ weights).sum().backward()
        gradients.append({n: p.grad for n, p in encoder.named_parameters() if p.grad is not None})
    actual, expected = gradients
    # Processes that train together want a gradient of the keys' bias too, though it is 0.
    assert actual.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(actual[name], expected[name], rtol=0, atol=1e-10)


@pytest.mark.thorough
def test_dropout_and_compiling_use_the_plain_encoder() -> None:
    encoder = make_encoder("bert")
    reader = EncoderAt(encoder)
    assert reader.is_reduced
    assert not EncoderAt(encoder.train()).is_reduced
    assert reader.is_reduced is False
    encoder.eval().compile()
    assert not reader.is_reduced


def test_masks_of_other_forms_are_not_read() -> None:
    encoder = make_encoder("bert")
    assert layer_layout(encoder) is not None
    encoder.config.is_decoder = True
    assert layer_layout(encoder) is None
    encoder.config.is_decoder = False
    encoder.config._attn_implementation = "flex_attention"
    assert layer_layout(encoder) is None


def test_a_trained_or_moved_encoder_is_seen() -> None:
    encoder, batch = make_encoder("bert"), make_batch("right")
    reader = EncoderAt(encoder)
    position = torch.zeros(5, dtype=torch.long)
    with torch.no_grad():
        initial = reader(batch, position)
        encoder.encoder.layer[-1].attention.self.value.weight.mul_(2.0)
        trained = reader(batch, position)
        expected = run_encoder(encoder, batch).last_hidden_state[:, 0]
    assert not torch.allclose(initial, trained)
    torch.testing.assert_close(trained, expected, rtol=0, atol=1e-10)
    assert EncoderAt(encoder.float())(batch, position).dtype == torch.float32


class Adapter(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input) * 1.5


@pytest.mark.parametrize("is_part", [True, False])
def test_a_replaced_part_or_another_mathematics_falls_back(is_part: bool) -> None:
    encoder, batch = make_encoder("bert"), make_batch("right")
    reader, position = EncoderAt(encoder), torch.ones(5, dtype=torch.long)
    attention = encoder.encoder.layer[-1].attention.self
    with torch.no_grad():
        if is_part:
            assert reader.is_reduced
            attention.key = Adapter(32, 32).double()
        else:
            attention.scaling *= 2.0
        assert not reader.is_reduced
        outputs = reader(batch, position)
        expected = run_encoder(encoder, batch).last_hidden_state[:, 1]
    assert torch.equal(outputs, expected)
