"""The commands as functions of `import probelight`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, BertForMultipleChoice

import probelight
from probelight.integrations.transformers import ProbeTrainerCallback
from probelight.integrations.watch import Watch
from probelight.io.errors import ConfigError, ProbelightError, UsageError, in_python_words
from probelight.models.adapters import attach_fresh
from probelight.models.tuning import Tuning
from tests.fixtures.architectures import ref_of
from tests.fixtures.checkout import ROOT
from tests.fixtures.diagnostics import write_released

WHALES: list[dict[str, Any]] = [
    {"sentence": f"A {big} is [MASK] than a mouse.", "choices": ["larger", "smaller"], "answer": 0}
    for big in ("whale", "house", "horse", "ship")
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> probelight.Results:
    folder = tmp_path_factory.mktemp("results")
    return probelight.zero_shot("dictionary-lm", ["age_small:dev", WHALES], output_dir=folder)


def test_frames_have_the_number_and_every_item(results: probelight.Results) -> None:
    accuracies = results.frame.query("metric == 'accuracy'").set_index("probe")["value"]
    assert [*accuracies.index] == ["age_small", "items"]
    for probe, rows in results.items.groupby("probe"):
        right = [max(s) == s[a] for s, a in zip(rows["scores"], rows["answer"], strict=True)]
        assert accuracies[probe] == pytest.approx(sum(right) / len(right))
    assert results.items["item"].is_unique
    assert len(results.items) == 154


def test_items_of_two_runs_merge(results: probelight.Results) -> None:
    repeat = probelight.zero_shot({"name_or_path": "dictionary-lm", "name": "again"}, "age_small")
    merged = results.items.merge(repeat.items, on="item")
    assert len(merged) == 150
    assert (merged["question_x"] == merged["question_y"]).all()
    assert [*merged["scores_x"]] == [*merged["scores_y"]]


def test_a_notebook_shows_tables_and_a_figure_and_a_terminal_tables(
    results: probelight.Results,
) -> None:
    page = results._repr_html_()
    assert page.count("<table") == len(results.tables) >= 1
    assert "age_small" in page
    assert "<svg" in page
    assert "age_small dev" in repr(results)
    assert repr(results).endswith(f"results: {results.folder}")
    assert results.figure("before").svg.startswith("<?xml")
    with pytest.raises(UsageError, match=r"no figure 'befor' .did you mean 'before'"):
        results.figure("befor")


@pytest.mark.thorough
def test_the_page_goes_where_it_is_wanted(results: probelight.Results, tmp_path: Path) -> None:
    page = results.report(tmp_path / "pages" / "page.html")
    assert page == tmp_path / "pages" / "page.html"
    assert "items" in page.read_text()
    again = probelight.load(results.folder)
    assert len(again.frame) == len(results.frame)


def test_nothing_is_printed_and_a_finished_run_is_not_made_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    probelight.zero_shot("dictionary-lm", WHALES, output_dir=tmp_path)
    assert capfd.readouterr().out == ""
    [path] = tmp_path.glob("runs/*/result.json")
    written_at = path.stat().st_mtime_ns
    probelight.zero_shot("dictionary-lm", WHALES, output_dir=tmp_path)
    assert path.stat().st_mtime_ns == written_at


@pytest.mark.thorough
def test_a_notebook_prints_nothing_either(
    results: probelight.Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    displayed: list[object] = []
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda *texts: displayed.extend(texts))
    probelight.zero_shot("dictionary-lm", WHALES)
    probelight.inoculate("bookshelf-qa", "hypernymy_small", dose=20, dry_run=True)
    assert "100.0" in repr(results)
    assert displayed == []


@pytest.mark.thorough
def test_what_is_said_of_golds_in_memory_counts_and_is_a_part_of_the_run() -> None:
    sums = {"question": "1+2?", "choices": ["1", "2", "3", "4"], "answer": 3}
    with pytest.raises(
        ProbelightError, match=r"items:1: the gold '3' can be .*data={.gold.: .text.}"
    ):
        probelight.zero_shot("dictionary-lm", [sums])
    by_form = {
        form: probelight.zero_shot("dictionary-lm", data={"path": [sums], "gold": form})
        for form in ("text", "index")
    }
    assert [results.items["answer"].item() for results in by_form.values()] == [2, 3]
    assert len({results.items["run"].item() for results in by_form.values()}) == 2
    assert probelight.load_probe([sums], gold="index1").records[0].gold == "3"
    with pytest.raises(ValueError, match="'number': it must be one of text, letter, index, index1"):
        probelight.load_probe([sums], gold="number")  # type: ignore[arg-type]


def test_a_temporary_folder_goes_with_its_results() -> None:
    results = probelight.zero_shot("dictionary-lm", WHALES)
    folder = results.folder
    assert folder.is_dir()
    del results
    assert not folder.exists()


@pytest.mark.parametrize(
    ("arguments", "options", "kind", "message"),
    [
        (("dictionary-lm", "age_smal"), {}, ConfigError, "did you mean 'age_small'"),
        (("dictionary-lm", 3), {}, UsageError, "probes: 3 is not a name, a file or a list"),
        (("dictionary-lm", [3]), {}, UsageError, "probes: int is not a name"),
        (([("a", "b")], "age_small"), {}, UsageError, "models: give names or folders"),
        (
            ("dictionary-lm", {"train": []}),
            {},
            ProbelightError,
            "dict is not a name, a file or a list",
        ),
        (("dictionary-lm", []), {}, UsageError, "probes: give a name, a file of items"),
        (("dictionary-lm", WHALES), {"output_dir": __file__}, UsageError, "Not a directory"),
        ((3, "age_small"), {}, UsageError, "one model in memory with its tokenizer"),
        (("nothing/there/at/all", "age_small"), {}, ProbelightError, "no folder nothing"),
        (
            ("dictionary-lm", "age_small"),
            *(
                {"trainer": {"accelerater": "cpu"}},
                UsageError,
                "trainer: .accelerater. is not a known key",
            ),
        ),
        (("dictionary-lm", "age_small"), {"scoring": ["summ"]}, UsageError, "no rule 'summ'"),
        (("dictionary-lm", "age_small"), {"split": "tets"}, ConfigError, "did you mean 'test'"),
        (
            ({"name_or_pth": "x"}, "age_small"),
            {},
            UsageError,
            "model: .name_or_pth. is not a known key",
        ),
    ],
)
def test_mistakes_are_the_commands_own_messages(
    arguments: tuple[Any, Any], options: Any, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        probelight.zero_shot(*arguments, **options)
    assert isinstance(caught.value, ProbelightError)


def test_a_folder_without_results_is_missing(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(ProbelightError) as caught:
            probelight.load(folder)
        assert isinstance(caught.value, FileNotFoundError)


def test_a_curve_of_ones_own_items(tmp_path: Path) -> None:
    train = [{**item, "sentence": f"{n}. {item['sentence']}"} for n in range(16) for item in WHALES]
    grid = {"sizes": [32], "seeds": [1], "modes": ["linear"], "controls": ["standard"], "epochs": 1}
    data = {"train": train, "dev": WHALES, "name": "whales"}
    results = probelight.curve("dictionary-lm", data=data, grid=grid, output_dir=tmp_path)
    assert {*results.frame["probe"]} == {"whales"}
    assert {*results.frame.query("metric == 'accuracy'")["num_train"]} == {0, 32}


@pytest.mark.thorough
def test_a_multiple_choice_model_is_inoculated_as_it_is(tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(ROOT / "assets" / "dictionary-lm")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=len(tokenizer), intermediate_size=16, **sizes)
    BertForMultipleChoice(config).save_pretrained(tmp_path / "qa")
    tokenizer.save_pretrained(tmp_path / "qa")
    sets = {"sets": ["definitions_small"], "report_sets": ["definitions_small"]}
    original = {"name": "definitions", **sets, "report_items": 20, "selection_items": 20}
    probe = {"name": "hypernymy_small", "report_items": 20, "selection_items": 20}
    results = probelight.inoculate(
        str(tmp_path / "qa"), probe, original, dose=8, epochs=1, output_dir=tmp_path / "out"
    )
    [cost] = results.frame.query("metric == 'inoculation_cost'")["value"]
    # Items of the original task are those of its own data, not of the probe.
    of_task = results.items[results.items["set"].str.contains("original")]["item"]
    assert {name.partition(":")[0] for name in of_task} == {"definitions"}
    sides = {
        name: rows["correct"].mean()
        for name, rows in results.items.groupby("set")
        if name.startswith("report_original")
    }
    expected = sides["report_original_before"] - sides["report_original"]
    assert cost == pytest.approx(expected, abs=1e-9)
    assert {*results.frame["dose"].dropna()} == {8}


@pytest.mark.thorough
def test_results_are_compared(results: probelight.Results, tmp_path: Path) -> None:
    untrained = probelight.zero_shot(
        {"name_or_path": "dictionary-lm", "random_weights": True}, "age_small:dev"
    )
    comparison = probelight.compare(results, untrained, output_dir=tmp_path)
    assert "dictionary-lm (random weights)" in repr(comparison)


def test_the_package_is_imported_in_no_time_and_says_its_names() -> None:
    code = (
        "import sys, probelight\n"
        "heavy = {'torch', 'pandas', 'transformers', 'pytorch_lightning', 'numpy'}\n"
        "assert not heavy & {*sys.modules}, heavy & {*sys.modules}\n"
        "assert {*probelight.__all__} <= {*dir(probelight)}\n"
        "assert all(getattr(probelight, name) for name in probelight.__all__)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
    with pytest.raises(AttributeError, match="no attribute 'zeroshot'"):
        _ = probelight.zeroshot  # type: ignore[attr-defined]


@pytest.mark.thorough
def test_a_dry_run_trains_nothing_and_says_what_it_would_take(tmp_path: Path) -> None:
    grid = {"sizes": [62, 125], "seeds": [1, 2], "controls": ["standard"], "modes": ["linear"]}
    plan = probelight.curve(
        "dictionary-lm", "age_small", grid=grid, dry_run=True, output_dir=tmp_path / "out"
    )
    assert isinstance(plan, probelight.Plan)
    # N = 0, 62 and 125; both seeds are trained together.
    assert (plan.num_runs, plan.num_done, plan.num_steps) == (3, 0, 0)
    # 1,500 sentences to train on and 150 to measure, each of other ages.
    assert plan.num_texts == 1650
    assert plan.lines[2].startswith("time: 1,650 texts read by frozen models, ")
    assert repr(plan) == "\n".join(plan.lines)
    options: dict[str, Any] = {"dose": 20, "epochs": 3, "dry_run": True}
    with pytest.raises(ProbelightError, match=r"bookshelf-qa was trained on \d+ of the 5400 items"):
        probelight.inoculate("bookshelf-qa", "hypernymy_small", "definitions_large", **options)
    tuned = probelight.inoculate("bookshelf-qa", "hypernymy_small", **options)
    # A dose of 20 is two batches in each of three epochs.
    assert isinstance(tuned, probelight.Plan)
    assert (tuned.num_runs, tuned.num_steps) == (1, 6)
    assert tuned.detectable is not None
    assert tuned.detectable.row_count == 4  # two sets, to select by and to report
    assert not (tmp_path / "out").exists()


@pytest.mark.thorough
def test_the_same_folder_scores_a_model_in_memory_anew_when_its_weights_change(
    tmp_path: Path,
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(ROOT / "assets" / "dictionary-lm")
    network = BertForMaskedLM.from_pretrained(
        ROOT / "assets" / "dictionary-lm", dtype=torch.float32
    )
    first = probelight.zero_shot((network, tokenizer), WHALES, output_dir=tmp_path / "one").items
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(0.9)
    with pytest.raises(ProbelightError, match="name_or_path"):  # a folder is of one command
        probelight.zero_shot((network, tokenizer), WHALES, output_dir=tmp_path / "one")
    again = probelight.load(tmp_path / "one").items
    assert [*again["scores"]] == [*first["scores"]]
    second = probelight.zero_shot((network, tokenizer), WHALES, output_dir=tmp_path / "two").items
    assert [*second["scores"]] != [*first["scores"]]
    assert [*second["item"]] == [*first["item"]]


@pytest.mark.thorough
@pytest.mark.parametrize("attach", ["get_peft_model", "add_adapter", "attach_fresh"])
def test_an_adapter_on_a_base_that_was_changed_in_memory_is_not_scored_on_another(
    attach: str, tmp_path: Path
) -> None:
    folder = str(ROOT / "assets" / "dictionary-lm")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network: Any = BertForMaskedLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(0.9)
    expected = probelight.score(network, WHALES, tokenizer=tokenizer).items["scores"]
    config = peft.LoraConfig(r=2)  # as it is drawn, it changes nothing
    model = network
    if attach == "get_peft_model":
        model = peft.get_peft_model(network, config)
    elif attach == "add_adapter":
        network.add_adapter(config)
    else:
        attach_fresh(network, Tuning("lora"), ref_of(folder))
    calls: list[Callable[[], Any]] = [
        lambda: probelight.curve((model, tokenizer), "age_small", dry_run=True),
        lambda: probelight.inoculate((model, tokenizer), "hypernymy_small", "definitions_small"),
    ]
    for call in calls:
        with pytest.raises(UsageError, match=r"has an adapter, .*score it with probelight\.score"):
            call()
    # As it advises: by the model itself, where peft was told no task.
    scored = probelight.score(network, WHALES, tokenizer=tokenizer).items["scores"]
    in_memory = probelight.zero_shot((network, tokenizer), WHALES, output_dir=tmp_path).items
    for scores, same, reference in zip(scored, in_memory["scores"], expected, strict=True):
        assert scores == pytest.approx(reference, abs=1e-5)
        assert same == scores


@pytest.mark.thorough
def test_a_model_in_memory_is_scored_where_it_is(tmp_path: Path) -> None:
    """No copy of it is written, it is left as it was, and the numbers are those of its folder."""
    folder = ROOT / "assets" / "dictionary-lm"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = BertForMaskedLM.from_pretrained(folder, dtype=torch.float32).train()
    network.bert.embeddings.requires_grad_(False)
    options: dict[str, Any] = {"scoring": ["mean_token"], "ranks": True}
    scored = probelight.zero_shot((network, tokenizer), "age_small", output_dir=tmp_path, **options)
    expected = probelight.zero_shot("dictionary-lm", "age_small", **options)
    assert scored.frame["value"].tolist() == expected.frame["value"].tolist()
    assert not [*tmp_path.rglob("*.safetensors")]
    assert network.training
    assert not network.bert.embeddings.word_embeddings.weight.requires_grad
    assert network.bert.encoder.layer[0].output.dense.weight.requires_grad
    [result] = tmp_path.glob("runs/*/result.json")
    source = json.loads(result.read_text())["source"]
    assert source["loaded_from"].startswith("memory:")
    assert source.get("hub_id") is None
    again = probelight.zero_shot((network, tokenizer), "age_small", output_dir=tmp_path, **options)
    assert again.frame["value"].tolist() == scored.frame["value"].tolist()
    with pytest.raises(UsageError, match="cannot see a model in memory"):
        probelight.zero_shot((network, tokenizer), "age_small", engine={"kind": "ray"})


@pytest.mark.thorough
def test_a_page_is_not_put_in_place_of_a_folder(
    results: probelight.Results, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="is a folder; give a file"):
        results.report(tmp_path)
    page = results.report()
    assert results.report(page) == page


@pytest.mark.parametrize("models", [[], (), {}, {"name": "base"}, {"kind": "causal"}])
def test_the_default_model_does_not_stand_for_one_that_was_not_given(models: Any) -> None:
    for call in (probelight.zero_shot, probelight.curve):
        with pytest.raises(UsageError, match=r"give names or folders|name_or_path is missing"):
            call(models, "age_small")
    with pytest.raises(UsageError, match=r"give names or folders|name_or_path is missing"):
        probelight.inoculate(models, "hypernymy_small", "definitions_small")
    with pytest.raises(UsageError, match="two or more results"):
        probelight.compare()


@pytest.mark.thorough
@pytest.mark.parametrize("path", ["", " ", False, ["runs"]])
def test_an_empty_path_is_not_the_current_folder(
    results: probelight.Results, path: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    calls: list[Callable[[], Any]] = [
        lambda: probelight.load(path),
        lambda: results.report(path),
        lambda: probelight.zero_shot("dictionary-lm", WHALES, output_dir=path),
        lambda: probelight.curve("dictionary-lm", data={"train": path, "dev": WHALES}),
        lambda: probelight.compare(results, path),
        lambda: probelight.compare(results, results, output_dir=path),
        lambda: probelight.forgetting(results, path),
        lambda: probelight.forgetting("40,10,6,44", num_choices=2, output_dir=path),
        lambda: Watch(["age_small"], output_dir=path),
        lambda: ProbeTrainerCallback(["age_small"], output_dir=path),
    ]
    for call in calls:
        with pytest.raises(UsageError, match=r"give a path \(\. is the current folder\)"):
            call()
    assert not [*tmp_path.iterdir()]


@pytest.mark.thorough
def test_one_rule_or_phrasing_may_be_given_as_a_text(tmp_path: Path) -> None:
    options: dict[str, Any] = {"scoring": "pmi", "phrasings": "all"}
    results = probelight.zero_shot("dictionary-lm", "age_small", **options)
    listed = {name: [text] for name, text in options.items()}
    again = probelight.zero_shot("dictionary-lm", "age_small", **listed)
    assert results.frame["value"].tolist() == again.frame["value"].tolist()
    assert len(results.frame) > len(probelight.zero_shot("dictionary-lm", "age_small").frame)
    for scoring in ({"pmi"}, {"pmi": 1}, 3, " "):
        with pytest.raises(ProbelightError, match=r"give (a list of names|at least one name)"):
            probelight.zero_shot("dictionary-lm", "age_small", scoring=scoring)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("age_small",), {"setup": "mc_qa"}, "setup= is only for items without a config"),
        ((WHALES, "test"), {}, "split= is only for probes with a config"),
        (("age_small", ""), {}, "no split ''"),
        (("age_small:",), {}, "no split ''"),
    ],
)
def test_an_argument_that_would_be_left_out_is_refused(
    arguments: Any, options: Any, message: str
) -> None:
    with pytest.raises(ProbelightError, match=message):
        probelight.load_probe(*arguments, **options)


def test_settings_of_another_type_are_refused() -> None:
    for name in ("trainer", "prompt", "letters"):
        with pytest.raises(ProbelightError, match=f"{name} '?cpu'?: give .*Settings or a mapping"):
            probelight.zero_shot("dictionary-lm", WHALES, **{name: "cpu"})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="data: give the files by split"):
        probelight.curve("dictionary-lm", data=WHALES)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="tokenizer= is for a model in memory"):
        probelight.load_model("dictionary-lm", "a tokenizer")


@pytest.mark.thorough
def test_every_command_that_measures_is_a_function(tmp_path: Path) -> None:
    """Each has what its command writes into the folder; the numbers are of items made by hand."""
    sentences = [
        {**item, "choices": ["larger", "smaller", "older"], "id": str(number)}
        for number, item in enumerate(WHALES)
    ]
    [explanation] = probelight.explain("dictionary-lm", sentences, item="2")
    assert "horse" in {piece.text for piece in explanation.reads[0][1]}
    assert len(explanation.candidates) == 3
    scores = [{"id": "0", "scores": {"larger": 1, "smaller": 0, "older": 0}}]
    scores += [{"id": str(n), "scores": {"larger": 0, "smaller": 1, "older": 0}} for n in (1, 2, 3)]
    path = tmp_path / "scored.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in scores), encoding="utf-8")
    options: dict[str, Any] = {"data": {"path": sentences}, "model": "theirs"}
    imported = probelight.import_results("plain", path, **options).frame
    [accuracy] = imported.query("metric == 'accuracy'")["value"]
    assert accuracy == 0.25
    questions = [
        {"question": f"Which is {n} + 1?", "choices": [str(n + 1), "x"], "answer": 0, "id": str(n)}
        for n in range(40)
    ]
    audited = probelight.audit(questions, baselines="vec_similarity", output_dir=tmp_path / "audit")
    assert "vec_similarity" in set(audited.frame["kind"])
    mirror = str(write_released(tmp_path / "mirror"))
    diagnosed = probelight.diagnose("dictionary-lm", sets="role", mirror=mirror, shuffles=2)
    assert len(diagnosed.frame)


@pytest.mark.thorough
def test_an_original_task_is_trained_once_for_several_inoculations(tmp_path: Path) -> None:
    task = {"name": "definitions", "sets": ["definitions_small"], "epochs": 1, "train_items": 48}
    task |= {"report_items": 24, "selection_items": 24}
    trained = probelight.original("bookshelf-lm", task, tmp_path / "task")
    assert (trained / "model.safetensors").is_file()
    plan = probelight.inoculate(
        "bookshelf-lm", "hypernymy_small", {**task, "checkpoint": str(trained)}, dry_run=True
    )
    assert isinstance(plan, probelight.Plan)
    assert plan.lines[0] == "1 run: 1 inoculate"  # the original task is not trained again


def test_a_sweep_is_planned_from_python(tmp_path: Path) -> None:
    grid = {
        "models": {"small": {"name_or_path": "dictionary-lm"}},
        "originals": {"definitions": {"name": "definitions", "sets": ["definitions_small"]}},
        "rows": [
            {"model": "small", "original": "definitions", "probe": {"name": "hypernymy_small"}}
        ],
    }
    plan = probelight.sweep(grid, tmp_path, dry_run=True, engine={"cpus_per_cell": 1})
    assert isinstance(plan, probelight.Plan)
    assert plan.num_done == 0 < plan.num_steps
    assert (tmp_path / "planned.json").is_file()


@pytest.mark.parametrize(
    ("message", "python"),
    [
        ("add --scoring letter, or leave it out", 'add scoring="letter", or leave it out'),
        ("--shots and --chat: no", "shots= and chat=: no"),
        (
            "give --probes a,b or --data.path FILE",
            'give probes=["a", "b"] or data={"path": FILE}',
        ),
        ("choose another --output_dir. The", "choose another output_dir=. The"),
        ("--model.max_length 24 if", 'model={"max_length": 24} if'),
        ("leave out --prompt.file, whose", 'leave out prompt["file"], whose'),
        ("--trainer.compile false", 'trainer={"compile": False}'),
        ("use `train.py curve --setup mc_qa`", "use `train.py curve --setup mc_qa`"),
    ],
)
def test_messages_are_in_the_words_of_python(message: str, python: str) -> None:
    assert in_python_words(message) == python


def test_a_refusal_names_arguments_and_a_mistyped_one_is_refused() -> None:
    with pytest.raises(UsageError, match=r'^letters= is only .*; add scoring="letter"$'):
        probelight.zero_shot("dictionary-lm", WHALES, letters={"orders": "cyclic"})
    with pytest.raises(UsageError, match=r"no option 'shufles' \(did you mean 'shuffles'"):
        probelight.diagnose("dictionary-lm", shufles=3)
    with pytest.raises(ProbelightError, match=r"engine\.knd is not a known key .did you mean"):
        probelight.zero_shot("dictionary-lm", WHALES, engine={"knd": "ray"})


def test_device_and_batch_tokens_are_those_of_the_trainer() -> None:
    options: dict[str, Any] = {"device": "cpu", "batch_tokens": 300}
    scored = probelight.zero_shot("dictionary-lm", WHALES, **options)
    [accuracy] = scored.frame.query("metric == 'accuracy'")["value"]
    assert accuracy == probelight.score("dictionary-lm", WHALES, **options).accuracy
    with pytest.raises(ProbelightError, match=r"accelerator tpuu: give|accelerator 'tpuu'"):
        probelight.score("dictionary-lm", WHALES, device="tpuu")
    with pytest.raises(UsageError, match="batch_tokens= and trainer's max_eval_tokens differ"):
        probelight.score(
            "dictionary-lm", WHALES, batch_tokens=300, trainer={"max_eval_tokens": 200}
        )
    with pytest.raises(UsageError, match="needs its tokenizer"):
        probelight.score(BertForMaskedLM(BertConfig(hidden_size=8, num_attention_heads=1)), WHALES)


@pytest.mark.parametrize(
    ("function", "args", "options", "error"),
    [
        ("zero_shot", (), {"modles": "bookshelf-lm"}, "argument 'modles' (did you mean 'models'?)"),
        ("zero_shot", (), {}, "missing a required argument: 'models'"),
        ("zero_shot", ("a", "b", "c"), {}, "too many positional arguments"),
        ("check", ("a",), {"befor": 1}, "there is no argument 'befor' (did you mean 'before'?)"),
        ("load", ("a",), {"xyz": 1}, "there is no argument 'xyz'; its arguments are folder"),
    ],
)
def test_arguments_that_a_function_does_not_have_are_refused_in_one_line(
    function: str, args: tuple[str, ...], options: dict[str, Any], error: str
) -> None:
    with pytest.raises(UsageError, match=rf"^{function}: .*{re.escape(error)}$"):
        getattr(probelight, function)(*args, **options)
    assert getattr(probelight, function) is getattr(probelight, function)
    assert getattr(probelight, function).__doc__
