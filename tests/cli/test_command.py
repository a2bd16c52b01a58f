from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from pytorch_lightning import Trainer

from probelight import cli
from probelight.cli.arguments import KnownOptions, read_command_line
from probelight.cli.parsing import LIGHTNING, parse_and_call, short_help
from probelight.commands.command import DECLARED, Command, command
from probelight.commands.inoculation.command import inoculate
from probelight.io.ranges import Names, NumItems
from probelight.io.settings import RangeError
from tests.fixtures.checkout import ROOT


def test_a_command_takes_from_python_what_its_line_takes() -> None:
    declared = Command(example="train.py paint --what house", options="what")

    @command(declared)
    def paint(what: Names, coats: NumItems = 1) -> tuple[Sequence[str], int]:
        return what, coats

    assert DECLARED[paint] is declared
    assert paint("house, barn") == (["house", "barn"], 1)
    assert paint(["house"], coats=2) == (["house"], 2)
    with pytest.raises(RangeError, match=r"^paint: coats 0: give a number from 1"):
        paint([], 0)
    with pytest.raises(RangeError, match=r"^paint: what 3: give "):
        paint(3)
    with pytest.raises(TypeError, match="colour"):
        paint([], colour="red")


def test_inoculate_refuses_a_name_where_it_takes_settings() -> None:
    with pytest.raises(RangeError, match=r"^inoculate: original science: give OriginalTask or a"):
        inoculate("runs/never", original="science")  # type: ignore[arg-type]


LINES, COLUMNS = 48, 100  # two screens
# Commands without a folder of results: what their config holds in its place.
WITHOUT_FOLDER = {
    "doctor": "{}",
    "explain": "item: ",
    "probes list": "{}",
    "probes validate": "file: ",
    "probes stats": "file: ",
}


def printed_by(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    try:
        code = cli.main(arguments)
    except SystemExit as stop:
        code = int(stop.code or 0)
    assert code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", cli.SUMMARIES)
def test_help_is_two_screens_of_known_options_and_an_example_that_can_be_typed(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed_by([*command.split(), "--help"], capsys)
    lines = text.splitlines()
    assert lines[0].startswith(f"usage: train.py {command}")
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= COLUMNS

    full = printed_by([*command.split(), "--help_all"], capsys)
    options = re.findall(r"^  (--[\w.]+)", text, flags=re.MULTILINE)
    assert options or command in WITHOUT_FOLDER
    assert set(options) <= set(re.findall(r"(?:^|, ) *(--[\w.]+)", full, flags=re.MULTILINE))
    assert len(full.splitlines()) > len(lines)

    example = shlex.split(text.split("example:\n")[1].split("\n\n")[0].replace("\\\n", ""))
    assert " ".join(example).startswith(f"train.py {command}")
    declared = LIGHTNING.get(command) or DECLARED[cli.function_of(command)]
    assert " ".join(example) == declared.example
    config = printed_by([*example[1:], "--print_config"], capsys)
    assert WITHOUT_FOLDER.get(command, "output_dir: ") in config
    assert declared.config is None or (ROOT / declared.config).is_file()


# Commands of the shipped experiments by a key that their configs have.
COMMANDS = {"probe": "inoculate", "grid": "curve", "plan": "demo", "sets": "diagnose"}
COMMANDS |= {"original": "original", "trainer": "fit"}


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("configs/experiment/*.yaml")), ids=lambda p: p.stem
)
def test_every_experiment_is_a_valid_config(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = yaml.safe_load(path.read_text())
    command = [next(command for key, command in COMMANDS.items() if key in config)]
    if "rows" in config.get("grid", {}):
        command = ["sweep", "plan"]
    printed = yaml.safe_load(printed_by([*command, f"--config={path}", "--print_config"], capsys))
    assert config.keys() <= printed.keys()


def test_an_option_too_long_for_its_column_has_a_line_of_its_own() -> None:
    options = {"--a": "short", "--" + "b" * 40: "long"}
    lines = short_help("train.py x", "Does.", options, "train.py x").splitlines()
    assert lines[4:7] == [f"  {'--a':<28}short", f"  --{'b' * 40}", f"{'':<30}long"]


def test_the_options_of_the_trainer_are_its_arguments() -> None:
    arguments = inspect.signature(Trainer).parameters
    for description in LIGHTNING.values():
        names = [w.removeprefix("trainer.") for w in description.options.split() if "." in w]
        assert names
        assert set(names) <= arguments.keys()


CALLS: list[tuple[str, int, str]] = []


@dataclass(frozen=True)
class Colours:
    """Colours.

    Args:
        first: The first one.
        second: The second one.
    """

    first: str = "red"
    second: str | None = None


@command(Command("train.py paint --what house", options="what colours.first"))
def paint(what: str, coats: NumItems = 1, colours: Colours = Colours()) -> None:
    """Paints something.

    Args:
        what: A thing.
        coats: How often.
        colours: With what.
    """
    CALLS.append((what, coats, colours.first))


@command(Command(positional=True))
def wash(what: str) -> None:
    """Washes something."""
    CALLS.append((what, 0, ""))


@command(Command("train.py dry plate cup", options="what", positional=True))
def dry(what: list[Path], coats: NumItems = 1) -> None:
    """Dries things.

    Args:
        what: Things.
    """
    CALLS.append((" and ".join(map(str, what)), coats, ""))


def settings_of(name: str) -> type[Colours]:
    assert name == "fence"
    return Colours


@command(Command(named=f"{__name__}:settings_of"))
def restore(coats: NumItems = 1, name: str = "", settings: Colours | None = None) -> None:
    """Restores something, or all."""
    CALLS.append((name, coats, settings.first if settings else ""))


def test_a_function_is_called_with_what_is_typed_or_in_a_config(tmp_path: Path) -> None:
    path = tmp_path / "paint.yaml"
    path.write_text("what: house\ncolours: {first: blue}\n")
    CALLS.clear()
    parse_and_call("paint", paint, [f"--config={path}", "--coats=2"])
    parse_and_call("wash", wash, ["car"])
    assert CALLS == [("house", 2, "blue"), ("car", 0, "")]


def test_a_list_by_place_is_one_word_or_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    word, list_ = tmp_path / "one.yaml", tmp_path / "two.yaml"
    word.write_text("what: pan\n")
    list_.write_text("what: [pan, pot]\n")
    CALLS.clear()
    for words in (["cup"], ["--coats=2", "cup", "[a"], [f"--config={word}"], [f"--config={list_}"]):
        parse_and_call("dry", dry, words)
    assert CALLS == [("cup", 1, ""), ("cup and [a", 2, ""), ("pan", 1, ""), ("pan and pot", 1, "")]
    with pytest.raises(SystemExit, match="2"):
        parse_and_call("dry", dry, [])
    with pytest.raises(SystemExit, match="0"):
        parse_and_call("dry", dry, ["--help"])
    printed = capsys.readouterr()
    assert "give WHAT" in printed.err
    assert printed.out.startswith("usage: train.py dry WHAT... [--config")


def test_the_settings_of_a_named_thing_are_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "fence.yaml"
    path.write_text("first: green\n")
    CALLS.clear()
    parse_and_call("restore", restore, ["fence", "--coats=3", f"--config={path}"])
    parse_and_call("restore", restore, ["--coats=2"])
    parse_and_call("restore", restore, [])
    assert CALLS == [("fence", 3, "green"), ("", 2, ""), ("", 1, "")]
    with pytest.raises(SystemExit):
        parse_and_call("restore", restore, ["fence", "--frist=red"])
    assert "no option --frist (did you mean --first?)" in capsys.readouterr().err


def test_the_short_help_is_what_is_declared(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        parse_and_call("paint", paint, ["--help"])
    assert capsys.readouterr().out.splitlines()[:8] == [
        "usage: train.py paint [--config FILE.yaml] [--option value ...]",
        "",
        "Paints something.",
        "",
        f"  {'--what':<28}A thing. (required)",
        f"  {'--colours.first':<28}The first one. (default: red)",
        "",
        "example:",
    ]
    with pytest.raises(SystemExit, match="0"):
        parse_and_call("paint", paint, ["--help_all"])
    full = capsys.readouterr().out
    assert "--colours.second" in full
    assert "--coats" in full


KNOWN = KnownOptions(
    [
        *("output_dir", "seed", "dry_run", "probes", "grid.sizes", "grid.full.epochs"),
        *("model.name_or_path", "model.max_length"),
    ],
    ["model", "grid", "grid.full"],
    ["probes", "grid.sizes", "folders"],
    ["dry_run"],
)


def words(*arguments: str) -> list[str]:
    return read_command_line(arguments, KNOWN).words


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--output-dir", "a-b", "--seed=-1"], ["--output_dir", "a-b", "--seed=-1"]),
        (["--model.max-length=8"], ["--model.max_length=8"]),
        (["--seeed", "--o-p"], ["--seeed", "--o-p"]),  # no options: shown as they were typed
        (["a.jsonl=gpt-2", "-mirror"], ["a.jsonl=gpt-2", "-mirror"]),
        (
            ["--probes", "a, b@1,", "--grid.sizes=62,1e3"],
            ['--probes=["a", "b@1"]', '--grid.sizes=["62", "1e3"]'],
        ),
        (
            ["--probes=[a,b]", "--probes=[]", "--probes=null"],
            ["--probes=[a,b]", "--probes=[]", "--probes=null"],
        ),
        (["--model", "{name_or_path: x}"], ["--model={name_or_path: x}"]),
        (["--dry-run"], ["--dry_run=true"]),
        (["--dry_run", "--seed", "1"], ["--dry_run=true", "--seed", "1"]),
        (["--dry_run", "false", "--dry_run=no"], ["--dry_run", "false", "--dry_run=no"]),
    ],
)
def test_an_option_may_be_written_with_hyphens(arguments: list[str], expected: list[str]) -> None:
    assert words(*arguments) == expected


def test_files_of_a_command_line_are_given_to_the_parser_as_text(tmp_path: Path) -> None:
    config, model, gpt2 = tmp_path / "a.yaml", tmp_path / "model.yaml", tmp_path / "own.yaml"
    config.write_text("seed: 1\nfolders: a, b\nmodel:\n  # max_length: 8\ngrid: {full: }\n")
    model.write_text("model: {max_length: 100}\n")
    gpt2.write_text("name_or_path: gpt2\n")
    line = ["--config", str(config), f"--model={model}", "--model", str(gpt2), "-c", str(config)]
    read = read_command_line([*line, "--seed", "2"], KNOWN)
    assert read.words == [
        '--config={"seed": 1, "folders": ["a", "b"], "grid": {}}',
        '--model={"max_length": 100}',
        '--model={"name_or_path": "gpt2"}',
        '-c={"seed": 1, "folders": ["a", "b"], "grid": {}}',
        "--seed",
        "2",
    ]
    assert read.location("seed") == "--seed"  # the command line holds
    assert read.location("model.max_length") == f"{model}: model.max_length"
    assert read.location("grid.full.epochs") == "--grid.full.epochs"


def test_a_place_in_a_list_of_a_file_is_known(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text("grid: {rows: [{seeds: [1, 2]}]}\n")
    read = read_command_line([f"--config={path}"], KNOWN)
    assert read.location("grid.rows[0].seeds[1]") == f"{path}: grid.rows[0].seeds[1]"
    read = read_command_line([f"--config={path}", "--grid.rows=[]"], KNOWN)
    assert read.location("grid.rows[0].seeds[1]") == "--grid.rows[0].seeds[1]"
