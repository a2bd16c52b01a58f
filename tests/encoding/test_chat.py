"""Chats: against what each tokenizer's template gives, and a plain loop over a model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from probelight.encoding import chat as chat_module
from probelight.encoding.chat import Chat
from probelight.io.bounded import Bounded
from probelight.io.errors import RecordError, UsageError
from probelight.models.answering import answer
from probelight.models.causal import CausalScorer
from probelight.probes.record import Record
from tests.fixtures.chats import CHATML, HEADERS, KINDS, TURNS, chat_tokenizer

QUESTION = "which animal is larger ?"
CHOICES = ("a cat", "the antelope", "A")
RECORD = Record("1", f"{QUESTION} [MASK]", CHOICES, 1)
SHOTS = (("is snow warm ?", " never "), ("a cat or a dog ?\n", "a dog"))
FEW_SHOT = replace(RECORD, turns=SHOTS)
Messages = list[dict[str, str]]


def written_by_hand(begin: str = "") -> Messages:
    """The messages before the answer to `FEW_SHOT`."""
    lead = f"{begin} " if begin else ""
    return [
        {"role": "user", "content": "is snow warm ?"},
        {"role": "assistant", "content": f"{lead}never"},
        {"role": "user", "content": "a cat or a dog ?"},
        {"role": "assistant", "content": f"{lead}a dog"},
        {"role": "user", "content": QUESTION},
    ]


def tiny_model(tokenizer: Any) -> GPT2LMHeadModel:
    torch.manual_seed(0)
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 256}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **sizes))
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return model.eval()


def by_plain_loop(
    tokenizer: Any, model: Any, choice: str, begin: str = "", user: Messages | None = None
) -> float:
    """The log-probability of an answer, by ids that transformers itself gives."""
    user = user or [{"role": "user", "content": QUESTION}]
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
    text, begin, end = Chat(tokenizer, "Be brief.").fill(RECORD, " A ")
    assert text[:begin] == (
        "<|im_start|>system\nBe brief.<|im_end|>\n"
        f"<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n"
    )
    assert text[begin:end] == "A"


def test_what_a_template_does_not_take_is_named() -> None:
    tokenizer = chat_tokenizer("SentencePiece, BOS of both, a space before the answer")
    with pytest.raises(UsageError, match=r"no system here; leave out --prompt\.system"):
        Chat(tokenizer, "Be brief.").fill(RECORD, "A")
    with pytest.raises(UsageError, match="in a chat the blank must be at the end of the message"):
        Chat(tokenizer).fill(replace(RECORD, stem="a [MASK] is here"), "cat")


def test_a_template_that_leaves_a_message_out_or_writes_the_day() -> None:
    tokenizer = chat_tokenizer("bytes, no BOS at all")
    tokenizer.chat_template = CHATML.replace("in messages", "in messages if m.role != 'system'")
    with pytest.raises(UsageError, match=r"leaves out 'Be brief\.'; leave out --chat, or --prompt"):
        Chat(tokenizer, "Be brief.").fill(RECORD, "A")
    tokenizer.chat_template = "{{ strftime_now('%d %b %Y') }}\n" + CHATML
    assert Chat(tokenizer).fill(RECORD, "A")[0].startswith("26 Jul 2024\n")


@pytest.mark.parametrize(
    ("begin", "end"), [("It is", "It is A"), ("It is (", "It is (A"), ("Answer:", "Answer: A")]
)
def test_a_beginning_ends_with_a_space_but_behind_a_bracket(begin: str, end: str) -> None:
    text, first, last = Chat(chat_tokenizer("bytes, no BOS at all"), "", begin).fill(RECORD, "A")
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


@pytest.mark.parametrize("begin", ["", "The answer is"])
@pytest.mark.parametrize("kind", KINDS)
def test_examples_are_turns_as_the_template_writes_them(kind: str, begin: str) -> None:
    tokenizer = chat_tokenizer(kind)
    model = tiny_model(tokenizer)
    before = written_by_hand(begin)
    chat = Chat(tokenizer, "", begin)
    for choice in CHOICES:
        answer_text = f"{begin} {choice}".strip()
        messages = [*before, {"role": "assistant", "content": answer_text}]
        written = tokenizer.apply_chat_template(
            messages, tokenize=False, continue_final_message=True
        )
        text, first, last = chat.fill(FEW_SHOT, f" {choice} ")
        assert text == written
        assert (text[first:last].strip(), last) == (choice, len(text))
    expected = [by_plain_loop(tokenizer, model, choice, begin, before) for choice in CHOICES]
    scorer = CausalScorer(model, tokenizer, max_length=256).in_chat("", begin)
    assert scorer is not None
    for encoded, choice in zip(
        scorer.likelihood_encoder().encode([FEW_SHOT]).texts, CHOICES, strict=True
    ):
        messages = [*before, {"role": "assistant", "content": f"{begin} {choice}".strip()}]
        ids = tokenizer.apply_chat_template(
            messages, continue_final_message=True, return_dict=False
        )
        assert encoded.ids.tolist() == ids
    records = [FEW_SHOT, RECORD, replace(FEW_SHOT, turns=SHOTS[::-1])]
    scores = answer(scorer, {"all": records}, scorer.log_likelihoods())["all"].scores
    assert scores[0] == pytest.approx(expected, abs=1e-5, rel=0)
    alone = [by_plain_loop(tokenizer, model, choice, begin) for choice in CHOICES]
    assert scores[1] == pytest.approx(alone, abs=1e-5, rel=0)
    assert scores[2] != scores[0]


@pytest.mark.parametrize("begin", ["", "The answer is"])
@pytest.mark.parametrize(
    "kind", ["bytes, empty thought of the last answer", "bytes, empty thought if asked"]
)
def test_an_empty_thought_is_put_before_the_answer_or_not(kind: str, begin: str) -> None:
    tokenizer = chat_tokenizer(kind)
    model = tiny_model(tokenizer)
    before = written_by_hand(begin)
    options: dict[str, Any] = {"tokenize": False, "add_generation_prompt": True}
    prompts: dict[Literal["empty", "never"], str] = {
        "empty": tokenizer.apply_chat_template(before, enable_thinking=False, **options),
        "never": tokenizer.apply_chat_template(before, **options),
    }
    assert prompts["empty"].count("<think>") == 1
    assert prompts["never"].count("<think>") == 0
    scores = {}
    for thinking, prompt in prompts.items():
        scorer = CausalScorer(model, tokenizer).in_chat("", begin, thinking)
        assert scorer is not None
        expected = []
        for choice in CHOICES:
            context_ids = tokenizer(f"{prompt}{begin}", add_special_tokens=False)["input_ids"]
            text = f"{prompt}{begin} {choice}" if begin else f"{prompt}{choice}"
            ids = tokenizer(text, add_special_tokens=False)["input_ids"]
            assert ids[: len(context_ids)] == context_ids
            with torch.no_grad():
                logs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
            answer_places = range(len(context_ids), len(ids))
            expected.append(sum(float(logs[i - 1, ids[i]]) for i in answer_places))
        question = scorer.log_likelihoods()
        scores[thinking] = answer(scorer, {"all": [FEW_SHOT]}, question)["all"].scores[0]
        assert scores[thinking] == pytest.approx(expected, abs=1e-5, rel=0)
    usual = CausalScorer(model, tokenizer).in_chat("", begin)
    assert usual is not None
    usual_scores = answer(usual, {"all": [FEW_SHOT]}, usual.log_likelihoods())["all"].scores[0]
    same = "empty" if "last" in kind else "never"
    assert usual_scores == pytest.approx(scores[same], abs=1e-5, rel=0)


def test_a_thought_that_a_template_does_not_know_is_refused_or_left_out() -> None:
    tokenizer = chat_tokenizer("bytes, BOS of both")
    with pytest.raises(
        UsageError, match=r"no empty thought .*; leave out --prompt\.thinking empty"
    ):
        Chat(tokenizer, thinking="empty").fill(RECORD, "A")
    assert Chat(tokenizer, thinking="never").fill(RECORD, "A") == Chat(tokenizer).fill(RECORD, "A")
    # One that closes a thought which it has not opened, as DeepSeek-V3.1's.
    tokenizer.chat_template = (
        "{% for m in messages %}<|{{ m.role }}|>{% if m.role == 'assistant' %}</think>{% endif %}"
        "{{ m.content }}{% endfor %}{% if add_generation_prompt %}<|assistant|></think>{% endif %}"
    )
    assert Chat(tokenizer, thinking="empty").fill(RECORD, "A")[0].endswith("<|assistant|></think>A")
    assert Chat(tokenizer, thinking="never").fill(RECORD, "A")[0].endswith("<|assistant|>A")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (CHATML.replace("in messages", "in messages[-2:]"), "does not keep the messages"),
        (
            "{% for m in messages %}{% if m.role == 'user' or loop.last %}<|h|>{{ m.content }}"
            "{% endif %}{% endfor %}{% if add_generation_prompt %}<|h|>{% endif %}",
            "does not keep the messages of examples apart .*; leave out --chat, or --shots",
        ),
        (
            "{% for m in messages %}{{ m.content }}\n\n{% endfor %}",
            "does not keep the messages of examples apart",
        ),
        (
            "{% for m in messages if m.role == 'user' %}{{ m.content }}\n{% endfor %}<|h|>"
            "{% for m in messages if m.role == 'assistant' %}{{ m.content }}<|/h|>{% endfor %}",
            "does not keep the messages of examples apart and in their order",
        ),
        (
            "{% if messages | length > 2 %}{{ raise_exception('one question only') }}{% endif %}"
            + CHATML,
            "rejects messages by user, assistant, user.*: one question only; leave out --shots$",
        ),
    ],
)
def test_a_template_without_turns_is_refused(template: str, message: str) -> None:
    tokenizer = chat_tokenizer("bytes, no BOS at all")
    tokenizer.chat_template = template
    with pytest.raises(UsageError, match=message):
        Chat(tokenizer).fill(FEW_SHOT, "A")


@pytest.mark.parametrize("template", [CHATML, HEADERS, TURNS])
def test_a_system_message_is_before_all_turns(template: str) -> None:
    tokenizer = chat_tokenizer("bytes, BOS of both")
    tokenizer.chat_template = template
    system = {"role": "system", "content": "Be brief."}
    text, first, _ = Chat(tokenizer, "Be brief.", "It is (").fill(FEW_SHOT, "A")
    before = [
        system,
        *(
            {**message, "content": message["content"].replace("It is ( ", "It is (")}
            for message in written_by_hand("It is (")
        ),
    ]
    answered = [*before, {"role": "assistant", "content": "It is (A"}]
    assert text == tokenizer.apply_chat_template(
        answered, tokenize=False, continue_final_message=True
    )
    assert text[first:] == "A"
    assert text.count("It is (") == 3


def test_messages_are_written_for_an_item_and_not_for_its_choices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tokenizer = chat_tokenizer("bytes, empty thought of the last answer")
    calls: list[int] = []
    render = chat_module._render
    monkeypatch.setattr(chat_module, "_render", lambda **k: calls.append(1) or render(**k))
    chat = Chat(tokenizer)
    for number in range(50):
        for choice in "ABCD":
            chat.fill(replace(FEW_SHOT, stem=f"item {number} ? [MASK]"), choice)
    assert len(calls) == 2 * 50 + 2  # the messages' order and their parts are looked at once


PARTS = CHATML.replace(
    "{{ m.content }}",
    "{% for part in m.content %}{% if part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}",
)


@pytest.mark.parametrize("template", [PARTS, CHATML.replace("m.content", "m.content[0]['text']")])
def test_a_template_of_parts_is_given_parts(template: str) -> None:
    tokenizer, of_texts = (chat_tokenizer("bytes, no BOS at all") for _ in range(2))
    tokenizer.chat_template = template
    assert Chat(tokenizer, "Be brief.").fill(FEW_SHOT, "A") == Chat(of_texts, "Be brief.").fill(
        FEW_SHOT, "A"
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("beginning", "problem"),
    [
        ("{{ 1 / 0 }}", "ZeroDivisionError: division by zero"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "RecursionError: maximum recursion"),
        ("{{ 1 + 'a' }}", "TypeError: unsupported operand"),
        ("{{ 10.0 ** 400 }}", "OverflowError: "),
        ("{% include 'other' %}", "TypeError: no loader for this environment"),
        ("{% for %}", "TemplateSyntaxError: Expected an expression"),
        ("{{ 'x' * 2000000000 }}", "it takes more than 1 GB of memory"),
        ("{{ 'x' * 20000000 }}", "ValueError: it makes 20,000,.* characters"),
        (f"{{# {'c' * 2**20} #}}", "it has 1,048,.* characters, more than 1,048,576"),
    ],
)
def test_a_template_fails_in_one_line_that_names_it(beginning: str, problem: str) -> None:
    tokenizer = chat_tokenizer("bytes, no BOS at all")
    tokenizer.name_or_path, tokenizer.chat_template = "some/model", beginning + CHATML
    pattern = rf"^the chat template of some/model rejects messages by user: {problem}.*; leave out"
    with pytest.raises(UsageError, match=pattern) as error:
        Chat(tokenizer).fill(RECORD, "A")
    assert "\n" not in str(error.value)


@pytest.mark.thorough
def test_a_template_that_loops_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    brief = Bounded("transformers.utils.chat_template_utils:render_jinja_template", seconds=1)
    monkeypatch.setattr(chat_module, "_render", brief)
    tokenizer = chat_tokenizer("bytes, no BOS at all")
    loops = "{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}"
    tokenizer.chat_template = loops + CHATML
    with pytest.raises(UsageError, match="rejects messages by user: it takes more than 1 seconds"):
        Chat(tokenizer).fill(RECORD, "A")
    tokenizer.chat_template = CHATML  # the next call has a process of its own
    assert Chat(tokenizer).fill(RECORD, "A")[0].endswith("A")


def test_a_template_that_drops_the_answer_is_said_without_an_option_of_transformers() -> None:
    tokenizer = chat_tokenizer("bytes, no BOS at all")
    tokenizer.chat_template = CHATML.replace("m.content", "m.content[:3]")
    with pytest.raises(UsageError, match="leaves out or changes the last message") as error:
        Chat(tokenizer).fill(RECORD, "A")
    assert "continue_final_message" not in str(error.value)
