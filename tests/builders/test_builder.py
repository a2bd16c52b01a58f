from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from probelight import cli
from probelight.builders import catalogue
from probelight.builders.builder import (
    Builder,
    BuildSettings,
    Draft,
    Probe,
    Source,
    finish,
    split_groups,
    write_probe,
)
from probelight.io.errors import RecordError
from probelight.io.files import sha256_of
from probelight.probes.source import load_probe


@dataclass(frozen=True)
class SumSettings(BuildSettings):
    count: int = 4
    numerals: str = "numerals.txt"


def sum_of(n: int, m: int) -> Draft:
    return Draft(f"{n} and {m} are", f"{n + m}!", (f"{n}?", f"{n + 1}?"), n, {"cluster": n})


def sums(settings: SumSettings) -> Probe:
    starts = {"train": 100, "dev": 200}
    drafts = {k: [sum_of(n, s) for n in range(s, s + settings.count)] for k, s in starts.items()}
    return finish("sums", drafts, random.Random(settings.seed))


SUMS = Builder(
    "sums",
    "What is the sum?",
    SumSettings,
    sums,
    sources={"numerals": Source("Numerals", "1.0", "public domain")},
    config={"setup": "mc_qa", "num_choices": 3, "chance": 0.333},
)


def test_a_named_probe_is_built_and_can_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(catalogue.BUILDERS, "sums", SUMS)
    config, numerals = tmp_path / "settings.yaml", tmp_path / "numerals.txt"
    config.write_text("count: 6\n")
    numerals.write_text("one two")
    line = ["probes", "build", "sums", f"--config={config}", f"--numerals={numerals}"]
    assert cli.main([*line, "--output_dir", str(tmp_path / "a")]) == 0
    assert cli.main([*line, "--output_dir", str(tmp_path / "b"), "--seed=0"]) == 0
    names = {path.name for path in (tmp_path / "a" / "sums").iterdir()}
    assert names == {"train.jsonl.gz", "dev.jsonl.gz", "sums.yaml", "README.md"}
    for name in names:
        assert sha256_of(tmp_path / "a/sums" / name) == sha256_of(tmp_path / "b/sums" / name)
    records = load_probe(str(tmp_path / "a" / "sums" / "sums.yaml"), "dev").records
    assert {record.stem for record in records} == {f"{n} and 200 are" for n in range(200, 206)}
    card = (tmp_path / "a/sums/README.md").read_text()
    assert "train.py probes build sums --count 6 --output_dir DIR" in card
    assert f"- Numerals 1.0; public domain\n  - `numerals.txt` {sha256_of(numerals)}" in card
    assert str(tmp_path) not in card
    capsys.readouterr()
    assert cli.main(["probes", "validate", str(tmp_path / "a" / "sums")]) == 0
    assert "nothing found in 12 items (train, dev)" in capsys.readouterr().out


def test_what_breaks_a_rule_is_not_written(tmp_path: Path) -> None:
    def leaky(settings: SumSettings) -> Probe:
        probe = sums(settings)
        return {"train": probe["train"], "dev": probe["train"][:2]}

    builder = Builder("sums", "", SumSettings, leaky)
    with pytest.raises(RecordError, match="question in two splits: 2"):
        write_probe(builder, SumSettings(), tmp_path)
    assert not (tmp_path / "sums").exists()


def drafts(num_groups: int, per_group: int) -> list[Draft]:
    return [
        Draft(f"q{group}-{i}", "yes", ("no", "maybe"), group)
        for group in range(num_groups)
        for i in range(per_group)
    ]


def test_groups_stay_whole_sizes_are_exact_and_a_stem_is_kept_once() -> None:
    splits = split_groups(drafts(10, 3), {"test": 5, "train": 12}, random.Random(0))
    assert [len(splits[name]) for name in ("test", "train")] == [5, 12]
    groups = {name: {d.group for d in items} for name, items in splits.items()}
    # 5 items take 2 groups of 3 and leave one item out; 12 take 4.
    assert [len(groups[name]) for name in ("test", "train")] == [2, 4]
    assert not groups["test"] & groups["train"]
    items = [Draft("same", "a", ("b",), 1), Draft("same", "b", ("a",), 2)]
    assert split_groups(items, {"test": 1}, random.Random(0))["test"] == items[:1]


def test_finish_keeps_the_choices_names_the_items_and_balances_gold_positions() -> None:
    rows = finish("p", {"dev": drafts(11, 1)}, random.Random(0))["dev"]
    assert [r.id for r in rows] == [f"p-dev-{number}" for number in range(1, 12)]
    assert {(*sorted(r.choices), r.gold) for r in rows} == {("maybe", "no", "yes", "yes")}
    assert Counter(r.answer for r in rows) == {0: 4, 1: 4, 2: 3}
