"""Probelight: did the model know it already, or did it learn it from the fine-tuning data?

usage: train.py COMMAND [--help] [--config FILE.yaml] [--key value ...]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pkgutil import resolve_name
from typing import Any, cast

from probelight.io.errors import nearest
from probelight.io.stop_signals import (
    INTERRUPTED,
    SENTENCES,
    STOP,
    TERMINATED,
    follow_first_process,
    say_stopped,
)
from probelight.io.yaml_file import check_configs
from probelight.protocols.cli.command import declared
from probelight.protocols.cli.errors import BROKEN_PIPE, USAGE_ERROR, report_error, stdout_is_closed
from probelight.protocols.cli.fit_help import LIGHTNING, fit_help

# What a command is besides its function is declared beside that, which is imported when asked for.
PROTOCOLS = {
    "zero-shot": "probelight.protocols.zero_shot.command:zero_shot",
    "explain": "probelight.protocols.explain.command:explain",
    "original": "probelight.protocols.inoculation.command:original_task",
    "inoculate": "probelight.protocols.inoculation.command:inoculate",
    "curve": "probelight.protocols.curve.command:curve",
    "grid": "probelight.protocols.analyses.grid:prediction_grid",
    "diagnose": "probelight.protocols.diagnostics.diagnose:diagnose",
    "taxonomy-distance": "probelight.protocols.analyses.taxonomy_distance:taxonomy_distance",
    "unigrams": "probelight.protocols.analyses.unigrams:unigrams",
    "demo": "probelight.protocols.demo:demo",
    "sweep plan": "probelight.protocols.inoculation.sweep:plan",
    "sweep run": "probelight.protocols.inoculation.sweep:run",
    "sweep status": "probelight.protocols.inoculation.sweep:status",
    "report": "probelight.protocols.report:report",
    "compare": "probelight.protocols.compare.command:compare",
    "import": "probelight.protocols.imports.command:import_results",
    "probes list": "probelight.protocols.probes.build:list_probes",
    "probes build": "probelight.protocols.probes.build:build",
    "probes validate": "probelight.protocols.probes.check:validate",
    "probes stats": "probelight.protocols.probes.check:stats",
    "probes audit": "probelight.protocols.audit.audit:audit",
    "probes contamination": "probelight.protocols.contamination.contamination:contamination",
    "export": "probelight.protocols.export:export_language_model",
}
INTERNAL = {"sweep cell": "probelight.protocols.inoculation.sweep:cell"}  # started for `sweep run`
GONE = {"sweep work": "`sweep run` runs the cells, as many at once as there is room for"}
HELPS = {"-h", "--help"}
GROUPS = {name.partition(" ")[0] for name in PROTOCOLS if " " in name}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code."""
    try:
        try:
            return dispatch(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        if not stdout_is_closed():
            raise
        # Python flushes once more at its end, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def dispatch(arguments: Sequence[str] | None) -> int:
    """Finds the command, runs it and turns its errors into exit codes."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    arguments += ["list"] if arguments == ["probes"] else []
    group = arguments[0] if GROUPS & {*arguments[:1]} else ""
    if len(arguments) < (words := 2 if group else 1) or arguments[words - 1] in HELPS:
        print(overview(group))
        return 0 if HELPS & {*arguments} else USAGE_ERROR
    command, rest = " ".join(arguments[:words]), arguments[words:]
    if command not in {*(known := [*LIGHTNING, *PROTOCOLS]), *INTERNAL}:
        hint = f": {GONE[command]}" if command in GONE else nearest(command, known)
        print(f"train.py: there is no command {command!r}{hint}; --help shows all", file=sys.stderr)
        return USAGE_ERROR
    follow_first_process()
    with STOP.during_command():
        code = execute(command, rest)
    if code in SENTENCES:
        say_stopped(code)
    return code


def execute(command: str, arguments: list[str]) -> int:
    """Runs a known command; its exit code, however it ends."""
    try:
        try:
            check_configs(arguments)
            call(command, arguments)
        except Exception as error:
            if isinstance(error, BrokenPipeError) and stdout_is_closed():
                raise
            code = report_error(command, error)  # the one place that makes exit codes of errors
            return STOP.code or code
        return STOP.code or 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as stop:
        # Lightning's exception for SIGTERM is a SystemExit without a code, which would be 0.
        said = TERMINATED if type(stop).__name__ == "SIGTERMException" else stop.code
        if STOP.code is None and said not in SENTENCES:
            raise
        return STOP.code or int(said or 0)


def call(command: str, arguments: list[str]) -> None:
    """Hands the arguments to LightningCLI, or to the protocol whose command it is."""
    if command not in LIGHTNING:
        from probelight.protocols.cli.run import run_command

        run_command(command, function_of(command), arguments)
    elif HELPS & {*arguments}:
        print(fit_help(command))
    else:
        from probelight.protocols.cli.lightning import run_cli

        run_cli([command, *("--help" if word == "--help_all" else word for word in arguments)])


def function_of(command: str) -> Callable[..., Any]:
    """The function of a protocol's command."""
    return cast("Callable[..., Any]", resolve_name((PROTOCOLS | INTERNAL)[command]))


def overview(group: str = "") -> str:
    """The commands, or those of a group, one a line."""
    said = {name: declared(function_of(name)) for name in PROTOCOLS} | LIGHTNING
    table = "".join(f"\n  {n:<22}{one.summary}" for n, one in said.items() if n.startswith(group))
    return f"{(__doc__ or '').strip()}\n\ncommands:{table}\n\ntrain.py COMMAND --help says more."
