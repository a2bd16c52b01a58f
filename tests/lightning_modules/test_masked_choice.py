from __future__ import annotations

import inspect
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.utils.data import DataLoader
from transformers import AutoModelForMaskedLM, AutoTokenizer

from probelight.lightning_modules.masked_choice import MaskedChoice
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.models.masked import MaskedLM, PseudoLogLikelihood
from probelight.models.networks import model_fingerprint
from probelight.models.scorer import TrainedScorer
from probelight.probes.record import Record
from tests.fixtures.architectures import ref_of

Checkpoint = Callable[..., Path]
MakeBatch = Callable[..., dict[str, Tensor]]

# The frozen encoder is meant to be in eval mode, and most fits here measure nothing.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Found .* in eval mode"),
    pytest.mark.filterwarnings("ignore:.*no `val_dataloader`"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*"),
]

# h must be the very same before and after, so these train with a large rate.
FAST: dict[str, Any] = {"learning_rate": 0.05}


@pytest.fixture
def make_case(checkpoint: Checkpoint, masked_batch: MakeBatch) -> Callable[..., Any]:
    """Makes a module and a batch: `posed(architecture, mode="mlp")`."""
    return lambda name, **options: (MaskedChoice(str(checkpoint(name)), **options), masked_batch())


def _loader(*batches: dict[str, Tensor]) -> DataLoader[Any]:
    return DataLoader(list(batches), batch_size=None)  # type: ignore[arg-type]


def _weights(module: MaskedChoice) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.model.state_dict().items()}


def _moved(module: MaskedChoice, initial: dict[str, Tensor]) -> set[str]:
    trained = module.model.state_dict()
    return {name for name, value in initial.items() if not torch.equal(value, trained[name])}


def test_logits_are_those_of_the_model_and_minus_infinity_without_a_choice(
    architecture: str, make_case: Callable[..., Any], checkpoint: Checkpoint
) -> None:
    module, batch = make_case(architecture, mode="mlp")
    plain = AutoModelForMaskedLM.from_pretrained(checkpoint(architecture)).eval()
    with torch.no_grad():
        logits = module(batch)
        all_logits = plain(batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    at_mask = all_logits[torch.arange(3), batch["mask_position"]]
    expected = at_mask.gather(1, batch["candidate_ids"])
    mask = batch["choice_mask"]
    assert at_mask.std() > 0.05
    torch.testing.assert_close(logits[mask], expected[mask], rtol=0, atol=1e-5)
    assert logits[~mask].tolist() == [float("-inf")]
    with torch.no_grad():
        all_logits = module.head.full_logits(module.features(batch))
        torch.testing.assert_close(all_logits, at_mask, rtol=0, atol=1e-5)


@pytest.mark.parametrize("mode", ["linear", "mlp"])
def test_a_frozen_encoder_gives_the_very_same_h_after_training(
    architecture: str, mode: str, make_case: Callable[..., Any], quiet_trainer: Callable[..., Any]
) -> None:
    module, batch = make_case(architecture, mode=mode, **FAST)
    with torch.no_grad():
        features, logits = module.features(batch), module(batch)
    weights = _weights(module)
    quiet_trainer(max_epochs=2).fit(module, _loader(batch))
    with torch.no_grad():
        assert torch.equal(module.features(batch), features)
        assert not torch.allclose(module(batch), logits)
    names = {id(parameter): name for name, parameter in module.model.named_parameters()}
    decoder = {names[id(parameter)] for parameter in module.head.decoder_parameters()}
    transform = {names[id(parameter)] for parameter in module.head.transform_parameters()}
    assert decoder
    assert transform
    assert _moved(module, weights) == (decoder if mode == "linear" else decoder | transform)


def test_a_frozen_encoder_has_no_dropout_in_training_mode(make_case: Callable[..., Any]) -> None:
    module, batch = make_case("bert", mode="mlp")
    expected = module.features(batch)
    module.train()
    assert module.training
    assert torch.equal(module.features(batch), expected)
    full, _ = make_case("bert", mode="full")
    assert not torch.equal(full.train().features(batch), expected)


def test_full_mode_trains_everything_and_stays_tied(
    architecture: str, make_case: Callable[..., Any], quiet_trainer: Callable[..., Any]
) -> None:
    module, batch = make_case(architecture, mode="full", **FAST)
    weights = _weights(module)
    assert module.head.weight is module.model.get_input_embeddings().weight
    quiet_trainer(max_epochs=2).fit(module, _loader(batch))
    assert module.head.weight is module.model.get_input_embeddings().weight
    still = set(weights) - _moved(module, weights)
    # The softmax of the attention cancels the bias of the keys; buffers are not trained.
    assert all(name.endswith(("key.bias", "k.bias", "k_lin.bias", "_ids")) for name in still), still


def test_training_switches_dropout_on_in_full_mode(
    make_case: Callable[..., Any], quiet_trainer: Callable[..., Any]
) -> None:
    seen = []

    class Watch(pl.Callback):
        def on_train_batch_start(self, trainer: Any, pl_module: Any, *_: Any) -> None:
            seen.append(pl_module.model.bert.embeddings.dropout.training)

    module, batch = make_case("bert", mode="full")
    quiet_trainer(max_epochs=2, callbacks=[Watch()]).fit(module, _loader(batch), _loader(batch))
    assert seen == [True, True]


def test_zero_shot_cannot_be_fitted_and_an_unknown_mode_is_refused(
    make_case: Callable[..., Any], quiet_trainer: Callable[..., Any]
) -> None:
    module, batch = make_case("bert", mode="zero_shot")
    assert not any(parameter.requires_grad for parameter in module.parameters())
    with pytest.raises(RuntimeError, match="zero_shot trains nothing"):
        quiet_trainer().fit(module, _loader(batch))
    with pytest.raises(ValueError, match="mode='frozen': choose one of zero_shot, mlp"):
        make_case("bert", mode="frozen")


@pytest.mark.parametrize("mode", ["mlp", "full"])
def test_a_trained_model_is_loaded_by_plain_from_pretrained(
    architecture: str,
    mode: str,
    make_case: Callable[..., Any],
    tmp_path: Path,
    quiet_trainer: Callable[..., Any],
) -> None:
    module, batch = make_case(architecture, mode=mode, **FAST)
    quiet_trainer().fit(module, _loader(batch))
    module.save_pretrained(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert not list(tmp_path.rglob("*.bin"))
    again = MaskedChoice(str(tmp_path / "model"))
    plain, info = AutoModelForMaskedLM.from_pretrained(tmp_path / "model", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    with torch.no_grad():
        expected = module.eval()(batch)
        assert torch.equal(again(batch), expected)
        all_logits = plain.eval()(batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    logits = all_logits[torch.arange(3), batch["mask_position"]].gather(1, batch["candidate_ids"])
    mask = batch["choice_mask"]
    torch.testing.assert_close(logits[mask], expected[mask], rtol=0, atol=1e-5)


def test_random_weights_are_seeded_and_not_the_checkpoint_s(checkpoint: Checkpoint) -> None:
    def fingerprint(**options: Any) -> str:
        return model_fingerprint(MaskedChoice(str(checkpoint("bert")), **options).model)

    torch.manual_seed(7)
    first = fingerprint(random_weights=True)
    assert fingerprint(random_weights=True) == first
    assert fingerprint(random_weights=True, seed=1) != first
    assert fingerprint() != first


SHORT = Record("short", "a [MASK] cat .", ("red", "green"), 0)
LONG = Record("long", "the dog is [MASK] than a cat , not really a animal .", ("larger", "red"), 0)


@pytest.fixture(params=["left", "right"])
def padded(
    request: pytest.FixtureRequest, architecture: str, checkpoint: Checkpoint, tmp_path: Path
) -> Path:
    """A checkpoint whose tokenizer pads on one side."""
    folder = Path(shutil.copytree(checkpoint(architecture), tmp_path / "model"))
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "padding_side": request.param}))
    assert AutoTokenizer.from_pretrained(folder).padding_side == request.param
    return folder


@pytest.mark.thorough
def test_scores_are_those_of_a_sentence_alone_whatever_side_is_padded(padded: Path) -> None:
    model = AutoModelForMaskedLM.from_pretrained(padded).eval()
    tokenizer = AutoTokenizer.from_pretrained(padded)
    module = MaskedChoice(str(padded))
    with torch.no_grad():
        together = module(module.encoder().encode([SHORT, LONG]).collate([0, 1]))
        for scores, record in zip(together, (SHORT, LONG), strict=True):
            inputs = tokenizer(record.stem, return_tensors="pt")
            position = int((inputs["input_ids"][0] == tokenizer.mask_token_id).nonzero())
            logits = model(**_accepted(model, inputs)).logits[0, position]
            expected = logits[tokenizer.convert_tokens_to_ids(list(record.choices))]
            torch.testing.assert_close(scores, expected, rtol=0, atol=1e-5)


def test_other_scorers_do_not_see_what_stands_beside_a_text(padded: Path) -> None:
    scorers = (
        PseudoLogLikelihood(MaskedLM(ref_of(padded))),
        TrainedScorer(SentenceChoice(str(padded))),
    )
    for question in (scorer.choice_scores() for scorer in scorers):
        encoded = question.encoder.encode([SHORT, LONG])
        with torch.no_grad():
            together = question.answer(encoded.collate([0, 1]))
            alone = torch.cat([question.answer(encoded.collate([i])) for i in (0, 1)])
        torch.testing.assert_close(together, alone, rtol=0, atol=1e-5)


def _accepted(model: Any, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    parameters = inspect.signature(model.forward).parameters
    return {name: value for name, value in inputs.items() if name in parameters}
