"""Probelight: did the model know it already, or did it learn it from the fine-tuning data?

usage: train.py COMMAND [--help] [--config FILE.yaml] [--key value ...]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any, cast

from probelight.io.errors import nearest
from probelight.io.package import as_typed, program, version
from probelight.io.process import (
    BROKEN_PIPE,
    INTERRUPTED,
    SENTENCES,
    STOP,
    TERMINATED,
    USAGE_ERROR,
    follow_first_process,
    say_stopped,
)
from probelight.protocols.cli.command import LIGHTNING, fit_help, parse_and_call
from probelight.protocols.cli.errors import report_error, stdout_is_closed

# The function of each command, which is imported when it is run, and its line among the commands.
# Beside the function is what its --help shows.
PROTOCOLS = {
    "zero-shot": (
        "probelight.protocols.zero_shot.command:zero_shot",
        "what a model knows before any training",
    ),
    "explain": (
        "probelight.protocols.explain.explain:explain",
        "what models are shown of one item, and make of it",
    ),
    "original": (
        "probelight.protocols.inoculation.command:original_task",
        "train an original task once",
    ),
    "inoculate": (
        "probelight.protocols.inoculation.command:inoculate",
        "a small dose of a probe, and what it costs",
    ),
    "curve": (
        "probelight.protocols.curve.command:curve",
        "accuracy against the number of training examples",
    ),
    "grid": (
        "probelight.protocols.analyses.grid:prediction_grid",
        "answers to every pair of values",
    ),
    "diagnose": (
        "probelight.protocols.diagnostics.diagnose:diagnose",
        "psycholinguistic diagnostics",
    ),
    "taxonomy-distance": (
        "probelight.protocols.analyses.taxonomy_distance:taxonomy_distance",
        "the nearer hypernym?",
    ),
    "unigrams": (
        "probelight.protocols.analyses.unigrams:unigrams",
        "does the commoner probe go better?",
    ),
    "demo": (
        "probelight.protocols.demo:demo",
        "all of it on the embedded model and data, with a page",
    ),
    "doctor": (
        "probelight.protocols.doctor:doctor",
        "show what this machine has, and what is missing",
    ),
    "sweep plan": (
        "probelight.protocols.inoculation.sweep:plan",
        "plan an inoculation sweep's cells",
    ),
    "sweep run": (
        "probelight.protocols.inoculation.sweep:run",
        "run the planned cells without a result",
    ),
    "sweep status": (
        "probelight.protocols.inoculation.sweep:status",
        "what is done, running, waiting, failed",
    ),
    "report": (
        "probelight.protocols.report:report",
        "tables, figures and one page from result files",
    ),
    "compare": (
        "probelight.protocols.compare.compare:compare",
        "is the difference between models real, and how large?",
    ),
    "import": (
        "probelight.protocols.imports.imports:import_results",
        "other programs' results on items as runs of ours",
    ),
    "probes list": (
        "probelight.protocols.probes.build:list_probes",
        "list the probes",
    ),
    "probes build": (
        "probelight.protocols.probes.build:build",
        "build a probe from its sources, or the shipped ones anew",
    ),
    "probes validate": (
        "probelight.protocols.probes.check:validate",
        "what is wrong with a probe's items",
    ),
    "probes stats": (
        "probelight.protocols.probes.check:stats",
        "the sizes of a probe",
    ),
    "probes audit": (
        "probelight.protocols.audit.audit:audit",
        "whether a probe can be answered without its question",
    ),
    "probes contamination": (
        "probelight.protocols.contamination.contamination:contamination",
        "what of a probe is in other data",
    ),
    "export": (
        "probelight.protocols.export:export_language_model",
        "a training state as a model folder",
    ),
}
INTERNAL = {"sweep cell": "probelight.protocols.inoculation.sweep:cell"}  # started for `sweep run`
GONE = {"sweep work": "`sweep run` runs the cells, as many at once as there is room for"}
HELPS = {"-h", "--help"}
GROUPS = {name.partition(" ")[0] for name in PROTOCOLS if " " in name}


def run(arguments: list[str]) -> int:
    """Find the command, run it and return its exit code."""
    try:
        try:
            return _dispatch(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        if not stdout_is_closed():
            raise
        # Python flushes once more at its end, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def _dispatch(arguments: list[str]) -> int:
    if arguments[:1] == ["--version"]:
        print(f"probelight {version()}")
        return 0
    arguments = [*arguments, "list"] if arguments == ["probes"] else arguments
    group = arguments[0] if GROUPS & {*arguments[:1]} else ""
    num_words = 2 if group else 1
    if len(arguments) < num_words or arguments[num_words - 1] in HELPS:
        print(overview(group))
        return 0 if HELPS & {*arguments} else USAGE_ERROR
    command, rest = " ".join(arguments[:num_words]), arguments[num_words:]
    known = [*LIGHTNING, *PROTOCOLS]
    if command not in {*known, *INTERNAL}:
        hint = f": {GONE[command]}" if command in GONE else nearest(command, known)
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
            if isinstance(error, BrokenPipeError) and stdout_is_closed():
                raise
            code = report_error(command, error)
            return STOP.code or code
        return STOP.code or 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as stop:
        # Lightning's exception for SIGTERM is a SystemExit without a code, which would be 0.
        code = TERMINATED if type(stop).__name__ == "SIGTERMException" else stop.code  # type: ignore[assignment]
        if STOP.code is None and code not in SENTENCES:
            raise
        return STOP.code or int(code or 0)


def call(command: str, arguments: list[str]) -> None:
    """Hand the arguments to LightningCLI, or to the protocol whose command it is."""
    if command not in LIGHTNING:
        parse_and_call(command, function_of(command), arguments)
    elif HELPS & {*arguments}:
        print(fit_help(command))
    else:
        from probelight.protocols.cli.lightning import run_cli

        run_cli([command, *("--help" if word == "--help_all" else word for word in arguments)])


def function_of(command: str) -> Callable[..., Any]:
    """Return the function of a protocol's command."""
    path = INTERNAL[command] if command in INTERNAL else PROTOCOLS[command][0]
    return cast("Callable[..., Any]", resolve_name(path))


def overview(group: str = "") -> str:
    """Return the list of commands, or of those of a group, one a line."""
    summaries = {name: summary for name, (_, summary) in PROTOCOLS.items()}
    summaries |= {name: command.summary for name, command in LIGHTNING.items()}
    lines = "".join(
        f"\n  {name:<22}{summary}" for name, summary in summaries.items() if name.startswith(group)
    )
    end = "train.py COMMAND --help says more, and --version which version this is."
    return as_typed(f"{(__doc__ or '').strip()}\n\ncommands:{lines}\n\n{end}")
