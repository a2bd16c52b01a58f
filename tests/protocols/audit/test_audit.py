from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record
from probelight.protocols import cli
from probelight.protocols.audit.items import TRANSFORMER_FIT
from probelight.protocols.engine.training import Direct, DirectlyTrained, fresh_module
from probelight.results.run_folder import RunFolder
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
    vectors.write_text("".join(f"{word} {' '.join(map(str, own))}\n" for word, own in one_hot))
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
    whole = [r for r in rows if r["metric"] == "accuracy" and not r["subset"]]
    by_model = {(r["model"], r["mode"], r["scoring"]): float(r["value"]) for r in whole}
    assert by_model["Choice-only (vectors)", "fine_tuned", ""] == 1.0
    # No word of the questions has a vector: all choices are tied.
    assert by_model["VecSimilarity (vectors)", "mean_cosine", ""] == pytest.approx(1 / 3)
    assert by_model["the answers alone", "", "words that are right in train"] == 1.0
    assert {r["num_items"] for r in whole} == {"18"}
    [zib] = [r for r in rows if r["subset"] == "word=zib" and r["metric"] == "right_share"]
    assert (zib["value"], zib["num_items"], zib["split"]) == ("1.0", "60", "all")
    said = capsys.readouterr().out
    assert "gives itself away" in said
    lines = [json.loads(own) for own in next(out.glob("runs/*/predictions.jsonl")).open()]
    assert [own["set"] for own in lines] == ["part of leaky"] * 18
    assert not list(out.glob("runs/*/checkpoints"))
    [log] = out.glob("runs/*Choice-only*/metrics.csv")
    assert "train/loss" in log.read_text()

    before = (out / "results.csv").read_bytes()
    assert cli.main(line) == 0
    assert capsys.readouterr().out.count(": complete\n") == 3
    assert (out / "results.csv").read_bytes() == before


def test_a_transformer_is_given_the_choices_alone(
    probe: tuple[Path, Path], curve_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Record] = []

    def untrained(
        run: RunFolder, direct: Direct, sample: Sequence[Record], held: Sequence[Record], _: object
    ) -> DirectlyTrained:
        assert direct.how == TRANSFORMER_FIT
        given.extend([*sample, *held])
        return DirectlyTrained(fresh_module(direct), 3, ())

    monkeypatch.setattr("probelight.protocols.engine.training.fit_directly", untrained)
    path = tmp_path / "tiny.yaml"
    path.write_text(f"model: {{name_or_path: {curve_model}, name: tiny}}\n")
    out = tmp_path / "audit"
    line = ["probes", "audit", str(probe[0]), f"--output_dir={out}", f"--baselines={path}"]
    assert cli.main([*line, "--trainer.accelerator=cpu", "--trainer.progress_bar=false"]) == 0
    assert {record.stem for record in given} == {""}
    assert len(given) == 42
    rows = [r for r in read_results(out / "results.csv") if r["metric"] == "accuracy"]
    [row] = [r for r in rows if r["model"] == "tiny"]
    assert (row["control"], row["role"], row["num_items"]) == ("choice_only", "baseline", "18")
    assert row["num_groups"] == "18"  # by the questions, which it did not see


UNEVEN = "--training.fit.patience=null --training.transformer.patience=1"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("SMALL --baselines=", "give --baselines"),
        ("SMALL --baselines=choice_onl", "did you mean 'choice_only'"),
        ("SMALL --baselines=mlm_baseline", "mlm_baseline"),
        (f"SMALL {UNEVEN}", "needs training.fit.patience"),
        ("SMALL,configs/probe/SMALL.yaml", "two probes are called 'hypernymy_small'"),
        ("hypernym", "did you mean 'hypernymy'"),
        ("FOLDER", "no train, dev or test file"),
    ],
)
def test_mistakes(options: str, words: str, tmp_path: Path, refused: Callable[..., str]) -> None:
    line = options.replace("FOLDER", str(tmp_path)).replace("SMALL", "hypernymy_small")
    assert words in refused(f"probes audit {line} --output_dir=never")


def test_an_output_folder_is_needed(refused: Callable[..., str]) -> None:
    assert "give --output_dir" in refused("probes audit hypernymy_small")
