from __future__ import annotations

import ast
import json
import math
import re
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from transformers import GPT2Config, GPT2LMHeadModel

from probelight.lightning_modules.inoculation import Inoculation
from probelight.probes.catalog import load_probe_config
from probelight.probes.controls import no_language, perturbed_language
from probelight.probes.importers.items import read_ai2, write_ai2
from probelight.probes.record import Record
from probelight.protocols import cli
from probelight.results.predictions import prediction_lines, write_predictions
from probelight.results.run_folder import RunFolder
from tests.fixtures.causal import VOCAB_SIZE, causal_tokenizer
from tests.fixtures.checkout import ROOT
from tests.fixtures.rows import read_results
from tests.lightning_modules.table import ROWS, Table, batch


def blocks(document: str, language: str) -> list[str]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def snippet(file_name: str) -> str:
    """The code block of CONTRIBUTING.md that is introduced as the file `file_name`."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.search(rf"^`{re.escape(file_name)}`:\n\n```\w+\n(.*?)^```$", text, re.M | re.S)
    assert found, file_name
    return found[1]


def module_of(file_name: str) -> types.ModuleType:
    module = types.ModuleType(Path(file_name).stem)
    exec(compile(snippet(file_name), file_name, "exec"), module.__dict__)
    return module


def test_the_probe_of_contributing_loads_with_its_row_and_controls(tmp_path: Path) -> None:
    path = tmp_path / "animal_size.yaml"
    path.write_text(snippet("configs/probe/animal_size.yaml"), encoding="utf-8")
    config = load_probe_config(path)
    data = tmp_path / "dev.jsonl"
    data.write_text(blocks("CONTRIBUTING.md", "json")[0], encoding="utf-8")
    (record,) = read_ai2(data, config.setup).records
    assert (record.gold, config.splits) == ("larger", ("train", "dev"))

    control = no_language(record, config, config.nonsense)
    assert control.stem == "whale [MASK] mouse"
    assert control.choices == ("blah", "ya")
    assert control.answer == record.answer
    perturbed = perturbed_language(record, config, {"than": "woo"})
    assert perturbed.stem == "A whale is [MASK] woo a mouse."


def test_the_penalty_of_contributing_is_what_it_says() -> None:
    penalty = module_of("lightning_modules/logit_keeping.py").LogitKeeping(2.0)
    task = Table(ROWS)
    module = Inoculation(task, penalty=penalty)
    with torch.no_grad():
        task.rows[0] += torch.tensor([3.0, 0.0, 0.0])  # mean squared change 3
    loss, _ = module.training_loss(batch([0]), module(batch([0])))
    entropy = -torch.tensor([5.0, 0.0, 0.0]).log_softmax(0)[0]
    assert loss.item() == pytest.approx(entropy.item() + 2.0 * 3.0)


def test_the_lines_of_python_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [block for block in blocks("docs/python.md", "python") if "Callback" not in block]
    assert len(lines) == 3  # a fourth takes too long
    for block in lines:
        exec(compile(block, "docs/python.md", "exec"), {})
    assert "Before any training" in (tmp_path / "page.html").read_text(encoding="utf-8")


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
        assert [*watch.changes["is_original"]] == [False, True]
        assert "taxonomy_small" in (tmp_path / "sft.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem
)
def test_a_notebook_runs_from_top_to_bottom(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    assert all(not c["outputs"] and c["execution_count"] is None for c in cells)
    names: dict[str, object] = {}
    shown = []
    for cell in cells:
        *lines, last = ast.parse("".join(cell["source"])).body
        exec(compile(ast.Module(lines, []), path.name, "exec"), names)
        if isinstance(last, ast.Expr):  # what a notebook shows below its cell
            value = eval(compile(ast.Expression(last.value), path.name, "eval"), names)
            shown.append(next((f() for f in shows(value)), None) or repr(value))
        else:
            exec(compile(ast.Module([last], []), path.name, "exec"), names)
    assert len(shown) >= 5
    assert any("<svg" in text for text in shown)


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


def test_the_route_of_own_probe_is_one_that_can_be_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = blocks("docs/own_probe.md", "json")[0]
    for name in ("whales", "whales-train", "whales-dev"):
        (tmp_path / f"{name}.jsonl").write_text(row, encoding="utf-8")
    (tmp_path / "agreement.jsonl").write_text(blocks("docs/own_probe.md", "json")[1])
    for split in ("train", "dev"):
        stems = {f"{split}{i}": f"which of the two is larger than {i}?" for i in range(100)}
        asked = [Record(key, stem, ("a whale", "a mouse"), 0) for key, stem in stems.items()]
        write_ai2(tmp_path / f"whale-questions-{split}.jsonl", asked)
    (tmp_path / "whales.yaml").write_text(blocks("docs/own_probe.md", "yaml")[0], encoding="utf-8")
    (tmp_path / "whales.csv").write_text(blocks("docs/own_probe.md", "csv")[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    scripts = blocks("docs/own_probe.md", "bash")
    commands = [script.replace("\\\n", "").split() for script in scripts]
    assert len(commands) == 7
    for python, script, *arguments in commands:
        assert (python, script) == ("python", "train.py")
        if "--mirror" in arguments:  # ~/probe-files is then the only place that has the file
            (tmp_path / "probe-files").mkdir()
            (tmp_path / "whales.jsonl").rename(tmp_path / "probe-files" / "whales.jsonl")
        small = FEW if arguments[0] == "inoculate" else []
        assert cli.main([*arguments, *small]) == 0, capsys.readouterr().err
        runs = "inoculate-*" if small else "*"  # next to the run of its original task
        said = list(Path(arguments[-1]).glob(f"runs/{runs}/predictions.jsonl"))
        # Heads of two modes at N = 0 and, of the one row that there is, N = 1.
        assert len(said) == (4 if arguments[0] == "curve" else 1)
        for path in said:
            rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
            ids = {row["id"] for row in rows}
            own = {i for i in ids if i.startswith("dev")} if small else ids
            known = {"agreement-0"} if "minimal_pair" in arguments else {"1"}
            assert len(own) == 4 if small else own == known


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
    run = RunFolder(tmp_path / "runs/bert/runs", "zero-shot", {})
    write_predictions(run, prediction_lines("dev", records, scores))
    [loop] = blocks("docs/tutorial.md", "python")
    exec(loop, {})
    said = f"{run.key} 2 of 3 wrong, for example\n    Q1?  no\n    Q2?  nothing\n"
    assert capsys.readouterr().out == said


def test_the_metric_of_contributing_over_two_batches_with_padding() -> None:
    metric = module_of("probelight/metrics/reciprocal_rank.py").MeanReciprocalRank()
    # Gold ranks 1 and 3, then 2 and a padding item that would have rank 1.
    metric.update(
        torch.tensor([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]]), torch.tensor([0, 1]), torch.ones(2)
    )
    metric.update(
        torch.tensor([[3.0, -torch.inf, 2.0], [3.0, 1.0, 2.0]]),
        torch.tensor([2, 0]),
        torch.tensor([1.0, 0.0]),
    )
    assert float(metric.compute()) == pytest.approx((1 + 1 / 3 + 1 / 2) / 3)


def test_the_model_of_contributing_scores_its_choices(tmp_path: Path) -> None:
    from transformers import BertTokenizer

    words = "[PAD] [UNK] [CLS] [SEP] [MASK] a whale is than mouse . larger smaller".split()
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    BertTokenizer(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path / "model")
    data = tmp_path / "dev.jsonl"
    data.write_text(blocks("CONTRIBUTING.md", "json")[0], encoding="utf-8")
    records = read_ai2(data, "mc_mlm").records

    module = module_of("lightning_modules/bag_of_vectors.py").BagOfVectors(
        str(tmp_path / "model"), size=2
    )
    encoded = module.encoder().encode(records)
    logits = module(encoded.collate([0]))

    sentence = "[CLS] a whale is [MASK] than a mouse . [SEP]".split()
    mean = module.words.weight[[words.index(word) for word in sentence]].mean(dim=0)
    both = module.candidates.weight[[words.index("larger"), words.index("smaller")]]
    torch.testing.assert_close(logits, (both @ mean)[None])


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
    assert commands - {*cli.SUMMARIES} == set()
