from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from probelight.io.errors import ConfigError
from probelight.probes.catalog import FileSource, HubSource
from probelight.probes.catalog_check import read_config

MINIMAL = """
setup: mc_mlm
num_choices: 2
chance: 0.5
files: {train: a/train.jsonl}
"""


def test_a_file_of_four_keys_is_a_probe(config_file: Callable[..., Path]) -> None:
    config = read_config(config_file(MINIMAL))
    assert (config.name, config.setup, config.num_choices, config.chance) == (
        "mine",
        "mc_mlm",
        2,
        0.5,
    )
    assert config.files == {"train": FileSource("a/train.jsonl")}
    assert config.splits == ("train",)
    assert config.candidates == ()


def test_every_form_of_a_value_is_read(config_file: Callable[..., Path]) -> None:
    text = """
setup: mc_qa
num_choices: 3
chance: 0.3333
citation: " Talmor 2020 "
hub: {repo: a/b, splits: {dev: validation}, revision: main}
arguments: {one: '(a)', two: '(?P<x>b)c'}
leave_out: {train: [3, 5]}
key_words: &words [x]
variants: {v: {arguments: (b), key_words: *words}}
"""
    config = read_config(config_file(text))
    assert config.citation == "Talmor 2020"
    assert config.hub == HubSource("a/b", {"dev": "validation"}, revision="main")
    assert config.arguments == {"one": "(a)", "two": "(?P<x>b)c"}
    assert config.leave_out == {"train": (3, 5)}
    assert config.variants["v"].key_words == ("x",)
    assert list(config.variants["v"].arguments) == ["1"]  # patterns without names are counted


@pytest.mark.parametrize(
    ("base_url", "read"),
    [("https://a.b/c", "https://a.b/c"), ("embedded", "embedded"), ("d/e", "FOLDER/d/e")],
)
def test_files_lie_at_an_address_in_the_checkout_or_beside_the_config(
    base_url: str, read: str, config_file: Callable[..., Path]
) -> None:
    path = config_file(f"{MINIMAL}base_url: {base_url}\n")
    assert read_config(path).base_url == read.replace("FOLDER", str(path.parent))
    assert read_config(config_file(MINIMAL)).base_url == str(path.parent)


MISTAKES = {
    "unknown key": ("num_choice: 2", r"`num_choice` is no key \(did you mean 'num_ch"),
    "unknown key below": ("hub: {repo: a, splitz: {}}", r"`hub.splitz` .*'splits'"),
    "a number as text": ("citation: 2020", "`citation` must be text in quotes, not 2020"),
    "yes as text": (
        "candidates: [yes, maybe]",
        r"`candidates\[0\]` must be text in quotes, not True",
    ),
    "text as list": ("key_words: age", "`key_words` must be a list, not 'age'"),
    "list as mapping": ("nonsense: [a]", "`nonsense` must be a mapping"),
    "sha256": ("files: {train: {path: a, sha256: abc}}", r"`files.train.sha256` must be 64"),
    "file without path": ("files: {train: {sha256: null}}", r"`files.train.path` is missing"),
    "group": ("group_by: clusters", "`group_by` must be 'cluster', .*did you mean 'cluster'"),
    "arguments missing": ("group_by: arguments", "`group_by` is `arguments`, so"),
    "regex": ("arguments: 'a ('", "`arguments.1` is no regular expression"),
    "regex without group": ("arguments: ['(a)', b]", r"`arguments.2` has no group"),
    "regex too long": (f"arguments: '{'a' * 2000}(b)'", "`arguments.1` has more than 2,000 chara"),
    "regex of many parts": (
        "arguments: '(?:(?:(?:(?:(a{99}){99}){99}){99}){99,}){,99}'",
        "`arguments.1` repeats something more than 10,000 times",
    ),
    "regex that keeps alone": ("arguments: '(?P<kept>a)'", "`arguments.1` has no group"),
    "candidates": ("candidates: [a, b, c]", "`candidates` must be 2 different words"),
    "nonsense": ("candidates: [a, b]\nnonsense: {a: x}", "`nonsense` must name each"),
    "domain without a mask": ("domain_stem: It is so .", r"`domain_stem` has 0 \[MASK\]"),
    "domain with two masks": ("domain_stem: '[MASK] [MASK]'", r"`domain_stem` has 2 \[MASK\]"),
    "domain that is a list": ("domain_stem: [MASK]", "`domain_stem` must be"),
    "same nonsense": ("candidates: [a, b]\nnonsense: {a: x, b: x}", "two candidates the same"),
    "name": ("name: other", "`name` must be the name of the file, 'mine'"),
    "ids_repeat": ("ids_repeat: often", "`ids_repeat` must be true or false, not 'often'"),
    "leave_out": ("leave_out: {train: 3}", "`leave_out.train` must be a list"),
    "leave_out lines": (
        "leave_out: {train: [x]}",
        r"`leave_out.train\[0\]` must be a whole number",
    ),
    "many keys": ("\n".join(f"k{n}: 1" for n in range(1000)), "`k0` is no key"),
    "a large value": (
        f"citation: [{'1, ' * 300}]",
        r"`citation` must be text in quotes, not \[1, .*\.\.\.$",
    ),
}


@pytest.mark.parametrize(("line", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_named_with_file_and_key(
    config_file: Callable[..., Path], line: str, message: str
) -> None:
    text = MINIMAL.replace("files: {train: a/train.jsonl}", "") if "files:" in line else MINIMAL
    with pytest.raises(ConfigError, match=rf"mine\.yaml: .*{message}"):
        read_config(config_file(text + line))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("chance: 0.5", "chance: 0.2", "`chance` is 0.2 where 1 / num_choices is 0.5000"),
        ("chance: 0.5", "chance: 50", "`chance` must be a number between 0 and 1"),
        ("chance: 0.5", "", "`chance` is missing"),
        ("num_choices: 2", "num_choices: '2'", "`num_choices` must be a whole number, not '2'"),
        ("num_choices: 2", "num_choices: true", "`num_choices` must be a whole number"),
        ("num_choices: 2", "num_choices: 1", "`num_choices` must be at least 2"),
        (
            "setup: mc_mlm",
            "setup: mc_ml",
            "`setup` must be 'mc_mlm', 'mc_qa' or 'minimal_pair', .*did you mean 'mc_mlm'",
        ),
        ("files: {train: a/train.jsonl}", "", "`files` is missing"),
        (
            "setup: mc_mlm",
            "setup: mc_qa\ndomain_stem: 'It is [MASK]'",
            r"`domain_stem` has a \[MASK\]; answers stand behind it",
        ),
    ],
)
def test_wrong_needed_values(
    config_file: Callable[..., Path], old: str, new: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=rf"mine\.yaml: {message}"):
        read_config(config_file(MINIMAL.replace(old, new)))
    explained = MINIMAL.replace("chance: 0.5", "chance: 0.25\nchance_note: most have four")
    assert read_config(config_file(explained)).chance == 0.25


def test_a_file_that_holds_something_else_is_refused(config_file: Callable[..., Path]) -> None:
    with pytest.raises(
        ConfigError, match=r"mine\.yaml: it must be a mapping of keys to values, not"
    ):
        read_config(config_file("[a, b]"))


def test_a_name_that_acts_on_a_terminal_is_refused(config_file: Callable[..., Path]) -> None:
    with pytest.raises(ConfigError, match="`name` holds control characters; rename the file"):
        read_config(config_file(MINIMAL, name="a\x1b[31m"))


@pytest.mark.parametrize("line", ["candidates: [a, b]", "arguments: '(a)'", "key_words: [a]"])
def test_what_minimal_pairs_cannot_have_is_refused(
    line: str, config_file: Callable[..., Path]
) -> None:
    text = MINIMAL.replace("mc_mlm", "minimal_pair")
    assert read_config(config_file(f"{text}group_by: paradigm\n")).group_by == "paradigm"
    with pytest.raises(ConfigError, match=f"`{line.partition(':')[0]}` is not of minimal pairs"):
        read_config(config_file(f"{text}{line}\n"))
