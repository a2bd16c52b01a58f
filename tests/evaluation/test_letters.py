"""Items asked for letters: against a plain loop over transformers, for each type of model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
)

import probelight
from probelight import cli
from probelight.evaluation.letters import ask_letters
from probelight.evaluation.scorers import scorer_for
from probelight.metrics.scoring_rules import LETTER
from probelight.models.registry import ModelSettings
from probelight.probes.catalog import DOMAIN_STEMS
from probelight.probes.importers.items import items_text
from probelight.probes.prompts import Prompts, Templates
from probelight.probes.record import Record
from probelight.probes.source import load_probe
from probelight.results.load import load_results
from probelight.results.measured import Predictions
from probelight.results.row import Row
from probelight.runs.settings import TrainerSettings
from tests.fixtures.chats import chat_tokenizer
from tests.fixtures.checkout import ROOT
from tests.fixtures.rows import read_results

TRAINER = TrainerSettings(accelerator="cpu", progress_bar=False)
PROMPTS = Prompts(Templates.read(ROOT / "configs" / "prompt" / "default.yaml"), "mc_qa")
QUESTIONS = [
    Record("1", "which animal is larger ?", ("a cat", "a dog", "the antelope"), 2),
    Record("2", "is snow warm ?", ("never", "really"), 0),
]
ORDERS = ([(0, 1, 2), (1, 2, 0), (2, 0, 1)], [(0, 1), (1, 0)])


def prompts(record: Record, orders: list[tuple[int, ...]]) -> list[str]:
    """The prompts as they are to be, without the code under test."""
    texts = []
    for order in orders:
        lines = [f"{'ABC'[i]}. {record.choices[index]}" for i, index in enumerate(order)]
        texts.append("\n".join([f"Question: {record.stem}", *lines, "Answer:"]))
    return texts


def letters_of(model: ModelSettings) -> Any:
    scorer = scorer_for(model, "mc_mlm")
    sums = Predictions("mine", QUESTIONS, [[0.0] * len(r.choices) for r in QUESTIONS])
    return ask_letters(scorer, sums, "cyclic", PROMPTS, TRAINER)


def test_a_masked_model_is_scored_at_a_mask() -> None:
    folder = ROOT / "assets" / "dictionary-lm"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
    panel = letters_of(ModelSettings("dictionary-lm", kind="transformer"))
    for item, record in enumerate(QUESTIONS):
        for order, text in enumerate(prompts(record, ORDERS[item])):
            ids = tokenizer(f"{text} [MASK]", return_tensors="pt")["input_ids"]
            with torch.no_grad():
                logs = model(ids).logits[0].log_softmax(-1)
            mask = (ids[0] == tokenizer.mask_token_id).nonzero().item()
            labels = tokenizer.convert_tokens_to_ids([*"abc"[: len(record.choices)]])
            expected = [float(logs[mask, label]) for label in labels]
            assert panel.labels[item][order] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_causal_model_is_asked_behind_the_cue(
    family: str, causal_folder: Callable[[str], Path]
) -> None:
    folder = str(causal_folder(family))
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()
    panel = letters_of(ModelSettings(folder, kind="causal", max_length=2000))
    most = model.config.max_position_embeddings
    for item, record in enumerate(QUESTIONS):
        for order, text in enumerate(prompts(record, ORDERS[item])):
            expected = []
            for label in "ABC"[: len(record.choices)]:
                prompt = tokenizer(text)["input_ids"]
                full = tokenizer(f"{text} {label}")["input_ids"]
                label_ids = full[len(prompt) :]
                assert full[: len(prompt)] == prompt
                special = full[:1] if full[0] == tokenizer.bos_token_id else []
                cut = [*special, *full[len(special) :][-(most - len(special)) :]]
                with torch.no_grad():
                    logs = model(torch.tensor([cut])).logits[0].log_softmax(-1)
                first = len(cut) - len(label_ids)
                expected.append(sum(float(logs[first + i - 1, t]) for i, t in enumerate(label_ids)))
            assert panel.labels[item][order] == pytest.approx(expected, abs=1e-3)


def test_choices_have_the_scores_of_their_labels_and_rows_are_of_them() -> None:
    panel = letters_of(ModelSettings("dictionary-lm", kind="transformer"))
    first, second = panel.labels[1]
    assert panel.choices[1] == [[first[0], first[1]], [second[1], second[0]]]
    assert panel.by_rule[LETTER].scores[1] == [first[0], first[1]]
    rows = {(r.metric, r.subset_text): r.value for r in panel.order_rows("ab", Row())}
    right = [
        [max(s) == s[r.answer] for s in c] for c, r in zip(panel.choices, QUESTIONS, strict=True)
    ]
    assert rows["mean_order_accuracy", ""] == pytest.approx(
        (sum(right[0]) / 3 + sum(right[1]) / 2) / 2
    )
    assert rows["all_orders_accuracy", ""] == (all(right[0]) + all(right[1])) / 2
    shares = [value for (metric, _), value in rows.items() if metric == "label_share"]
    assert sum(shares) == pytest.approx(1)


@pytest.mark.thorough
def test_the_command_lists_letters_next_to_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["zero-shot", "--probes", "taxonomy_small:dev", "--models", "dictionary-lm"]
    line += ["--output_dir", str(tmp_path / "out"), "--scoring", "sum,letter"]
    assert cli.main([*line, "--letters.orders", "cyclic"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "Asked for a letter: does the order of the choices matter?" in page
    rows = read_results(tmp_path / "out" / "results.csv")
    by_rule = {row["scoring"]: row for row in rows if row["metric"] == "accuracy"}
    assert {"", "sum", "letter", "letter_debiased"} <= {*by_rule}
    items = probelight.load(tmp_path / "out").items
    right = [
        answers["letter"].best == (answer,)
        for answers, answer in zip(items["by_rule"], items["answer"], strict=True)
    ]
    assert float(by_rule["letter"]["value"]) == pytest.approx(sum(right) / len(right))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--scoring", "sum", "--letters.orders", "all"],
            "is only for the rule letter; add --scoring",
        ),
        (["--scoring", "letters"], "did you mean 'letter'"),
        (["--scoring", "letter", "--prompt.file", "no.yaml"], "no.yaml"),
        (["--prompt.system", "Be brief."], ".system, .begin and .thinking are only for a chat"),
        (["--scoring", "letter", "--prompt.begin", "So"], ".thinking are only for a chat; add"),
        (["--prompt.thinking", "empty"], ".thinking are only for a chat; add --chat auto"),
        (
            ["--scoring", "letter", "--prompt.seed", "1"],
            "--prompt.seed is only for examples before",
        ),
        (
            ["--prompt.file", "configs/prompt/harness.yaml"],
            "would change nothing: it has texts for letters (add --scoring letter), chats",
        ),
        (["--chat", "always"], "dictionary-lm is of kind transformer; only causal models can chat"),
        (["--shots", "2", "--ranks"], "--ranks needs sentences as they are; leave out --shots"),
        (["--shots", "30"], "tokens, more than the 256 that are read; give --model.max_length"),
        (["--shots", "30", "--scoring", "letter"], "tokens, more than the 256 that are read; give"),
    ],
)
def test_mistakes_are_named(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["zero-shot", "--probes", "taxonomy_small:dev", "--models", "dictionary-lm"]
    assert cli.main([*line, "--output_dir", str(tmp_path / "out"), *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.thorough
def test_examples_are_before_the_sentence_that_is_scored(tmp_path: Path) -> None:
    line = ["zero-shot", "--probes", "taxonomy_small:dev", "--models", "dictionary-lm"]
    line += ["--output_dir", str(tmp_path / "out"), "--shots", "2", "--scoring", "pmi,letter"]
    assert cli.main(line) == 0
    dev = load_probe("taxonomy_small", "dev")
    train = load_probe("taxonomy_small", "train").records
    prompts = Prompts(PROMPTS.templates, "mc_mlm", dev.config.group_by, train, 2)
    folder = ROOT / "assets" / "dictionary-lm"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()

    def by_hand(stem: str, words: Sequence[str]) -> list[float]:
        ids = tokenizer(stem, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            logs = model(ids).logits[0].log_softmax(-1)
        mask = (ids[0] == tokenizer.mask_token_id).nonzero().item()
        return [float(logs[mask, tokenizer.convert_tokens_to_ids(word)]) for word in words]

    items = probelight.load(tmp_path / "out").items
    record = dev.records[0]
    shots = [e.stem.replace("[MASK]", e.gold) for e in prompts.shots(record)]
    text = "\n\n".join(shots)
    expected = by_hand(f"{text}\n\n{record.stem}", record.choices)
    assert items["question"][0] == record.stem
    above = [score - items["scores"][0][0] for score in items["scores"][0]]  # of logits
    assert above == pytest.approx([log - expected[0] for log in expected], abs=1e-4)
    free = by_hand(f"{text}\n\n{dev.config.domain_stem or DOMAIN_STEMS['mc_mlm']}", record.choices)
    pmi = [full - prior for full, prior in zip(expected, free, strict=True)]
    assert items["by_rule"][0]["pmi"].scores == pytest.approx(pmi, abs=1e-4)
    prompt = prompts.letters(record, tuple(range(len(record.choices))))
    letters = by_hand(prompt.stem, [label.lower() for label in prompt.choices])
    assert items["by_rule"][0]["letter"].scores == pytest.approx(letters, abs=1e-4)
    rows = read_results(tmp_path / "out" / "results.csv")
    assert {row["mode"] for row in rows} == {"zero_shot, 2 shots"}


@pytest.mark.thorough
def test_a_chat_is_taken_where_there_is_one(tmp_path: Path) -> None:
    tokenizer = chat_tokenizer("bytes, BOS of both")
    torch.manual_seed(0)
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 256}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **sizes))
    model.save_pretrained(tmp_path / "lm")
    tokenizer.save_pretrained(tmp_path / "lm")
    options: dict[str, Any] = {"scoring": ["letter", "sum"], "chat": "auto"}
    models = [str(tmp_path / "lm"), "dictionary-lm"]
    items = [{"question": q.stem, "choices": [*q.choices], "gold": q.answer} for q in QUESTIONS]
    run = probelight.zero_shot(models, [items], output_dir=tmp_path / "out", **options)
    rows = read_results(tmp_path / "out" / "results.csv")
    modes = {row["model"]: row["mode"] for row in rows if row["metric"] == "accuracy"}
    assert modes == {"lm": "causal_likelihood, chat", "dictionary-lm": "pseudo_log_likelihood"}
    of_lm = run.items[run.items["model"] == "lm"]
    for number, record in enumerate(QUESTIONS):
        [text] = prompts(record, ORDERS[number][:1])
        expected = []
        for label in "ABC"[: len(record.choices)]:
            user = {"role": "user", "content": text}
            prompt = tokenizer.apply_chat_template(
                [user], add_generation_prompt=True, return_dict=False
            )
            full = tokenizer.apply_chat_template(
                [user, {"role": "assistant", "content": label}],
                continue_final_message=True,
                return_dict=False,
            )
            with torch.no_grad():
                logs = model.eval()(torch.tensor([full])).logits[0].log_softmax(-1)
            expected.append(sum(float(logs[i - 1, full[i]]) for i in range(len(prompt), len(full))))
        by_rule = of_lm["by_rule"].iloc[number]
        assert by_rule["letter"].scores == pytest.approx(expected, abs=1e-4)


def test_examples_are_turns_of_a_chat_by_words_and_by_letters(tmp_path: Path) -> None:
    """Each rule against a plain loop over the messages as they are to be."""
    tokenizer = chat_tokenizer("bytes, empty thought if asked")
    torch.manual_seed(0)
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 512}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **sizes)).eval()
    model.save_pretrained(tmp_path / "lm")
    tokenizer.save_pretrained(tmp_path / "lm")
    items = [
        {"question": q.stem, "choices": [*q.choices], "gold": q.gold}
        for q in (*QUESTIONS, Record("3", "a dog or a cat ?", ("a dog", "a cat"), 1))
    ]
    (tmp_path / "train.jsonl").write_text(items_text(items[1:]))
    (tmp_path / "dev.jsonl").write_text(items_text(items[:1]))
    (tmp_path / "own.yaml").write_text(
        "setup: mc_qa\nnum_choices: 3\nchance: 0.4\nchance_note: of two and three\nbase_url: .\n"
        "files:\n  train: {path: train.jsonl}\n  dev: {path: dev.jsonl}\n"
    )
    prompt = {"system": "Be brief.", "begin": "It is", "thinking": "empty"}
    run = probelight.zero_shot(
        {"name_or_path": str(tmp_path / "lm"), "kind": "causal", "max_length": 512},
        str(tmp_path / "own.yaml"),
        scoring=["sum", "pmi", "calibrated", "letter"],
        shots=2,
        chat="always",
        prompt=prompt,
        output_dir=tmp_path / "out",
    )
    [config_path] = (tmp_path / "out").glob("runs/*/config.yaml")
    spec = yaml.safe_load(config_path.read_text())["prompt"]
    assert spec["thinking"] == "empty"
    probe = load_probe(str(tmp_path / "own.yaml"), "train")
    prompts_of_run = Prompts(PROMPTS.templates, "mc_qa", "stem", probe.records, 2)
    [asked] = load_probe(str(tmp_path / "own.yaml"), "dev").records
    shots = prompts_of_run.shots(asked)
    assert {shot.stem for shot in shots} == {items[1]["question"], items[2]["question"]}

    def log_likelihood(turns: list[tuple[str, str]], question: str, choice: str) -> float:
        messages = [{"role": "system", "content": "Be brief."}]
        for user, assistant in turns:
            messages.append({"role": "user", "content": user})
            messages.append({"role": "assistant", "content": f"It is {assistant}"})
        messages.append({"role": "user", "content": question})
        text = tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
        num_given = len(tokenizer(f"{text}It is", add_special_tokens=False)["input_ids"])
        ids = tokenizer(f"{text}It is {choice}", add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            logs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        return sum(float(logs[i - 1, ids[i]]) for i in range(num_given, len(ids)))

    by_words = [(shot.stem, shot.gold) for shot in shots]
    sums, premise, *free = (
        torch.tensor([log_likelihood(by_words, text, choice) for choice in asked.choices])
        for text in (asked.stem, "Answer:", "N/A", "____", "")
    )
    ratio = sums.softmax(0) / torch.stack([f.softmax(0) for f in free]).mean(0)
    expected = {"sum": sums, "pmi": sums - premise, "calibrated": ratio / ratio.sum()}
    by_letters = []
    for text in prompts_of_run.letters(asked, (0, 1, 2)).stem.split("\n\n")[:-1]:
        assert text[-2:] in {" A", " B"}
        by_letters.append((text[:-2], text[-1]))
    [question] = prompts(asked, [(0, 1, 2)])
    expected["letter"] = torch.tensor([log_likelihood(by_letters, question, c) for c in "ABC"])
    by_rule = run.items["by_rule"].iloc[0]
    for rule, scores in expected.items():
        assert by_rule[rule].scores == pytest.approx(scores.tolist(), abs=1e-5, rel=0), rule
    modes = {row["mode"] for row in read_results(tmp_path / "out" / "results.csv")}
    assert modes == {f"causal_likelihood, chat, 2 shots, prompt {spec['checksum']}"}


@pytest.mark.thorough
def test_ways_of_asking_are_told_apart_by_their_mode(tmp_path: Path) -> None:
    """Rules of minimal pairs too: `compare` keeps modes apart."""
    train = [f"The cat number {n} sleeps ." for n in range(4)]
    lines = [
        json.dumps({"sentence_good": text, "sentence_bad": text.replace("sleeps", "sleep")})
        for text in train
    ]
    (tmp_path / "train.jsonl").write_text("\n".join(lines[1:]) + "\n")
    (tmp_path / "dev.jsonl").write_text(lines[0] + "\n")
    (tmp_path / "pairs.yaml").write_text(
        "setup: minimal_pair\nnum_choices: 2\nchance: 0.5\nbase_url: .\n"
        "files:\n  train: {path: train.jsonl}\n  dev: {path: dev.jsonl}\n"
    )
    text = (ROOT / "configs" / "prompt" / "default.yaml").read_text()
    (tmp_path / "own.yaml").write_text(text.replace("is acceptable?", "is good?"))
    modes = {}
    for name, options in {
        "usual": ["--letters.orders", "cyclic"],
        "own": ["--prompt.file", str(tmp_path / "own.yaml"), "--shots", "1"],
    }.items():
        line = ["zero-shot", "--probes", str(tmp_path / "pairs.yaml"), "--models", "dictionary-lm"]
        out = tmp_path / name
        assert cli.main([*line, "--scoring", "letter", "--output_dir", str(out), *options]) == 0
        rows = read_results(out / "results.csv")
        modes[name] = {(r["scoring"], r["metric"]): r["mode"] for r in rows}
    usual, custom = modes["usual"], modes["own"]
    words = "pseudo_log_likelihood"
    assert usual["", "accuracy"] == custom["", "accuracy"] == usual["letter", "accuracy"] == words
    assert usual["letter_debiased", "accuracy"] == f"{words}, cyclic orders"
    mode = custom["letter", "accuracy"]
    assert re.fullmatch(rf"{words}, 1 shot, prompt [0-9a-f]{{6}}", mode)
    assert custom["letter", "label_bias"] == custom["letter", "flipped_share"] == mode


def test_a_model_without_a_chat_is_said_to_be_asked_without(tmp_path: Path) -> None:
    line = ["zero-shot", "--probes", "taxonomy_small:dev", "--models", "dictionary-lm"]
    assert cli.main([*line, "--chat", "auto", "--output_dir", str(tmp_path / "out")]) == 0
    [run] = load_results(tmp_path / "out").runs
    assert "dictionary-lm has no chat template, so it was asked without a chat" in run.notices


def test_a_changed_chat_template_is_another_run(tmp_path: Path) -> None:
    tokenizer = chat_tokenizer("bytes, BOS of both")
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 256}
    GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **sizes)).save_pretrained(tmp_path / "lm")
    numbers = []
    for template in (tokenizer.chat_template, "{{ bos_token }}" + tokenizer.chat_template):
        tokenizer.chat_template = template
        tokenizer.save_pretrained(tmp_path / "lm")
        line = ["zero-shot", "--models", str(tmp_path / "lm"), "--probes", "taxonomy_small:dev"]
        assert cli.main([*line, "--chat", "always", "--output_dir", str(tmp_path / "out")]) == 0
        numbers.append(len(load_results(tmp_path / "out").runs))
    assert numbers == [1, 2]
