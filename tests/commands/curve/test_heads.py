"""Heads on frozen texts, of masked models and of those that are read as they are."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
)

from probelight import cli
from probelight.commands.curve import heads
from probelight.commands.curve.curve import Curve, CurveSpec
from probelight.commands.curve.data import CurveData, hold_out
from probelight.commands.curve.heads import (
    CurveProbe,
    candidate_words,
    device_of,
    pose,
    refuse_unposed,
    run_through,
)
from probelight.commands.curve.rows import early_stopping
from probelight.commands.curve.runs import check_curve, curve_jobs
from probelight.commands.curve.settings import CurveSettings, ProbeOptions
from probelight.evaluation.scorers import check_records, predict, scorer_for
from probelight.io.errors import RecordError, UsageError
from probelight.io.process import say_once
from probelight.lightning_modules.base import ChoiceModule, slanted_triangular
from probelight.lightning_modules.baselines.mlm_baseline import MLMBaseline
from probelight.lightning_modules.heads.feature_head import FrozenFeatures, fresh_hidden_layer
from probelight.lightning_modules.heads.head_training import sample_orders
from probelight.lightning_modules.heads.stacked_heads import CachedItems
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.checkpoint_files import CheckpointRef
from probelight.models.masked import MaskFeatures
from probelight.models.networks import model_fingerprint
from probelight.models.registry import ModelSettings
from probelight.probes.record import Record
from probelight.results.details import CurveDetails
from probelight.results.record import RunRecord
from probelight.runs import execution
from probelight.runs.context import RunContext
from probelight.runs.settings import TrainerSettings
from probelight.training.modules import module_for
from probelight.training.settings import FitSettings
from tests.commands.curve.conftest import TRAINER, curve_command, load
from tests.fixtures.rows import read_predictions, read_result, read_results
from tests.fixtures.tiny import make_runs

SETTINGS = CurveSettings(sizes=[8], seeds=[1, 2], controls=["standard"], epochs=1, batch_size=4)


@pytest.fixture
def module(curve_model: Path) -> ChoiceModule:
    return module_for(ModelSettings(str(curve_model), kind="transformer"), "mc_mlm", mode="mlp")


def encode(
    module: ChoiceModule, records: Sequence[Record], features: dict[str, torch.Tensor] | None = None
) -> CachedItems:
    features = {} if features is None else features
    return run_through(module, pose(module, records), records, TrainerSettings(), features)


def test_a_text_that_many_records_share_is_encoded_once(module: ChoiceModule) -> None:
    stems = ["a w1 is [MASK] than a w2 .", "a w3 is [MASK] .", "a w1 is [MASK] than a w2 ."]
    records = [Record(str(n), stem, ("red", "green"), n % 2) for n, stem in enumerate(stems)]
    original, rows = module.features, []

    def counted(batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        rows.append(len(batch["input_ids"]))
        features: torch.Tensor = original(batch)  # type: ignore[operator]
        return features

    module.features = counted  # type: ignore[assignment]
    items = encode(module, records, features := {})
    assert sum(rows) == 2
    of_a_control = replace(records[0], stem="a w4 is [MASK] than a w2 .")
    changed = encode(module, [of_a_control, records[1]], features)
    assert sum(rows) == 3
    assert torch.equal(changed.features[1], items.features[1])
    assert torch.allclose(changed.features[0], encode(module, [of_a_control]).features[0])
    again = encode(module, records[1:], features)
    assert sum(rows) == 4  # of the text encoded alone
    assert torch.equal(again.features, items.features[1:])
    assert torch.equal(items.features[0], items.features[2])
    assert items.labels.tolist() == [0, 1, 0]
    assert len(encode(module, [])) == 0


def test_features_are_made_at_the_precision_that_is_asked_for(
    module: ChoiceModule, pairs: CurveData
) -> None:
    by_precision = {}
    for precision in ("32-true", "bf16-mixed"):
        settings = TrainerSettings(precision=precision)
        by_precision[precision] = CurveProbe(module, pairs, SETTINGS, settings).draws[0].sets
    for key, exact in by_precision["32-true"].items():
        lower = by_precision["bf16-mixed"][key]
        assert lower.features.dtype == exact.features.dtype == torch.float32
        if len(exact):
            assert not torch.equal(lower.features, exact.features)
            torch.testing.assert_close(lower.features, exact.features, rtol=0.1, atol=0.05)


def test_texts_that_do_not_fit_into_the_memory_are_encoded_in_halves(
    module: ChoiceModule, pairs: CurveData, capsys: pytest.CaptureFixture[str]
) -> None:
    say_once.cache_clear()
    encoded = encode(module, pairs.evaluation)
    original: Any = module.features

    def cramped(batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        if len(batch["input_ids"]) > 3:
            raise torch.OutOfMemoryError
        features: torch.Tensor = original(batch)
        return features

    module.features = cramped  # type: ignore[assignment]
    halved = encode(module, pairs.evaluation)
    torch.testing.assert_close(halved.features, encoded.features)
    assert torch.equal(halved.candidates, encoded.candidates)
    assert capsys.readouterr().err.count("so it is divided in two") == 1


def test_before_training_the_scores_are_those_of_the_model_itself(
    curve_model: Path, module: ChoiceModule, pairs: CurveData
) -> None:
    probe = CurveProbe(module, pairs, SETTINGS, TrainerSettings())
    assert probe.one_start
    [measured] = probe.point("mlp", 0)
    assert (measured.control, measured.seed, measured.epoch) == ("standard", None, 0)
    model = AutoModelForMaskedLM.from_pretrained(curve_model).eval()
    tokenizer = AutoTokenizer.from_pretrained(curve_model)
    words = tokenizer.convert_tokens_to_ids(["red", "green"])
    for record, scores in zip(pairs.evaluation, measured.predictions.scores, strict=True):
        inputs: Any = tokenizer(record.stem, return_tensors="pt")
        mask_position = inputs["input_ids"][0].tolist().index(tokenizer.mask_token_id)
        with torch.no_grad():
            expected = model(**inputs).logits[0, mask_position, words]
        assert scores == pytest.approx(expected.tolist(), abs=1e-5)


def test_each_seed_is_trained_from_the_same_start_and_rows_are_those_of_the_probe(
    module: ChoiceModule, pairs: CurveData
) -> None:
    settings = replace(SETTINGS, controls=["standard", "perturbed_language"])
    measured = CurveProbe(module, pairs, settings, TrainerSettings()).point("linear", 8)
    names = [measurement.predictions.name for measurement in measured]
    assert names == [f"{control}-seed{seed}" for control in settings.controls for seed in (1, 2)]
    assert [measurement.epoch for measurement in measured] == [1] * 4
    assert list(measured[0].predictions.records) == list(pairs.evaluation)
    assert "than" not in measured[2].predictions.records[0].stem
    first, second = (measurement.predictions.scores for measurement in measured[:2])
    assert first != second  # other samples


def test_rows_that_cannot_be_posed_are_counted_and_the_first_is_named() -> None:
    records = [Record(str(n), "a [MASK] .", ("red", "green"), 0, position=n) for n in range(4)]
    refuse_unposed(records, [0, 1, 2, 3])
    with pytest.raises(
        RecordError, match=r"2 of 4 items do not fit .*such as 1@1;.*multi_token skip"
    ):
        refuse_unposed(records, [0, 2])


JOB_SETTINGS = replace(SETTINGS, modes=["mlp"], learning_rate={"mlp": 0.02})


def test_heads_of_one_encoder_have_one_checksum_and_are_trained_at_the_rate_of_their_mode(
    curve_model: Path, curve_probes: Path, context: RunContext, tmp_path: Path
) -> None:
    model = ModelSettings(str(curve_model), kind="transformer")
    path, options = str(curve_probes / "pairs.yaml"), ProbeOptions()
    curve = Curve(CurveSpec(path, model, (model,), JOB_SETTINGS, options), context)
    untrained, trained = make_runs(curve_jobs(curve), tmp_path, context).values()
    for record, rate in ((untrained, None), (trained, 0.02)):
        assert {r.learning_rate for r in record.rows if r.metric == "accuracy"} == {rate}
    assert untrained.model_sha256 == trained.model_sha256
    assert (untrained.seeds, trained.seeds) == ((), (1, 2))
    trained_details = trained.detail(CurveDetails)
    assert trained_details is not None
    assert (trained_details.sha256_by_seed, trained_details.early_stopping) == ({}, None)
    levels = {row.metric for row in untrained.rows} - {row.metric for row in trained.rows}
    assert levels == {"chance", "majority_accuracy"}  # once a curve


def test_a_frozen_encoder_runs_on_one_gpu_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    devices = {name: device_of(TrainerSettings(accelerator=name)).type for name in ("auto", "gpu")}
    assert devices == {"auto": "cuda", "gpu": "cuda"}
    assert device_of(TrainerSettings(accelerator="cpu")).type == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    for name in ("gpu", "cuda", "mps", "tpu"):
        with pytest.raises(UsageError, match=rf"^--trainer.accelerator {name} is not available"):
            device_of(TrainerSettings(accelerator=name))


SEEDS = (1, 2)


def arguments(probes: Path, folder: Path, *more: str) -> list[str]:
    grid = ["--grid.sizes=[8, 16]", f"--grid.seeds={list(SEEDS)}", "--grid.modes=[mlp, linear]"]
    grid += ["--grid.controls=[standard, no_language]", "--grid.epochs=2", "--grid.batch_size=4"]
    return curve_command(probes, folder, f"--probes={probes / 'pairs.yaml'}", *grid, *more)


@pytest.fixture(scope="module")
def baseline(curve_probes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("draws") / "out"
    line = arguments(curve_probes, folder, "--models=mlm_baseline", "--grid.mlm_baseline.epochs=9")
    more = ["--grid.mlm_baseline.patience=2", "--grid.mlm_baseline.held_out=0.2"]
    assert cli.main([*line, *more]) == 0
    return folder


def test_the_baseline_stops_on_held_out_rows_and_says_so(baseline: Path, pairs: CurveData) -> None:
    result = read_result(baseline, "curve-pairs-*-16-*")
    rows = [r for r in read_results(baseline / "results.csv") if r["metric"] == "accuracy"]
    epochs = [int(r["epoch"]) for r in rows if (r["num_train"], r["subset"]) == ("16", "")]
    assert len(epochs) == 4  # two seeds under two controls
    assert all(1 <= epoch <= 9 for epoch in epochs)
    data = hold_out(pairs, FitSettings(patience=2, held_out=0.2), 0)
    description = str(result["curve"]["early_stopping"])
    assert description == early_stopping(data, FitSettings(epochs=9, patience=2), epochs)
    assert f"patience 2 on {len(data.held_out)} held-out train rows" in description
    assert result["counts"] == {"train": len(data.train), "evaluation": len(data.evaluation)}


def test_each_seed_has_a_head_of_its_own(baseline: Path, pairs: CurveData) -> None:
    predictions = read_predictions(baseline, "curve-pairs-mlp-0-*")
    for seed in SEEDS:
        assert_scores(predictions, seed, MLMBaseline(seed=seed), pairs)
    seeds = {r["seed"] for r in read_results(baseline / "results.csv") if r["num_train"] == "0"}
    assert seeds == {"1", "2", ""}  # chance and majority have none


def assert_scores(
    predictions: list[dict[str, Any]], seed: int, module: ChoiceModule, data: CurveData
) -> None:
    """The model itself gives the scores of the seed's items."""
    batch = module.encoder().encode(data.evaluation).collate(range(len(data.evaluation)))
    with torch.no_grad():
        expected = module(batch)
    scores = [row["scores"] for row in predictions if row["set"] == f"standard-seed{seed}"]
    torch.testing.assert_close(torch.tensor(scores), expected, rtol=1e-4, atol=1e-5)


def test_random_weights_are_drawn_for_each_seed(
    curve_probes: Path, curve_model: Path, pairs: CurveData, tmp_path: Path
) -> None:
    model = ModelSettings(str(curve_model), random_weights=True, kind="transformer")
    options = ["--model.name_or_path", str(curve_model), "--model.random_weights=true"]
    assert cli.main(arguments(curve_probes, tmp_path, *options)) == 0
    fingerprints = {}
    for seed in SEEDS:
        module = module_for(model, "mc_mlm", mode="mlp", seed=seed)
        fingerprints[str(seed)] = model_fingerprint(module.model)
        for mode in ("mlp", "linear"):
            predictions = read_predictions(tmp_path, f"curve-pairs-{mode}-0-*")
            assert_scores(predictions, seed, module, pairs)
    assert len(set(fingerprints.values())) == 2
    for mode in ("mlp", "linear"):
        result = read_result(tmp_path, f"curve-pairs-{mode}-16-*")
        assert result["curve"]["sha256_by_seed"] == fingerprints
        assert result["model_sha256"] == fingerprints["1"]


LM_SETTINGS = CurveSettings(
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
    features: Tensor = model.base_model(ids).last_hidden_state[0, -1]
    return features


def t5_features(model: Any, tokenizer: Any, stem: str) -> Tensor:
    """What the head reads behind the first sentinel; embeddings are tied, so it is scaled."""
    blank = "<extra_id_0>"
    ids = tokenizer(stem.replace("[MASK]", blank), return_tensors="pt")["input_ids"]
    decoder_ids = torch.tensor([[0, tokenizer.convert_tokens_to_ids(blank)]])
    outputs = model(ids, decoder_input_ids=decoder_ids, output_hidden_states=True)
    features: Tensor = outputs.decoder_hidden_states[-1][0, -1]
    return features * 16**-0.5


def bart_features(model: Any, tokenizer: Any, stem: str) -> Tensor:
    """What the head reads where the decoder has written the sentence up to its blank."""
    prefix, _, suffix = stem.partition("[MASK]")
    ids = tokenizer(f"{prefix}<mask>{suffix}", return_tensors="pt")["input_ids"]
    decoder_ids = [3, 2, *tokenizer(prefix, add_special_tokens=False)["input_ids"]]
    outputs = model.base_model(ids, decoder_input_ids=torch.tensor([decoder_ids]))
    read: Tensor = outputs.last_hidden_state[0, -1]
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
    return torch.stack([weight[tokens[len(begin) :]].mean(dim=0) for tokens in ids])


def trained_alone(
    rows: Tensor, h: Tensor, records: Sequence[Record], mode: str, seed: int
) -> nn.Module:
    """One head, trained by a plain loop."""
    [size] = LM_SETTINGS.sizes
    decoder = nn.Linear(rows.shape[1], len(rows))
    decoder.load_state_dict({"weight": rows, "bias": torch.zeros(len(rows))})
    dense, norm = fresh_hidden_layer(rows.shape[1], seed)
    net = nn.Sequential(*([dense, nn.GELU(), norm] if mode == "mlp" else []), decoder)
    decayed = [layer.weight for layer in net if isinstance(layer, nn.Linear)]
    plain = [p for p in net.parameters() if all(p is not weight for weight in decayed)]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}],
        betas=(0.9, 0.98),
    )
    orders = sample_orders(len(records), size, LM_SETTINGS.epochs, seed)
    steps = [o[i : i + LM_SETTINGS.batch_size] for o in orders for i in range(0, size, 4)]
    factor = slanted_triangular(len(steps))
    for number, chosen in enumerate(steps):
        for group in optimizer.param_groups:
            group["lr"] = LM_SETTINGS.learning_rate[mode] * factor(number)
        gold = torch.tensor([WORDS.index(records[i].gold) for i in chosen])
        F.cross_entropy(net(h[chosen]), gold).backward()
        optimizer.step()
        optimizer.zero_grad()
    return net


@pytest.mark.thorough
@pytest.mark.parametrize("family", CASES)
def test_stacked_heads_answer_as_heads_trained_one_by_one_on_texts_read_alone(
    family: str, model_of: Callable[[str], ModelSettings], curve_probes: Path
) -> None:
    settings, (_, auto_class, features) = model_of(family), CASES[family]
    data = load(curve_probes, "pairs", sizes=LM_SETTINGS.sizes, controls=LM_SETTINGS.controls)
    words = candidate_words(data, LM_SETTINGS)
    assert words == WORDS
    frozen = FrozenFeatures(scorer_for(settings, "mc_mlm"), words)
    probe = CurveProbe(frozen, data, LM_SETTINGS, TRAINER, settings.kind)
    model = auto_class.from_pretrained(settings.name_or_path).eval()
    tokenizer = AutoTokenizer.from_pretrained(settings.name_or_path)
    compare_to_heads_trained_alone(
        probe, data, first_rows(model, tokenizer), lambda stem: features(model, tokenizer, stem)
    )


def compare_to_heads_trained_alone(
    probe: CurveProbe, data: CurveData, rows: Tensor, features: Callable[[str], Tensor]
) -> None:
    """Assert that heads which begin with `rows` score as those of plain loops over features."""
    with torch.no_grad():
        read = {
            record.stem: features(record.stem)
            for control in LM_SETTINGS.controls
            for records in data.under(control)
            for record in records
        }
    for mode in ("mlp", "linear"):
        measured = probe.point(mode, 10)  # type: ignore[arg-type]
        assert [(measurement.control, measurement.seed) for measurement in measured] == [
            (control, seed) for control in LM_SETTINGS.controls for seed in LM_SETTINGS.seeds
        ]
        for measurement in measured:
            train, evaluation = data.under(measurement.control)
            h, h_eval = (torch.stack([read[r.stem] for r in rs]) for rs in (train, evaluation))
            net = trained_alone(rows, h, train, mode, measurement.seed or 0)
            with torch.no_grad():
                table = net(h_eval)
            expected = [
                [row[WORDS.index(c)] for c in r.choices]
                for row, r in zip(table.tolist(), evaluation, strict=True)
            ]
            scores = torch.tensor(measurement.predictions.scores)
            torch.testing.assert_close(scores, torch.tensor(expected), rtol=1e-4, atol=1e-4)
            right = [
                max(range(2), key=row.__getitem__) == r.answer
                for row, r in zip(expected, evaluation, strict=True)
            ]
            assert measurement.predictions.accuracy == sum(right) / len(right)


def records_of(
    model: ModelSettings, probes: Path, folder: Path, trainer: TrainerSettings = TRAINER
) -> dict[str, RunRecord]:
    """Those of a curve's runs by mode and N."""
    context = RunContext(trainer, mirror=str(probes / "mirror"))
    path = str(probes / "pairs.yaml")
    curve = Curve(CurveSpec(path, model, (model,), LM_SETTINGS, ProbeOptions()), context)
    jobs = curve_jobs(curve)
    names = [" ".join(job.spec.name.split("-")[2:4]) for job in jobs]
    return dict(zip(names, make_runs(jobs, folder, context).values(), strict=True))


def numbers(records: dict[str, RunRecord]) -> list[tuple[Any, ...]]:
    """What was measured."""
    rows = [row for record in records.values() for row in record.rows]
    return [(r.mode, r.num_train, r.control, r.seed, r.metric, r.value) for r in rows]


def test_n_0_is_what_the_scorer_says_and_no_number_depends_on_batches(
    model_of: Callable[[str], ModelSettings], curve_probes: Path, tmp_path: Path
) -> None:
    model = model_of("gpt2")
    records = records_of(model, curve_probes, tmp_path / "a")
    assert list(records) == ["zero_shot 0", "mlp 10", "linear 10"]
    first = records["zero_shot 0"]
    assert {row.mode for row in first.rows} == {"causal_likelihood"}
    assert {row.metric for row in first.rows} >= {"chance", "majority_accuracy", "accuracy"}
    assert {record.model_sha256 for record in records.values()} == {first.model_sha256}
    data = load(curve_probes, "pairs", sizes=LM_SETTINGS.sizes, controls=LM_SETTINGS.controls)
    sets = {control: data.under(control)[1] for control in LM_SETTINGS.controls}
    predictions = predict(scorer_for(model, "mc_mlm"), sets, TRAINER)
    values = {r.control: r.value for r in first.rows if (r.metric, r.subset) == ("accuracy", None)}
    assert values == {control: scored.accuracy for control, scored in predictions.items()}
    small = replace(TRAINER, max_eval_tokens=40)
    assert numbers(records_of(model, curve_probes, tmp_path / "b", small)) == numbers(records)


@pytest.fixture
def encoder(curve_model: Path, tmp_path: Path) -> ModelSettings:
    """A BERT without its head over words."""
    folder = tmp_path / "encoder"
    AutoModel.from_pretrained(curve_model).save_pretrained(folder)
    AutoTokenizer.from_pretrained(curve_model).save_pretrained(folder)
    return ModelSettings(str(folder), kind="transformer")


def test_an_encoder_without_a_head_has_heads_that_begin_with_zeros(
    encoder: ModelSettings, curve_probes: Path
) -> None:
    data = load(curve_probes, "pairs", sizes=LM_SETTINGS.sizes, controls=LM_SETTINGS.controls)
    model = AutoModel.from_pretrained(encoder.name_or_path).eval()
    tokenizer = AutoTokenizer.from_pretrained(encoder.name_or_path)

    def features(stem: str) -> Tensor:
        inputs = tokenizer(stem, return_tensors="pt")
        [place] = (inputs["input_ids"][0] == tokenizer.mask_token_id).nonzero()
        hidden: Tensor = model(**inputs).last_hidden_state
        return hidden[0, place[0]]

    scorer = MaskFeatures(CheckpointRef(encoder.name_or_path))
    probe = CurveProbe(FrozenFeatures(scorer, WORDS), data, LM_SETTINGS, TRAINER)
    rows = torch.zeros(len(WORDS), model.config.hidden_size)
    compare_to_heads_trained_alone(probe, data, rows, features)
    with pytest.raises(UsageError, match="cannot compute scores of choices: it has no head over w"):
        scorer.choice_scores()


def test_nothing_is_said_of_an_encoder_without_a_head_before_training(
    encoder: ModelSettings, curve_probes: Path, tmp_path: Path
) -> None:
    records = records_of(encoder, curve_probes, tmp_path / "a")
    assert list(records) == ["mlp 10", "linear 10"]
    for record in records.values():
        assert {row.num_train for row in record.rows} == {10}
        assert {row.metric for row in record.rows} >= {"chance", "majority_accuracy", "accuracy"}
        assert heads.NO_WORD_HEAD in record.notices
        assert record.model_sha256 == MaskFeatures(encoder.checkpoint).fingerprint()
    fresh = replace(encoder, random_weights=True)
    for record in records_of(fresh, curve_probes, tmp_path / "b").values():
        assert list(record.rows) != list(records["mlp 10"].rows)
        details = record.detail(CurveDetails)
        assert details is not None
        assert details.sha256_by_seed == {
            str(seed): MaskFeatures(replace(fresh.checkpoint, seed=seed)).fingerprint()
            for seed in LM_SETTINGS.seeds
        }
    # It is refused where it would be asked, and before anything is read where it cannot pose.
    error = "only the encoder .BertModel., not the head that predicts words; give .* with `curve`"
    context = RunContext(TRAINER, mirror=str(curve_probes / "mirror"))
    with pytest.raises(PretrainedError, match=error):
        scorer_for(encoder, "mc_mlm")
    with pytest.raises(PretrainedError, match=error):
        check_records(context, encoder, "mc_mlm")
    tokenizer = AutoTokenizer.from_pretrained(encoder.name_or_path)
    tokenizer.mask_token = None
    tokenizer.save_pretrained(encoder.name_or_path)
    spec = CurveSpec(
        str(curve_probes / "pairs.yaml"), encoder, (encoder,), LM_SETTINGS, ProbeOptions()
    )
    with pytest.raises(PretrainedError, match="the tokenizer has no mask token"):
        check_curve(RunContext(TRAINER, mirror=str(curve_probes / "mirror")), spec)


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


def test_of_several_processes_the_first_one_trains_heads(
    curve_probes: Path, curve_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--grid.sizes=[8]", "--grid.seeds=[1]", "--grid.modes=[linear]"]
    options += [f"--probes={curve_probes / 'pairs.yaml'}", f"--models={curve_model}"]
    first, further = tmp_path / "first", tmp_path / "further"
    assert cli.main(curve_command(curve_probes, first, *options)) == 0
    waited = []

    def first_ends(_: float) -> None:
        waited.append(True)
        for result in first.glob("runs/*/result.json"):
            shutil.copy(result, further / "runs" / result.parent.name)

    monkeypatch.setattr(execution.time, "sleep", first_ends)
    monkeypatch.setattr(heads, "train_stack", lambda *_: pytest.fail("it trained"))
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert cli.main(curve_command(curve_probes, further, *options)) == 0
    assert waited == [True]
    for path in first.glob("runs/*/result.json"):
        copy = further / path.relative_to(first)
        assert copy.read_bytes() == path.read_bytes()


def test_what_the_next_portion_takes_by_a_plain_loop(
    module: ChoiceModule, pairs: CurveData
) -> None:
    settings = replace(SETTINGS, sizes=[8, 14])
    data = replace(pairs, sizes=(8, 14))
    first, last = (CurveProbe(module, data, settings, TRAINER).point("mlp", n) for n in (8, 14))
    names = ["first_bits", "code_bits", "guessed_bits"]
    assert [[sent.metric for sent in measurement.code] for measurement in first] == [names] * 2
    assert [measurement.code for measurement in last] == [[], []]  # nothing is left to send
    # The same heads, measured on the train rows themselves.
    on_train = CurveProbe(module, replace(data, evaluation=data.train), settings, TRAINER)
    for measurement, measured in zip(first, on_train.point("mlp", 8), strict=True):
        order = np.random.default_rng([measurement.seed, 0]).permutation(len(data.train))
        bits = 0.0
        for index in order[8:14]:
            scores = measured.predictions.scores[index]
            total = sum(math.exp(score) for score in scores)
            bits -= math.log2(math.exp(scores[data.train[index].answer]) / total)
        begun, sent, guessed = measurement.code
        assert (begun.bits, begun.num_items) == (8.0, 8)  # of two choices one bit each
        assert sent.bits == pytest.approx(bits, abs=1e-4)
        assert (guessed.bits, guessed.num_items) == (6.0, 6)
