from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from probelight.build.hygiene import check_records, check_splits
from probelight.build.olmpics.ages import AgeSettings, MultihopSettings, build_ages, build_multihop
from probelight.build.registry import builder_of
from probelight.io.errors import UsageError
from probelight.probes.catalog import load_probe_config
from probelight.probes.controls import no_language
from probelight.probes.record import Record
from probelight.probes.source import load_probe
from probelight.protocols import cli

SMALL = {"num_train": 200, "num_dev": 40, "num_test": 100}


def numbers(record: Record) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", record.stem)]


@pytest.mark.parametrize(
    ("panel", "train_range", "evaluation_range", "high_is"),
    [
        ("A", (43, 120), (15, 38), "older"),
        ("B", (1920, 1976), (1977, 2000), "younger"),
        ("C", (1920, 1976), (1977, 2000), "older"),
        ("D", (43, 120), (15, 38), "younger"),
    ],
)
def test_the_older_is_gold_as_the_sentence_says(
    panel: Any, train_range: tuple[int, int], evaluation_range: tuple[int, int], high_is: str
) -> None:
    probe = build_ages(AgeSettings(perturbation=panel, **SMALL))
    assert {split: len(rows) for split, rows in probe.items()} == {
        "train": 200,
        "dev": 40,
        "test": 100,
    }
    low_is = "younger" if high_is == "older" else "older"
    for split, rows in probe.items():
        low, high = train_range if split == "train" else evaluation_range
        for record in rows:
            a, b = numbers(record)
            assert record.gold == (high_is if a > b else low_is)
            assert low <= min(a, b) < max(a, b) <= high
            assert record.meta["arguments"] == [a, b]
            assert ("born" in record.stem) == (panel in "BD")
        golds = Counter(record.gold for record in rows)
        assert golds["older"] == golds["younger"]
        assert check_records(rows) == []
    assert check_splits(probe) == []
    pairs = [{frozenset(numbers(r)) for r in rows} for rows in probe.values()]
    assert [len(found) for found in pairs] == [100, 20, 50]
    assert not pairs[1] & pairs[2]


def test_released_wording_or_the_papers_with_articles() -> None:
    for wording, stems in (
        ("released", ["A 21 year old person age is [MASK] than an 18 year old person ."]),
        (
            "paper",
            [
                "A 21 year old person is [MASK] than me in age, If I am a 35 year old person.",
                "An 18 year old person is [MASK] than me in age, If I am a 35 year old person.",
            ],
        ),
    ):
        settings: Any = {"num_train": 2, "num_dev": 600, "wording": wording}
        rows = build_ages(AgeSettings(**settings))["dev"]
        assert len(rows) == 24 * 23
        assert {*stems} < {record.stem for record in rows}


def test_the_oldest_of_three_is_gold_and_answers_are_even() -> None:
    probe = build_multihop(MultihopSettings(num_train=60, num_dev=30, num_test=90))
    for rows in probe.values():
        for record in rows:
            three = numbers(record)
            assert len(set(three)) == 3
            assert record.gold == ("first", "second", "third")[three.index(max(three))]
        assert len(set(Counter(r.gold for r in rows).values())) == 1
        assert check_records(rows) == []
    assert [len(rows) for rows in probe.values()] == [60, 30, 90]
    assert not {frozenset(numbers(r)) for r in probe["dev"]} & {
        frozenset(numbers(r)) for r in probe["test"]
    }


def test_seed_decides() -> None:
    one, again, other = (build_ages(AgeSettings(seed, 20, 4, 4)) for seed in (1, 1, 2))
    assert one == again != other
    few = [build_multihop(MultihopSettings(seed, 20, 3, 3)) for seed in (1, 1, 2)]
    assert few[0] == few[1] != few[2]


def test_where_values_are_few_all_are_asked_and_no_split_is_empty() -> None:
    assert len(build_ages(AgeSettings(perturbation="B", num_dev=2))["train"]) == 57 * 56
    assert len(build_ages(AgeSettings(num_train=2, num_test=500))["dev"]) == 52
    with pytest.raises(UsageError, match=r"--num_dev 500: --num_test leave none of 552 items"):
        build_ages(AgeSettings(num_train=2, num_test=600))
    with pytest.raises(UsageError, match="--num_test 5: --num_dev leave none of 2,024 items"):
        build_multihop(MultihopSettings(num_train=2, num_dev=3000, num_test=5))


def test_the_command_writes_a_probe_with_its_controls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["probes", "build", "age_comparison", "--num_train=6", "--num_dev=8"]
    assert cli.main([*line, "--perturbation=B", f"--output_dir={tmp_path}"]) == 0
    config_path = tmp_path / "age_comparison" / "age_comparison.yaml"
    records = load_probe(str(config_path), "dev").records
    config = load_probe_config(str(config_path))
    assert config.splits == ("train", "dev")
    for record in records:
        bare = no_language(record, config, {"younger": "ya", "older": "blah"})
        a, b = record.meta["arguments"]
        assert bare.stem.split() == [str(a), "[MASK]", str(b)]
    rows = gzip.decompress((tmp_path / "age_comparison/train.jsonl.gz").read_bytes()).decode()
    assert len({json.loads(row)["id"] for row in rows.splitlines()}) == 6
    with pytest.raises(SystemExit, match="2"):
        cli.main([*line, "--perturbation=E", f"--output_dir={tmp_path}"])
    assert "--perturbation E: give one of A, B, C, D" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["age_comparison", "multihop_composition"])
def test_patterns_find_the_arguments_of_every_sentence(name: str) -> None:
    builder = builder_of(name)
    patterns = builder.config["arguments"]
    every = patterns.values() if isinstance(patterns, dict) else [patterns]
    panels = [{"perturbation": p} for p in "ABCD"] + [{"wording": "paper"}]
    for extra in panels if name == "age_comparison" else [{}]:
        rows = builder.build(builder.settings(num_train=90, num_dev=60, **extra))["train"]
        for record in rows:
            [match] = [m for one in every if (m := re.fullmatch(one, record.stem))]
            assert [int(g) for g in match.groups() if g] == record.meta["arguments"]
