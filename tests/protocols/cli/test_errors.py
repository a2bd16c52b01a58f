from __future__ import annotations

import errno
import re
import subprocess
import sys
from pathlib import Path

import pytest

from probelight.io.errors import ConfigError, UsageError
from probelight.io.process import BROKEN_PIPE
from probelight.protocols import cli
from probelight.protocols.cli.errors import FAILURE, USAGE_ERROR, complain, report_error
from tests.fixtures.checkout import ROOT


class PretrainedError(RuntimeError):
    """Known by its name alone, as that of the checkpoints is."""


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("give --a"), USAGE_ERROR, "train.py x: error: give --a"),
        (ConfigError("a.yaml: no"), USAGE_ERROR, "train.py x: error: a.yaml: no"),
        (ValueError("torn"), FAILURE, "train.py x: failed: torn"),
        (PretrainedError("no folder"), FAILURE, "train.py x: failed: no folder"),
    ],
)
def test_what_is_known_is_one_line(
    error: Exception, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report_error("x", error) == code
    assert capsys.readouterr().err.splitlines() == [said]


def test_a_full_disk_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_error("x", OSError(errno.ENOSPC, "No space left on device", "a")) == FAILURE
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("train.py x: failed: ")


def test_what_is_not_known_has_its_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert report_error("x", KeyError("place")) == FAILURE
    assert "KeyError: 'place'\n" in capsys.readouterr().err
    monkeypatch.setenv("PROBELIGHT_DEBUG", "1")
    assert report_error("x", UsageError("give --a")) == USAGE_ERROR
    assert "probelight.io.errors.UsageError: give --a\n" in capsys.readouterr().err


def test_what_a_file_says_does_nothing_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    complain("x: \x1b[2J")
    assert "\x1b" not in capsys.readouterr().err


OUT = "--output_dir=never"
ZERO_SHOT = ["zero-shot", OUT, "--probes=age_small"]
INOCULATE = ["inoculate", OUT, "--config=configs/experiment/inoculate_hypernymy.yaml"]
FIT = ["fit", "--config=configs/experiment/fit_masked_choice.yaml", OUT]
MISTAKES = [
    (["zero-shot", OUT, "--probe", "age_small"], "no option --probe (did you mean --probes?)"),
    (
        [*ZERO_SHOT, "--model.name_or_pth=x"],
        "no option --model.name_or_pth (did you mean --model.name_or_path?)",
    ),
    ([*ZERO_SHOT, "-mirror", "x"], "no option -mirror (did you mean --mirror?)"),
    (
        [*ZERO_SHOT, "--model", "roberta-large"],
        "give --config configs/model/roberta-large.yaml or --model.name_or_path roberta-large",
    ),
    ([*ZERO_SHOT, "--model", "my-bert"], "give --model.name_or_path my-bert"),
    ([*ZERO_SHOT, "--data", "a.jsonl"], "give --data.path a.jsonl"),
    (["zero-shot", OUT, "--probes", "age_small,", "b"], "'b' belongs to no option; write a list"),
    (["zero-shot", OUT, "--probes", "age_smal"], "no probe 'age_smal' (did you mean 'age_small'?)"),
    (["zero-shot", "--probes", "age_small"], "give --output_dir"),
    ([*ZERO_SHOT, "--model.head=mpl"], "--model.head mpl: give one of mlp, linear, pooler (did"),
    ([*ZERO_SHOT, "--trainer.devices=two"], "--trainer.devices two: give a whole number"),
    ([*ZERO_SHOT, "--ranks=maybe"], "--ranks maybe: give true or false"),
    ([*ZERO_SHOT, "--config=configs"], "configs: a folder, where a file is needed"),
    ([*ZERO_SHOT, "--config="], "zero-shot: error: --config: its value is missing"),
    ([*FIT, "--config", ""], "fit: error: --config: its value is missing"),
    (
        [*ZERO_SHOT, "--config=configs/model/embeded.yaml"],
        "configs/model/embeded.yaml: there is no such file (did you mean 'embedded.yaml'?)",
    ),
    (["curve", OUT, "--lr", "0.1"], "no option --lr (did you mean --grid.learning_rate?)"),
    (["curve", OUT, "--grid.sizes=62,x"], "--grid.sizes x: give a whole number"),
    ([*INOCULATE, "--dose"], "--dose: its value is missing"),
    (
        [*INOCULATE, "--model.revision=abc"],
        "model.revision abc: embedded is not on the Hub, so it has no revisions; leave it out",
    ),
    ([*INOCULATE, "--probe", "hypernymy"], "give --probe.name hypernymy"),
    ([*INOCULATE, "--model.nam", "x"], "--model.nam (did you mean --model.name?)"),
    ([*INOCULATE, "--probe.selection_itms=1"], "(did you mean --probe.selection_items?)"),
    (["inoculate", OUT], "give --original.name, --original.sets, or a --config"),
    (
        [*FIT, "--model.learning_rat=1"],
        "(did you mean --model.learning_rate?)",
    ),
    ([*FIT, "--trainer.max_epoch=1"], "(did you mean --trainer.max_epochs?)"),
    ([*FIT, "--model=Masked"], "--model Masked: there is no such class; give its whole name"),
    (["probes", "lst"], "there is no command 'probes lst' (did you mean 'probes list'?)"),
    (["report"], "give FOLDER"),
    (["sweep", "plna"], "no command 'sweep plna' (did you mean 'sweep plan'?)"),
]


@pytest.mark.parametrize(("command", "said"), MISTAKES, ids=[said for _, said in MISTAKES])
def test_a_mistake_is_answered_in_one_line_with_what_was_meant(
    command: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(command) == cli.USAGE_ERROR
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("train.py")
    assert said in line
    assert not Path("never").exists()


FILES = [
    (
        "zero-shot",
        "model:\n  name_or_pth: x\n",
        "name_or_pth (did you mean model.name_or_path?)",
    ),
    ("zero-shot", "probe: age_small\n", "there is no key probe (did you mean probes?)"),
    (
        "curve",
        "grid:\n  full:\n    epoch: 3\n",
        "(did you mean grid.full.epochs?)",
    ),
    ("curve", "plan:\n  curve: {sizes: [3]}\n", "there is no key plan"),
    ("zero-shot", "- a\n", "give a mapping of keys to values"),
    (
        "fit",
        "model:\n  class_path: probelight.lightning_modules.masked_choice.MaskedChoice\n"
        "  init_args: {learning_rat: 1}\n",
        "there is no key model.learning_rat (did you mean model.learning_rate?)",
    ),
    ("fit", "grid: {sizes: [62]}\n", "there is no key grid"),
    (
        "sweep plan",
        "grid:\n  models: {a: {}}\n  originals: {b: {name: c, sets: [], selection_itms: 3}}\n",
        "no key grid.originals.selection_itms (did you mean grid.originals.selection_items?)",
    ),
]


EMPTY = [
    (["zero-shot", "--probes=age_small"], "--output_dir"),
    (["report", "runs"], "--output_dir"),
    (["report"], "FOLDER"),
    (["compare", "runs"], "FOLDERS"),
    (["probes", "build", "definitions"], "--output_dir"),
    (["probes", "audit", "age_small"], "--output_dir"),
    (["sweep", "status"], "--output_dir"),
    (["diagnose", OUT], "--recorded"),
    (INOCULATE, "--original.checkpoint"),
    (ZERO_SHOT, "--model.name_or_path"),
    (FIT[:2], "--output_dir"),
]


@pytest.mark.parametrize(("command", "option"), EMPTY)
def test_an_empty_path_is_not_taken_for_the_current_folder(
    command: list[str],
    option: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [option, ""] if option.startswith("-") else [""]
    arguments = [word.replace("=configs", f"={ROOT}/configs") for word in [*command, *given]]
    monkeypatch.chdir(tmp_path)
    assert code_of(arguments) == cli.USAGE_ERROR
    assert f"error: {option} '': give a path, which . is too for" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(("command", "text", "said"), FILES, ids=[said for *_, said in FILES])
def test_a_mistake_in_a_config_names_the_file_and_the_key(
    command: str, text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    assert code_of([*command.split(), OUT, f"--config={path}"]) == cli.USAGE_ERROR
    [line] = capsys.readouterr().err.splitlines()
    assert f"error: {path}: " in line
    assert said in line


def test_a_config_that_is_no_yaml_is_named_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("model:\n  name: [a\nx: y\n")
    assert code_of([*ZERO_SHOT, f"--config={path}"]) == cli.USAGE_ERROR
    [line] = capsys.readouterr().err.splitlines()
    assert re.search(rf"error: {path}: line 3: not readable as YAML: ", line)


@pytest.mark.parametrize(("command", "code"), [(["sweep"], 2), (["sweep", "--help"], 0)])
def test_sweep_alone_shows_its_commands(
    command: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(command) == code
    out = capsys.readouterr().out
    assert all(f"  sweep {name}" in out for name in ("plan", "run", "status"))
    assert "zero-shot" not in out


@pytest.mark.parametrize("command", [["probes", "list"], ["--help"], ["curve", "--print_config"]])
def test_who_reads_no_further_gets_no_traceback(command: list[str]) -> None:
    more = ["--output_dir=never"] if command[0] == "curve" else []
    process = subprocess.Popen(
        [sys.executable, "train.py", *command, *more],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == BROKEN_PIPE


def code_of(command: list[str]) -> int | str | None:
    try:
        return cli.main(command)
    except SystemExit as stop:
        return stop.code
