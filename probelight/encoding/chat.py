"""A tokenizer's chat: a stem as the user's message, and an answer as the assistant's.

Texts are what the tokenizer's own template writes, its special tokens among them, so they are
tokenised without any others: a beginning-of-sequence token is there as often as in the template.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from jinja2.exceptions import TemplateError

from probelight.io.errors import UsageError
from probelight.probes.record import MASK

# Some templates write the day, and numbers would change with it. This one is that of Llama 3's
# template where it does not know the day.
_ON_ONE_DAY = "{% macro strftime_now(form) %}26 Jul 2024{% endmacro %}"
_OPENING = ("(", "[", "{", "<", '"', "'", "“", "‘", "«")  # no space comes behind these
_ANSWER = "A"  # any that a template leaves as it is


@dataclass(frozen=True)
class Chat:
    """How messages become one text.

    Args:
        tokenizer: One with a chat template.
        system: Text of the system's message; none where it is empty.
        begin: Beginning of the answer, behind which a choice is scored.
    """

    tokenizer: Any
    system: str = ""
    begin: str = ""
    _openings: dict[str, tuple[str, int]] = field(default_factory=dict, repr=False)

    def fill(self, stem: str, choice: str) -> tuple[str, int, int]:
        """Return the text with a choice as the answer, and the characters that are scored.

        A choice is scored from where the template asks the assistant for an answer, or where
        `begin` ends: white space that it puts before an answer belongs to the answer. What else it
        puts there (an empty train of thought) is given.

        Raises:
            UsageError: If the template takes no such messages, leaves one out, or changes the
                answer.
        """
        context, mask, after = stem.rpartition(MASK)
        if mask and after.strip():
            raise UsageError(
                f"{stem[:60]!r}: in a chat the blank must be at the end of the message"
            )
        message = context.strip() if mask else stem.strip()
        if message not in self._openings:
            self._openings[message] = self._opening(message)
        opening, begin = self._openings[message]
        text = opening + choice.strip()
        return text, begin, len(text)

    def _opening(self, message: str) -> tuple[str, int]:
        """Return the text before an answer to a message, and where the answer begins."""
        messages = [{"role": "system", "content": self.system}] if self.system else []
        messages.append({"role": "user", "content": message})
        begin = self.begin.strip()
        if begin:
            question = self._text([*messages, {"role": "assistant", "content": begin}])
        else:
            question = self._text(messages, ends_with_user=True)
        gap = "" if begin.endswith(_OPENING) else " "
        answer = f"{begin}{gap}{_ANSWER}" if begin else _ANSWER
        answered = self._text([*messages, {"role": "assistant", "content": answer}])
        if not answered.endswith(_ANSWER):
            raise UsageError(
                f"the chat template of {self.tokenizer.name_or_path} adds text after an answer, so "
                "choices cannot be scored; leave out --chat"
            )
        opening = answered.removesuffix(_ANSWER)
        for text in (self.system.strip(), message):
            if text not in opening:
                raise UsageError(
                    f"the chat template of {self.tokenizer.name_or_path} leaves out "
                    f"{text[:60]!r}; leave out --chat"
                    + (", or --prompt.system" if text != message else "")
                )
        is_prefix = opening.startswith(question) and not opening[len(question) :].strip()
        return opening, len(question) if is_prefix else len(opening)

    def _text(self, messages: list[dict[str, str]], ends_with_user: bool = False) -> str:
        try:
            text: str = self.tokenizer.apply_chat_template(
                messages,
                tokenize=False,
                add_generation_prompt=ends_with_user,
                continue_final_message=not ends_with_user,
                chat_template=_ON_ONE_DAY + self.tokenizer.get_chat_template(),
            )
        except (TemplateError, ValueError) as error:
            roles = ", ".join(message["role"] for message in messages)
            hint = "; leave out --prompt.system" if self.system else ""
            raise UsageError(
                f"the chat template of {self.tokenizer.name_or_path} rejects messages by {roles}: "
                f"{' '.join(str(error).split())}{hint}"
            ) from None
        return text
