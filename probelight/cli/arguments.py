"""Read the words of a command line and the YAML files that they name; explain its mistakes.

The parser gets the mapping in a file as text and opens no file itself, so that every file is read
by the one guarded reader.
"""

from __future__ import annotations

import inspect
import json
import re
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple

from probelight.io.documents import AMBIGUOUS, read_yaml
from probelight.io.errors import ConfigError, UsageError, close_matches, is_one_slip, nearest
from probelight.io.package import PACKAGE, shipped_path
from probelight.io.ranges import NOT_BLANK

CONFIG_OPTIONS = {"--config", "-c"}
# Groups of options that may be given the value of their first one.
FIRST_OPTIONS = {"tuning": "method", "keeping": "method"}
# Groups of options that people give a value, and the option of the section that they mean.
MAIN_OPTIONS = {"model": "name_or_path", "probe": "name", "original": "name"}
# How one file of the user is given, by an option of the command: whole, or to be divided.
OWN_FILE = {
    "data.path": "--data.path FILE",
    "grid.train_from": "--data.dev FILE --grid.train_from dev, which divides it",
    "data.train": "--data.train FILE --probe.report_split null, which divides it",
}
FILE_WORDS = {"path", "file", "data_path", "data_file", "train", "dev", "test"}


class KnownOptions(NamedTuple):
    """The options that a command knows."""

    options: Collection[str] = ()  # none where classes that are chosen have more
    # Sections have options below them: `model` of `model.name_or_path`. Each takes a YAML file with
    # these, or with the section's name above them.
    sections: Collection[str] = ()
    lists: Collection[str] = ()  # options and positional arguments that are lists
    flags: Collection[str] = ()  # options that are true or false: without a value, true


@dataclass
class CommandLine:
    """A command line that was read."""

    words: list[str] = field(default_factory=list)  # as the parser takes them
    options: set[str] = field(default_factory=set)  # names without dashes
    files: dict[str, Any] = field(default_factory=dict)  # by path, the keys in each YAML file

    def location(self, key: str) -> str:
        """Return an option's name in messages: its file and key if it comes from a file."""
        if not any(
            key == name or key.startswith((f"{name}.", f"{name}[")) for name in self.options
        ):
            for path, content in reversed(self.files.items()):
                if _holds(content, key.replace("[", ".").replace("]", "").split(".")):
                    return f"{path}: {key}"
        return f"--{key}"


def _holds(content: Any, key: Sequence[str]) -> bool:
    """Return whether a file's content has a key, also below names, in lists and in `init_args`."""
    if not key:
        return True
    if isinstance(content, list):
        subkey = key[1:] if key[0].isdecimal() else key
        return any(_holds(value, subkey) for value in content)
    if not isinstance(content, Mapping):
        return False
    if key[0] in content and _holds(content[key[0]], key[1:]):
        return True
    return any(_holds(value, key) for value in content.values())


def read_command_line(words: Sequence[str], accepted: KnownOptions) -> CommandLine:
    """Read the words after the command, and the files that they name.

    An option may be written with hyphens, as `--output-dir`, a list as `a,b`, and one that is true
    or false without `true`. An empty section of a file is left out, so that its defaults hold.

    Raises:
        ConfigError: If a file is missing, cannot be read, or holds no mapping.
        UsageError: If the value of a section is no file.
    """
    command_line, remaining = CommandLine(), deque(words)
    while remaining:
        word = remaining.popleft()
        if not word.startswith("-"):
            command_line.words.append(word)
            continue
        name, equals, value = word.partition("=")
        key = name.lstrip("-")
        if not accepted.options or key.replace("-", "_") in {*accepted.options, *accepted.sections}:
            key = key.replace("-", "_")
            name = f"--{key}" if name.startswith("--") else name
        is_config = name in CONFIG_OPTIONS
        if is_config or (name.startswith("--") and key in {*accepted.sections, *accepted.lists}):
            option_text = value if equals else remaining.popleft() if remaining else None
            if not option_text:
                raise UsageError(f"{name}: give a value")
            if first_option := _first_option(key, option_text, accepted):
                name, key = f"{name}.{first_option}", f"{key}.{first_option}"
            elif key not in accepted.lists:
                section = "" if is_config else key
                option_text = _section_text(option_text, section, accepted, command_line.files)
            elif not (option_text.startswith("[") or option_text == "null"):
                option_text = json.dumps(_split(option_text, name))
            command_line.words.append(f"{name}={option_text}")
        elif key in accepted.flags and not (equals or (remaining and remaining[0][:1] != "-")):
            command_line.words.append(f"{name}=true")
        else:
            command_line.words.append(f"{name}{equals}{value}")
        if not (is_config or key in accepted.sections):
            command_line.options.add(key)
    return command_line


def _first_option(section: str, value: str, accepted: KnownOptions) -> str:
    """Return the option that the value of a section is of, as in `--tuning lora`; "" for a file."""
    first_option = FIRST_OPTIONS.get(section.rpartition(".")[2], "")
    is_text = section in accepted.sections and not value.startswith("{")
    return first_option if is_text and not value.endswith((".yaml", ".yml")) else ""


def _split(text: str, option: str) -> list[str]:
    if not (names := [name.strip() for name in text.split(",") if name.strip()]):
        raise UsageError(f"{option}: give a value")
    return names


def _section_text(value: str, section: str, accepted: KnownOptions, files: dict[str, Any]) -> str:
    """Return the value of a config or a section: a file's mapping as text, a class as it is."""
    if value.startswith("{"):
        return value
    path = shipped_path(value)
    is_own_file = section == "data" and not value.endswith((".yaml", ".yml"))
    if is_own_file and (file_options := _own_file_options(accepted.options)):
        file_options = file_options.replace("FILE", value)
        raise UsageError(f"--data {value}: this is no YAML file of options; give {file_options}")
    if not Path(path).exists():
        if section and not accepted.options:  # a class
            return value
        if section in MAIN_OPTIONS:
            suggestion = f"--{section}.{MAIN_OPTIONS[section]} {value}"
            preset = Path("configs") / section / f"{Path(value).name}.yaml"
            if (PACKAGE / preset).is_file() and section == "model":
                suggestion = f"--config {preset} or {suggestion}"
            raise UsageError(f"--{section} {value}: there is no such YAML file; give {suggestion}")
        folders = {Path(value).parent, Path(shipped_path(str(Path(value).parent)))}
        file_names = sorted(path.name for folder in folders for path in folder.glob("*.yaml"))
        raise ConfigError(f"{value}: there is no such file{nearest(Path(value).name, file_names)}")
    content = read_yaml(path)
    if content is not None and not isinstance(content, Mapping):
        raise ConfigError(f"{value}: the file must be a mapping of keys to values")
    content = content or {}
    if section and content.keys() == {section}:
        content = content[section] or {}
    content = _cleaned(content, section, accepted)
    files[value] = {section: content} if section else content
    return json.dumps(content, default=str)


def _own_file_options(options: Collection[str]) -> str:
    return next((text for option, text in OWN_FILE.items() if option in options), "")


def _cleaned(content: Mapping[str, Any], section: str, accepted: KnownOptions) -> dict[str, Any]:
    """Return a file's content without empty sections, and with lists for its `a,b`."""
    cleaned = {}
    for key, value in content.items():
        name = f"{section}.{key}" if section else str(key)
        if isinstance(value, Mapping) and name in accepted.sections:
            value = _cleaned(value, name, accepted)
        elif isinstance(value, str) and name in accepted.lists:
            value = _split(value, name)
        elif isinstance(value, list):  # of sections, such as the rows of a sweep
            first_option = FIRST_OPTIONS.get(str(key), "")
            value = [
                {first_option: element}
                if first_option and isinstance(element, str)
                else _cleaned(element, name, accepted)
                if isinstance(element, Mapping)
                else element
                for element in value
            ]
        elif isinstance(value, str) and str(key) in FIRST_OPTIONS and section in accepted.lists:
            value = {FIRST_OPTIONS[str(key)]: value}
        elif isinstance(value, str) and (first_option := _first_option(name, value, accepted)):
            value = {first_option: value}
        if value is not None or name not in accepted.sections:
            cleaned[key] = value
    return cleaned


SHORT = {"lr": "learning_rate", "bs": "batch_size", "wd": "weight_decay"}
CLASSES = {
    "model": "probelight.lightning_modules.masked_choice.MaskedChoice",
    "data": "probelight.datamodules.probe.ProbeDataModule",
}
# Of the folder tools/ of a checkout, which is not installed.
PRE_TRAINING = {"tools.masked_lm.MaskedLanguageModel", "tools.dictionary_text.DictionaryText"}
PLAIN_TYPES = {
    "<class 'int'>": "a whole number",
    "<class 'float'>": "a number",
    "<class 'str'>": "text",
    "<class 'bool'>": "true or false",
    "<class 'list'>": "a list, such as [a,b]",
    "<class 'tuple'>": "a list, such as [a,b]",
    "<class 'collections.abc.Sequence'>": "a list, such as [a,b]",
    "<class 'dict'>": "a mapping, such as {a: 1}",
}
_KEY = re.compile(r'Parser key "([\w.]+)"')
_CLASS = re.compile(r"given class_path '([\w.]+)'")
_STRANGE_KEY = re.compile(
    r"(?:Group '(?P<group>[\w.]+)' does not accept option|Subcommand '\w+' does not accept option"
    r"|Option) '(?P<key>[\w.]+)'"
)


def one_line_error(message: str, typed: Mapping[str, str], command_line: CommandLine) -> str:
    """Turn the parser's message into one line; `typed` has each option ("--probes") by its name."""
    if match := re.match(r"unrecognized arguments: (\S+)", message):
        word = match[1].partition("=")[0]
        if not word.startswith("-"):
            return f"{word!r} does not belong to an option; write lists without spaces: a,b"
        name = word.lstrip("-").replace("-", "_")
        if not typed.get(name, "-").startswith("-"):
            return f"{typed[name]} is not an option; give it without {word}"
        return f"there is no option {word}{_suggestion(name, typed, '--')}; --help_all shows all"
    if match := _STRANGE_KEY.search(message):
        return _strange_key(message, match, typed, command_line)
    if match := re.search(r"arguments are required: (.+)", message):
        names = [name if name in typed else name.partition(".")[2] for name in match[1].split(", ")]
        or_config = ", or a --config that has them" if len(names) > 1 else ""
        return f"give {', '.join(typed.get(name, f'--{name}') for name in names)}{or_config}"
    if match := re.search(r"argument (--[\w.]+)\S*: expected one argument", message):
        return f"{match[1]}: give a value"
    return _wrong_value(message, typed, command_line) or "; ".join(
        line.strip(" -") for line in message.splitlines() if line.strip()
    )


def _strange_key(
    message: str, match: re.Match[str], typed: Mapping[str, str], command_line: CommandLine
) -> str:
    """Say that there is no such key or option, and which one was probably meant."""
    names: Iterable[str] = typed
    key = ".".join([*_KEY.findall(message), *filter(None, (match["group"], match["key"]))])
    if chosen := _CLASS.findall(message):  # its arguments are those of a class, not of the command
        parameters = inspect.signature(resolve_name(chosen[-1])).parameters
        names = [f"{key.rpartition('.')[0]}.{name}" for name in parameters]
    else:  # the shortest beginning that is unknown: a whole group may be strange
        key_parts = key.split(".")
        for length in range(1, len(key_parts)):
            beginning = ".".join(key_parts[:length])
            if not any(f"{name}.".startswith(f"{beginning}.") for name in typed):
                key = beginning
                break
    file = command_line.location(key).removesuffix(key)
    if file == "--":
        return f"there is no option --{key}{_suggestion(key, names, '--')}"
    return f"{file}there is no key {key}{_suggestion(key, names, '')}"


def _wrong_value(message: str, typed: Mapping[str, str], command_line: CommandLine) -> str:
    """Return what to give in place of a value; "" if the message is about something else."""
    keys = _KEY.findall(message)
    value = re.search(r"(?:Got value|Given value): (.*)", message)
    if keys and str(NOT_BLANK) in message:
        return f"{typed.get(keys[0], f'--{keys[0]}')} '': give {NOT_BLANK}"
    key = ".".join(keys)
    if keys and (ambiguous := re.search(rf"(\S+) {AMBIGUOUS}", message)):
        return f"{command_line.location(key)} {ambiguous[0]}"
    if not keys or value is None:
        return ""
    class_problem = f"there is no such class; give its full name, such as {CLASSES.get(key)}"
    if class_match := re.search(r"given class_path '(.*?)':\s+(?:module|No module)", message):
        if class_match[1] in PRE_TRAINING:
            class_problem = (
                "pre-training is not installed, but is in a checkout of the repository: run "
                "CHECKOUT/train.py with this config"
            )
        return f"{command_line.location(key)} {class_match[1]}: {class_problem}"
    if "dot import path" in message:
        advice = f"give its parts one by one, as --{key}.PART VALUE"
        return f"--{key} {value[1]}: {class_problem if key in CLASSES else advice}"
    literals = re.findall(r"Literal\[(.*?)\]", message)
    classes = re.findall(r"Expected a (<class '[\w.]+'>)", message)
    expected = [PLAIN_TYPES[name] for name in dict.fromkeys(classes) if name in PLAIN_TYPES]
    choices = [word.strip(" '\"") for literal in literals for word in literal.split(",")]
    if choices:
        expected.insert(0, f"one of {', '.join(dict.fromkeys(choices))}")
    # Of a list and its parts pydantic says it.
    expected += re.findall(r"(?:Value error, give|Input should be) (.*?) \[type=", message)[:1]
    if not expected:
        return ""
    option = command_line.location(key) if key in typed else f"--{key}"
    option = typed[key] if option == f"--{key}" and key in typed else option
    return f"{option} {value[1]}: give {' or '.join(expected)}{nearest(value[1], choices)}"


def _suggestion(name: str, options: Iterable[str], dashes: str) -> str:
    """Suggest the option that was probably meant, all that are as likely, or nothing."""
    names = [o for o in options if o == "help" or o.rpartition(".")[2] not in {"help", "h"}]
    slips = [option for option in names if is_one_slip(name, option)]
    likely = [f"{dashes}{option}" for option in slips or _likely_options(name, names)]
    _, _, last = name.rpartition(".")
    if not slips and name in {last, f"data.{last}"} and last in FILE_WORDS - {*names}:
        file_options = _own_file_options(names)
        likely = [file_options.removesuffix(" FILE")] if file_options else likely
    return f" (did you mean {' or '.join(likely)}?)" if likely else ""


def _likely_options(name: str, names: Sequence[str]) -> list[str]:
    """Return options like a name: of its section, or else those that are called so elsewhere."""
    section, _, last = name.rpartition(".")
    sections = {option.rpartition(".")[0] for option in names}
    if section not in sections and (near_sections := close_matches(section, [*sections])):
        section = near_sections[0]
    last = SHORT.get(last, last)
    ends = {option: option.rpartition(".")[2] for option in names}
    siblings = {end: option for option, end in ends.items() if option.rpartition(".")[0] == section}
    similar = [siblings[end] for end in close_matches(last, list(siblings), 0.65)]
    by_word = [
        option
        for end, option in siblings.items()
        if end.startswith(last) or end in last.split("_") or last in end.split("_")
    ]
    namesakes = [option for option, end in ends.items() if end.rstrip("s") == last.rstrip("s")]
    least_depth = min((option.count(".") for option in namesakes), default=0)
    namesakes = [option for option in namesakes if option.count(".") == least_depth]
    return (namesakes if not section else []) or similar[:1] or by_word[:1] or namesakes
