"""Probelight: did the model know it already, or did it learn it from the fine-tuning data?

usage: train.py COMMAND [--help] [--config FILE.yaml] [--key value ...]
"""

from __future__ import annotations

import os
import select
import sys
import traceback
from collections.abc import Sequence
from pkgutil import resolve_name
from typing import Any

from probelight.io.atomic import disk_error, line_of
from probelight.io.errors import nearest
from probelight.io.escaping import visible
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
    say_stopped,
)

__all__ = ["FAILURE", "USAGE_ERROR", "main"]

# The function of each command, imported when it is run. Its `Command` is what --help shows.
PROTOCOLS = {
    "zero-shot": "probelight.protocols.zero_shot.command:zero_shot",
    "explain": "probelight.protocols.explain.explain:explain",
    "original": "probelight.protocols.inoculation.command:original_task",
    "inoculate": "probelight.protocols.inoculation.command:inoculate",
    "curve": "probelight.protocols.curve.command:curve",
    "grid": "probelight.protocols.analyses.grid:prediction_grid",
    "diagnose": "probelight.protocols.diagnostics.diagnose:diagnose",
    "taxonomy-distance": "probelight.protocols.analyses.taxonomy_distance:taxonomy_distance",
    "unigrams": "probelight.protocols.analyses.unigrams:unigrams",
    "demo": "probelight.protocols.demo:demo",
    "doctor": "probelight.protocols.doctor:doctor",
    "sweep plan": "probelight.protocols.inoculation.sweep:plan",
    "sweep run": "probelight.protocols.inoculation.sweep:run",
    "sweep status": "probelight.protocols.inoculation.sweep:status",
    "report": "probelight.protocols.report:report",
    "compare": "probelight.protocols.compare.compare:compare",
    "import": "probelight.protocols.imports.imports:import_results",
    "probes list": "probelight.protocols.probes.build:list_probes",
    "probes build": "probelight.protocols.probes.build:build",
    "probes validate": "probelight.protocols.probes.check:validate",
    "probes stats": "probelight.protocols.probes.check:stats",
    "probes audit": "probelight.protocols.audit.audit:audit",
    "probes contamination": "probelight.protocols.contamination.contamination:contamination",
    "export": "probelight.protocols.export:export_language_model",
}
INTERNAL = {"sweep cell": "probelight.protocols.inoculation.sweep:cell"}  # started for `sweep run`
SUMMARIES = {
    "zero-shot": "what a model knows before any training",
    "explain": "what models are shown of one item, and make of it",
    "original": "train an original task once",
    "inoculate": "a small dose of a probe, and what it costs",
    "curve": "accuracy against the number of training examples",
    "grid": "answers to every pair of values",
    "diagnose": "psycholinguistic diagnostics",
    "taxonomy-distance": "the nearer hypernym?",
    "unigrams": "does the commoner probe go better?",
    "demo": "all of it on the bundled model and data, with a page",
    "doctor": "show what this machine has, and what is missing",
    "sweep plan": "plan an inoculation sweep's cells",
    "sweep run": "run the planned cells without a result",
    "sweep status": "what is done, running, waiting, failed",
    "report": "tables, figures and one page from result files",
    "compare": "is the difference between models real, and how large?",
    "import": "other programs' results on items as runs of ours",
    "probes list": "list the probes",
    "probes build": "build a probe from its sources, or the shipped ones anew",
    "probes validate": "what is wrong with a probe's items",
    "probes stats": "the sizes of a probe",
    "probes audit": "whether a probe can be answered without its question",
    "probes contamination": "what of a probe is in other data",
    "export": "a training state as a model folder",
    "fit": "train one module on one data module (LightningCLI)",
    "validate": "evaluate on the validation sets",
    "test": "evaluate on the test sets",
    "predict": "write the score of every choice",
}
GONE = {"sweep work": "`sweep run` runs the cells, as many at once as there is room for"}
HELPS = {"-h", "--help"}
GROUPS = {name.partition(" ")[0] for name in PROTOCOLS if " " in name}

# By name: importing them would cost what their packages cost. The last one is Lightning's.
_USAGE_ERRORS = {
    "ConfigError",
    "ConfigConflictError",
    "RangeError",
    "UsageError",
    "MisconfigurationException",
}
_READABLE_ERRORS = {"UnreadableCheckpointError", "PretrainedError", "DriverLostError"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Args:
        arguments: The words of the command line; by default those of the process.
    """
    if arguments is None:
        STOP.listen()  # before the slower imports, so that a signal is answered at any moment
        arguments = sys.argv[1:]
    try:
        try:
            return _dispatch(list(arguments))
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        if not _stdout_is_closed():
            raise
        # Python flushes once more at its end, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


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
        end = "train.py COMMAND --help says more, and --version which version this is."
        print(as_typed("\n".join([f"{(__doc__ or '').strip()}\n\ncommands:", *lines, "", end])))
        return 0 if HELPS & {*arguments} else USAGE_ERROR
    command, rest = " ".join(arguments[:num_words]), arguments[num_words:]
    if command not in {*SUMMARIES, *INTERNAL}:
        hint = f": {GONE[command]}" if command in GONE else nearest(command, [*SUMMARIES])
        message = f"{program()}: there is no command {command!r}{hint}; --help shows all"
        print(message, file=sys.stderr)
        return USAGE_ERROR
    follow_first_process()
    with STOP.during_command():
        code = _execute(command, rest)
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
        ended = TERMINATED if type(stop).__name__ == "SIGTERMException" else stop.code
        if STOP.code is None and ended not in SENTENCES:
            raise
        return STOP.code or int(ended or 0)


def call(command: str, arguments: list[str]) -> None:
    """Hand the arguments to LightningCLI, or to the protocol whose command it is."""
    from probelight.protocols.cli.command import fit_help, parse_and_call

    if command in PROTOCOLS or command in INTERNAL:
        parse_and_call(command, function_of(command), arguments)
    elif HELPS & {*arguments}:
        print(fit_help(command, SUMMARIES[command]))
    else:
        from probelight.protocols.cli.lightning import run_cli

        run_cli([command, *("--help" if word == "--help_all" else word for word in arguments)])


def function_of(command: str) -> Any:
    """Return the function of a protocol's command."""
    return resolve_name((PROTOCOLS | INTERNAL)[command])


def report_error(command: str, error: Exception) -> int:
    """Print what went wrong, in one line where the cause is known, and return the exit code."""
    debug = bool(os.environ.get("PROBELIGHT_DEBUG"))
    names = {base.__name__ for base in type(error).__mro__}
    is_usage = bool(names & _USAGE_ERRORS)
    is_readable = is_usage or isinstance(error, OSError | ValueError) or names & _READABLE_ERRORS
    message = f"{'error' if is_usage else 'failed'}: {error}"
    refused = disk_error(error)
    if refused is not None and not debug:
        is_usage, message = False, f"failed: {line_of(refused)}"
    elif debug or not is_readable:
        traceback.print_exception(error)
    # What it quotes of a data file does nothing to the terminal.
    print(visible(as_typed(f"train.py {command}: {message}")), file=sys.stderr)
    return USAGE_ERROR if is_usage else FAILURE


def _stdout_is_closed() -> bool:
    """Return whether nobody reads any more what is printed, as behind `| head`."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), select.POLLOUT)
    return any(event & select.POLLERR for _, event in poll.poll(0))
