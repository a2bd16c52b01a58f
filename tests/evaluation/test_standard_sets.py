"""Standard sets by name: rows in the Hub's layouts, asked as lm-evaluation-harness asks them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel

import probelight
from probelight import cli
from probelight.evaluation.asking import Asking, as_in_harness
from probelight.probes.catalog import ProbeConfig, load_probe_config
from probelight.probes.prompts import LetterSettings, Prompts, PromptSettings, orders_of
from probelight.probes.record import MASK, Record
from probelight.probes.source import load_probe
from tests.fixtures.causal import causal_tokenizer
from tests.fixtures.rows import read_results
from tests.fixtures.standard_sets import STANDARD_SETS, standard_hub

__all__ = ["standard_hub"]


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny GPT-2 that reads the long text of TruthfulQA."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("gpt2")
    sizes = {"vocab_size": 400, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 2048}
    model = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=1))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    causal_tokenizer("gpt2").save_pretrained(folder)
    return folder


def asking_of(config: ProbeConfig) -> Asking:
    return as_in_harness(config, (), LetterSettings(), 0, PromptSettings())


def prompts_of(name: str, records: tuple[Record, ...]) -> list[tuple[str, list[str]]]:
    """Return the contexts that a probe's items are asked with, and the texts behind each."""
    config = load_probe_config(name)
    asking = asking_of(config)
    assert asking.prompt is not None
    prompts = Prompts(asking.prompt.templates, config.setup)
    prompted_records = [
        prompts.letters(record, orders_of(record, "one")[0])
        if asking.orders
        else prompts.words(record)
        for record in records
    ]
    return [(r.stem.removesuffix(MASK).rstrip(" "), [*r.choices]) for r in prompted_records]


def sorted_choices(prompts: list[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    """Return prompts with their choices sorted: those of SciQ have another order here."""
    return [(context, sorted(choices)) for context, choices in prompts]


@pytest.mark.parametrize("name", STANDARD_SETS)
def test_a_set_is_read_from_the_hub_and_asked_in_the_texts_of_the_harness(
    name: str, standard_hub: Path
) -> None:
    standard = STANDARD_SETS[name]
    data = load_probe("blimp.yaml" if name == "blimp" else name, standard.split, pairs=True)
    assert [record.gold for record in data.records] == standard.gold
    assert sorted_choices(prompts_of(name, data.records)) == sorted_choices(standard.prompts)
    assert data.files[0].path == FILES.get(name, data.files[0].path)


FILES = {"blimp": "hub:nyu-mll/blimp/train", "mmlu": "hub:cais/mmlu/all/test"}


@pytest.mark.parametrize("name", STANDARD_SETS)
def test_the_harness_itself_has_the_same_texts_and_rules(name: str) -> None:
    """Its own code makes the prompts of the same rows, where it is installed."""
    tasks = pytest.importorskip("lm_eval.tasks")
    standard = STANDARD_SETS[name]
    for row, prompt in zip(standard.rows, standard.prompts, strict=True):
        assert harness_prompt(tasks, standard.task.format_map(Row(row)), row) == prompt
    rules = {"sum": "acc", "mean_char": "acc_norm", "letter": "acc"}
    config = harness_config(tasks, standard.task.format_map(Row(standard.rows[0])))
    harness_metrics = {metric["metric"] for metric in config["metric_list"]}
    assert {rules[rule] for rule in asking_of(load_probe_config(name)).rules} == harness_metrics
    hub = load_probe_config(name).hub
    assert hub is not None
    assert hub.repo == config["dataset_path"]
    assert config.get("dataset_name") in {*hub.configs, standard.rows[0].get("subject")}


class Row(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return ""


def harness_config(tasks: Any, task: str) -> dict[str, Any]:
    from lm_eval.tasks._yaml_loader import load_yaml  # type: ignore[import-not-found]

    loaded: dict[str, Any] = load_yaml(Path(tasks.__file__).parent / task, resolve_func=True)
    return loaded


def harness_prompt(tasks: Any, task: str, row: dict[str, Any]) -> tuple[str, list[str]]:
    import datasets
    from lm_eval.api.task import ConfigurableTask  # type: ignore[import-not-found]

    config = harness_config(tasks, task)
    rows = datasets.Dataset.from_list([row])
    splits = ("training_split", "validation_split", "test_split", "fewshot_split")
    names = {config.get(split) or "none" for split in splits}
    config["custom_dataset"] = lambda **_: datasets.DatasetDict(dict.fromkeys(names, rows))
    made = ConfigurableTask(config={k: v for k, v in config.items() if k != "include"})
    [doc] = made.eval_docs
    context = made.fewshot_context(doc, 0)
    pairs = made.construct_requests(doc, context, metadata=(task, 0, 1))
    assert all(pair.args[1].startswith(" ") for pair in pairs)  # the space before a choice
    return context, [pair.args[1][1:] for pair in pairs]


def log_likelihood(model: Any, tokenizer: Any, context: str, choice: str) -> float:
    """Return that of " choice" behind a context, or behind the first token of any text."""
    ids = tokenizer(f"{context} {choice}")["input_ids"]
    num_context = len(tokenizer(context)["input_ids"])
    if not context:
        ids, num_context = [tokenizer.bos_token_id, *ids], 1
    with torch.no_grad():
        logs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    return sum(float(logs[i - 1, ids[i]]) for i in range(num_context, len(ids)))


def zero_shot(folder: Path, probes: str, *options: str) -> int:
    command = ["zero-shot", "--probes", probes, "--models", str(folder), "--scoring", "harness"]
    return cli.main([*command, "--model.max_length", "2048", *options])


@pytest.mark.thorough
def test_one_command_asks_each_set_in_its_text_with_the_log_likelihoods_of_the_harness(
    model_folder: Path, standard_hub: Path
) -> None:
    names = [
        f"{'blimp.yaml' if name == 'blimp' else name}:{standard.split}"
        for name, standard in STANDARD_SETS.items()
    ]
    output_dir = standard_hub / "out"
    assert zero_shot(model_folder, ",".join(names), "--output_dir", str(output_dir)) == 0
    model: Any = AutoModelForCausalLM.from_pretrained(model_folder).eval()
    tokenizer: Any = AutoTokenizer.from_pretrained(model_folder)
    items = probelight.load(output_dir).items
    rows = read_results(output_dir / "results.csv")
    for name, standard in STANDARD_SETS.items():
        by_rule = items[items.probe == name].by_rule
        assert len(by_rule) == len(standard.rows)
        for (context, choices), answers in zip(standard.prompts, by_rule, strict=True):
            sums = [log_likelihood(model, tokenizer, context, choice) for choice in choices]
            sizes = [len(choice) for choice in choices]
            means = [total / size for total, size in zip(sums, sizes, strict=True)]
            expected = {"sum": sums, "letter": sums, "mean_char": means}
            for rule in load_probe_config(name).harness.scoring:  # type: ignore[union-attr]
                if rule in answers:  # mean_char is left out where all choices are as long
                    scores = sorted(answers[rule].scores)  # those of SciQ have another order
                    assert scores == pytest.approx(sorted(expected[rule]), abs=1e-4)
                else:
                    assert len({*sizes}) == 1
    for name, subset in (("mmlu", "subject=anatomy"), ("blimp", "UID=wh_island")):
        rules = [r["scoring"] for r in rows if (r["probe"], r["subset"]) == (name, subset)]
        assert set(load_probe_config(name).harness.scoring) <= {*rules}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("probes", "options", "message"),
    [
        ("age_small", [], "the config of age_small does not say, under `harness`"),
        ("piqa:dev", ["--chat", "auto"], "leave out --prompt.file and --chat"),
        ("piqa:dev", ["--prompt.file", "x.yaml"], "leave out --prompt.file and --chat"),
        ("piqa:dev", ["--letters.orders", "all"], "add --scoring letter"),
        ("boolq:dev", ["--controls", "shuffled_words"], "the text around boolq has {passage}"),
        ("mmlu:test", ["--controls", "shuffled_words"], "the text around mmlu has {subject}"),
        ("mmlu:test", ["--shots", "2"], "mmlu has no train split"),
    ],
)
def test_what_the_harness_does_not_ask_is_refused(
    probes: str,
    options: list[str],
    message: str,
    model_folder: Path,
    standard_hub: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = ["--output_dir", str(standard_hub / "refused")]
    (standard_hub / "x.yaml").write_text("words_mc_qa: 'Q: {question}'\n")
    assert zero_shot(model_folder, probes, *options, *folder) == 2
    assert message in capsys.readouterr().err


def test_an_item_without_what_the_text_has_is_named(
    model_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = tmp_path / "own.csv"
    items.write_text("question,gold,choices\nWhat is tin?,a metal,a metal|a plant\n")
    command = ["zero-shot", "--probes", str(items), "--models", str(model_folder)]
    command += ["--prompt.file", "configs/prompt/harness_sciq.yaml"]
    assert cli.main([*command, "--output_dir", str(tmp_path / "out")]) == 1
    assert "own.csv:2: the text of the prompt has {support}, but" in capsys.readouterr().err
