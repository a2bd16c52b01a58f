"""What is said of a command that fails: its exit code, and one line that says what to change.

An error of ours says it itself; of what the parser says the line is made here: which option or key
is wrong, in which file, and what was probably meant.
"""

from __future__ import annotations

import difflib
import inspect
import os
import re
import select
import sys
import traceback
from collections.abc import Iterable, Mapping
from pkgutil import resolve_name

from probelight.io.atomic import disk_error, line_of
from probelight.io.errors import nearest
from probelight.io.escaping import visible
from probelight.io.package import as_typed
from probelight.io.process import FAILURE, USAGE_ERROR
from probelight.io.ranges import NotBlank
from probelight.protocols.cli.given import Given

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
    """Print what went wrong, in one line where the cause is known, and return the exit code."""
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
    """Print a line on stderr; what it quotes of a data file does nothing to the terminal."""
    print(visible(as_typed(f"train.py {text}")), file=sys.stderr)


def stdout_is_closed() -> bool:
    """Return whether nobody reads any more what is printed, as behind `| head`."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), select.POLLOUT)
    return any(event & select.POLLERR for _, event in poll.poll(0))


SHORT = {"lr": "learning_rate", "bs": "batch_size", "wd": "weight_decay"}
CLASSES = {
    "model": "probelight.lightning_modules.masked_choice.MaskedChoice",
    "data": "probelight.datamodules.probe.ProbeDataModule",
}
PLAIN_TYPES = {
    "<class 'int'>": "a whole number",
    "<class 'float'>": "a number",
    "<class 'str'>": "a text",
    "<class 'bool'>": "true or false",
    "<class 'list'>": "a list, such as [a,b]",
    "<class 'tuple'>": "a list, such as [a,b]",
    "<class 'dict'>": "a mapping, such as {a: 1}",
}
Known = Mapping[str, str]
_KEY = re.compile(r'Parser key "([\w.]+)"')
_CLASS = re.compile(r"given class_path '([\w.]+)'")
_STRANGE = re.compile(
    r"(?:Group '(?P<group>[\w.]+)' does not accept option|Subcommand '\w+' does not accept option"
    r"|Option) '(?P<key>[\w.]+)'"
)


def explained(message: str, known: Known, given: Given) -> str:
    """Return what is wrong with a command line, in one line.

    Args:
        message: What the parser says.
        known: All options as they are typed, by their names: "--probes" by "probes".
        given: The command line.
    """
    for explain in (_unknown_option, _strange_key, _missing, _wrong_value):
        if line := explain(message, known, given):
            return line
    return "; ".join(line.strip(" -") for line in message.splitlines() if line.strip())


def _unknown_option(message: str, known: Known, given: Given) -> str:
    found = re.match(r"unrecognized arguments: (\S+)", message)
    if found is None:
        return ""
    word = found[1].partition("=")[0]
    if not word.startswith("-"):
        return f"{word!r} belongs to no option; write a list without spaces: a,b"
    return f"there is no option {word}{_meant(word.lstrip('-'), known, '--')}; --help_all shows all"


def _strange_key(message: str, known: Known, given: Given) -> str:
    found = _STRANGE.search(message)
    if found is None:
        return ""
    names: Iterable[str] = known
    place = ".".join([*_KEY.findall(message), *filter(None, (found["group"], found["key"]))])
    if chosen := _CLASS.findall(message):  # its arguments are those of a class, not of the command
        names = [f"{place.rpartition('.')[0]}.{name}" for name in _arguments(chosen[-1])]
    else:
        place = _first_unknown(place, known)
    file = given.place(place).removesuffix(place)
    dashes, kind = ("--", "option") if file == "--" else ("", "key")
    where = "" if dashes else file
    return f"{where}there is no {kind} {dashes}{place}{_meant(place, names, dashes)}"


def _missing(message: str, known: Known, given: Given) -> str:
    if found := re.search(r"arguments are required: (.+)", message):
        names = [name if name in known else name.partition(".")[2] for name in found[1].split(", ")]
        also = ", or a --config with them" if len(names) > 1 else ""
        return f"give {', '.join(known.get(name, f'--{name}') for name in names)}{also}"
    if found := re.search(r"argument (--[\w.]+)\S*: expected one argument", message):
        return f"{found[1]}: its value is missing"
    return ""


def _wrong_value(message: str, known: Known, given: Given) -> str:
    key = _KEY.findall(message)
    value = re.search(r"(?:Got value|Given value): (.*)", message)
    if key and str(NotBlank()) in message:
        return f"{known.get(key[0], f'--{key[0]}')} '': give {NotBlank()}"
    if not key or value is None:
        return ""
    place = ".".join(key)
    if "dot import path" in message:
        whole = f"there is no such class; give its whole name, such as {CLASSES.get(place)}"
        parts = f"give its parts, each as --{place}.PART VALUE"
        return f"--{place} {value[1]}: {whole if place in CLASSES else parts}"
    literals = re.findall(r"Literal\[(.*?)\]", message)
    classes = re.findall(r"Expected a (<class '\w+'>)", message)
    words = [PLAIN_TYPES[one] for one in dict.fromkeys(classes) if one in PLAIN_TYPES]
    choices = [word.strip(" '\"") for one in literals for word in one.split(",")]
    if choices:
        words.insert(0, f"one of {', '.join(dict.fromkeys(choices))}")
    # Of a list and its parts pydantic says it.
    words += re.findall(r"(?:Value error, give|Input should be) (.*?) \[type=", message)[:1]
    if not words:
        return ""
    option = given.place(place) if place in known else f"--{place}"
    option = known[place] if option == f"--{place}" and place in known else option
    return f"{option} {value[1]}: give {' or '.join(words)}{nearest(value[1], choices)}"


def _meant(name: str, known: Iterable[str], dashes: str) -> str:
    """The option that was probably meant: in the same group, or elsewhere, or nothing."""
    names = [one for one in known if one.rpartition(".")[2] not in {"help", "h"}]
    group, _, last = name.rpartition(".")
    last = SHORT.get(last, last)
    ends = {one: one.rpartition(".")[2] for one in names}
    beside = {end: one for one, end in ends.items() if one.rpartition(".")[0] == group}
    begun = [one for end, one in beside.items() if end.startswith(last) or last.startswith(end)]
    elsewhere = [one for one, end in ends.items() if end == last]
    near = difflib.get_close_matches(last, list(beside), n=1)
    far = difflib.get_close_matches(name, names, n=1)
    best = [*(beside[end] for end in near), *begun, *elsewhere, *far]
    return f" (did you mean {dashes}{best[0]}?)" if best else ""


def _first_unknown(place: str, known: Known) -> str:
    """The shortest beginning of a key that is none: a whole group may be strange."""
    parts = place.split(".")
    for length in range(1, len(parts)):
        begun = ".".join(parts[:length])
        if not any(name == begun or name.startswith(f"{begun}.") for name in known):
            return begun
    return place


def _arguments(class_path: str) -> list[str]:
    return list(inspect.signature(resolve_name(class_path)).parameters)
