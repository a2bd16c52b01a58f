"""Questions by words in texts: against plain transformers, as lm-evaluation-harness asks them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
)

import probelight
from probelight import cli
from probelight.commands.zero_shot import zero_shot_jobs
from probelight.evaluation.asking import Asking
from probelight.evaluation.prompting import prompt_spec
from probelight.evaluation.sets import load_sets
from probelight.models.registry import ModelSettings
from probelight.probes.prompts import PromptSettings
from probelight.probes.record import Record
from probelight.probes.user_files import DEFAULT_FILE
from probelight.runs.settings import TrainerSettings
from tests.fixtures.architectures import byte_bpe
from tests.fixtures.checkout import SMALL_DIR
from tests.fixtures.rows import read_results
from tests.fixtures.seq2seq import seq2seq

__all__ = ["byte_bpe", "seq2seq"]

HARNESS = {"file": "configs/prompt/harness.yaml"}
QUESTIONS = [
    Record("1", "which animal is larger ?", ("a cat", "the antelope", "an old red dog"), 1),
    Record("2", "is snow warm ?", ("never", "really"), 0),
]
ITEMS = [{"question": q.stem, "choices": [*q.choices], "gold": q.answer} for q in QUESTIONS]
LogLikelihood = Callable[[str, str], float]


def in_text(question: str) -> str:
    """Return the harness's text of ARC, `doc_to_text` in lm_eval/tasks/arc/arc_easy.yaml."""
    return f"Question: {question}\nAnswer:"


def causal_log_likelihood(folder: Path) -> LogLikelihood:
    """Of " choice" behind a context: tokens of both, minus those of the context (_encode_pair)."""
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()

    def log_likelihood(context: str, choice: str) -> float:
        ids = tokenizer(f"{context} {choice}")["input_ids"]
        num_context = len(tokenizer(context)["input_ids"])
        with torch.no_grad():
            logs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        return sum(float(logs[i - 1, ids[i]]) for i in range(num_context, len(ids)))

    return log_likelihood


def masked_log_likelihood() -> LogLikelihood:
    """Of a choice, the sum of log p of each of its pieces, masked alone (Salazar et al. 2020)."""
    tokenizer = AutoTokenizer.from_pretrained(SMALL_DIR)
    model = AutoModelForMaskedLM.from_pretrained(SMALL_DIR, dtype=torch.float32).eval()

    def log_likelihood(context: str, choice: str) -> float:
        ids = tokenizer(f"{context} {choice}", return_tensors="pt")["input_ids"]
        total = 0.0
        for i in range(len(tokenizer(context)["input_ids"]) - 1, ids.shape[1] - 1):
            copy = ids.clone()
            copy[0, i] = tokenizer.mask_token_id
            with torch.no_grad():
                logs = model(copy).logits[0, i].log_softmax(-1)
            total += float(logs[ids[0, i]])
        return total

    return log_likelihood


def infilling_log_likelihood(folder: Path) -> LogLikelihood:
    """Of a choice and the closing sentinel in T5's blank behind a context (Raffel et al. 2020)."""
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    opening, closing = tokenizer.convert_tokens_to_ids(["<extra_id_0>", "<extra_id_1>"])

    def log_likelihood(context: str, choice: str) -> float:
        source = tokenizer(f"{context} <extra_id_0>", return_tensors="pt")["input_ids"]
        pieces = tokenizer(choice, add_special_tokens=False)["input_ids"]
        target = torch.tensor([[opening, *pieces, closing]])
        with torch.no_grad():
            logs = model(input_ids=source, labels=target).logits[0].log_softmax(-1)
        return sum(float(logs[i, target[0, i]]) for i in range(1, target.shape[1]))

    return log_likelihood


@pytest.mark.thorough
@pytest.mark.parametrize("family", ["gpt2", "llama", "masked", "t5"])
def test_questions_in_the_harness_texts_have_its_log_likelihoods(
    family: str,
    causal_folder: Callable[[str], Path],
    seq2seq: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    if family == "masked":
        folder, mode, by_hand = SMALL_DIR, "pseudo_log_likelihood", masked_log_likelihood()
    elif family == "t5":
        folder, mode = seq2seq(family), "infilling_likelihood"
        by_hand = infilling_log_likelihood(folder)
    else:
        folder, mode = causal_folder(family), "causal_likelihood"
        by_hand = causal_log_likelihood(folder)
    run = probelight.zero_shot(
        str(folder),
        [ITEMS],
        scoring=["sum", "mean_char", "pmi", "calibrated"],
        prompt=HARNESS,
        output_dir=tmp_path / "out",
    )
    for question, by_rule in zip(QUESTIONS, run.items["by_rule"], strict=True):
        sums = torch.tensor([by_hand(in_text(question.stem), c) for c in question.choices])
        sizes = torch.tensor([len(choice) for choice in question.choices])
        # The premise of Holtzman et al. (2021) is the text without a question and its beginning;
        # the texts without content of Zhao et al. (2021) are in the place of the question.
        premise = torch.tensor([by_hand("Answer:", choice) for choice in question.choices])
        empty = torch.tensor(
            [[by_hand(in_text(t), c) for c in question.choices] for t in ("N/A", "____", "")]
        )
        ratio = sums.softmax(0) / empty.softmax(1).mean(0)
        expected = {
            "sum": sums,
            "mean_char": sums / sizes,
            "pmi": sums - premise,
            "calibrated": ratio / ratio.sum(),
        }
        assert {*by_rule} == {*expected}
        for rule, scores in expected.items():
            assert by_rule[rule].scores == pytest.approx(scores.tolist(), abs=1e-3)
    [config_path] = (tmp_path / "out").glob("runs/*/config.yaml")
    prompt = yaml.safe_load(config_path.read_text())["prompt"]
    assert prompt["templates"]["words_mc_qa"] == "Question: {question}\nAnswer:"
    modes = {row["mode"] for row in read_results(tmp_path / "out" / "results.csv")}
    assert modes == {f"{mode}, prompt {prompt['checksum']}"}


def planned_keys(prompt: PromptSettings, rules: tuple[str, ...] = ()) -> list[str]:
    """Return the keys of a set of questions and one of sentences, with these texts."""
    sets = load_sets(["hypernymy_small", "age_small"], DEFAULT_FILE, None, None)
    orders: Any = "one" if "letter" in rules else None
    asking = Asking(rules, orders, prompt_spec(0, "never", prompt))
    jobs = zero_shot_jobs(
        sets,
        [ModelSettings("dictionary-lm", kind="transformer")],
        TrainerSettings(),
        asking_by_set={loaded.name: asking for loaded in sets},
    )
    return [job.key for job in sorted(jobs, key=lambda job: job.spec.name)]


def test_a_text_around_questions_is_in_the_keys_that_it_changes() -> None:
    harness, usual = PromptSettings(HARNESS["file"]), PromptSettings()
    (sentences, questions), (same, usual_questions) = planned_keys(harness), planned_keys(usual)
    assert sentences == same  # which it does not change
    assert questions != usual_questions
    assert set(planned_keys(harness, ("letter",))).isdisjoint(planned_keys(usual, ("letter",)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--probes", "hypernymy_small", "--models", "dictionary-lm", "--prompt.file", "{own}"],
            "(--chat) or, as `words_mc_qa`, questions answered by words",
        ),
        (
            ["--probes", "hypernymy_small", "--models", "dictionary-lm", "--chat", "auto"],
            "`chat_mc_qa` the message in one; leave out --chat, or words_mc_qa in the file",
        ),
        (
            ["--probes", "hypernymy_small", "--models", "bookshelf-qa"],
            "its fine-tuned head, which has no log-likelihoods",
        ),
        (
            ["--probes", "hypernymy_small", "--models", "{letters}"],
            "answers questions by letters, in texts of its own; leave out --prompt.file",
        ),
    ],
)
def test_texts_that_no_question_is_asked_in_are_refused(
    options: list[str],
    message: str,
    causal_folder: Callable[[str], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    templates = tmp_path / "own.yaml"
    templates.write_text("chat_mc_qa: 'So: {question}'\n")
    by_letters = tmp_path / "by_letters.yaml"
    model = {"name_or_path": str(causal_folder("gpt2")), "kind": "causal", "scoring": "letter"}
    by_letters.write_text(yaml.safe_dump({"model": model}))
    options = [text.format(own=templates, letters=by_letters) for text in options]
    if "--prompt.file" not in options:
        options += ["--prompt.file", HARNESS["file"]]
    assert cli.main(["zero-shot", *options, "--output_dir", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
