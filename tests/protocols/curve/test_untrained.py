"""Curves of language models that are read as they are: heads on features, N = 0 by the scorer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from probelight.lightning_modules.base import slanted_triangular
from probelight.lightning_modules.heads.feature_head import FrozenFeatures, fresh_hidden_layer
from probelight.lightning_modules.heads.head_training import sample_orders
from probelight.probes.record import Record
from probelight.protocols.curve.command import curve_jobs
from probelight.protocols.curve.curve import Curve
from probelight.protocols.curve.heads import CurveProbe, candidate_words
from probelight.protocols.curve.settings import CurveSettings, ProbeOptions
from probelight.protocols.engine.models import scorer_for
from probelight.protocols.engine.predictions import predict
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.jobs.job import RunContext, TrainerSettings
from probelight.results.details import CurveDetails
from probelight.results.record import RunRecord
from tests.protocols.conftest import make_runs
from tests.protocols.curve.conftest import TRAINER, load

SETTINGS = CurveSettings(
    sizes=[10],
    seeds=[1, 2],
    controls=["standard", "perturbed_language"],
    epochs=3,
    batch_size=4,
    learning_rate={"mlp": 0.02, "linear": 0.05},
)
WORDS = ["green", "red"]  # all candidates, as `candidate_words` has them


def causal_features(model: Any, tokenizer: Any, stem: str) -> Tensor:
    """What the head reads at the last token of one stem."""
    ids = tokenizer(stem.replace("[MASK]", "___"), return_tensors="pt")["input_ids"]
    found: Tensor = model.base_model(ids).last_hidden_state[0, -1]
    return found


def t5_features(model: Any, tokenizer: Any, stem: str) -> Tensor:
    """What the head reads behind the first sentinel; embeddings are tied, so it is scaled."""
    blank = "<extra_id_0>"
    asked = tokenizer(stem.replace("[MASK]", blank), return_tensors="pt")["input_ids"]
    given = torch.tensor([[0, tokenizer.convert_tokens_to_ids(blank)]])
    said = model(asked, decoder_input_ids=given, output_hidden_states=True)
    found: Tensor = said.decoder_hidden_states[-1][0, -1]
    return found * 16**-0.5


def bart_features(model: Any, tokenizer: Any, stem: str) -> Tensor:
    """What the head reads where the decoder has written the sentence up to its blank."""
    before, _, after = stem.partition("[MASK]")
    asked = tokenizer(f"{before}<mask>{after}", return_tensors="pt")["input_ids"]
    given = [3, 2, *tokenizer(before, add_special_tokens=False)["input_ids"]]
    found = model.base_model(asked, decoder_input_ids=torch.tensor([given]))
    read: Tensor = found.last_hidden_state[0, -1]
    return read


CASES: dict[str, tuple[str, Any, Callable[[Any, Any, str], Tensor]]] = {
    "gpt2": ("causal", AutoModelForCausalLM, causal_features),
    "t5": ("seq2seq", AutoModelForSeq2SeqLM, t5_features),
    "bart": ("seq2seq", AutoModelForSeq2SeqLM, bart_features),
}


@pytest.fixture
def model_of(curve_lm: Callable[[str], Path]) -> Callable[[str], ModelSettings]:
    """The settings of a tiny model of a family."""
    return lambda family: ModelSettings(str(curve_lm(family)), kind=CASES[family][0])


def first_rows(model: Any, tokenizer: Any) -> Tensor:
    """The mean of the rows of each word's pieces, behind another word."""
    begin = tokenizer("a", add_special_tokens=False)["input_ids"]
    ids = [tokenizer(f"a {word}", add_special_tokens=False)["input_ids"] for word in WORDS]
    assert max(map(len, ids)) - len(begin) > 1  # at least one of several pieces
    weight = model.get_output_embeddings().weight.detach()
    return torch.stack([weight[own[len(begin) :]].mean(dim=0) for own in ids])


def trained_alone(
    rows: Tensor, h: Tensor, records: Sequence[Record], mode: str, seed: int
) -> nn.Module:
    """One head, trained by a plain loop."""
    [size] = SETTINGS.sizes
    decoder = nn.Linear(rows.shape[1], len(rows))
    decoder.load_state_dict({"weight": rows, "bias": torch.zeros(len(rows))})
    dense, norm = fresh_hidden_layer(rows.shape[1], seed)
    net = nn.Sequential(*([dense, nn.GELU(), norm] if mode == "mlp" else []), decoder)
    decayed = [part.weight for part in net if isinstance(part, nn.Linear)]
    plain = [p for p in net.parameters() if all(p is not own for own in decayed)]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}],
        betas=(0.9, 0.98),
    )
    orders = sample_orders(len(records), size, SETTINGS.epochs, seed)
    steps = [o[i : i + SETTINGS.batch_size] for o in orders for i in range(0, size, 4)]
    factor = slanted_triangular(len(steps))
    for number, chosen in enumerate(steps):
        for group in optimizer.param_groups:
            group["lr"] = SETTINGS.learning_rate[mode] * factor(number)
        gold = torch.tensor([WORDS.index(records[i].gold) for i in chosen])
        F.cross_entropy(net(h[chosen]), gold).backward()
        optimizer.step()
        optimizer.zero_grad()
    return net


@pytest.mark.parametrize("family", CASES)
def test_stacked_heads_answer_as_heads_trained_one_by_one_on_texts_read_alone(
    family: str, model_of: Callable[[str], ModelSettings], curve_probes: Path
) -> None:
    settings, (_, auto_class, features) = model_of(family), CASES[family]
    data = load(curve_probes, "pairs", sizes=SETTINGS.sizes, controls=SETTINGS.controls)
    words = candidate_words(data, SETTINGS)
    assert words == WORDS
    frozen = FrozenFeatures(scorer_for(settings, "mc_mlm"), words)
    probe = CurveProbe(frozen, data, SETTINGS, TRAINER, settings.kind)
    model = auto_class.from_pretrained(settings.name_or_path).eval()
    tokenizer = AutoTokenizer.from_pretrained(settings.name_or_path)
    rows = first_rows(model, tokenizer)
    with torch.no_grad():
        read = {
            record.stem: features(model, tokenizer, record.stem)
            for control in SETTINGS.controls
            for part in data.under(control)
            for record in part
        }
    for mode in ("mlp", "linear"):
        measured = probe.point(mode, 10)  # type: ignore[arg-type]
        assert [(one.control, one.seed) for one in measured] == [
            (control, seed) for control in SETTINGS.controls for seed in SETTINGS.seeds
        ]
        for one in measured:
            train, evaluation = data.under(one.control)
            h, asked = (torch.stack([read[r.stem] for r in part]) for part in (train, evaluation))
            net = trained_alone(rows, h, train, mode, one.seed or 0)
            with torch.no_grad():
                table = net(asked)
            expected = [
                [row[WORDS.index(c)] for c in r.choices]
                for row, r in zip(table.tolist(), evaluation, strict=True)
            ]
            found = torch.tensor(one.predictions.scores)
            torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-4, atol=1e-4)
            right = [
                max(range(2), key=own.__getitem__) == r.answer
                for own, r in zip(expected, evaluation, strict=True)
            ]
            assert one.predictions.accuracy == sum(right) / len(right)


def records_of(
    model: ModelSettings, probes: Path, folder: Path, trainer: TrainerSettings = TRAINER
) -> dict[str, RunRecord]:
    """Those of a curve's runs by mode and N."""
    context = RunContext(trainer, mirror=str(probes / "mirror"))
    path = str(probes / "pairs.yaml")
    curve = Curve(path, model, (model,), SETTINGS, ProbeOptions(), context)
    jobs = curve_jobs(curve)
    names = [f"{job.config['mode']} {job.config['num_train']}" for job in jobs]
    return dict(zip(names, make_runs(jobs, folder, context).values(), strict=True))


def numbers(records: dict[str, RunRecord]) -> list[tuple[Any, ...]]:
    """What was measured."""
    rows = [row for record in records.values() for row in record.rows]
    return [(r.mode, r.num_train, r.control, r.seed, r.metric, r.value) for r in rows]


def test_n_0_is_what_the_scorer_says_and_no_number_depends_on_batches(
    model_of: Callable[[str], ModelSettings], curve_probes: Path, tmp_path: Path
) -> None:
    model = model_of("gpt2")
    found = records_of(model, curve_probes, tmp_path / "a")
    assert list(found) == ["zero_shot 0", "mlp 10", "linear 10"]
    first = found["zero_shot 0"]
    assert {row.mode for row in first.rows} == {"causal_likelihood"}
    assert {row.metric for row in first.rows} >= {"chance", "majority_accuracy", "accuracy"}
    assert {record.model_sha256 for record in found.values()} == {first.model_sha256}
    data = load(curve_probes, "pairs", sizes=SETTINGS.sizes, controls=SETTINGS.controls)
    sets = {control: data.under(control)[1] for control in SETTINGS.controls}
    said = predict(scorer_for(model, "mc_mlm"), sets, TRAINER)
    values = {r.control: r.value for r in first.rows if (r.metric, r.subset) == ("accuracy", None)}
    assert values == {control: one.accuracy for control, one in said.items()}
    small = replace(TRAINER, max_eval_tokens=40)
    assert numbers(records_of(model, curve_probes, tmp_path / "b", small)) == numbers(found)


def test_random_weights_are_drawn_for_each_seed_of_features_and_of_n_0(
    model_of: Callable[[str], ModelSettings], curve_probes: Path, tmp_path: Path
) -> None:
    model = replace(model_of("gpt2"), random_weights=True)
    expected = {str(seed): scorer_for(model, "mc_mlm", seed).fingerprint() for seed in (1, 2)}
    assert len(set(expected.values())) == 2
    for record in records_of(model, curve_probes, tmp_path).values():
        record_details = record.detail(CurveDetails)
        assert record_details is not None
        assert record_details.sha256_by_seed == expected
        assert {r.seed for r in record.rows if r.metric == "accuracy"} == {1, 2}
