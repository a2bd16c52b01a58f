"""A tokenizer's chat: a stem as the user's message, and an answer as the assistant's.

Examples are earlier turns of it: a message of the user and one of the assistant each.

Texts are what the tokenizer's own template writes, its special tokens among them, so they are
tokenised without any others: a beginning-of-sequence token is there as often as in the template.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from jinja2.exceptions import TemplateError

from probelight.io.errors import UsageError
from probelight.probes.prompts import Thinking
from probelight.probes.record import MASK, Record

# Some templates write the day, and numbers would change with it. This one is that of Llama 3's
# template where it does not know the day.
_ON_ONE_DAY = "{% macro strftime_now(form) %}26 Jul 2024{% endmacro %}"
_OPENING = ("(", "[", "{", "<", '"', "'", "“", "‘", "«")  # no space comes behind these
_ANSWER = "A"  # any that a template leaves as it is
# Tags are <think> or <seed:think>; some templates write only the second one.
_EMPTY_THOUGHT = re.compile(r"(<[\w:]*(think|thought)\w*>\s*)?</[\w:]*(think|thought)\w*>\s*\Z")


@dataclass(frozen=True)
class Chat:
    """How messages become one text.

    Args:
        tokenizer: One with a chat template.
        system: Text of the system's message; none where it is empty.
        begin: Beginning of each answer, behind which a choice is scored.
        thinking: Whether an empty thought is before the answer that is scored: as the "template"
            writes a finished answer; "empty", as it writes one with enable_thinking=False;
            "never".
    """

    tokenizer: Any
    system: str = ""
    begin: str = ""
    thinking: Thinking = "template"
    _openings: dict[Any, tuple[str, int]] = field(default_factory=dict, repr=False)
    _num_earlier: set[int] = field(default_factory=lambda: {0}, repr=False)  # that are kept apart

    def fill(self, record: Record, choice: str) -> tuple[str, int, int]:
        """Return the text with a choice as the answer, and the characters that are scored.

        A choice is scored from where the template asks the assistant for an answer, or where
        `begin` ends: white space that it puts before an answer belongs to the answer. What else it
        puts there (an empty train of thought) is given.

        Raises:
            UsageError: If the template takes no such messages, leaves one out, merges them, changes
                the answer, or has no thought that is wanted.
        """
        stem = record.stem
        context, mask, after = stem.rpartition(MASK)
        if mask and after.strip():
            raise UsageError(
                f"{stem[:60]!r}: in a chat the blank must be at the end of the message"
            )
        message = context.strip() if mask else stem.strip()
        key = (record.turns, message)
        if key not in self._openings:
            self._openings[key] = self._opening(record, message)
        opening, begin = self._openings[key]
        text = opening + choice.strip()
        return text, begin, len(text)

    def _opening(self, record: Record, message: str) -> tuple[str, int]:
        """Return the text before an answer to a message, and where the answer begins."""
        begin = self.begin.strip()
        lead = begin and begin + ("" if begin.endswith(_OPENING) else " ")
        texts = [
            text for user, answer in record.turns for text in (user.strip(), lead + answer.strip())
        ]
        self._refuse_merged(len(texts))
        messages = [{"role": "system", "content": self.system}] if self.system else []
        messages += _in_turns([*texts, message])
        if self.thinking == "empty":
            prompt = self._text(messages, ends_with_user=True)
            if not _EMPTY_THOUGHT.search(prompt):
                raise UsageError(
                    f"{self._name} writes no empty thought with enable_thinking=False; leave out "
                    "--prompt.thinking empty"
                )
            question, opening = prompt + begin, prompt + lead
        else:
            if begin:
                question = self._text([*messages, {"role": "assistant", "content": begin}])
            else:
                question = self._text(messages, ends_with_user=True)
            answer = {"role": "assistant", "content": lead + _ANSWER}
            answered = self._text([*messages, answer])
            if not answered.endswith(lead + _ANSWER):
                raise UsageError(
                    f"{self._name} adds text after an answer, so choices cannot be scored; leave "
                    "out --chat"
                )
            opening = answered.removesuffix(_ANSWER)
            if self.thinking == "never":
                question = _EMPTY_THOUGHT.sub("", question.removesuffix(begin)) + begin
                opening = _EMPTY_THOUGHT.sub("", opening.removesuffix(lead)) + lead
        options = {self.system.strip(): ", or --prompt.system", message: ""}
        for text, option in (dict.fromkeys(texts, ", or --shots") | options).items():
            if text not in opening:
                raise UsageError(f"{self._name} leaves out {text[:60]!r}; leave out --chat{option}")
        is_prefix = opening.startswith(question) and not opening[len(question) :].strip()
        return opening, len(question) if is_prefix else len(opening)

    @property
    def _name(self) -> str:
        return f"the chat template of {self.tokenizer.name_or_path}"

    def _refuse_merged(self, num_earlier: int) -> None:
        """Raise UsageError if the template does not keep so many messages and one apart."""
        if num_earlier in self._num_earlier:
            return
        texts = [f"message-{number}-" for number in range(num_earlier + 1)]
        chat_text = self._text(_in_turns(texts), ends_with_user=True)
        marks = re.split(r"message-\d+-", chat_text)[1:-1]
        if re.findall(r"message-\d+-", chat_text) != texts or not all(map(str.strip, marks)):
            raise UsageError(
                f"{self._name} does not keep the messages of examples apart and in their order; "
                "leave out --chat, or --shots"
            )
        self._num_earlier.add(num_earlier)

    def _text(self, messages: list[dict[str, str]], ends_with_user: bool = False) -> str:
        thinking = {"enable_thinking": False} if self.thinking == "empty" else {}
        try:
            text: str = self.tokenizer.apply_chat_template(
                messages,
                tokenize=False,
                add_generation_prompt=ends_with_user,
                continue_final_message=not ends_with_user,
                chat_template=_ON_ONE_DAY + self.tokenizer.get_chat_template(),
                **thinking,
            )
        except (TemplateError, ValueError) as error:
            roles = ", ".join(message["role"] for message in messages)
            causes = {"--prompt.system": "system" in roles, "--shots": roles.count("user") > 1}
            options = " or ".join(option for option, is_used in causes.items() if is_used)
            hint = f"; leave out {options}" if options else ""
            raise UsageError(
                f"{self._name} rejects messages by {roles}: {' '.join(str(error).split())}{hint}"
            ) from None
        return text


def _in_turns(texts: list[str]) -> list[dict[str, str]]:
    """Return messages of the user and the assistant in turn."""
    return [
        {"role": role, "content": text}
        for role, text in zip(cycle(("user", "assistant")), texts, strict=False)
    ]
