from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from probes import catalog
from probes.catalog import FileSource, load_probe_config, probe_names
from probes.importers.ai2 import write_ai2
from probes.record import Record
from probes.source import load_probe
from storage.errors import ConfigError

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
MINIMAL = """
setup: mc_mlm
num_choices: 2
chance: 0.5
files: {train: a/train.jsonl}
"""


def config_file(tmp_path: Path, text: str, name: str = "mine") -> Path:
    path = tmp_path / f"{name}.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", probe_names())
def test_every_config_is_valid_and_says_where_it_comes_from(name: str) -> None:
    config = load_probe_config(name)
    assert config.name == name
    assert config.description
    assert config.citation
    assert config.licence
    assert config.base_url or config.hub or config.get


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


def test_a_file_of_four_keys_is_a_probe(tmp_path: Path) -> None:
    config = load_probe_config(config_file(tmp_path, MINIMAL))
    assert config.files == {"train": FileSource("a/train.jsonl")}
    assert config.splits == ("train",)
    assert config.candidates == ()


MISTAKES = {
    "unknown key": ("num_choice: 2", r"`num_choice` is no key of a probe \(did you mean 'num_ch"),
    "unknown key below": ("hub: {repo: a, splitz: {}}", r"`hub.splitz` .*'splits'"),
    "a number as text": ("citation: 2020", "`citation` must be text, not 2020"),
    "yes as text": ("candidates: [yes, maybe]", r"`candidates\[0\]` must be text, not True"),
    "text as list": ("key_words: age", "`key_words` must be a list of words"),
    "list as mapping": ("nonsense: [a]", "`nonsense` must be a mapping"),
    "sha256": ("files: {train: {path: a, sha256: abc}}", r"`files.train.sha256` must be 64"),
    "file without path": ("files: {train: {sha256: null}}", r"`files.train.path` is missing"),
    "group": ("group_by: clusters", "`group_by` must be one of .*did you mean 'cluster'"),
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
    "same nonsense": ("candidates: [a, b]\nnonsense: {a: x, b: x}", "two candidates the same"),
    "name": ("name: other", "`name` must be the name of the file, 'mine'"),
    "ids_repeat": ("ids_repeat: often", "`ids_repeat` must be true or false, not 'often'"),
    "leave_out": ("leave_out: {train: 3}", "`leave_out.train` must be a list"),
    "leave_out lines": ("leave_out: {train: [x]}", "`leave_out.train` must be a whole number"),
    "key twice": ("setup: mc_qa", "the key 'setup' is given twice"),
    "YAML": ("a: [", "not readable as YAML"),
}


@pytest.mark.parametrize(("line", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_named_with_file_and_key(tmp_path: Path, line: str, message: str) -> None:
    text = MINIMAL.replace("files: {train: a/train.jsonl}", "") if "files:" in line else MINIMAL
    with pytest.raises(ConfigError, match=rf"mine\.yaml: .*{message}"):
        load_probe_config(config_file(tmp_path, text + line))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("chance: 0.5", "chance: 0.2", "`chance` is 0.2 where 1 / num_choices is 0.5000"),
        ("chance: 0.5", "chance: 50", "`chance` must be a number between 0 and 1"),
        ("chance: 0.5", "", "`chance` is missing"),
        ("num_choices: 2", "num_choices: '2'", "`num_choices` must be a whole number, not '2'"),
        ("num_choices: 2", "num_choices: true", "`num_choices` must be a whole number"),
        ("num_choices: 2", "num_choices: 1", "`num_choices` must be at least 2"),
        ("setup: mc_mlm", "setup: mc_ml", "`setup` must be one of .*did you mean 'mc_mlm'"),
        ("files: {train: a/train.jsonl}", "", "`files` is missing"),
    ],
)
def test_wrong_needed_values(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"mine\.yaml: {message}"):
        load_probe_config(config_file(tmp_path, MINIMAL.replace(old, new)))
    explained = MINIMAL.replace("chance: 0.5", "chance: 0.25\nchance_note: most have four")
    assert load_probe_config(config_file(tmp_path, explained)).chance == 0.25


def test_other_contents_and_names(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a mapping of keys"):
        load_probe_config(config_file(tmp_path, "[a, b]"))
    with pytest.raises(ConfigError, match="No such file"):
        load_probe_config(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match=r"no probe 'hypernimy' \(did you mean 'hypernymy'\?\)"):
        load_probe_config("hypernimy")


def test_arguments_are_found_with_their_places() -> None:
    config = load_probe_config("multihop_composition")
    stem = " When comparing a 31 year old, a 23 year old and a 3 year old, the [MASK] is oldest "
    found = config.find_arguments(stem)
    assert found is not None
    assert [stem[start:end] for start, end in found[1]] == ["31", "23", "3"]
    assert config.find_arguments(stem + "?") is None


def test_the_catalogue_is_light() -> None:
    code = "import sys, probes.source; print([m for m in sys.modules if '.' not in m])"
    start = time.perf_counter()
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert time.perf_counter() - start < 5
    for heavy in ("torch", "datasets", "transformers", "pytorch_lightning", "numpy"):
        assert f"'{heavy}'" not in modules


def nested(levels: int, width: int = 9) -> str:
    """A list of lists of ... by aliases: a few hundred bytes that stand for width ** levels."""
    rows = ["a0: &a0 [x]"]
    for level in range(levels):
        rows.append(f"a{level + 1}: &a{level + 1} [{', '.join([f'*a{level}'] * width)}]")
    return "\n".join(rows) + "\n"


HOSTILE = {
    "nested aliases": (nested(9), r"line 6: .* its aliases stand for more than 100,000 values"),
    "nested mappings": (
        "a0: &a0 {x: 1}\n"
        + "".join(f"a{n}: &a{n} {{p: *a{n - 1}, q: *a{n - 1}}}\n" for n in range(1, 40)),
        r"aliases stand for more than 100,000 values",
    ),
    "merged mappings": (
        "a0: &a0 {x: 1}\n"
        + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 9)),
        r"aliases stand for more than 100,000 values",
    ),
    "an alias of itself": ("a: &a [*a]", "line 1: not readable as YAML: an alias holds itself"),
    "nested brackets": ("a: " + "[" * 200, "line 1: .* values within values 50 times"),
    "many keys": ("\n".join(f"k{n}: 1" for n in range(1000)), "`k0` is no key of a probe"),
    "a key twice below": ("files: [{a: 1, a: 2}]", "line 1: .* the key 'a' is given twice"),
    "a large file": ("# " + "x" * 2**16, "more than 65,536 bytes, the most of a file of settings"),
    "a large value": (f"citation: [{'1, ' * 300}]", r"`citation` must be text, not \[1, .*\.\.\.;"),
    "no YAML": ("setup: mc_mlm\nchance: 'a", "line 2: .* while scanning a quoted scalar, found"),
    "an object": ("setup: !!python/object/apply:os.system [ls]", "could not determine a constr"),
    "a day that is none": ("citation: 2020-13-45", "not readable as YAML: month must be in 1..12"),
}


@pytest.mark.parametrize(("text", "message"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_yaml_is_refused_soon_in_one_line_with_its_file(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(
        ConfigError, match=rf"mine\.yaml: .*{message}|mine\.yaml:1: {message}"
    ) as said:
        load_probe_config(config_file(tmp_path, text))
    assert "\n" not in str(said.value)
    assert len(str(said.value)) < 1000


def test_aliases_that_stand_for_little_are_read(tmp_path: Path) -> None:
    text = MINIMAL + "key_words: &words [a]\nvariants: {v: {arguments: (b), key_words: *words}}\n"
    assert load_probe_config(config_file(tmp_path, text)).variants["v"].key_words == ("a",)


def test_a_config_that_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    with pytest.raises(ConfigError, match=r"zero\.yaml: a device or a pipe"):
        load_probe_config(tmp_path / "zero.yaml")


@pytest.mark.parametrize("expression", ["((?:a|aa)+)$", "(.*)a.*b.*c.*d.*e"])
def test_an_expression_that_backtracks_is_named_with_the_item(
    tmp_path: Path, expression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "MATCH_SECONDS", 0.05)
    text = MINIMAL.replace("a/train", "train") + f"arguments: '{expression}'\n"
    record = Record(
        "1", ("abcd" * 2000 if "b" in expression else "a" * 100) + " [MASK]", ("x", "y"), 0
    )
    write_ai2(tmp_path / "train.jsonl", [record])
    with pytest.raises(ConfigError, match=r"train\.jsonl:1: the expression `arguments\.1` of mine"):
        load_probe(config_file(tmp_path, text), "train")
