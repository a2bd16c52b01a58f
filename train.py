"""Probelight: did the model know it already, or did it learn it from the fine-tuning data?

usage: train.py COMMAND [--help] [--config FILE.yaml] [--key value ...]
"""

from __future__ import annotations

from callbacks.stop_signals import (
    INTERRUPTED,
    SENTENCES,
    STOP,
    TERMINATED,
    follow_first_process,
    say_stopped,
)

if __name__ == "__main__":
    STOP.listen()  # before all else, so that a signal is answered at any moment

import difflib
import importlib
import os
import select
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from storage.config.yaml_file import check_configs
from storage.disk import disk_error, line_of
from storage.escaping import visible

USAGE_ERROR, FAILURE, BROKEN_PIPE = 2, 1, 141
# Errors by name: importing them would cost what their packages cost. The last one is Lightning's.
USAGE_KINDS = {
    "ConfigError",
    "ConfigConflictError",
    "RangeError",
    "UsageError",
    "MisconfigurationException",
}

# Imported when asked for: `import pytorch_lightning` alone costs seconds.
PROTOCOLS = {
    "zero-shot": (
        "protocols.zero_shot.command:zero_shot",
        "what a model knows before any training",
    ),
    "original": (
        "protocols.inoculation.command:original_task",
        "train an original task once",
    ),
    "inoculate": (
        "protocols.inoculation.command:inoculate",
        "a small dose of a probe, and what it costs",
    ),
    "curve": ("protocols.curve.command:curve", "accuracy against the number of training examples"),
    "grid": (
        "protocols.analyses.command:prediction_grid",
        "answers to every pair of values",
    ),
    "taxonomy-distance": (
        "protocols.analyses.command:taxonomy_distance",
        "the nearer hypernym?",
    ),
    "unigrams": (
        "protocols.analyses.command:unigrams",
        "does the commoner probe go better?",
    ),
    "demo": ("protocols.demo:demo", "all of it on the embedded model and data, with a page"),
    "sweep plan": (
        "protocols.inoculation.sweep:plan",
        "queue an inoculation sweep's missing cells",
    ),
    "sweep work": ("protocols.inoculation.sweep:work", "run queued cells until none is left"),
    "sweep status": (
        "protocols.inoculation.sweep:status",
        "what is done, running, waiting, failed",
    ),
    "report": ("protocols.report:report", "tables, figures and one page from result files"),
    "probes": ("protocols.shipped:probes", "list the probes, or build the shipped ones anew"),
    "export": (
        "protocols.export:export_language_model",
        "a training state as a model folder",
    ),
}
INTERNAL = {"sweep cell": ("jobs.process:cell", "started by sweep work")}
LIGHTNING = {
    "fit": "train one module on one data module (LightningCLI)",
    "validate": "evaluate on the validation sets",
    "test": "evaluate on the test sets",
    "predict": "write the score of every choice",
}
POSITIONAL = {"report", "export", "probes", "sweep cell"}
DEFAULT_ARGUMENTS = {"probes": ["list"]}
DEFAULT_CONFIG = {"demo": "configs/experiment/demo.yaml"}


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
    helps = {"-h", "--help"}
    group = "sweep" if arguments[:1] == ["sweep"] else ""
    words = 2 if group else 1
    if len(arguments) < words or arguments[words - 1] in helps:
        print(overview(group))
        return 0 if helps & {*arguments} else USAGE_ERROR
    command, rest = " ".join(arguments[:words]), arguments[words:]
    known = [*LIGHTNING, *PROTOCOLS]
    if command not in {*known, *INTERNAL}:
        near = difflib.get_close_matches(command, known, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
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
            (run_lightning if command in LIGHTNING else run)(command, arguments)
        except Exception as error:
            if isinstance(error, BrokenPipeError) and stdout_is_closed():
                raise
            # The one place that turns errors into exit codes.
            code = report_error(command, error)
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


def overview(group: str = "") -> str:
    """The commands, or those of a group, one a line."""
    lines = [(name, text) for name, (_, text) in PROTOCOLS.items()] + list(LIGHTNING.items())
    lines = [line for line in lines if line[0].startswith(group)]
    table = "\n".join(f"  {name:<19}{text}" for name, text in lines)
    return f"{(__doc__ or '').strip()}\n\ncommands:\n{table}\n\ntrain.py COMMAND --help says more."


def run(command: str, arguments: list[str]) -> None:
    """Parses the arguments of a protocol's function and calls it."""
    from protocols.engine.arguments import OneLineErrors
    from storage.config.ranges import check_settings

    module_name, function_name = (PROTOCOLS | INTERNAL)[command][0].split(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module_name), function_name)
    summary = (function.__doc__ or "").split("\n")[0]
    configs = [DEFAULT_CONFIG[command]] if command in DEFAULT_CONFIG else []
    defaults: list[str | os.PathLike[Any]] = [Path(__file__).parent / name for name in configs]
    parser = OneLineErrors(
        prog=f"train.py {command}", description=summary, default_config_files=defaults
    )
    parser.add_argument("--config", action="config", help="YAML file with any of these keys")
    parser.add_function_arguments(function, as_positional=command in POSITIONAL)
    arguments = arguments or DEFAULT_ARGUMENTS.get(command, [])
    given = parser.parse_args(arguments)
    check_settings(function, given.as_dict(), "--")
    parsed = parser.instantiate(given)
    parsed.pop("config", None)
    function(**parsed)


def run_lightning(command: str, arguments: list[str]) -> None:
    """Hands the command to LightningCLI."""
    from protocols.engine.cli import run_cli

    run_cli([command, *arguments])


def stdout_is_closed() -> bool:
    """Whether nobody reads any more what is printed, as behind `| head`."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), select.POLLOUT)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def report_error(command: str, error: Exception) -> int:
    """Prints what went wrong, readable where the cause is known, and picks the exit code."""
    refused = disk_error(error)
    if refused is not None and not os.environ.get("PROBELIGHT_DEBUG"):
        complain(f"{command}: failed: {line_of(refused)}")
        return FAILURE
    kinds = {kind.__name__ for kind in type(error).__mro__}
    usage = bool(kinds & USAGE_KINDS)
    readable = (
        usage
        or isinstance(error, OSError | ValueError)
        or bool(kinds & {"UnreadableCheckpointError", "PretrainedError"})
    )
    if not readable or os.environ.get("PROBELIGHT_DEBUG"):
        traceback.print_exception(error)
    complain(f"{command}: {'error' if usage else 'failed'}: {error}")
    return USAGE_ERROR if usage else FAILURE


def complain(text: str) -> None:
    """Says on stderr what went wrong; what a data file says in it does nothing to the terminal."""
    print(visible(f"train.py {text}"), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
