from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoTokenizer,
    BertForMaskedLM,
    BertTokenizer,
)

from probelight import cli
from probelight.metrics.intervals import wilson
from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record
from probelight.probes.source import load_probe
from probelight.results.load import load_results
from tests.fixtures.checkout import SMALL_DIR
from tests.fixtures.hub_cache import HubCache
from tests.fixtures.rows import read_predictions, read_result, read_results
from tests.fixtures.tiny import Refused

SMALL = ["--model.name_or_path", "dictionary-lm"]


def scores(path: Path, records: list[Record], setup: str = "mc_mlm") -> list[str]:
    """A file of items, and the command that scores it."""
    write_ai2(path, records)
    command = ["zero-shot", f"--data.path={path}", f"--data.setup={setup}"]
    return [*command, "--trainer.progress_bar=false", f"--output_dir={path.parent / 'out'}"]


def colours(path: Path, *choices: str) -> list[str]:
    """The same of four items."""
    items = [Record(str(i), "the grass is [MASK] .", choices, i % 2) for i in range(4)]
    return scores(path, items)


@pytest.mark.thorough
@pytest.mark.parametrize("ending", ["parquet", "xlsx"])
def test_a_table_of_pandas_is_scored_twice_from_the_command_line(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its content is hashed when the command starts, and again when it is scored."""
    frame = pd.DataFrame({"sentence": ["the grass is [MASK] ."], "A": "red", "B": "green"})
    path = tmp_path / f"grass.{ending}"
    getattr(frame.assign(gold="B"), {"xlsx": "to_excel"}.get(ending, "to_parquet"))(path)
    command = ["zero-shot", *SMALL, f"--data.path={path}", f"--output_dir={tmp_path / 'out'}"]
    assert cli.main(command) == 0
    [line] = read_predictions(tmp_path / "out")
    assert (line["choices"], line["answer"]) == (["red", "green"], 1)
    assert cli.main(command) == 0
    assert "complete" in capsys.readouterr().out


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("zero-shot") / "out"
    arguments = ["zero-shot", "--probes", "age_small,taxonomy_small", "--output_dir", str(folder)]
    assert cli.main([*arguments, *SMALL, "--trainer.progress_bar", "false"]) == 0
    return folder


def test_the_accuracy_is_that_of_the_full_model_at_the_mask(scored: Path) -> None:
    model = AutoModelForMaskedLM.from_pretrained(SMALL_DIR, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(SMALL_DIR)
    lines = read_predictions(scored, "zero-shot-taxonomy_small-*")
    records = load_probe("taxonomy_small", "dev").records
    assert len(lines) == len(records)
    for row, record in list(zip(lines, records, strict=True))[:40]:
        inputs = tokenizer(record.stem, return_tensors="pt")
        mask_position = (inputs["input_ids"][0] == tokenizer.mask_token_id).nonzero()[0, 0]
        with torch.no_grad():
            logits = model(**inputs).logits[0, mask_position]
        expected = logits[tokenizer.convert_tokens_to_ids(list(record.choices))]
        assert row["scores"] == pytest.approx(expected.tolist(), abs=1e-4)
        assert row["answer"] == record.answer
    [accuracy] = [
        float(row["value"])
        for row in read_results(scored / "results.csv")
        if (row["probe"], row["metric"], row["subset"]) == ("taxonomy_small", "accuracy", "")
    ]
    assert accuracy == pytest.approx(sum(row["correct"] for row in lines) / len(lines))


def test_intervals_go_by_groups(scored: Path) -> None:
    rows = [r for r in read_results(scored / "results.csv") if r["metric"] == "accuracy"]
    overall = {row["probe"]: row for row in rows if not row["subset"]}
    taxonomy = overall["taxonomy_small"]
    clusters = [str(r.meta["cluster"]) for r in load_probe("taxonomy_small", "dev").records]
    assert int(taxonomy["num_groups"]) == len(set(clusters)) == 11
    assert int(taxonomy["num_items"]) == len(clusters)
    # Independent items would say that it is above chance; eleven groups cannot tell.
    assert wilson(float(taxonomy["value"]) * len(clusters), len(clusters))[0] > 1 / 3
    assert float(taxonomy["ci_low"]) < 1 / 3 < float(taxonomy["value"])
    # It always says the same word, so every pair of ages has one of two right.
    ages = overall["age_small"]
    assert float(ages["value"]) == 0.5
    assert (float(ages["ci_low"]), float(ages["ci_high"])) == pytest.approx(
        wilson(75, 150), abs=0.01
    )
    subset_rows = [row for row in rows if row["subset"]]
    assert all(int(row["num_groups"]) <= int(row["num_items"]) for row in subset_rows)


def test_the_same_command_goes_on_and_another_is_refused(
    scored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["zero-shot", "--output_dir", str(scored), *SMALL]
    arguments += ["--trainer.progress_bar", "false"]
    assert cli.main([*arguments, "--probes", "age_small,taxonomy_small"]) == 0
    assert capsys.readouterr().out.count("complete") == 2
    assert cli.main([*arguments, "--probes", "age_small"]) == cli.USAGE_ERROR
    assert "taxonomy_small" in capsys.readouterr().err


@pytest.fixture(scope="module")
def constant_model(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that gives every word the same score, whatever it reads."""
    folder = tmp_path_factory.mktemp("models") / "constant"
    model = BertForMaskedLM.from_pretrained(tiny_model)
    model.get_input_embeddings().weight.data.zero_()  # the decoder's rows too, which are tied to it
    model.cls.predictions.bias.data.fill_(0.3)
    model.save_pretrained(folder)
    BertTokenizer.from_pretrained(tiny_model).save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("setup", "mode", "choices"),
    [
        ("mc_mlm", "zero_shot", ("red", "green", "blue")),
        # Of unlike length: a mean of equal log-probabilities is that log-probability.
        (
            "mc_qa",
            "pseudo_log_likelihood",
            ("red", "green blue white", "w1 w2 w3 w4 w5 w6 w7", "a grass snow coal sky"),
        ),
    ],
)
def test_a_constant_output_scores_chance_where_the_gold_is_always_first(
    setup: str, mode: str, choices: tuple[str, ...], tmp_path: Path, constant_model: Path
) -> None:
    stem = "the grass is [MASK] ." if setup == "mc_mlm" else "what colour is the grass"
    items = [Record(str(i), stem, choices, 0) for i in range(6)]
    command = scores(tmp_path / "my.jsonl", items, setup)
    assert cli.main([*command, f"--model.name_or_path={constant_model}"]) == 0
    rows = read_results(tmp_path / "out" / "results.csv")
    assert {row["mode"] for row in rows} == {mode}
    values = {row["metric"]: float(row["value"]) for row in rows}
    assert values["accuracy"] == values["macro_accuracy"] == pytest.approx(1 / len(choices))
    assert values["tied_share"] == 1.0
    [notice] = [n for n in read_result(tmp_path / "out")["notices"] if "ties" in n]
    assert notice.startswith("6 of 6 items")


GIVE = "give either --probes a,b,c or --data.path FILE"
MISTAKES = [
    ("--no_such_option=1", ""),
    ("", GIVE),
    ("--probes=age_small --data.path=a.jsonl --data.setup=mc_qa", GIVE),
    ("--data.path=a.csv --data.choices=big", "--data.choices big: give two or more"),
    (
        "--probes=age_small --data.choices=a,b",
        "--data.choices is about one file; give it as --data.path",
    ),
    ("--probes=age_small --models=dictionary-lm,mlm_baseline", "MLM-baseline"),
    (
        "--scoring=sum,mean_tokens",
        "no rule 'mean_tokens' (did you mean 'mean_token'?); choose from",
    ),
    ("--probes=age_small --models=dictionary-lm --model.name_or_path=x", "either --models a,b or"),
    ("--probes=age_small --trainer.accelerator=gpu", "--trainer.accelerator gpu"),
    ("--probes=age_small --trainer.accelerator=tpu", "--trainer.accelerator tpu"),
]


@pytest.mark.parametrize(("options", "message"), MISTAKES)
def test_mistaken_options_are_named(
    options: str, message: str, refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert message in refused(f"zero-shot --output_dir={tmp_path / 'out'} {options}")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("--data.setup=mc_mlm --data.path={}/none.jsonl", "none.jsonl"),
        ("--data.path={}/a.xlsx", "a.xlsx: not a whole Excel file"),
        ("--data.path={}/a.docx", "save it as .csv or .jsonl in UTF-8"),
        ("--data.path={}/a.parquet --data.setup=mc_qa", "a.parquet: not a whole Parquet file"),
        ("--probes=age_small --model.name_or_path={}/model", "model"),
        ("--probes=age_small --model.kind=causal", "bert (BertConfig) is a masked language model"),
    ],
)
def test_what_cannot_be_read_is_a_failure(
    options: str, named: str, refused: Refused, tmp_path: Path
) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{")
    for name in ("a.parquet", "a.xlsx", "a.docx"):
        (tmp_path / name).write_bytes(b"PAR1")
    command = f"zero-shot --output_dir={tmp_path / 'out'} {options.format(tmp_path)}"
    assert named in refused(command, cli.FAILURE)


def test_without_a_dev_file_the_test_file_is_scored(
    tiny_model: Path, tiny_probes: Path, tmp_path: Path
) -> None:
    command = ["zero-shot", "--probes", str(tiny_probes / "first.yaml")]
    command += ["--mirror", str(tiny_probes / "mirror"), "--trainer.progress_bar", "false"]
    command += ["--model.name_or_path", str(tiny_model), "--output_dir", str(tmp_path / "out")]
    assert cli.main(command) == 0
    rows = read_results(tmp_path / "out" / "results.csv")
    assert {row["split"] for row in rows} == {"test"}
    assert {row["num_items"] for row in rows if row["metric"] == "accuracy"} == {"22"}


def test_a_model_that_was_fine_tuned_elsewhere_answers_with_its_own_head(
    tiny_model: Path, tmp_path: Path, refused: Refused
) -> None:
    folder = tmp_path / "theirs"
    torch.manual_seed(5)
    theirs = AutoModelForMultipleChoice.from_config(AutoConfig.from_pretrained(tiny_model)).eval()
    theirs.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    tokenizer.save_pretrained(folder)
    stems = ["what colour is grass", "what colour is the snow ."]
    items = [Record(str(i), stem, ("red", "green"), 1) for i, stem in enumerate(stems)]
    command = scores(tmp_path / "my.jsonl", items, "mc_qa")
    command.append(f"--model.name_or_path={folder}")
    assert cli.main(command) == 0
    for line, stem in zip(read_predictions(tmp_path / "out"), stems, strict=True):
        pairs = tokenizer([stem] * 2, ["red", "green"], return_tensors="pt")
        with torch.no_grad():
            logits = theirs(**{name: value[None] for name, value in pairs.items()}).logits[0]
        assert line["scores"] == pytest.approx(logits.tolist(), abs=1e-6)
    rows = read_results(tmp_path / "out" / "results.csv")
    assert {row["mode"] for row in rows} == {"fine_tuned"}
    # Such a head knows nothing that another rule could go by, which is said before it is asked.
    line = refused([*command, "--scoring=sum", f"--output_dir={tmp_path / 'scoring'}"])
    assert "fine-tuned head, which has no log-likelihoods" in line
    assert not list((tmp_path / "scoring").glob("runs/*/result.json"))


def test_what_a_run_noticed_reaches_the_terminal_once(
    tmp_path: Path, tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stems = ["the zebra is [MASK] .", "zebra zebra [MASK] .", "the grass is [MASK] ."]
    items = [Record(str(i), stem, ("red", "green"), 0) for i, stem in enumerate(stems)]
    command = scores(tmp_path / "my.jsonl", items)
    assert cli.main([*command, f"--model.name_or_path={tiny_model}"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.count("2 of 3 sentences contain text that the tokenizer does not know") == 1


def test_several_models_are_scored_into_one_table(
    tmp_path: Path, tiny_model: Path, curve_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = colours(tmp_path / "my.jsonl", "red", "green")
    assert cli.main([*command, f"--models={tiny_model},{curve_model}"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("Accuracy before training") == 1
    assert tiny_model.name in printed
    assert curve_model.name in printed
    rows = read_results(tmp_path / "out" / "results.csv")
    table = {r["model"]: r["value"] for r in rows if (r["metric"], r["subset"]) == ("accuracy", "")}
    assert table == {tiny_model.name: "0.5", curve_model.name: "0.5"}
    assert len(list((tmp_path / "out" / "runs").glob("*/result.json"))) == 2
    # Alone it is the same run: what another one scored next to it makes no difference.
    alone = [*command, f"--output_dir={tmp_path / 'alone'}", f"--model.name_or_path={curve_model}"]
    assert cli.main(alone) == 0
    [lines_path] = (tmp_path / "alone" / "runs").glob("*/predictions.jsonl")
    same = tmp_path / "out" / "runs" / lines_path.parent.name / lines_path.name
    assert same.read_bytes() == lines_path.read_bytes()


def test_revisions_of_a_model_are_distinguished_and_have_a_table_by_step(
    tmp_path: Path,
    tiny_model: Path,
    curve_model: Path,
    hub_cache: HubCache,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hub_cache("org/name", {"step1": tiny_model, "step2k": curve_model, "main": curve_model})
    command = colours(tmp_path / "my.jsonl", "red", "green")
    assert cli.main([*command, "--models=org/name@step1,org/name@step2k,org/name"]) == 0
    assert "by training step" in capsys.readouterr().out
    runs = load_results(tmp_path / "out").runs
    assert {run.source.hub_id for run in runs} == {"org/name"}
    sums = {run.model: run.model_sha256 for run in runs}
    assert len({sums["name@step1"], sums["name@step2k"], sums["name"]}) == 2  # main is step2k
    assert cli.main([*command, "--models=org/name@step3"]) == cli.FAILURE
    assert "there is no folder 'org/name@step3', and the Hub" in capsys.readouterr().err


@pytest.mark.parametrize("fault", ["vocabulary", "folder"])
def test_every_model_is_checked_before_the_first_is_scored(
    fault: str,
    tmp_path: Path,
    tiny_model: Path,
    curve_model: Path,
    refused: Refused,
) -> None:
    command = colours(tmp_path / "my.jsonl", "foo", "red")  # "foo" is a word of the first one
    second = tiny_model if fault == "vocabulary" else tmp_path / "nowhere"
    error = refused([*command, f"--models={curve_model},{second}"], cli.FAILURE)
    if fault == "vocabulary":
        assert f"{tiny_model.name}: {tmp_path / 'my.jsonl'}:1: the candidate 'foo' is not" in error
    else:
        assert str(second) in error
    assert not list((tmp_path / "out").rglob("result.json"))
