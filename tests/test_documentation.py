from __future__ import annotations

import ast
import json
import math
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

from probelight import cli
from probelight.commands.imports import imports
from probelight.evaluation import rules
from probelight.lightning_modules.inoculation import Inoculation
from probelight.metrics.scoring_rules import RULES
from probelight.models.registry import MODEL_TYPES, ModelType
from probelight.probes import controls
from probelight.probes.catalog import load_probe_config
from probelight.probes.controls import Control, no_language, perturbed_language
from probelight.probes.importers.items import read_file, write_ai2
from probelight.probes.record import Record
from probelight.probes.source import load_file
from probelight.reports import sections
from probelight.reports.sections import Section
from probelight.reports.zero_shot import consistency
from probelight.results.predictions import prediction_lines, write_predictions
from probelight.results.run_folder import RunFolder
from tests.fixtures.causal import VOCAB_SIZE, causal_tokenizer
from tests.fixtures.checkout import ROOT
from tests.fixtures.rows import read_predictions, read_result, read_results
from tests.fixtures.snippets import (
    add_module,
    blocks,
    introduced,
    module_of,
    register,
    registered,
    registration,
    snippet,
)
from tests.lightning_modules.table import ROWS, Table, batch

# The seams of CONTRIBUTING.md.


def test_the_probe_of_contributing_loads_with_its_row(tmp_path: Path) -> None:
    path = tmp_path / "animal_size.yaml"
    path.write_text(snippet("configs/probe/animal_size.yaml"), encoding="utf-8")
    config = load_probe_config(path)
    data = tmp_path / "dev.jsonl"
    data.write_text(blocks("docs/own_probe.md", "json")[0], encoding="utf-8")
    (record,) = read_file(data, config.setup).records
    assert (record.gold, config.splits) == ("larger", ("train", "dev"))


def test_the_penalty_of_contributing_is_what_it_says() -> None:
    penalty = module_of("lightning_modules/logit_keeping.py").LogitKeeping(2.0)
    task = Table(ROWS)
    module = Inoculation(task, penalty=penalty)
    with torch.no_grad():
        task.rows[0] += torch.tensor([3.0, 0.0, 0.0])  # mean squared change 3
    loss, _ = module.training_loss(batch([0]), module(batch([0])))
    entropy = -torch.tensor([5.0, 0.0, 0.0]).log_softmax(0)[0]
    assert loss.item() == pytest.approx(entropy.item() + 2.0 * 3.0)


def test_the_control_of_contributing_is_trained_on_and_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = dict(vars(controls))
    exec(snippet("probelight/probes/controls.py"), names)
    reverse = names["reversed_words"]
    entry = {"Control": Control, "reversed_words": reverse}
    register(monkeypatch, controls.CONTROLS, "CONTROLS", "reversed_words", **entry)
    items = [
        Record(f"{n}", f"A {big} is [MASK] than a {small} .", ("larger", "smaller"), 0)
        for n, (big, small) in enumerate([("whale", "mouse"), ("horse", "cat"), ("cow", "bee")])
    ]
    write_ai2(tmp_path / "dev.jsonl", items)
    config = load_file(tmp_path / "dev.jsonl", "mc_mlm").config
    assert reverse(items[0], config, {}).stem == ". mouse a than [MASK] is whale A"
    swapped = [replace(record, choices=("smaller", "larger"), answer=1) for record in items]
    write_ai2(tmp_path / "train.jsonl", swapped)

    command = ["curve", f"--data.train={tmp_path}/train.jsonl", f"--data.dev={tmp_path}/dev.jsonl"]
    command += ["--data.setup=mc_mlm", "--models=dictionary-lm", "--grid.sizes=[2]"]
    command += ["--grid.seeds=[1]", "--grid.modes=[linear]", "--grid.epochs=1"]
    command += ["--grid.controls=[standard, reversed_words]", f"--output_dir={tmp_path / 'out'}"]
    assert cli.main(command) == 0
    rows = read_results(tmp_path / "out" / "results.csv")
    measured = {(r["control"], r["num_train"]) for r in rows if r["metric"] == "accuracy"}
    assert measured == {(c, n) for c in ("standard", "reversed_words") for n in ("0", "2")}


def edited(module: types.ModuleType, line: str, new: str) -> dict[str, Any]:
    """The names of a module with a new line below one that it has once."""
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    assert source.count(f"{line}\n") == 1, line
    source = source.replace(f"{line}\n", f"{line}\n{new}\n")
    names: dict[str, Any] = {"__name__": module.__name__}
    exec(compile(source, str(module.__file__), "exec"), names)
    return names


def test_the_scoring_rule_of_contributing_has_its_accuracy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_module("probelight/models/unigrams.py", monkeypatch)
    register(monkeypatch, MODEL_TYPES, "MODEL_TYPES", "unigrams", ModelType=ModelType)
    attribute = "probelight.evaluation.asking.RULES"
    monkeypatch.setattr(attribute, (*RULES, "mean_word"))
    monkeypatch.setattr(consistency, "ORDER", [*consistency.ORDER, "mean_word"])
    divisors = registration("divided_scores", '"mean_word": ')
    ours = edited(rules, "    sizes = {", f"        {divisors},")
    monkeypatch.setattr("probelight.commands.zero_shot.ByRule", ours["ByRule"])
    (tmp_path / "colours.txt").write_text("red red red blue blue\ngreen\n", encoding="utf-8")
    # Words are tokens: two of them are less likely than one, but by their mean red is likelier.
    items = [
        Record("blood", "Blood is [MASK] .", ("red red", "blue"), 0),
        Record("sea", "The sea is [MASK] .", ("blue", "red red"), 0),
        Record("grass", "Grass is [MASK] .", ("green", "black"), 0),
    ]
    write_ai2(tmp_path / "items.jsonl", items)
    typed = ["zero-shot", "--model.kind=unigrams", f"--model.name_or_path={tmp_path}/colours.txt"]
    typed += [f"--data.path={tmp_path}/items.jsonl", "--scoring=sum,mean_word"]
    assert cli.main([*typed, f"--output_dir={tmp_path / 'out'}"]) == 0
    rows = read_results(tmp_path / "out" / "results.csv")
    accuracies = {r["scoring"]: float(r["value"]) for r in rows if r["metric"] == "accuracy"}
    assert accuracies["mean_word"] == pytest.approx(2 / 3)  # blood, grass
    assert accuracies["sum"] == pytest.approx(2 / 3)  # sea, grass
    changed = {r["scoring"]: float(r["value"]) for r in rows if r["metric"] == "flipped_share"}
    assert changed == {"sum": pytest.approx(2 / 3), "mean_word": 0.0}  # the own score is a mean


def test_the_type_of_language_model_of_contributing_is_scored_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_module("probelight/models/unigrams.py", monkeypatch)
    register(monkeypatch, MODEL_TYPES, "MODEL_TYPES", "unigrams", ModelType=ModelType)
    # With one added to the count of each of the tokenizer's tokens: 4, 3, 2, and 1 of the others.
    (tmp_path / "colours.txt").write_text("red red red blue blue\ngreen\n", encoding="utf-8")
    records = [
        Record("wrong", "Grass is [MASK] .", ("red", "green"), 1),
        Record("right", "Snow is not [MASK] .", ("green", "blue"), 1),
        Record("tied", "Coal is [MASK] .", ("black", "white"), 0),
        # By the mean 4 against 3, by the sum 4 * 4 against 3 times all tokens.
        Record("means", "Blood is [MASK] .", ("red red", "blue"), 0),
    ]
    write_ai2(tmp_path / "asked.jsonl", records)
    command = ["zero-shot", "--model.kind=unigrams", f"--output_dir={tmp_path / 'out'}"]
    command += [f"--data.path={tmp_path}/asked.jsonl", "--data.setup=mc_mlm", "--scoring=sum"]
    assert cli.main([*command, f"--model.name_or_path={tmp_path}/colors.txt"]) == cli.FAILURE
    assert "colors.txt: no such file; give a text file" in capsys.readouterr().err
    command += [f"--model.name_or_path={tmp_path}/colours.txt"]
    assert cli.main(command) == 0
    rows = read_results(tmp_path / "out" / "results.csv")
    by_rule = {r["scoring"]: float(r["value"]) for r in rows if r["metric"] == "accuracy"}
    assert by_rule == {"": (0 + 1 + 1 / 2 + 1) / 4, "sum": (0 + 1 + 1 / 2 + 0) / 4}
    assert {(r["model"], r["kind"], r["mode"]) for r in rows} == {
        ("colours.txt", "unigrams", "unigrams")
    }
    [first, *_] = read_predictions(tmp_path / "out")
    num_tokens = 6 + len(AutoTokenizer.from_pretrained(ROOT / "assets" / "bookshelf-lm"))
    expected = [math.log(count / num_tokens) for count in (4, 2)]
    assert first["scores"] == pytest.approx(expected, abs=1e-6)
    source = read_result(tmp_path / "out")["source"]
    assert source.pop("tokenizer_sha256")
    assert source == {"loaded_from": f"{tmp_path}/colours.txt"}
    capsys.readouterr()
    assert cli.main(command) == 0
    assert "asked, colours.txt: complete" in capsys.readouterr().out


def test_the_command_of_contributing_runs_resumes_and_has_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_module("probelight/commands/length_bias.py", monkeypatch)
    add_module("probelight/reports/length_bias.py", monkeypatch)
    register(monkeypatch, cli.COMMANDS, "COMMANDS", "length-bias")
    monkeypatch.setitem(cli.SUMMARIES, "length-bias", cli.COMMANDS["length-bias"][1])
    section = eval(registration("SECTIONS", "Section("), {"Section": Section})
    monkeypatch.setattr(sections, "SECTIONS", (*sections.SECTIONS, section))

    with pytest.raises(SystemExit, match=r"^0$"):
        cli.main(["length-bias", "--help"])
    text = capsys.readouterr().out
    assert "Measures how often the longest choice of an item is right." in text
    assert "Names or files of probes, separated by commas." in text
    example = text.split("example:\n")[1].split("\n\n")[0].replace("\\\n", "").split()
    with pytest.raises(SystemExit, match=r"^0$"):
        cli.main([*example[1:], "--print_config"])
    capsys.readouterr()

    # The longest is right, wrong, right, and one of two; of the other file it is wrong.
    records = [
        Record("1", "Is it?", ("no", "certainly"), 1),
        Record("2", "What is it?", ("a cat", "dogs"), 1),
        Record("3", "How many?", ("one", "two", "three"), 2),
        Record("4", "Which?", ("ab", "cd"), 0),
    ]
    write_ai2(tmp_path / "asked.jsonl", records)
    write_ai2(tmp_path / "other.jsonl", [Record("1", "Why?", ("so", "because"), 0)])
    out = tmp_path / "out"
    command = ["length-bias", f"--probes={tmp_path}/asked.jsonl,{tmp_path}/other.jsonl"]
    command += [f"--output_dir={out}"]
    assert cli.main(command) == 0
    capsys.readouterr()
    rows = read_results(out / "results.csv")
    numbers = {(r["probe"], r["metric"]): float(r["value"]) for r in rows}
    assert numbers == pytest.approx(
        {
            ("asked", "accuracy"): (1 + 0 + 1 + 1 / 2) / 4,
            ("other", "accuracy"): 0.0,
        }
    )
    lines = read_predictions(out, "length-bias-asked-*")
    assert [line["correct"] for line in lines] == [1.0, 0.0, 1.0, 0.5]

    content = (out / "results.csv").read_bytes()
    [folder] = out.glob("runs/length-bias-other-*")
    shutil.rmtree(folder)
    assert cli.main(command) == 0
    text = capsys.readouterr().out
    assert "asked: complete" in text
    assert "other: complete" not in text
    assert cli.main(command) == 0
    assert "other: complete" in capsys.readouterr().out
    assert (out / "results.csv").read_bytes() == content
    assert cli.main([*command[:-1], "--probes=age_small", command[-1]]) == cli.USAGE_ERROR
    assert cli.main(["report", str(out)]) == 0
    assert "The longest choice" in (out / "report.html").read_text(encoding="utf-8")
    assert "62.5" in (out / "tables" / "length_bias.md").read_text(encoding="utf-8")


def test_the_format_of_contributing_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = add_module("probelight/results/importers/answer_log.py", monkeypatch)
    names = {"answer_log": reader}
    register(monkeypatch, imports.FORMATS, "FORMATS", "answer_log", **names)
    records = [
        Record("7", "Is a cat an animal?", ("yes", "no"), 0),
        Record("8", "Is an oak an animal?", ("yes", "no"), 1),
    ]
    write_ai2(tmp_path / "asked.jsonl", records)
    log = tmp_path / "log.jsonl"
    answers = [{"qid": 8, "answers": {"yes": -0.2, "no": -1.7}}]
    answers += [{"qid": 7, "answers": {"yes": -0.4, "no": -1.1}}]
    log.write_text("".join(f"{json.dumps(answer)}\n" for answer in answers), encoding="utf-8")
    command = ["import", "answer_log", str(log), "--model=gpt", "--data.setup=mc_qa"]
    command += [f"--data.path={tmp_path}/asked.jsonl", f"--output_dir={tmp_path / 'out'}"]
    assert cli.main(command) == 0
    lines = read_predictions(tmp_path / "out")
    assert [(line["id"], line["scores"]) for line in lines] == [
        ("7", [-0.4, -1.1]), ("8", [-0.2, -1.7])
    ]  # fmt: skip
    rows = read_results(tmp_path / "out" / "results.csv")
    assert [float(r["value"]) for r in rows if r["metric"] == "accuracy"] == [0.5]
    log.write_text('{"qid": 8}\n', encoding="utf-8")
    assert cli.main([*command[:-1], f"--output_dir={tmp_path / 'none'}"]) == cli.FAILURE
    assert f"{log}:1: give `qid`, and `answers`" in capsys.readouterr().err


def test_the_code_of_contributing_is_in_the_style_of_the_house(tmp_path: Path) -> None:
    """What is added to a file is checked in it, as it uses what is imported there."""
    num_files = 0
    for line, code in introduced():
        heading = re.fullmatch(r"(Add to )?`([\w/]+\.py)`:", line)
        if heading:
            num_files += 1
            path = tmp_path / heading[2]
            path.parent.mkdir(parents=True, exist_ok=True)
            existing = (ROOT / heading[2]).read_text("utf-8") + "\n\n" if heading[1] else ""
            path.write_text(existing + code, encoding="utf-8")
    assert num_files == 6
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for command in ("check", "format --check"):
        words = [sys.executable, "-m", "ruff", *command.split(), "--no-cache", "."]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


# Other documents.


@pytest.mark.thorough
def test_the_lines_of_python_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [block for block in blocks("docs/python.md", "python") if "Callback" not in block]
    assert len(lines) == 3  # a fourth takes too long
    for block in lines:
        exec(compile(block, "docs/python.md", "exec"), {})
    assert "Before any training" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.thorough
@pytest.mark.parametrize("trainer", ["Trainer(", "SFTTrainer(", "pl.Trainer("])
def test_a_training_loop_of_python_is_watched(
    trainer: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    [block] = [text for text in blocks("docs/python.md", "python") if f"\n{trainer}" in text]
    assert len([line for line in block.splitlines() if line.strip()]) <= 20
    models = {"bert-base-uncased": ROOT / "assets" / "dictionary-lm", "gpt2": tmp_path / "gpt2"}
    sizes = {"vocab_size": VOCAB_SIZE, "n_embd": 16, "n_layer": 1, "n_head": 2}
    GPT2LMHeadModel(GPT2Config(**sizes)).save_pretrained(tmp_path / "gpt2")
    causal_tokenizer("gpt2").save_pretrained(tmp_path / "gpt2")
    for name, folder in models.items():  # what the Hub would give
        block = block.replace(f'"{name}"', repr(str(folder)))
    names: dict[str, Any] = {}
    exec(compile(block, "docs/python.md", "exec"), names)
    watch = names["watch"]
    assert [look.step for look in watch.watch.looks] == [0, 8, 16]
    assert "could_see" in capsys.readouterr().out
    if trainer == "Trainer(":
        assert watch.best_checkpoint.is_dir()
    if trainer == "SFTTrainer(":
        assert [*watch.changes["is_original"]] == [False, False, True]
        assert "taxonomy_small" in (tmp_path / "sft.html").read_text(encoding="utf-8")


NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.thorough
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = shown_by(path, {})
    assert len(texts) >= 5
    assert any("<svg" in text for text in texts)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_twice_in_one_kernel(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    first, again = shown_by(path, names), shown_by(path, names)
    assert len(again) == len(first)
    if "watch" in names:
        assert again[-1] == first[-1]  # from the same weights and seed
        folders = {folder.name for folder in (tmp_path / "runs" / "sizes").iterdir()}
        assert folders == {"probes", "probes-2"}


def shown_by(path: Path, names: dict[str, object]) -> list[str]:
    """What a notebook shows below its cells, when they are run with the names of its kernel."""
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    assert all(not c["outputs"] and c["execution_count"] is None for c in cells)
    texts = []
    for cell in cells:
        *lines, last = ast.parse("".join(cell["source"])).body
        exec(compile(ast.Module(lines, []), path.name, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), path.name, "eval"), names)
            texts.append(next((f() for f in shows(value)), None) or repr(value))
        else:
            exec(compile(ast.Module([last], []), path.name, "exec"), names)
    return texts


def shows(value: object) -> list[Callable[[], str]]:
    names = ("_repr_html_", "_repr_svg_")
    return [getattr(value, name) for name in names if hasattr(value, name)]


FEW = [  # of the original task: what it is good at is not asked here
    "--original.train_items=16",
    "--original.selection_items=4",
    "--original.report_split=test",
    "--original.report_sets=[definitions_small]",
    "--original.report_items=4",
    "--original.epochs=1",
    "--probe.report_items=4",
    "--epochs=1",
]


@pytest.mark.thorough
def test_the_route_of_own_probe_is_one_that_can_be_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = blocks("docs/own_probe.md", "json")[0]
    for name in ("whales", "whales-dev"):
        (tmp_path / f"{name}.jsonl").write_text(row, encoding="utf-8")
    horses = row.replace("whale", "horse")
    (tmp_path / "whales-train.jsonl").write_text(horses, encoding="utf-8")
    (tmp_path / "agreement.jsonl").write_text(blocks("docs/own_probe.md", "json")[1])
    for split in ("train", "dev"):
        than = "than the one of" if split == "train" else "than"
        stems = {f"{split}{i}": f"which of the two is larger {than} {i}?" for i in range(100)}
        questions = [Record(key, stem, ("a whale", "a mouse"), 0) for key, stem in stems.items()]
        write_ai2(tmp_path / f"whale-questions-{split}.jsonl", questions)
    (tmp_path / "whales.yaml").write_text(blocks("docs/own_probe.md", "yaml")[0], encoding="utf-8")
    (tmp_path / "whales.csv").write_text(blocks("docs/own_probe.md", "csv")[0])
    config = load_probe_config(tmp_path / "whales.yaml")
    (record,) = read_file(tmp_path / "whales.jsonl", config.setup).records
    control = no_language(record, config, config.nonsense)
    assert (control.stem, control.choices, control.answer) == (
        "whale [MASK] mouse", ("blah", "ya"), record.answer
    )  # fmt: skip
    perturbed = perturbed_language(record, config, {"than": "woo"})
    assert perturbed.stem == "A whale is [MASK] woo a mouse."
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    scripts = blocks("docs/own_probe.md", "bash")
    commands = [script.replace("\\\n", "").split() for script in scripts]
    assert len(commands) == 8
    for python, script, *arguments in commands:
        assert (python, script) == ("python", "train.py")
        if "--mirror" in arguments:  # ~/probe-files is then the only place that has the file
            (tmp_path / "probe-files").mkdir()
            (tmp_path / "whales.jsonl").rename(tmp_path / "probe-files" / "whales.jsonl")
        small = FEW if arguments[0] == "inoculate" else []
        assert cli.main([*arguments, *small]) == 0, capsys.readouterr().err
        runs = "inoculate-*" if small else "*"  # next to the run of its original task
        prediction_files = list(Path(arguments[-1]).glob(f"runs/{runs}/predictions.jsonl"))
        # Heads of two modes at N = 0 and, of the one row that there is, N = 1; or three controls.
        is_controlled = "--controls" in arguments
        assert len(prediction_files) == (4 if arguments[0] == "curve" or is_controlled else 1)
        for path in prediction_files:
            rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
            ids = {row["id"] for row in rows}
            probe_ids = {i for i in ids if i.startswith("dev")} if small else ids
            expected_ids = {"agreement-0"} if "minimal_pair" in arguments else {"1"}
            expected_ids = {f"dev{i}" for i in range(100)} if is_controlled else expected_ids
            assert len(probe_ids) == 4 if small else probe_ids == expected_ids


@pytest.mark.thorough
def test_files_of_two_models_are_imported_and_compared_as_importing_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [row] = blocks("docs/importing.md", "json")
    for name in ("bert", "roberta"):
        (tmp_path / f"{name}.jsonl").write_text(row, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for line in blocks("docs/importing.md", "bash")[-1].splitlines():
        python, script, *arguments = line.split()
        assert (python, script) == ("python", "train.py")
        assert cli.main(arguments) == 0, capsys.readouterr().err
    rows = read_results(tmp_path / "runs/legs-compared/results.csv")
    assert [row["value"] for row in rows if row["metric"] == "difference"] == ["0.0"]


def test_the_loop_of_the_tutorial_shows_what_was_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    records = [Record(f"{n}", f"Q{n}?", ("no", "yes"), 1) for n in range(3)]
    scores = [[0.0, 1.0], [1.0, 0.0], [math.nan, 1.0]]
    run = RunFolder(tmp_path / "runs/dictionary-lm/runs", "zero-shot", {})
    write_predictions(run, prediction_lines("dev", records, scores))
    [loop] = blocks("docs/tutorial.md", "python")
    exec(loop, {})
    expected = f"{run.key} 2 of 3 wrong, for example\n    Q1?  no\n    Q2?  nothing\n"
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize("document", ["CONTRIBUTING.md", "docs/own_probe.md", "docs/offline.md"])
def test_yaml_and_json_blocks_parse(document: str) -> None:
    for text in blocks(document, "yaml"):
        assert isinstance(yaml.safe_load(text), dict)
    for text in blocks(document, "json"):
        keys = set(json.loads(text))
        assert {"id", "question", "answerKey"} <= keys or {"sentence_good", "sentence_bad"} <= keys


def test_every_config_and_command_named_in_the_documentation_exists() -> None:
    documents = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "\n".join(document.read_text(encoding="utf-8") for document in documents)
    configs = {*re.findall(r"configs/\w+/[\w-]+\.yaml", text)}
    assert configs
    assert [name for name in sorted(configs) if not (ROOT / name).is_file()] == []
    text += (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    commands = {*re.findall(r"train\.py ((?:sweep|probes) \w+|[a-z][a-z-]+)", text)}
    assert commands
    its_own = dict(registered("COMMANDS", "length-bias"))
    assert commands - {*cli.SUMMARIES, *its_own} == set()
