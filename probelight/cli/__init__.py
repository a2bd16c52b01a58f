"""Probelight: did the model know it already, or did it learn it from the fine-tuning data?

usage: train.py COMMAND [--help] [--config FILE.yaml] [--key value ...]
"""
# PYTHON_ARGCOMPLETE_OK

from __future__ import annotations

import atexit
import gc
import os
import select
import sys
import traceback
from collections.abc import Sequence
from pkgutil import resolve_name
from typing import Any

from probelight.io.atomic import disk_error, error_line
from probelight.io.errors import is_out_of_device_memory, is_out_of_memory, nearest
from probelight.io.escaping import brief
from probelight.io.package import as_typed, program, version
from probelight.io.process import (
    BROKEN_PIPE,
    FAILURE,
    INTERRUPTED,
    SENTENCES,
    STOP,
    TERMINATED,
    USAGE_ERROR,
    follow_first_process,
    is_first_process,
    open_standard_streams,
    say_stopped,
)

__all__ = ["FAILURE", "USAGE_ERROR", "main"]

# Of each command the function, below probelight.commands or in full, imported when it is run, and
# the line in --help; what else its --help shows is the function's `Command`.
COMMANDS = {
    "zero-shot": ("zero_shot:zero_shot", "measure what a model knows before any training"),
    "check": ("check:check", "say what a fine-tuning broke: one verdict per probe"),
    "explain": (
        "explain.explain:explain",
        "see what a model reads for one item and how it scores each choice",
    ),
    "original": ("inoculation.command:original_task", "train a model on an original task once"),
    "inoculate": (
        "inoculation.command:inoculate",
        "fine-tune on a small dose of a probe; measure gain and forgetting",
    ),
    "curve": ("curve.command:curve", "trace accuracy against the number of training examples"),
    "grid": (
        "grid:prediction_grid",
        "predict for all pairs of ages, birth years or object sizes",
    ),
    "diagnose": ("diagnose.diagnose:diagnose", "run the psycholinguistic diagnostics"),
    "taxonomy-distance": (
        "taxonomy_distance:taxonomy_distance",
        "count wrong answers that are a nearer hypernym",
    ),
    "unigrams": (
        "unigrams:unigrams",
        "test whether frequent words in the corpus raise accuracy",
    ),
    "demo": ("probelight.cli.demo:demo", "try everything on the bundled model and data"),
    "doctor": ("doctor:doctor", "show what this machine has and what is missing"),
    "sweep plan": ("inoculation.sweep:plan", "plan the runs of an inoculation sweep"),
    "sweep run": ("inoculation.sweep:run", "run the planned runs that have no result yet"),
    "sweep status": (
        "inoculation.sweep:status",
        "show which runs are done, running, waiting or failed",
    ),
    "report": ("report:report", "make tables, figures and one page from result files"),
    "compare": ("compare:compare", "test whether models really differ, and by how much"),
    "forgetting": (
        "forgetting:forgetting",
        "count the items lost and gained between two measurements",
    ),
    "import": (
        "imports.imports:import_results",
        "import what another program measured",
    ),
    "probes list": ("probes.build:list_probes", "list the probes"),
    "probes build": (
        "probes.build:build",
        "build a probe from its sources, or all shipped ones again",
    ),
    "probes validate": ("probes.check:validate", "check the items of a probe for mistakes"),
    "probes stats": ("probes.check:stats", "count the items, concepts and answers of a probe"),
    "probes audit": (
        "audit.audit:audit",
        "check whether a probe can be answered without its question",
    ),
    "probes contamination": (
        "contamination.contamination:contamination",
        "check whether items of a probe are in other data",
    ),
    "export": (
        "export:export",
        "write a trained question model as a folder in half precision",
    ),
}
INTERNAL = {"sweep attempt": ("inoculation.sweep:attempt", "")}  # started for `sweep run`
LIGHTNING = {
    "fit": "train one module on one data module (LightningCLI)",
    "validate": "evaluate on the validation sets",
    "test": "evaluate on the test sets",
    "predict": "write the score of every choice",
}
SUMMARIES = {name: summary for name, (_, summary) in COMMANDS.items()} | LIGHTNING
HELPS = {"-h", "--help"}
GROUPS = {name.partition(" ")[0] for name in COMMANDS if " " in name}

# By name: importing them would cost what their packages cost. The last ones are Lightning's and
# torch's, which no smaller batch has helped.
_USAGE_ERRORS = {
    "ConfigError",
    "ConfigConflictError",
    "RangeError",
    "UsageError",
    "MisconfigurationException",
    "OutOfMemoryError",
}
_READABLE_ERRORS = {"UnreadableCheckpointError", "PretrainedError", "DriverLostError", "PathError"}
OUT_OF_MEMORY = (
    "not enough memory; close other programs, or raise the limit if `ulimit -v` shows one, and "
    "rerun the same command to resume; or use a smaller model, file or batch"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command of a command line, by default the process's, and return its exit code."""
    if arguments is None and "_ARGCOMPLETE" in os.environ:  # the shell asks what may follow
        from probelight.cli.completion import complete

        complete(SUMMARIES, GROUPS, function_of)
    if arguments is None:
        STOP.listen()  # before the slower imports, so that a signal is answered at any moment
        atexit.register(gc.freeze)  # or Python looks through all imported modules at its end
        arguments = sys.argv[1:]
    try:
        open_standard_streams()
        try:
            return _dispatch(list(arguments))
        finally:
            _end_process_group()
            sys.stdout.flush()
    except OSError as error:  # of standard output: those of a command are answered below
        if isinstance(error, BrokenPipeError) and not _stdout_is_closed():
            raise
        # Python flushes once more at its end, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return BROKEN_PIPE
        problem = f"cannot be written: {error.strerror}; send it to a file or a pipe"
        print(f"{program()}: standard output {problem}", file=sys.stderr)
        return FAILURE


def _dispatch(arguments: list[str]) -> int:
    """Find the command and run it; answer `--version`, `--help` and mistyped commands."""
    if arguments[:1] == ["--version"]:
        print(f"probelight {version()}")
        return 0
    arguments = [*arguments, "list"] if arguments == ["probes"] else arguments
    group = arguments[0] if GROUPS & {*arguments[:1]} else ""
    num_words = 2 if group else 1
    if len(arguments) < num_words or arguments[num_words - 1] in HELPS:
        lines = (f"  {n:<22}{text}" for n, text in SUMMARIES.items() if n.startswith(group))
        end = "train.py COMMAND --help shows a command's options; --version shows the version."
        print(as_typed("\n".join([f"{(__doc__ or '').strip()}\n\ncommands:", *lines, "", end])))
        return 0 if HELPS & {*arguments} else USAGE_ERROR
    command, command_arguments = " ".join(arguments[:num_words]), arguments[num_words:]
    if command not in {*SUMMARIES, *INTERNAL}:
        hint = nearest(command, [*SUMMARIES])
        if group and arguments[1].startswith("-"):
            subcommands = ", ".join(name for name in SUMMARIES if name.startswith(f"{group} "))
            hint = f": begin with one of {subcommands}"
        message = f"{program()}: there is no command {command!r}{hint}; --help shows all"
        print(brief(message), file=sys.stderr)
        return USAGE_ERROR
    follow_first_process()
    with STOP.during_command():
        code = _execute(command, command_arguments)
    if code in SENTENCES:
        say_stopped(code)
    return code


def _execute(command: str, arguments: list[str]) -> int:
    """Run a known command; this is the one place that makes exit codes of errors."""
    try:
        try:
            call(command, arguments)
        except Exception as error:
            if isinstance(error, BrokenPipeError) and _stdout_is_closed():
                raise
            code = report_error(command, error)
            return STOP.code or code
        return STOP.code or 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as stop:
        # Lightning's exception for SIGTERM is a SystemExit without a code, which would be 0.
        exit_code = TERMINATED if type(stop).__name__ == "SIGTERMException" else stop.code
        if STOP.code is None and exit_code not in SENTENCES:
            raise
        return STOP.code or int(exit_code or 0)


def call(command: str, arguments: list[str]) -> None:
    """Pass the arguments to LightningCLI, or to the protocol whose command it is."""
    from probelight.cli.parsing import fit_help, parse_and_call
    from probelight.io.wandb import saying_how_to_sync

    if command in COMMANDS:
        with saying_how_to_sync():
            parse_and_call(command, function_of(command), arguments)
    elif command in INTERNAL:
        parse_and_call(command, function_of(command), arguments)
    elif HELPS & {*arguments}:
        print(fit_help(command, SUMMARIES[command]))
    else:
        is_first_process()  # Lightning reads the ranks while it is imported, with another error
        from probelight.cli.lightning import run_cli

        run_cli([command, *("--help" if word == "--help_all" else word for word in arguments)])


def function_of(command: str) -> Any:
    """Return the function of a protocol's command."""
    function, _ = (COMMANDS | INTERNAL)[command]
    package = "" if function.startswith("probelight.") else "probelight.commands."
    return resolve_name(package + function)


def report_error(command: str, error: Exception) -> int:
    """Print what went wrong, in one line where the cause is known, and return the exit code."""
    debug = bool(os.environ.get("PROBELIGHT_DEBUG"))
    names = {base.__name__ for base in type(error).__mro__}
    is_usage = bool(names & _USAGE_ERRORS) or is_out_of_device_memory(error)
    is_readable = is_usage or isinstance(error, OSError | ValueError) or names & _READABLE_ERRORS
    message = f"{'error' if is_usage else 'failed'}: {error}"
    refused = disk_error(error)
    if is_out_of_memory(error) and not debug:
        is_usage, message = False, f"failed: {OUT_OF_MEMORY}"
    elif refused is not None and not debug:
        is_usage, message = False, f"failed: {error_line(refused)}"
    elif debug or not is_readable:
        traceback.print_exception(error)
    # What it quotes of a data file does nothing to the terminal.
    print(brief(as_typed(f"train.py {command}: {message}")), file=sys.stderr)
    return USAGE_ERROR if is_usage else FAILURE


def _end_process_group() -> None:
    """Leave the group of processes of a training.

    Gloo's threads abort the process where Python ends while they hold tensors; Lightning ends
    NCCL's group only.
    """
    distributed: Any = sys.modules.get("torch.distributed")  # not imported for this
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()


def _stdout_is_closed() -> bool:
    """Return whether nobody reads standard output any more, as behind `| head`."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), select.POLLOUT)
    return any(event & select.POLLERR for _, event in poll.poll(0))
