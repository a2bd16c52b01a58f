from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from probelight.io.errors import ConfigError
from probelight.probes import catalog
from probelight.probes.catalog import (
    FileSource,
    HubSource,
    ProbeConfig,
    load_probe_config,
    probe_names,
    read_config,
)
from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record
from probelight.probes.source import load_probe

OLMPICS = {
    "always_never": 5,
    "age_comparison": 2,
    "objects_comparison": 2,
    "antonym_negation": 2,
    "property_conjunction": 3,
    "taxonomy_conjunction": 3,
    "encyclopedic_composition": 3,
    "multihop_composition": 3,
}
MC_QA = ("property_conjunction", "encyclopedic_composition")
EXPERT = ("definitions", "synonymy", "hypernymy", "hyponymy", "dictionary_qa")
ORIGINAL = ("arc_easy", "arc_challenge", "openbookqa", "sciq", "textbookqa", "mcql", "race")


@pytest.mark.parametrize("name", probe_names())
def test_every_config_is_valid_and_says_where_it_comes_from(name: str) -> None:
    config = load_probe_config(name)
    assert config.name == name
    assert all((config.description, config.citation, config.licence))
    assert config.base_url or config.hub or config.get
    # Another process gets all of it.
    assert ProbeConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_all_probes_and_sets_are_there_with_the_papers_numbers_of_choices() -> None:
    assert {*OLMPICS, *EXPERT, *ORIGINAL} <= set(probe_names())
    for name, num_choices in OLMPICS.items():
        config = load_probe_config(name)
        assert config.num_choices == num_choices
        assert config.setup == ("mc_qa" if name in MC_QA else "mc_mlm")
        assert config.key_words
        assert config.arguments
    for name in EXPERT:
        assert load_probe_config(name).chance == 0.2
        assert load_probe_config(name).files["train"].path == f"data_mcqa/{name}/train.jsonl"


def test_a_probe_that_does_not_exist_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_probe_config(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match=r"no probe 'hypernimy' \(did you mean 'hypernymy'\?\)"):
        load_probe_config("hypernimy")


def test_the_catalogue_is_light() -> None:
    code = "import sys, probelight.probes.source; print([m for m in sys.modules if '.' not in m])"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    for heavy in ("torch", "datasets", "transformers", "pytorch_lightning", "numpy"):
        assert f"'{heavy}'" not in modules


@pytest.mark.parametrize("expression", ["((?:a|aa)+)$", "(.*)a.*b.*c.*d.*e"])
def test_an_expression_that_backtracks_is_named_with_the_item(
    tmp_path: Path,
    config_file: Callable[..., Path],
    expression: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catalog, "MATCH_SECONDS", 0.05)
    text = "setup: mc_mlm\nnum_choices: 2\nchance: 0.5\nfiles: {train: train.jsonl}\n"
    stem = ("abcd" * 2000 if "b" in expression else "a" * 100) + " [MASK]"
    record = Record("1", stem, ("x", "y"), 0)
    write_ai2(tmp_path / "train.jsonl", [record])
    with pytest.raises(ConfigError, match=r"train\.jsonl:1: the expression `arguments\.1` of mine"):
        load_probe(config_file(f"{text}arguments: '{expression}'\n"), "train")


def test_an_expression_has_one_budget_for_all_stems_of_a_file(
    tmp_path: Path, config_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "FILE_SECONDS", 0.1)
    text = "setup: mc_mlm\nnum_choices: 2\nchance: 0.5\nfiles: {train: train.jsonl}\n"
    stems = [f"{'a' * 22}{number} [MASK]" for number in range(200)]  # some ms each
    records = [Record(stem, stem, ("x", "y"), 0) for stem in stems]
    write_ai2(tmp_path / "train.jsonl", records)
    message = (
        r"train\.jsonl:\d+: the expression `arguments\.1` of mine takes more than 0.1 s on the "
        "stems of the file up to this one; rewrite it so that no two"
    )
    with pytest.raises(ConfigError, match=message):
        load_probe(config_file(f"{text}arguments: '((?:a|aa)+)[p-z] .*'\n"), "train")
    assert (
        len(load_probe(config_file(f"{text}arguments: '(a+)[p-z] .*'\n"), "train").records) == 200
    )


MINIMAL = """
setup: mc_mlm
num_choices: 2
chance: 0.5
files: {train: a/train.jsonl}
"""


def test_a_file_of_four_keys_is_a_probe(config_file: Callable[..., Path]) -> None:
    config = read_config(config_file(MINIMAL))
    assert (config.name, config.setup, config.num_choices) == ("mine", "mc_mlm", 2)
    assert config.files == {"train": FileSource("a/train.jsonl")}
    assert (config.chance, config.splits, config.candidates) == (0.5, ("train",), ())
    explained = MINIMAL.replace("chance: 0.5", "chance: 0.25\nchance_note: most have four")
    assert read_config(config_file(explained)).chance == 0.25
    pairs = MINIMAL.replace("mc_mlm", "minimal_pair") + "group_by: paradigm\n"
    assert read_config(config_file(pairs)).group_by == "paradigm"


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


MISTAKES = {
    "unknown key": ("num_choice: 2", r"`num_choice` is not a known key \(did you mean 'num_ch"),
    "a number as text": ("citation: 2020", "`citation` must be text in quotes, not 2020"),
    "sha256": (
        "files: {train: {path: a, sha256: abc}}",
        r"`files.train.sha256` is 'abc': give 64 hexa",
    ),
    "path upwards": (
        "files: {train: {path: ../a.jsonl}}",
        r"`files.train.path` is '../a.jsonl'; a path below `base_url`",
    ),
    "mirror at the root": ("mirror_folder: /etc", "`mirror_folder` is '/etc'; a path below"),
    "group": ("group_by: clusters", "`group_by` must be 'cluster', .*did you mean 'cluster'"),
    "arguments missing": ("group_by: arguments", "`group_by` is `arguments`, so"),
    "regex": ("arguments: 'a ('", "`arguments.1` is not a regular expression"),
    "regex without group": ("arguments: ['(a)', b]", r"`arguments.2` has no group"),
    "regex too long": (f"arguments: '{'a' * 2000}(b)'", "`arguments.1` has more than 2,000 chara"),
    "regex of many parts": (
        "arguments: '(?:(?:(?:(?:(a{99}){99}){99}){99}){99,}){,99}'",
        "`arguments.1` repeats something more than 10,000 times",
    ),
    "regex that keeps alone": ("arguments: '(?P<kept>a)'", "`arguments.1` has no group"),
    "candidates": ("candidates: [a, b, c]", "`candidates` must be 2 different words"),
    "nonsense": ("candidates: [a, b]\nnonsense: {a: x}", "`nonsense` must have a word for each"),
    "domain without a mask": ("domain_stem: It is so .", r"`domain_stem` has 0 \[MASK\]"),
    "domain with two masks": ("domain_stem: '[MASK] [MASK]'", r"`domain_stem` has 2 \[MASK\]"),
    "domain that is a list": ("domain_stem: [MASK]", "`domain_stem` must be"),
    "same nonsense": ("candidates: [a, b]\nnonsense: {a: x, b: x}", "two candidates the same"),
    "name": ("name: other", "`name` must be the name of the file, 'mine'"),
    "wrong chance": ("chance: 0.2", "`chance` is 0.2, but 1 / num_choices is 0.5000"),
    "per cent": ("chance: 50", "`chance` is 50: give a number more than 0"),
    "no chance": ("chance:", "`chance` is missing"),
    "one choice": ("num_choices: 1", "`num_choices` is 1: give a number from 2"),
    "setup": ("setup: mc_ml", "`setup` must be 'mc_mlm', 'mc_qa' or .*did you mean 'mc_mlm'"),
    "no files": ("files:", "both `files` and `hub` are missing"),
    "domain of answers": ("setup: mc_qa\ndomain_stem: 'It [MASK]'", r"has a \[MASK\]; leave the"),
    "domain of pairs": ("setup: minimal_pair\ndomain_stem: It", "`domain_stem` is for probes with"),
    "candidates of pairs": (
        "setup: minimal_pair\ncandidates: [a, b]",
        "`candidates` does not apply",
    ),
    "arguments of pairs": ("setup: minimal_pair\narguments: '(a)'", "`arguments` does not ap"),
    "key words of pairs": ("setup: minimal_pair\nkey_words: [a]", "`key_words` does not ap"),
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_named_with_file_and_key(
    config_file: Callable[..., Path], text: str, message: str
) -> None:
    keys = {line.partition(":")[0] for line in text.splitlines()}
    lines = [line for line in MINIMAL.split("\n") if line.partition(":")[0] not in keys]
    with pytest.raises(ConfigError, match=rf"mine\.yaml: .*{message}"):
        read_config(config_file("\n".join([*lines, text])))


def test_a_file_that_is_no_mapping_or_has_a_strange_name_is_refused(
    config_file: Callable[..., Path],
) -> None:
    with pytest.raises(ConfigError, match=r"mine\.yaml: it must be a mapping of keys to values, n"):
        read_config(config_file("[a, b]"))
    with pytest.raises(ConfigError, match="`name` contains control characters; rename the file"):
        read_config(config_file(MINIMAL, name="a\x1b[31m"))
