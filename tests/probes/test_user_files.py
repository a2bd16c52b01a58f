from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from probelight import cli
from probelight.io.errors import UsageError
from probelight.probes.importers.items import write_ai2
from probelight.probes.source import load_probe
from probelight.probes.user_files import SplitFiles, load_user_files
from tests.fixtures.rows import read_results
from tests.fixtures.tiny import Refused, sentences

Curve = Callable[..., int]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Options that name files of masked sentences."""
    options = {}
    for split, num_items, first in (("train", 40, 0), ("dev", 12, 20), ("test", 8, 30)):
        path = tmp_path / f"pairs-{split}.jsonl"
        write_ai2(path, sentences(num_items, first))
        options[split] = f"--data.{split}={path}"
    return options


@pytest.mark.thorough
@pytest.mark.parametrize("packed", [False, True])
def test_a_curve_is_not_measured_on_what_it_is_trained_on(
    packed: bool, files: dict[str, str], curve: Curve, tmp_path: Path, refused: Refused
) -> None:
    train = Path(files["train"].partition("=")[2])
    dev = tmp_path / "others.jsonl.gz" if packed else train
    if packed:
        dev.write_bytes(gzip.compress(train.read_bytes()))
    options = [files["train"], f"--data.dev={dev}", "--data.setup=mc_mlm"]
    error = refused(["curve", f"--output_dir={tmp_path / 'out'}", *options])
    paths = f"{train} and {dev}" if packed else str(train)
    assert f"those to measure are the same 40 ({paths}), so the model would be measured" in error
    assert "or divide one file (--grid.train_from dev)" in error
    assert not list((tmp_path / "out").glob("runs/*"))
    # Divided, no item is on both sides.
    assert curve(*options, "--grid.train_from=dev") == 0


@pytest.fixture
def curve(curve_model: Path, tmp_path: Path) -> Curve:
    """Runs a small curve with more options."""

    def run(*options: str) -> int:
        command = ["curve", f"--model.name_or_path={curve_model}", "--grid.sizes=[8]"]
        command += ["--grid.seeds=[1]", "--grid.modes=[mlp]", "--grid.epochs=1"]
        return cli.main([*command, f"--output_dir={tmp_path / 'out'}", *options])

    return run


def test_a_curve_of_files_is_that_of_a_config_without_controls(
    files: dict[str, str],
    curve: Curve,
    curve_probes: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert curve(files["train"], files["dev"], "--data.setup=mc_mlm") == 0
    printed = capsys.readouterr().out
    assert "No control will be run, so the verdict will be “cannot tell” or “not shown”" in printed
    assert "to add one: --random_weights true, or --grid.controls standard,choice_only" in printed
    named = [f"--probes={curve_probes / 'pairs.yaml'}", f"--mirror={curve_probes / 'mirror'}"]
    assert curve(*named, "--grid.controls=[standard]", f"--output_dir={tmp_path / 'named'}") == 0
    values = [
        [
            (row["probe"], row["control"], row["split"], row["num_train"], row["value"])
            for row in read_results(tmp_path / folder / "results.csv")
            if (row["metric"], row["subset"]) == ("accuracy", "")
        ]
        for folder in ("out", "named")
    ]
    assert values[0] == values[1]
    assert {row[:3] for row in values[0]} == {("pairs", "standard", "dev")}
    assert "sha256" in (tmp_path / "out" / "config.yaml").read_text()


def test_tables_need_no_setup_and_their_choices_are_a_part_of_what_was_asked(
    tmp_path: Path,
) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("sentence,gold\nit is [MASK] .,small\n")
    data = SplitFiles(dev=str(path), choices=["large", "small"])
    user_files = load_user_files(data, "--probes", has_probe=False)
    assert user_files.config.setup == user_files.recorded["data"]["setup"] == "mc_mlm"
    assert user_files.recorded["data"]["choices"] == ["large", "small"]
    assert user_files.config.candidates == ("large", "small")


def test_how_golds_are_read_is_a_part_of_what_was_asked(tmp_path: Path) -> None:
    path = tmp_path / "sums.csv"
    path.write_text("question,answer,choices\n1+2?,3,1|2|3|4\n")
    loaded = load_user_files(SplitFiles(dev=str(path), gold="index"), "--probes", has_probe=False)
    assert loaded.recorded["data"]["gold"] == "index"
    [record] = load_probe(loaded.config, "dev").records  # as the process of a run reads it
    assert record.gold == "4"
    assert len(loaded.data_by_split["dev"].files) == 2
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("good,bad\nCats sleep.,Cats sleeps.\n")
    with pytest.raises(UsageError, match=r"--data\.dev: these are minimal pairs, which no model"):
        load_user_files(SplitFiles(dev=str(pairs)), "--probes", has_probe=False)


@pytest.mark.thorough
def test_without_a_dev_file_the_test_file_is_measured_and_one_file_can_be_divided(
    files: dict[str, str], curve: Curve, tmp_path: Path
) -> None:
    assert curve(files["train"], files["test"], "--data.setup=mc_mlm", "--data.name=mine") == 0
    rows = read_results(tmp_path / "out" / "results.csv")
    assert {(row["probe"], row["split"]) for row in rows} == {("mine", "test")}
    out_dir = f"--output_dir={tmp_path / 'divided'}"
    divided = [files["dev"], "--data.setup=mc_mlm", "--grid.train_from=dev", out_dir]
    assert curve(*divided, "--grid.sizes=[2]") == 0
    rows = read_results(tmp_path / "divided" / "results.csv")
    assert {(row["probe"], row["split"]) for row in rows} == {("pairs-dev", "part of dev")}


def test_a_changed_file_is_named(
    files: dict[str, str], curve: Curve, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [files["train"], files["dev"], "--data.setup=mc_mlm"]
    assert curve(*command) == 0
    path = tmp_path / "pairs-dev.jsonl"
    write_ai2(path, sentences(10, 20))
    assert curve(*command) == cli.USAGE_ERROR
    assert f"data (these files have changed: {path})" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("splits", "options", "message"),
    [
        (["dev"], ["--data.setup=mc_mlm"], "give --data.train FILE, or divide the dev file"),
        (["train"], ["--data.setup=mc_mlm"], "give --data.dev FILE or --data.test FILE"),
        (
            ["train", "dev"],
            ["--data.setup=mc_mlm", "--probes=age_small"],
            "give either --probes or --data.train, not both",
        ),
        (
            ["train", "dev"],
            ["--data.setup=mc_mlm", "--grid.controls=[standard, no_language]"],
            "--grid.controls no_language with --data.*: language controls need `arguments`",
        ),
        ([], ["--data.setup=mc_mlm"], "need files: --data.train, .dev or .test FILE"),
        ([], [], "or --data.train FILE with --data.setup"),
    ],
)
def test_what_a_curve_of_files_lacks_is_named(
    splits: list[str],
    options: list[str],
    message: str,
    files: dict[str, str],
    refused: Refused,
    tmp_path: Path,
) -> None:
    out = f"--output_dir={tmp_path / 'out'}"
    assert message in refused(["curve", out, *(files[split] for split in splits), *options])


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["whales-train", "whales-test"], "whales"),
        (["my_whales_train", "my_whales_dev"], "my_whales"),
        (["train", "test"], "folder"),
        (["whales_train", "cats_train"], "folder"),
        (["whales"], "whales"),
        (["train"], "folder"),
    ],
)
def test_files_are_called_by_what_their_names_share(
    names: list[str], expected: str, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    paths = [str(folder / f"{name}.jsonl") for name in names]
    for path in paths:
        write_ai2(path, sentences(4, 0))
    files = SplitFiles(**dict(zip(("train", "dev"), paths, strict=False)), setup="mc_mlm")
    assert load_user_files(files, "--probes", has_probe=False).config.name == expected


def test_the_config_of_files_is_told_from_all_their_items(tmp_path: Path) -> None:
    folder = tmp_path / "whales"
    folder.mkdir()
    paths = {split: str(folder / f"{split}.jsonl.gz") for split in ("train", "dev")}
    write_ai2(paths["train"], sentences(6, 0))
    write_ai2(paths["dev"], sentences(4, 10))
    user_files = load_user_files(SplitFiles(**paths, setup="mc_mlm"), "--probes", has_probe=False)
    config = user_files.config
    assert (config.name, config.candidates, config.chance) == ("whales", ("green", "red"), 0.5)
    for split, data in user_files.data_by_split.items():
        assert load_probe(config, split) == data
