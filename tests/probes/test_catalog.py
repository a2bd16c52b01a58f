from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from probelight.io.errors import ConfigError
from probelight.probes import catalog
from probelight.probes.catalog import ProbeConfig, load_probe_config, probe_names
from probelight.probes.importers.ai2 import write_ai2
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
    assert config.description
    assert config.citation
    assert config.licence
    assert config.base_url or config.hub or config.get


@pytest.mark.parametrize("name", probe_names())
def test_another_process_is_told_all_of_a_config(name: str) -> None:
    config = load_probe_config(name)
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


def test_arguments_are_found_with_their_places() -> None:
    config = load_probe_config("multihop_composition")
    stem = " When comparing a 31 year old, a 23 year old and a 3 year old, the [MASK] is oldest "
    found = config.find_arguments(stem)
    assert found is not None
    assert [stem[start:end] for start, end in found[1]] == ["31", "23", "3"]
    assert config.find_arguments(stem + "?") is None


def test_the_catalogue_is_light() -> None:
    code = "import sys, probelight.probes.source; print([m for m in sys.modules if '.' not in m])"
    start = time.perf_counter()
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert time.perf_counter() - start < 5
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
    record = Record(
        "1", ("abcd" * 2000 if "b" in expression else "a" * 100) + " [MASK]", ("x", "y"), 0
    )
    write_ai2(tmp_path / "train.jsonl", [record])
    with pytest.raises(ConfigError, match=r"train\.jsonl:1: the expression `arguments\.1` of mine"):
        load_probe(config_file(f"{text}arguments: '{expression}'\n"), "train")
