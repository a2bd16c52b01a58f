"""What ends a command: its exit code, and one line on stderr where the cause is known."""

from __future__ import annotations

import os
import select
import sys
import traceback

from probelight.io.atomic import disk_error, line_of
from probelight.io.escaping import visible

USAGE_ERROR, FAILURE, BROKEN_PIPE = 2, 1, 141
# By name: importing them would cost what their packages cost. The last one is Lightning's.
_USAGE_KINDS = {
    "ConfigError",
    "ConfigConflictError",
    "RangeError",
    "UsageError",
    "MisconfigurationException",
}
_READABLE_KINDS = {"UnreadableCheckpointError", "PretrainedError", "DriverLostError"}


def report_error(command: str, error: Exception) -> int:
    """Prints what went wrong, readable where the cause is known, and picks the exit code."""
    debug = bool(os.environ.get("PROBELIGHT_DEBUG"))
    refused = disk_error(error)
    if refused is not None and not debug:
        complain(f"{command}: failed: {line_of(refused)}")
        return FAILURE
    kinds = {kind.__name__ for kind in type(error).__mro__}
    usage = bool(kinds & _USAGE_KINDS)
    readable = usage or isinstance(error, OSError | ValueError) or bool(kinds & _READABLE_KINDS)
    if not readable or debug:
        traceback.print_exception(error)
    complain(f"{command}: {'error' if usage else 'failed'}: {error}")
    return USAGE_ERROR if usage else FAILURE


def complain(text: str) -> None:
    """Says on stderr what went wrong; what a data file says in it does nothing to the terminal."""
    print(visible(f"train.py {text}"), file=sys.stderr)


def stdout_is_closed() -> bool:
    """Whether nobody reads any more what is printed, as behind `| head`."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), select.POLLOUT)
    return any(event & select.POLLERR for _, event in poll.poll(0))
