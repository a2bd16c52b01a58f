"""Chats: against what each tokenizer's template gives, and a plain loop over a model."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from probelight.encoding.chat import Chat
from probelight.io.errors import RecordError, UsageError
from probelight.models.answering import answer
from probelight.models.causal import CausalScorer
from probelight.probes.record import Record
from tests.fixtures.chats import CHATML, KINDS, chat_tokenizer

QUESTION = "which animal is larger ?"
CHOICES = ("a cat", "the antelope", "A")
RECORD = Record("1", f"{QUESTION} [MASK]", CHOICES, 1)


def tiny_model(tokenizer: Any) -> GPT2LMHeadModel:
    torch.manual_seed(0)
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 256}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **sizes))
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return model.eval()


def by_plain_loop(tokenizer: Any, model: Any, choice: str, begin: str = "") -> float:
    """The log-probability of an answer, by ids that transformers itself gives."""
    user = [{"role": "user", "content": QUESTION}]
    options: dict[str, Any] = {"return_dict": False}
    if begin:
        messages = [*user, {"role": "assistant", "content": begin}]
        prompt = tokenizer.apply_chat_template(messages, continue_final_message=True, **options)
    else:
        prompt = tokenizer.apply_chat_template(user, add_generation_prompt=True, **options)
    answered = [*user, {"role": "assistant", "content": f"{begin} {choice}".strip()}]
    full_ids = tokenizer.apply_chat_template(answered, continue_final_message=True, **options)
    assert full_ids[: len(prompt)] == prompt
    thought = tokenizer("<think>\n\n</think>\n\n", add_special_tokens=False)["input_ids"]
    answer_ids = full_ids[len(prompt) :]
    if answer_ids[: len(thought)] == thought:  # given, as it is no part of an answer
        answer_ids = answer_ids[len(thought) :]
    with torch.no_grad():
        logs = model(torch.tensor([full_ids])).logits[0].log_softmax(-1)
    first = len(full_ids) - len(answer_ids)
    return sum(float(logs[first + i - 1, token]) for i, token in enumerate(answer_ids))


@pytest.mark.parametrize("begin", ["", "The answer is"])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_a_plain_loop_over_the_template(kind: str, begin: str) -> None:
    tokenizer = chat_tokenizer(kind)
    model = tiny_model(tokenizer)
    expected = [by_plain_loop(tokenizer, model, choice, begin) for choice in CHOICES]
    scorer = CausalScorer(model, tokenizer, max_length=256).in_chat("", begin)
    assert scorer is not None
    encoded = scorer.likelihood_encoder().encode([RECORD])
    for text, choice in zip(encoded.texts, CHOICES, strict=True):
        user = {"role": "user", "content": QUESTION}
        assistant = {"role": "assistant", "content": f"{begin} {choice}".strip()}
        ids = tokenizer.apply_chat_template(
            [user, assistant], continue_final_message=True, return_dict=False
        )
        assert text.ids.tolist() == ids
    for text in encoded.texts:
        num_bos = text.ids.tolist().count(tokenizer.convert_tokens_to_ids("<s>"))
        assert num_bos == ("bos_token" in KINDS[kind][2])
    scores = answer(scorer, {"one": [RECORD]}, scorer.log_likelihoods())["one"].scores[0]
    assert scores == pytest.approx(expected, abs=1e-4)


def test_a_system_text_is_a_message_of_its_own() -> None:
    tokenizer = chat_tokenizer("bytes, no BOS at all")
    text, begin, end = Chat(tokenizer, "Be brief.").fill(f"{QUESTION} [MASK]", " A ")
    assert text[:begin] == (
        "<|im_start|>system\nBe brief.<|im_end|>\n"
        f"<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n"
    )
    assert text[begin:end] == "A"


def test_what_a_template_does_not_take_is_named() -> None:
    tokenizer = chat_tokenizer("SentencePiece, BOS of both, a space before the answer")
    with pytest.raises(UsageError, match=r"no system here; leave out --prompt\.system"):
        Chat(tokenizer, "Be brief.").fill(QUESTION, "A")
    with pytest.raises(UsageError, match="in a chat the blank must be at the end of the message"):
        Chat(tokenizer).fill("a [MASK] is here", "cat")


def test_a_template_that_leaves_a_message_out_or_writes_the_day() -> None:
    tokenizer = chat_tokenizer("bytes, no BOS at all")
    tokenizer.chat_template = CHATML.replace("in messages", "in messages if m.role != 'system'")
    with pytest.raises(UsageError, match=r"leaves out 'Be brief\.'; leave out --chat, or --prompt"):
        Chat(tokenizer, "Be brief.").fill(QUESTION, "A")
    tokenizer.chat_template = "{{ strftime_now('%d %b %Y') }}\n" + CHATML
    assert Chat(tokenizer).fill(QUESTION, "A")[0].startswith("26 Jul 2024\n")


@pytest.mark.parametrize(
    ("begin", "end"), [("It is", "It is A"), ("It is (", "It is (A"), ("Answer:", "Answer: A")]
)
def test_a_beginning_ends_with_a_space_but_behind_a_bracket(begin: str, end: str) -> None:
    text, first, last = Chat(chat_tokenizer("bytes, no BOS at all"), "", begin).fill(QUESTION, "A")
    assert text.endswith(f"assistant\n{end}")
    assert text[first:last].strip() == "A"


def test_a_chat_is_not_cut_and_has_no_vocabulary() -> None:
    tokenizer = chat_tokenizer("bytes, BOS of both")
    scorer = CausalScorer(tiny_model(tokenizer), tokenizer, max_length=20).in_chat()
    assert scorer is not None
    with pytest.raises(
        RecordError, match=r"its chat has \d+ tokens, more than max_length=20; give"
    ):
        scorer.likelihood_encoder().encode([RECORD])
    with pytest.raises(
        UsageError, match="cannot compute log-probabilities over a vocabulary in a chat"
    ):
        scorer.vocabulary()
    with pytest.raises(UsageError, match="cannot compute features in a chat"):
        scorer.features()


def test_a_tokenizer_without_a_template_has_no_chat() -> None:
    tokenizer = chat_tokenizer("bytes, no BOS at all")
    tokenizer.chat_template = None
    assert CausalScorer(tiny_model(tokenizer), tokenizer).in_chat() is None
