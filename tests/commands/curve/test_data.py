"""The settings of a curve, the rows that its models share, and its first stage."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from probelight.commands.curve.curve import Curve, CurveSpec, nonsense_for, only_posed
from probelight.commands.curve.data import CurveData, load_curve_data, rows_for_model
from probelight.commands.curve.heads import pose
from probelight.commands.curve.settings import FULL, CurveSettings, ProbeOptions, check_grid
from probelight.io.download import NotThereError
from probelight.io.errors import ConfigError, RecordError, UsageError
from probelight.models.registry import ModelSettings
from probelight.probes.catalog import ProbeConfig, load_probe_config
from probelight.probes.controls import NonsenseError
from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record, group_of
from probelight.runs.context import RunContext
from probelight.training.modules import module_for
from probelight.training.settings import Fit, FitSettings
from tests.commands.curve.conftest import load
from tests.fixtures.checkout import ROOT


def groups(data: CurveData, rows: str) -> set[str]:
    return {group_of(record, "arguments") for record in getattr(data, rows)}


def test_a_divided_file_leaves_no_group_on_both_sides(curve_probes: Path) -> None:
    data = load(curve_probes, "later", train_from="dev", train_share=0.6, sizes=[8, 16, 32])
    # 15 pairs in both orders; 0.6 of 30 items are 18, which whole pairs can give
    assert (len(data.train), len(data.evaluation)) == (18, 12)
    assert groups(data, "train").isdisjoint(groups(data, "evaluation"))
    assert all(data.untouched)
    assert data.split == "part of dev"
    description = "grouped split of dev, share 0.6 (18 to train on, 12 measured, seed 0)"
    assert data.train_source == description
    assert data.notices[0].startswith(f"train rows: {description}")
    assert "18 train rows: the curve stops before N = 32" in data.notices[1]
    same = load(curve_probes, "later", train_from="dev", train_share=0.6)
    assert (same.train, same.evaluation) == (data.train, data.evaluation)
    reseeded = load(curve_probes, "later", train_from="dev", train_share=0.6, split_seed=1)
    assert reseeded.train != data.train


def test_another_probe_lends_the_rows_that_are_not_measured(curve_probes: Path) -> None:
    lender = str(curve_probes / "pairs.yaml")
    data = load(curve_probes, "later", train_probe=lender)
    # the lender's pairs begin with w0 to w19, the measured ones with w10 to w24: 10 are shared
    assert len(data.evaluation) == 30
    assert len(data.train) == 20
    assert groups(data, "train").isdisjoint(groups(data, "evaluation"))
    assert "train of pairs, not the probe's own; 20 rows left out" in data.train_source
    assert data.config.name == "later"


def test_groups_and_rows_that_a_released_pair_of_files_shares(pairs: CurveData) -> None:
    assert pairs.groups == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert all(pairs.untouched)
    assert (pairs.train_source, pairs.notices) == ("train of pairs", ())


def test_default_sizes_beyond_the_rows_are_a_part_of_those_that_every_model_has(
    pairs: CurveData,
) -> None:
    frozen, baseline = ModelSettings(kind="transformer"), ModelSettings(kind="mlm_baseline")
    alone = rows_for_model(pairs, CurveSettings(), [frozen])
    assert alone.sizes == (10, 20, 40)
    assert alone.notices == (
        "40 train rows, fewer than the smallest default size 62: the points are N = 10, 20, 40 "
        "(choose others with --grid.sizes)",
    )
    # A tenth of them stops the baseline: 36 are left, of which all models have samples.
    for models in ([frozen, baseline], [baseline, frozen]):
        assert rows_for_model(pairs, CurveSettings(), models).sizes == (9, 18, 36)
    assert len(rows_for_model(pairs, CurveSettings(), [baseline]).held_out) == 4
    for num_rows, sizes in ((1, (1,)), (2, (1, 2)), (5, (1, 2, 5)), (24, (6, 12, 24))):
        few = replace(pairs, train=pairs.train[:num_rows])
        assert rows_for_model(few, CurveSettings(), [frozen]).sizes == sizes


def test_sizes_that_were_asked_for_are_left_out_or_refused_with_some_that_work(
    curve_probes: Path,
) -> None:
    data = load(curve_probes, "pairs", sizes=[8, 41])
    fitting = rows_for_model(
        data, CurveSettings(sizes=[8, 41]), [ModelSettings(kind="transformer")]
    )
    assert (fitting.sizes, fitting.notices[0][:14]) == ((8,), "40 train rows:")
    fitting = rows_for_model(
        data, CurveSettings(sizes=[10, 20, 40]), [ModelSettings(kind="transformer")]
    )
    assert fitting.sizes == (10, 20, 40)
    small, baseline = replace(data, train=data.train[:1]), ModelSettings(kind="mlm_baseline")
    stops = CurveSettings(sizes=[1])
    refusal = r"pairs: no train rows can be held out.*give --grid\.mlm_baseline\.patience null"
    with pytest.raises(UsageError, match=refusal):
        rows_for_model(small, stops, [baseline])
    never = replace(stops, mlm_baseline=replace(stops.mlm_baseline, patience=None))
    assert rows_for_model(small, never, [baseline]).sizes == (1,)


def test_a_train_file_that_cannot_be_had_says_what_else_to_train_on(tmp_path: Path) -> None:
    options = "antonym_negation", CurveSettings(), ProbeOptions()
    (tmp_path / "olmpics").mkdir()
    with pytest.raises(NotThereError, match=r"there is no .*_dev\.jsonl"):
        load_curve_data(RunContext(mirror=str(tmp_path)), *options)
    path = tmp_path / "olmpics/challenge/antonym_synonym_negation"
    path.mkdir(parents=True)
    record = Record("1", "It was [MASK] hot , it was really cold .", ("not", "really"), 0)
    write_ai2(path / "antonym_synonym_negation_dev.jsonl", [record])
    with pytest.raises(NotThereError, match=r"_train.jsonl.*--grid.train_from dev\).*train_probe"):
        load_curve_data(RunContext(mirror=str(tmp_path)), *options)


def test_controls_keep_the_place_of_every_item(curve_probes: Path) -> None:
    data = load(curve_probes, "asked")
    train, evaluation = data.under("perturbed_language")
    assert [r.id for r in train] == [r.id for r in data.train]
    [word] = data.substitutes.values()
    for record, changed in zip(data.evaluation, evaluation, strict=True):
        assert changed.stem == record.stem.replace("colour", word)
    random.seed(5)  # the draw is seeded by the probe alone
    assert load(curve_probes, "asked").substitutes == data.substitutes
    bare, _ = data.under("no_language")
    assert bare[0].stem == " ".join(data.train[0].stem.split()[i] for i in (1, 6))
    train, evaluation = data.under("other_question")
    assert [r.id for r in train] == [r.id for r in data.train]
    assert sorted(r.stem for r in evaluation) == sorted(r.stem for r in data.evaluation)
    assert data.words("other_question") == {}  # which a notice would list


def test_a_control_that_does_not_fit_names_probe_or_record(
    pairs: CurveData, curve_probes: Path
) -> None:
    with pytest.raises(ConfigError, match="no `arguments`, which the control no_language needs"):
        pairs.controlled("no_language", pairs.train, replace(pairs.config, arguments={}))
    bare = pairs.controlled("choice_only", pairs.train, replace(pairs.config, arguments={}))
    assert {record.stem for record in bare} == {"[MASK]"}
    config = load(curve_probes, "asked").config
    with pytest.raises(RecordError, match=r"train\.jsonl(\.gz)?:1: no template of asked fits"):
        pairs.controlled("perturbed_language", pairs.train, config)


def test_a_variant_has_rows_controls_and_a_name_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "olmpics/challenge/conjunction"
    folder.mkdir(parents=True)
    pen, notes = ("pen", "computer", "spoon"), {"first_distractor": "spoon"}
    for split, location in (("train", "in a house"), ("dev", "at hand")):
        stem = f"What is usually located {location} and used for writing?"
        record = Record("1", stem, pen, 0, notes)
        write_ai2(folder / f"conjunction_filt4_{split}.jsonl", [record])
    options = ProbeOptions(variant="but_not")
    data = load_curve_data(
        RunContext(mirror=str(tmp_path)), "property_conjunction", CurveSettings(sizes=[1]), options
    )
    [record] = data.evaluation
    assert data.config.name == "property_conjunction_but_not"
    assert record.stem == "What is usually located at hand but not used for writing?"
    assert record.gold == "spoon"
    assert data.under("no_language")[1][0].stem == "located at hand used for writing"
    assert set(data.substitutes) == {"but", "not"}


def test_the_baselines_are_trained_as_the_authors_did() -> None:
    authors = FitSettings(
        learning_rate=4e-4, epochs=75, weight_decay=0.1, max_grad_norm=10.0, patience=10
    )
    assert CurveSettings().fit_of("mlm_baseline") == authors
    pairs = replace(authors, batch_size=32, weight_decay=0.0)
    assert CurveSettings().fit_of("esim") == pairs
    assert CurveSettings().head_fit("linear", "transformer") == Fit(learning_rate=1e-3, epochs=4)
    path = ROOT / "configs" / "experiment" / "olmpics_baselines.yaml"
    grid = yaml.safe_load(path.read_text())["grid"]
    assert FitSettings(**grid["mlm_baseline"]) == authors
    assert FitSettings(**grid["esim"]) == pairs


def test_a_setting_may_be_of_one_probe_or_of_all() -> None:
    grid = CurveSettings(train_from={"a": "dev", "b": "test"}, train_probe="c")
    check_grid(grid, ["a", "b"])
    assert (grid.of_probe("train_from", "b"), grid.of_probe("train_probe", "b")) == ("test", "c")
    assert grid.of_probe("train_from", "d") is None


ESIM, BASELINE = ModelSettings(kind="esim"), ModelSettings(kind="mlm_baseline")
SETTINGS = CurveSettings(
    sizes=[8, 4000],
    controls=["standard"],
    train_from={"later": "dev"},
    esim=FitSettings(epochs=3, patience=1, held_out=0.25),
)


def curve_of(
    probe: str,
    model: ModelSettings,
    context: RunContext,
    settings: CurveSettings = SETTINGS,
    options: ProbeOptions = ProbeOptions(),  # noqa: B008
) -> Curve:
    return Curve(CurveSpec(probe, model, (ESIM, BASELINE), settings, options), context)


def test_a_model_is_trained_as_its_kind_can_be(curve_probes: Path, context: RunContext) -> None:
    modes = {
        (name, model.kind): curve_of(str(curve_probes / f"{name}.yaml"), model, context).modes
        for name in ("pairs", "asked")
        for model in (ESIM, BASELINE)
    }
    assert modes == {
        ("pairs", "esim"): [],
        ("pairs", "mlm_baseline"): ["mlp"],
        ("asked", "esim"): [FULL],
        ("asked", "mlm_baseline"): [],
    }


def test_the_nonsense_words_are_one_piece_in_every_model(curve_model: Path, tmp_path: Path) -> None:
    config = load_probe_config("age_comparison")  # its own: ya, blah
    large = ModelSettings(name_or_path=str(curve_model), kind="transformer")  # knows blah, ya, foo
    assert nonsense_for(config, [large]) == {"younger": "ya", "older": "blah"}
    poorer = shutil.copytree(curve_model, tmp_path / "poorer")
    for file in poorer.glob("*tokenizer*"):
        file.write_text(file.read_text().replace('"ya"', '"xx"'))
    (poorer / "vocab.txt").write_text((poorer / "vocab.txt").read_text().replace("ya\n", "xx\n"))
    small = ModelSettings(name_or_path=str(poorer), kind="transformer")
    expected = {"younger": "foo", "older": "blah"}
    assert nonsense_for(config, [large, small]) == expected
    assert nonsense_for(config, [small, large, ModelSettings(kind="mlm_baseline")]) == expected
    assert nonsense_for(config, [ModelSettings(kind="esim")]) == {"younger": "ya", "older": "blah"}
    three = load_probe_config("multihop_composition")
    with pytest.raises(
        NonsenseError, match=r"3 candidates, but only 2 .*'ya' in poorer; 'snap' in"
    ):
        nonsense_for(three, [large, small])
    assert nonsense_for(load_probe_config("taxonomy_conjunction"), [large]) == {}


def test_models_of_every_kind_share_nonsense_words_and_only_heads_of_pieces_leave_rows_out(
    curve_lm: Callable[[str], Path], curve_model: Path, tmp_path: Path
) -> None:
    config = load_probe_config("age_comparison")
    folder = shutil.copytree(curve_lm("gpt2"), tmp_path / "gpt2")
    file = folder / "tokenizer.json"
    file.write_text(file.read_text().replace('"ya"', '"xx"'))
    causal = ModelSettings(str(folder), kind="causal", multi_token="skip")
    assert nonsense_for(config, [causal]) == {"younger": "foo", "older": "blah"}
    models = [causal, ModelSettings(str(curve_model), kind="transformer")]
    assert nonsense_for(config, models) == {"younger": "foo", "older": "blah"}
    row = Record("green", "a w1 is [MASK] .", ("red", "green"), 0)  # two pieces
    plain = ProbeConfig("open", "mc_mlm", 2, 0.5)
    data = CurveData(plain, plain, "mc_mlm", (row,), (row,), "dev", "train of open", ())
    assert only_posed(data, models, ["standard"]) == data


def test_rows_that_a_skipping_model_cannot_pose_are_left_out_of_all(curve_model: Path) -> None:
    arguments = {"1": r"a (\w+) is \[MASK\] \."}
    config = ProbeConfig("open", "mc_mlm", 2, 0.5, arguments=arguments, key_words=("is",))

    def row(name: str, choices: tuple[str, str]) -> Record:
        return Record(name, f"a {name} is [MASK] .", choices, 0)

    train = (row("w1", ("red", "green")), row("w2", ("red", "greenish")))
    measured = (row("w3", ("crimson", "red")), row("w4", ("blue", "red")))
    data = CurveData(config, config, "mc_mlm", train, measured, "dev", "train of open", ())
    skipping = ModelSettings(name_or_path=str(curve_model), multi_token="skip", kind="transformer")
    answerable = only_posed(data, [skipping], ["standard", "no_language"])
    assert [r.id for r in answerable.train + answerable.evaluation] == ["w1", "w4"]
    assert [notice[:30] for notice in answerable.notices] == [
        "1 of 2 train rows left out, be",
        "1 of 2 measured rows left out,",
    ]
    strict = ModelSettings(name_or_path=str(curve_model), kind="transformer")
    assert only_posed(data, [strict], ["standard"]) == data
    with pytest.raises(UsageError, match="open: in no row is each candidate one token"):
        only_posed(replace(data, train=train[1:]), [skipping], ["standard"])
    with pytest.raises(RecordError, match=r"1 of 2 items .* such as .*w2.*multi_token skip"):
        pose(module_for(skipping, "mc_mlm"), train)
