from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from probelight import cli
from probelight.cli.arguments import CommandLine, one_line_error
from probelight.cli.parsing import command_parser
from probelight.io.errors import ConfigError, UsageError, is_one_slip
from probelight.io.process import BROKEN_PIPE
from tests.fixtures.checkout import ROOT
from tests.fixtures.tiny import Refused


class PretrainedError(RuntimeError):
    """Known by its name alone, as that of the checkpoints is."""


def caused(error: Exception, by: Exception) -> Exception:
    error.__cause__ = by
    return error


class OutOfMemoryError(RuntimeError):
    """And as torch's."""


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UsageError("give --a"), cli.USAGE_ERROR, "error: give --a"),
        (ConfigError("a.yaml: no"), cli.USAGE_ERROR, "error: a.yaml: no"),
        (OutOfMemoryError("CUDA is full"), cli.USAGE_ERROR, "error: CUDA is full"),
        (RuntimeError("CUDA error: out of memory"), cli.USAGE_ERROR, "error: CUDA error: out of"),
        (ValueError("torn \x1b[2J"), cli.FAILURE, r"failed: torn \x1b[2J"),
        (PretrainedError("no folder"), cli.FAILURE, "failed: no folder"),
        (OSError(errno.ENOSPC, "No space left on device", "a"), cli.FAILURE, "failed: a: "),
        (MemoryError(), cli.FAILURE, "failed: not enough memory; "),
        (caused(PretrainedError("MemoryError: "), MemoryError()), 1, "failed: not enough memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), cli.FAILURE, "failed: not enough"),
        (RuntimeError("[x] DefaultCPUAllocator: can't allocate memory: 9 bytes"), 1, "failed: not"),
        (ImportError("libtorch.so: failed to map segment from shared object"), 1, "failed: not"),
    ],
)
def test_a_known_error_is_one_line(
    error: Exception, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.report_error("x", error) == code
    [printed] = capsys.readouterr().err.splitlines()
    assert printed.startswith(f"train.py x: {line}")


def test_what_is_not_known_has_its_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.report_error("x", KeyError("place")) == cli.FAILURE
    assert "KeyError: 'place'\n" in capsys.readouterr().err
    monkeypatch.setenv("PROBELIGHT_DEBUG", "1")
    assert cli.report_error("x", UsageError("give --a")) == cli.USAGE_ERROR
    assert "probelight.io.errors.UsageError: give --a\n" in capsys.readouterr().err


OUT = "--output_dir=never"
ZERO_SHOT = f"zero-shot {OUT} --probes=age_small"
INOCULATE = f"inoculate {OUT} --config={ROOT}/configs/experiment/inoculate_hypernymy.yaml"
FIT = f"fit --config={ROOT}/configs/experiment/fit_masked_choice.yaml {OUT}"
CURVE = f"curve {OUT} --probes=age_small"
PLAN = f"sweep plan --config={ROOT}/configs/sweep/released.yaml {OUT}"
NO_PATH = "'': give a path (. is the current folder)"
DEEP = "[" * 800 + "]" * 800
ALIASES = "a0: &a0 [x], " + ", ".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 7)
)
MISTAKES = [
    (f"zero-shot {OUT} --probe age_small", "there is no option --probe (did you mean --probes?)"),
    (f"{ZERO_SHOT} -mirror x", "no option -mirror (did you mean --mirror?)"),
    ("report --folder=runs", "FOLDER is not an option; give it without --folder"),
    (
        f"{ZERO_SHOT} --model roberta-large",
        "give --config configs/model/roberta-large.yaml or --model.name_or_path roberta-large",
    ),
    (f"{ZERO_SHOT} --model my-bert", "give --model.name_or_path my-bert"),
    (f"{ZERO_SHOT} --data a.jsonl", "give --data.path a.jsonl"),
    (f"{ZERO_SHOT} --data.train a.csv", "no option --data.train (did you mean --data.path?)"),
    (f"{ZERO_SHOT} --path a.csv", "no option --path (did you mean --data.path?)"),
    (f"curve {OUT} --data.path a.csv", "did you mean --data.dev FILE --grid.train_from dev, which"),
    (f"curve {OUT} --path a.csv", "did you mean --data.dev FILE --grid.train_from dev, which"),
    (f"curve {OUT} --data a.csv", "give --data.dev a.csv --grid.train_from dev, which divides"),
    (f"{INOCULATE} --data.path a", "mean --data.train FILE --probe.report_split null, which"),
    (f"{ZERO_SHOT} --name x", "(did you mean --model.name or --data.name?)"),
    (f"{ZERO_SHOT} --model.path x", "(did you mean --model.name_or_path?)"),
    (f"{ZERO_SHOT} --modle.name x", "(did you mean --model.name?)"),
    (f"curve {OUT} --probe.control x", "(did you mean --grid.controls?)"),
    (f"{ZERO_SHOT} --hepl", "(did you mean --help?)"),
    (f"zero-shot {OUT} --probes age_small, b", "'b' does not belong to an option; write lists"),
    (f"zero-shot {OUT} --probes age_smal", "no probe 'age_smal' (did you mean 'age_small'?)"),
    ("zero-shot --probes age_small", "give --output_dir"),
    (f"{ZERO_SHOT} --model.head=mpl", "--model.head mpl: give one of mlp, linear, pooler (did"),
    (f"{ZERO_SHOT} --trainer.devices=two", "--trainer.devices two: give a whole number"),
    (
        f"{ZERO_SHOT} --trainer.matmul_precision=tf32",
        "--trainer.matmul_precision tf32: give one of highest, high, medium",
    ),
    (f"{ZERO_SHOT} --ranks=maybe", "--ranks maybe: give true or false"),
    (f"{ZERO_SHOT} --config={ROOT}", f"{ROOT}: a folder, where a file is needed"),
    (f"{ZERO_SHOT} --config=", "zero-shot: error: --config: give a value"),
    (f"{ZERO_SHOT} --config", "zero-shot: error: --config: give a value"),
    (f"{ZERO_SHOT} --models ''", "zero-shot: error: --models: give a value"),
    (f"{ZERO_SHOT} --models ,", "zero-shot: error: --models: give a value"),
    (f"{FIT} --config ''", "fit: error: --config: give a value"),
    (
        f"{ZERO_SHOT} --config=configs/model/esimm.yaml",
        "configs/model/esimm.yaml: there is no such file (did you mean 'esim.yaml'?)",
    ),
    (f"curve {OUT} --lr 0.1", "no option --lr (did you mean --grid.learning_rate?)"),
    (f"curve {OUT} --grid.sizes=62,x", "--grid.sizes x: give a whole number"),
    (f"{INOCULATE} --dose", "--dose: give a value"),
    (
        f"{INOCULATE} --model.revision=abc",
        "model.revision abc: dictionary-lm is not on the Hub, so it has no revisions; leave it out",
    ),
    (f"{INOCULATE} --model.nam x", "--model.nam (did you mean --model.name?)"),
    (f"{INOCULATE} --forse", "no option --forse (did you mean --force?)"),
    (
        f"{INOCULATE} --trainer.gradient_checkpoint true",
        "(did you mean --trainer.gradient_checkpointing?)",
    ),
    (f"{INOCULATE} --probe.selection_itms=1", "(did you mean --probe.selection_items?)"),
    (f"inoculate {OUT}", "give --original.name and --original.sets, or a --config"),
    (f"{FIT} --model.learning_rat=1", "(did you mean --model.learning_rate?)"),
    (f"{FIT} --trainer.max_epoch=1", "(did you mean --trainer.max_epochs?)"),
    (f"{FIT} --model=Masked", "--model Masked: there is no such class; give its full name"),
    ("zeroshot", "there is no command 'zeroshot' (did you mean 'zero-shot'?)"),
    (
        "sweep --config=x",
        "'sweep --config=x': begin with one of sweep plan, sweep run, sweep status",
    ),
    ("probes lst", "there is no command 'probes lst' (did you mean 'probes list'?)"),
    ("report", "give FOLDER"),
    # An empty path is not taken for the current folder.
    ("zero-shot --probes=age_small --output_dir ''", f"error: --output_dir {NO_PATH}"),
    ("report ''", f"error: FOLDER {NO_PATH}"),
    ("compare runs ''", f"error: FOLDERS {NO_PATH}"),
    ("probes audit age_small --output_dir ''", f"error: --output_dir {NO_PATH}"),
    (f"{INOCULATE} --original.checkpoint ''", f"error: --original.checkpoint {NO_PATH}"),
    (f"{ZERO_SHOT} --model.name_or_path ''", f"error: --model.name_or_path {NO_PATH}"),
    (f"{FIT} --output_dir ''", f"error: --output_dir {NO_PATH}"),
    (f"demo {OUT} --seed=5", "error: there is no option --seed (did you mean --plan.seeds?)"),
    (f"{ZERO_SHOT} --count=5", "error: there is no option --count; --help_all"),
    # A number outside of its range; each is tested, these go the way from a command line.
    (f"{INOCULATE} --dose=-1", "error: --dose -1: give "),
    (f"{INOCULATE} --learning_rate=1e400", "error: --learning_rate inf: give "),
    (f"{INOCULATE} --model.max_length=0", "error: --model.max_length 0: give "),
    (f"{INOCULATE} --probe.report_share=1", "error: --probe.report_share 1.0: give "),
    (f"{ZERO_SHOT} --trainer.devices=-2", "error: --trainer.devices -2: give "),
    (f"{CURVE} --grid.sizes=[]", "error: --grid.sizes []: give "),
    (f"{CURVE} --grid.full.held_out=1.5", "error: --grid.full.held_out 1.5: give "),
    (f"{CURVE} --grid.learning_rate='{{mlp: -1}}'", "error: --grid.learning_rate.mlp -1.0: give "),
    (f"{PLAN} --engine.stop_seconds=0", "error: --engine.stop_seconds 0.0: give "),
    (f"{PLAN} --grid.rows=[]", "error: --grid.rows []: give "),
    (f"{CURVE} --wandb.tags=[a,a]", "error: --wandb.tags a,a: give each value only once"),
    (f"grid {OUT} --grid.panels=A,A", "error: --grid.panels A,A: give each value only once"),
    (f"demo {OUT} --plan.seeds=[5,5]", "error: --plan.seeds 5,5: give each value only once"),
    (
        f"{INOCULATE} --original.sets=a,a",
        "error: --original.sets a,a: give each value only once",
    ),
    # What is quoted is shortened.
    (f"zero-shot {OUT} --probes={'x' * 9000}", f"no probe '{'x' * 59}...{'x' * 28}'; choose one"),
    (f"{ZERO_SHOT} --{'x' * 9000}=1", f"no option --{'x' * 58}...{'x' * 29}; --help_all shows all"),
    (f"explain --probes=age_small --item='{'no ' * 9000}x'", "such as @12"),
    (f"grid {OUT} --grid.last_age=1000000", "error: --grid.last_age 1000000: give "),
    (f"probes build {OUT} --seed=-1", "error: --seed -1: give "),
    (f"demo {OUT} --plan.seeds=[50,-1]", "error: --plan.seeds[1] -1: give "),
    (f"{FIT} --model.learning_rate=-1", "error: --model.learning_rate -1.0: give "),
    (f"{FIT} --checkpoint_every=0", "error: --checkpoint_every 0: give "),
    (f"{FIT} --seed_everything=4294967296", "error: --seed_everything 4294967296: give "),
    (f"{FIT} --trainer.max_epochs=-5", "error: --trainer.max_epochs -5: give "),
    (f"{FIT} --trainer.accelerator=tpu", "error: --trainer.accelerator tpu: "),
    (f"{FIT} --trainer.accelerator=nosuch", "error: --trainer.accelerator nosuch: "),
    # YAML on a command line has the limits of that in a file.
    (f"{ZERO_SHOT} --trainer='{{a: {DEEP}}}'", "Unable to load config '{a: [[["),
    (
        f"{ZERO_SHOT} --trainer='{{{ALIASES}}}'",
        "its aliases stand for more than 100,000",
    ),
    (f"{ZERO_SHOT} --split={DEEP}", "age_small has no split '[[["),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("line", "message"), MISTAKES)
def test_a_mistake_is_answered_in_one_line_with_what_was_meant(
    line: str, message: str, refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    error = refused(line)
    assert message in error
    assert len(error) < 1_100
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_a_slip_in_an_option_is_answered_with_the_option(command: str) -> None:
    parser = command_parser(command, cli.function_of(command))
    options = [a.dest for a in parser._actions if a.option_strings]
    typed = {option: f"--{option}" for option in options}
    for option in options:
        section, dot, word = option.rpartition(".")
        if word == "help" and section:
            continue
        start, (a, b), end = (
            word[: (middle := len(word) // 2 - 1)],
            word[middle:][:2],
            word[middle:][2:],
        )
        for slip in (f"{start}{b}{end}", f"{start}{b}{a}{end}", f"{start}{a}{b}{b}{end}"):
            mistyped = f"{section}{dot}{slip}"
            if mistyped in options:
                continue
            line = one_line_error(f"unrecognized arguments: --{mistyped}", typed, CommandLine())
            suggested = line.partition("did you mean ")[2].partition("?")[0].split(" or ")
            assert f"--{option}" in suggested, line
            assert all(is_one_slip(mistyped, other.lstrip("-")) for other in suggested), line


FILES = [
    ("zero-shot", "model:\n  name_or_pth: x\n", "name_or_pth (did you mean model.name_or_path?)"),
    ("zero-shot", "probes: 5\n", "probes 5: give a list, such as [a,b]"),
    ("zero-shot", "probe: age_small\n", "there is no key probe (did you mean probes?)"),
    ("zero-shot", "- a\n", "the file must be a mapping of keys to values"),
    ("zero-shot", "a: b\nmodel: [x\n", "line 2: not readable as YAML: while parsing a flow seq"),
    ("zero-shot", "a: 1\nb:\n  c: [a\nx: y\n", "line 4: not readable as YAML: "),
    ("zero-shot", "a: b\na: c\n", "line 2: not readable as YAML: the key 'a' is given twice"),
    (
        "fit",
        "a: &a [x]\nb: &b [*a, *b]\n",
        "line 2: not readable as YAML: an alias contains itself",
    ),
    ("curve", "grid:\n  full:\n    epoch: 3\n", "(did you mean grid.full.epochs?)"),
    ("curve", "plan:\n  curve: {sizes: [3]}\n", "there is no key plan"),
    (
        "fit",
        "model:\n  class_path: probelight.lightning_modules.masked_choice.MaskedChoice\n"
        "  init_args: {learning_rat: 1}\n",
        "there is no key model.learning_rat (did you mean model.learning_rate?)",
    ),
    (
        "fit",
        "model: {class_path: probelight.lightning_modules.masked_choice.MaskedChoise}\n",
        "masked_choice.MaskedChoise: there is no such class; give its full name, such as ",
    ),
    ("fit", "model: {class_path: probelight.nothing.Such}\n", "Such: there is no such class; "),
    ("fit", "grid: {sizes: [62]}\n", "there is no key grid"),
    ("inoculate", "original: {selection_itms: 3}\n", "(did you mean original.selection_items?)"),
    (
        "sweep plan",
        "grid:\n  models: {a: {}}\n  originals: {b: {name: c, sets: [d]}}\n"
        "  rows: [{model: a, original: b, probe: {name: d}, seeds: [0, -1]}]\n",
        "grid.rows[0].seeds[1] -1: give a number from 0",
    ),
    (
        "sweep plan",
        "grid:\n  models: {a: {}}\n  originals: {b: {name: c, sets: [], selection_itms: 3}}\n",
        "no key grid.originals.selection_itms (did you mean grid.originals.selection_items?)",
    ),
]


@pytest.mark.parametrize(("command", "text", "message"), FILES)
def test_a_mistake_in_a_config_names_the_file_and_the_key(
    command: str, text: str, message: str, refused: Refused, tmp_path: Path
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    line = refused(f"{command} {OUT} --config={path}")
    assert line.startswith(f"train.py {command}: error: {path}: ")
    assert message in line


def test_pre_training_is_in_a_checkout_and_leaves_a_package_of_the_user_in_peace(
    refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "__init__.py").write_text("WHOSE = 'the user'\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])  # behind the checkout
    for name in [name for name in sys.modules if name.partition(".")[0] == "tools"]:
        monkeypatch.delitem(sys.modules, name)
    path = tmp_path / "mine.yaml"
    for name in ("masked_lm.MaskedLanguageModel", "dictionary_text.DictionaryText"):
        section = "model" if name.startswith("masked") else "data"
        path.write_text(f"{section}: {{class_path: tools.{name}}}\n")
        line = refused(f"fit {OUT} --config={path}")
        assert f"{path}: {section} tools.{name}: pre-training is not installed, but is" in line
    assert sys.modules["tools"].WHOSE == "the user"
    del sys.modules["tools"]


@pytest.mark.parametrize("option", ["zero-shot --config", "fit --config", "curve --grid.full"])
def test_a_config_that_is_a_device_is_not_read(
    option: str, refused: Refused, tmp_path: Path
) -> None:
    path = tmp_path / "mine.yaml"
    path.symlink_to("/dev/zero")
    message = "a device or a pipe, where a file on the disk is needed"
    assert f"error: {path}: {message}" in refused(f"{option} {path}")


@pytest.mark.parametrize("group", ["", "sweep"])
def test_no_command_is_a_usage_error_and_help_is_not(
    group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, code in ([], cli.USAGE_ERROR), (["--help"], 0):
        assert cli.main([*group.split(), *words]) == code
        out = capsys.readouterr().out
        commands = {name for name in cli.SUMMARIES if f"\n  {name:<22}" in out}
        assert commands == {name for name in cli.SUMMARIES if name.startswith(group)}


@pytest.mark.thorough
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


STREAMS = [
    (">&-", cli.FAILURE, "", "Bad file descriptor"),
    (">/dev/full", cli.FAILURE, "", "No space left on device"),
    ("<&-", 0, "probelight ", ""),
    ("2>&-", 0, "probelight ", ""),
]


@pytest.mark.parametrize(("closed", "code", "out", "problem"), STREAMS)
def test_closed_standard_streams(closed: str, code: int, out: str, problem: str) -> None:
    done = subprocess.run(
        f"{sys.executable} train.py --version {closed}",
        shell=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code
    assert done.stdout.startswith(out)
    line = f"train.py: standard output cannot be written: {problem}; send it to a file or a pipe\n"
    assert done.stderr == (line if problem else "")
