"""Items in other wordings, end to end and by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
import yaml

from probelight import cli
from probelight.io.errors import ConfigError, RecordError
from probelight.metrics.knowledge import knowledge_class
from probelight.probes.catalog import load_probe_config
from probelight.probes.controls import phrased
from probelight.probes.record import Record
from probelight.probes.source import load_probe
from tests.fixtures.rows import read_predictions, read_results

COMMAND = ["zero-shot", "--probes", "age_small", "--trainer.progress_bar", "false"]


@pytest.mark.thorough
def test_every_phrasing_is_the_probe_in_other_words(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [*COMMAND, "--phrasings", "all", "--output_dir", str(out)]
    assert cli.main(command) == 0
    lines = read_predictions(out, "zero-shot-*")
    rows = {
        (r["metric"], r["subset"]): float(r["value"]) for r in read_results(out / "results.csv")
    }
    of_someone = fmean(
        float(line["by_phrasing"]["someone"]["best"] == [line["answer"]]) for line in lines
    )
    assert rows["accuracy", "phrasing=someone"] == pytest.approx(of_someone)
    alike = []
    for line in lines:
        scores = [line["scores"], *(row["scores"] for row in line["by_phrasing"].values())]
        assert len(scores) == 3
        best = [row.index(max(row)) for row in scores]
        pairs = [best[0] == best[1], best[0] == best[2], best[1] == best[2]]
        alike.append(fmean(pairs))
        assert line["known"] == knowledge_class(scores, line["answer"])
    assert rows["consistency", ""] == pytest.approx(fmean(alike))
    shares = [rows["class_share", f"known={name}"] for name in ("HighlyKnown", "Unknown")]
    labels = [line["known"] for line in lines]
    assert shares == [labels.count("HighlyKnown") / 150, labels.count("Unknown") / 150]
    # The probe's own answers are those of a run without other wordings.
    assert cli.main([*COMMAND, "--output_dir", str(tmp_path / "alone")]) == 0
    alone = read_predictions(tmp_path / "alone", "zero-shot-*")
    assert [line["scores"] for line in alone] == [line["scores"] for line in lines]


@pytest.mark.parametrize("probe", ["age_small", "taxonomy_small", "hypernymy_small"])
def test_the_phrasings_of_shipped_probes_fit_all_items(probe: str) -> None:
    config = load_probe_config(probe)
    for split in config.splits:
        for record in load_probe(probe, split).records:
            for name in config.phrasings:
                reworded = phrased(record, config, name)
                assert reworded.choices == record.choices
                assert "{" not in reworded.stem.replace(record.stem, "")


def test_arguments_are_put_in_by_their_places() -> None:
    config = load_probe_config("age_small")
    stem = "A 21 year old person is [MASK] than me in age, If I am a 35 year old person."
    reworded = phrased(Record("1", stem, ("younger", "older"), 0), config, "compared")
    assert reworded.stem == ("Compared with a person of 35 years, a person of 21 years is [MASK].")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--phrasings", "somone"], "did you mean 'someone'"),
        (["--phrasings", "all,somone"], "did you mean 'someone'"),
        (["--probes", "antonym_small", "--phrasings", "all"], "has no `phrasings` in its config"),
    ],
)
def test_typos_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert cli.main([*COMMAND, *options, "--output_dir", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{1} is older", r"has 0 \[MASK\]"),
        ("[MASK] {first}", r"must contain the arguments as \{1\}, \{2\}"),
        ("[MASK] alone", r"must contain the arguments as \{1\}, \{2\}"),
    ],
)
def test_a_phrasing_is_checked_where_it_is_read(tmp_path: Path, text: str, message: str) -> None:
    config = {
        "setup": "mc_mlm", "num_choices": 2, "chance": 0.5, "files": {"dev": "dev.jsonl"},
        "arguments": r"(\d+) \[MASK\] (\d+)", "phrasings": {"other": text},
    }  # fmt: skip
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(config))
    with pytest.raises(ConfigError, match=message):
        load_probe_config(path)


@pytest.mark.parametrize("name", ["all", "one,two"])
def test_a_phrasing_has_a_name_that_can_be_chosen(tmp_path: Path, name: str) -> None:
    config = {
        "setup": "mc_mlm", "num_choices": 2, "chance": 0.5, "files": {"dev": "dev.jsonl"},
        "arguments": r"(\d+) \[MASK\] (\d+)", "phrasings": {name: "{1} [MASK] {2}"},
    }  # fmt: skip
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(config))
    with pytest.raises(ConfigError, match="cannot select this name; use one without"):
        load_probe_config(path)


def test_a_place_without_an_argument_is_named() -> None:
    config = load_probe_config("age_small")
    wrong = {**config.phrasings, "third": "{3} is [MASK]"}
    stem = "A 21 year old person is [MASK] than me in age, If I am a 35 year old person."

    with pytest.raises(RecordError, match=r"has \{3\}, but there are 2 arguments"):
        phrased(Record("1", stem, ("a", "b"), 0), replace(config, phrasings=wrong), "third")
