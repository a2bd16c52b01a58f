"""A tokenizer's chat: a stem as the user's message, and an answer as the assistant's.

Examples are earlier turns of it: a message of the user and one of the assistant each.

Texts are what the tokenizer's own template writes, its special tokens among them, so they are
tokenised without any others: a beginning-of-sequence token is there as often as in the template.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from itertools import cycle
from typing import Any

from probelight.io.bounded import Bounded, BoundedError, LimitError
from probelight.io.errors import UsageError
from probelight.probes.prompts import Thinking
from probelight.probes.record import MASK, Record

# Some templates write the day, and numbers would change with it. This one is that of Llama 3's
# template where it does not know the day.
_ON_ONE_DAY = "{% macro strftime_now(form) %}26 Jul 2024{% endmacro %}"
_OPENING = ("(", "[", "{", "<", '"', "'", "“", "‘", "«")  # no space comes behind these
_PROBE = "message-0-"
_ANSWER = "A"  # any that a template leaves as it is
MAX_TEMPLATE = 1 << 20  # characters; the longest known ones have thirty thousand
# Templates are programs of strangers.
_render = Bounded("transformers.utils.chat_template_utils:render_jinja_template")
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

    @cached_property
    def _takes_parts(self) -> bool:
        """Whether the content of a message is a list of parts, texts and images, in the template.

        One that takes texts as they are gets them so.
        """
        for takes_parts in (False, True):
            try:
                chat_text = self._rendered(_in_turns([_PROBE]), takes_parts, ends_with_user=True)
            except LimitError:
                raise
            except (BoundedError, ValueError):
                continue
            if _PROBE in chat_text and "'type'" not in chat_text:  # not how Python writes a list
                return takes_parts
        return False

    def _text(self, messages: list[dict[str, str]], ends_with_user: bool = False) -> str:
        try:
            return self._rendered(messages, self._takes_parts, ends_with_user)
        except (BoundedError, ValueError) as error:
            roles = ", ".join(message["role"] for message in messages)
            causes = {"--prompt.system": "system" in roles, "--shots": roles.count("user") > 1}
            options = " or ".join(option for option, is_used in causes.items() if is_used)
            problem = " ".join(str(error).split()).removeprefix("TemplateError: ")
            if "continue_final_message" in problem:  # an option of transformers
                problem = "it leaves out or changes the last message"
            raise UsageError(
                f"{self._name} rejects messages by {roles}: {problem}; leave out "
                f"{options or '--chat'}"
            ) from None

    def _rendered(
        self, messages: list[dict[str, str]], takes_parts: bool, ends_with_user: bool
    ) -> str:
        template = self.tokenizer.get_chat_template()
        if len(template) > MAX_TEMPLATE:
            raise ValueError(f"it has {len(template):,} characters, more than {MAX_TEMPLATE:,}")
        thinking = {"enable_thinking": False} if self.thinking == "empty" else {}
        contents: list[Any] = [message["content"] for message in messages]
        if takes_parts:
            contents = [[{"type": "text", "text": text}] for text in contents]
        conversation = [
            {**message, "content": content}
            for message, content in zip(messages, contents, strict=True)
        ]
        [text], _ = _render(
            conversations=[conversation],
            chat_template=_ON_ONE_DAY + template,
            add_generation_prompt=ends_with_user,
            continue_final_message=not ends_with_user,
            **self.tokenizer.special_tokens_map,
            **thinking,
        )
        return str(text)


def _in_turns(texts: list[str]) -> list[dict[str, str]]:
    """Return messages of the user and the assistant in turn."""
    return [
        {"role": role, "content": text}
        for role, text in zip(cycle(("user", "assistant")), texts, strict=False)
    ]
