from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import yaml

from probelight import cli
from probelight.builders.giveaways import TRAIN, WORDFREQ
from probelight.commands.audit.audit import giveaway_rows, rule_rows
from probelight.commands.audit.items import (
    TRANSFORMER_FIT,
    AuditData,
    AuditSettings,
    load_audit,
    probe_config,
)
from probelight.io.errors import UsageError
from probelight.metrics.intervals import wilson
from probelight.probes.catalog import ProbeConfig
from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record
from probelight.probes.source import ProbeData
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder
from probelight.training.direct import Direct, DirectlyTrained, fresh_module
from tests.fixtures.rows import read_results

WORDS = ("sea", "sky", "hill", "lake", "wood", "zib")


def leaky(number: int) -> Record:
    """The right answer alone says "zib"; the question says nothing."""
    choices = [f"{WORDS[(number + n) % 5]} {WORDS[(number + 2 * n) % 5]}" for n in range(3)]
    choices[number % 3] += " zib"
    return Record(str(number), f"number {number}?", tuple(choices), number % 3)


@pytest.fixture
def probe(tmp_path: Path) -> tuple[Path, Path]:
    vectors = tmp_path / "vectors.txt"
    one_hot = zip(WORDS, np.eye(6).tolist(), strict=True)
    vectors.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in one_hot))
    write_ai2(tmp_path / "leaky.jsonl", [leaky(n) for n in range(60)])
    return tmp_path / "leaky.jsonl", vectors


def test_a_leak_is_found_and_flagged(
    probe: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, vectors = probe
    out = tmp_path / "audit"
    line = ["probes", "audit", str(path), f"--output_dir={out}", f"--vectors={vectors}"]
    line += ["--training.fit.epochs=4", "--training.fit.patience=null"]
    line += ["--training.fit.learning_rate=0.01", "--training.fit.batch_size=8"]
    line += ["--trainer.accelerator=cpu", "--trainer.progress_bar=false"]
    assert cli.main(line) == 0
    rows = read_results(out / "results.csv")
    overall = [r for r in rows if r["metric"] == "accuracy" and not r["subset"]]
    by_model = {(r["model"], r["mode"], r["scoring"]): float(r["value"]) for r in overall}
    assert by_model["Choice-only (vectors)", "fine_tuned", ""] == 1.0
    # No word of the questions has a vector: all choices are tied.
    assert by_model["VecSimilarity (vectors)", "mean_cosine", ""] == pytest.approx(1 / 3)
    assert by_model["the answers alone", "", "words that are right in train"] == 1.0
    assert {r["num_items"] for r in overall} == {"18"}
    [zib] = [r for r in rows if r["subset"] == "word=zib" and r["metric"] == "right_share"]
    assert (zib["value"], zib["num_items"], zib["split"]) == ("1.0", "60", "all")
    printed = capsys.readouterr().out
    assert "gives itself away" in printed
    lines = [json.loads(line) for line in next(out.glob("runs/*/predictions.jsonl")).open()]
    assert [line["set"] for line in lines] == ["part of leaky"] * 18
    assert not list(out.glob("runs/*/checkpoints"))
    [log] = out.glob("runs/*Choice-only*/metrics.csv")
    assert "train/loss" in log.read_text()

    contents = (out / "results.csv").read_bytes()
    assert cli.main(line) == 0
    assert capsys.readouterr().out.count(": complete\n") == 3
    assert (out / "results.csv").read_bytes() == contents


def test_a_transformer_is_given_the_choices_alone(
    probe: tuple[Path, Path], curve_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_records: list[Record] = []

    def untrained(
        run: RunFolder, direct: Direct, sample: Sequence[Record], held: Sequence[Record], _: object
    ) -> DirectlyTrained:
        assert direct.fit == TRANSFORMER_FIT
        all_records.extend([*sample, *held])
        return DirectlyTrained(fresh_module(direct), 3, ())

    monkeypatch.setattr("probelight.training.direct.fit_directly", untrained)
    path = tmp_path / "tiny.yaml"
    path.write_text(f"model: {{name_or_path: {curve_model}, name: tiny}}\n")
    out = tmp_path / "audit"
    line = ["probes", "audit", str(probe[0]), f"--output_dir={out}", f"--baselines={path}"]
    assert cli.main([*line, "--trainer.accelerator=cpu", "--trainer.progress_bar=false"]) == 0
    assert {record.stem for record in all_records} == {""}
    assert len(all_records) == 42
    rows = [r for r in read_results(out / "results.csv") if r["metric"] == "accuracy"]
    [row] = [r for r in rows if r["model"] == "tiny"]
    assert (row["control"], row["role"], row["num_items"]) == ("choice_only", "baseline", "18")
    assert row["num_groups"] == "18"  # by the questions, which it did not see


UNEVEN = "--training.fit.patience=null --training.transformer.patience=1"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("SMALL --baselines=", "--baselines: give a value"),
        ("SMALL --baselines=choice_onl", "did you mean 'choice_only'"),
        ("SMALL --baselines=mlm_baseline", "mlm_baseline"),
        (f"SMALL {UNEVEN}", "needs training.fit.patience"),
        ("SMALL,SMALL", "two probes are called 'hypernymy_small'"),
        ("hypernym", "did you mean 'hypernymy'"),
        ("FOLDER", "no train, dev or test file"),
    ],
)
def test_mistaken_options_of_an_audit_are_named(
    options: str, words: str, tmp_path: Path, refused: Callable[..., str]
) -> None:
    line = options.replace("FOLDER", str(tmp_path)).replace("SMALL", "hypernymy_small")
    assert words in refused(f"probes audit {line} --output_dir=never")


def test_an_output_folder_is_needed(refused: Callable[..., str]) -> None:
    assert "give --output_dir" in refused("probes audit hypernymy_small")


CONFIG = ProbeConfig("tiny", "mc_qa", 2, 0.5, group_by="cluster")


def item(number: int, answer: int, *choices: str) -> Record:
    return Record(str(number), "what?", choices, answer, {"cluster": f"c{number // 2}"})


# Each second item has the longer answer right; "not" is in wrong answers alone.
ITEMS = [item(n, 0, "a long one" if n % 2 else "an x", "not one") for n in range(12)]
DATA = AuditData(CONFIG, {}, tuple(ITEMS[:2]), (), {"test": tuple(ITEMS[2:])}, ())


def test_rules_are_measured_on_what_is_not_counted() -> None:
    rows = list(rule_rows(DATA, TRAIN, Row(protocol="audit")))
    chance, *measured = rows
    assert (chance.metric, chance.value, chance.split) == ("chance", 0.5, "test")
    by_hand = {
        "the longest answer": 0.5,
        "the shortest answer": 0.5,
        # "one" is in the wrong answer of one train item, "not" in those of both.
        "words that are right in train": 1.0,
        "the answer at place 1": 1.0,
        "the answer at place 2": 0.0,
    }
    assert {row.scoring: row.value for row in measured}.items() >= by_hand.items()
    assert all((row.num_items, row.num_groups) == (10, 5) for row in measured)


def test_the_rule_of_the_asked_word_with_ties_and_groups() -> None:
    def question(number: int, *choices: str) -> Record:
        meta = {"cluster": f"c{number // 2}", "surface_form": "poking"}
        return Record(str(number), "In 'poking it', 'poking' is", choices, 0, meta)

    # Of six the right answer has it in two, a wrong one in one, both in one, none in two.
    items = [
        *(question(0, "a poke", "x"), question(1, "poked", "x"), question(2, "y", "it pokes")),
        *(question(3, "poke", "poking"), question(4, "x", "y"), question(5, "x", "a poker")),
    ]
    data = AuditData(CONFIG, {}, (), (), {"test": tuple(items)}, ())
    rows = {row.scoring: row for row in rule_rows(data, TRAIN, Row())}
    rule, opposite = (rows[f"an answer {word} the asked word"] for word in ("with", "without"))
    assert rule.value == pytest.approx((2 + 0 + 3 * 0.5) / 6)
    assert opposite.value == pytest.approx((0 + 1 + 3 * 0.5) / 6)
    assert (rule.num_items, rule.num_groups) == (6, 3)
    assert rule.ci_low is not None
    assert rule.ci_low < rule.value
    rules = {row.scoring for row in rule_rows(DATA, TRAIN, Row())}  # whose notes name no word
    assert "the most words of the question" in rules
    assert "an answer with the asked word" not in rules


@pytest.mark.parametrize("kind", ["word", "answer"])
def test_words_with_chance_and_pmi(kind: str) -> None:
    data = AuditData(CONFIG, {"all": ProbeData(CONFIG, tuple(ITEMS), (), ())}, (), (), {}, ())
    subsets = {f"{kind}=not", f"{kind}=not one"}
    share, chance, pmi = (r for r in giveaway_rows(data, kind, Row()) if r.subset_text in subsets)
    values = (share.metric, share.value, share.num_items, share.num_groups)
    assert values == ("right_share", 0.0, 12, 6)
    assert share.ci_high is not None
    assert share.ci_high > wilson(0, 12)[1]  # by groups
    assert (chance.metric, chance.value) == ("chance", 0.5)
    assert (pmi.metric, pmi.value) == ("pmi", pytest.approx(math.log2(5 / 11)))


@pytest.mark.slow
@pytest.mark.paper_data
def test_the_released_hypernymy_gives_away_what_a_plain_loop_counts(data_mirror: Path) -> None:
    pytest.importorskip("wordfreq")
    data = load_audit("hypernymy", AuditSettings(), str(data_mirror))
    rules = {row.scoring: row for row in rule_rows(data, WORDFREQ, Row()) if row.split == "test"}
    assert rules["the longest answer"].value == pytest.approx(0.24622892635314997)
    assert rules["the commonest words"].value == pytest.approx(0.37244897959183676)
    assert rules["the rarest words"].value == pytest.approx(0.05368234250221828)
    words = giveaway_rows(data, "word", Row())
    by_word = {(row.subset_text, row.metric): row.value for row in words}
    assert by_word["word=white", "pmi"] == pytest.approx(-4.217230716220668)
    assert by_word["word=white", "right_share"] == 0.0
    assert by_word["word=concrete", "right_share"] == pytest.approx(55 / 67)


SETTINGS = AuditSettings()


def numbered_items(first: int, number: int, stem: str = "what is it?") -> list[Record]:
    places = range(first, first + number)
    return [
        Record(f"{n}", f"{stem} {n}", ("a", "b"), n % 2, {"cluster": f"c{n // 4}"}) for n in places
    ]


def test_a_file_is_divided_by_groups(tmp_path: Path) -> None:
    write_ai2(tmp_path / "whales.jsonl.gz", numbered_items(0, 80))
    config = probe_config(str(tmp_path / "whales.jsonl.gz"))
    assert (config.name, config.setup, config.group_by) == ("whales", "mc_qa", "cluster")
    data = load_audit(config, SETTINGS, None)
    assert list(data.measured) == ["part of whales"]
    sides = [data.train, data.held_out, data.measured["part of whales"]]
    assert [len(side) for side in sides] == [48, 8, 24]
    clusters = [{r.meta["cluster"] for r in side} for side in sides]
    assert sum(map(len, clusters)) == len(set().union(*clusters)) == 20
    assert data.untouched(sides[2]) == [True] * 24
    assert data.notices == ("whales: 56 of the whales items are used to train",)


def test_a_folder_of_split_files_is_taken_as_it_is(tmp_path: Path) -> None:
    (folder := tmp_path / "own").mkdir()
    for split, first in {"train": 0, "dev": 40, "test": 38}.items():
        write_ai2(
            folder / f"{split}.jsonl",
            numbered_items(first, 40 if split == "train" else 24, "[MASK]"),
        )
    config = probe_config(str(folder))
    assert (config.name, config.setup, config.splits) == ("own", "mc_mlm", ("train", "dev", "test"))
    data = load_audit(config, SETTINGS, None)
    assert {split: len(rows) for split, rows in data.measured.items()} == {"dev": 24, "test": 24}
    assert len(data.train) + len(data.held_out) == 40
    assert data.untouched(data.measured["test"]) == [False] * 2 + [True] * 22
    (folder / "train.jsonl").unlink()
    data = load_audit(probe_config(str(folder)), SETTINGS, None)
    assert list(data.measured) == ["test"]
    assert data.notices == ("own has no train file: its dev items are used to train",)


def test_a_folder_with_a_config_goes_by_it(tmp_path: Path) -> None:
    write_ai2(tmp_path / "train.jsonl", numbered_items(0, 40))
    config = {"setup": "mc_qa", "num_choices": 2, "chance": 0.5, "base_url": "."}
    config |= {"group_by": "cluster", "files": {"train": {"path": "train.jsonl"}}}
    (tmp_path / "built.yaml").write_text(yaml.safe_dump(config))
    assert probe_config(str(tmp_path)).name == "built"


def test_a_file_that_is_no_probe_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing\.jsonl"):
        probe_config(str(tmp_path / "nothing.jsonl"))
    write_ai2(tmp_path / "one.jsonl", numbered_items(0, 4))
    with pytest.raises(UsageError, match=r"one: its items cannot be divided .*1 group"):
        load_audit(probe_config(str(tmp_path / "one.jsonl")), SETTINGS, None)
