"""Items as they are put to a model: examples before them, letters for their choices, a chat.

Asked by words, an item is its own text, or a question in a text of a file; by letters (Robinson et
al. 2023) a prompt lists its choices with labels. Examples of the train split may be before either
(Brown et al. 2020).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import permutations, zip_longest
from pathlib import Path
from random import Random
from string import Formatter, ascii_uppercase
from typing import ClassVar, Literal

from probelight.io import ranges
from probelight.io.documents import read_yaml
from probelight.io.errors import ConfigError, RecordError, UsageError
from probelight.io.package import shipped_path
from probelight.io.settings import STRICT, Settings, typed
from probelight.probes.record import MASK, GroupBy, Record, Setup, group_of, share_choices
from probelight.probes.splits import nested_sample

Orders = Literal["one", "cyclic", "all"]
Chat = Literal["auto", "always", "never"]
Thinking = Literal["template", "empty", "never"]
Order = tuple[int, ...]  # the index of the choice at each label
BLANK = "____"
LABELS = ascii_uppercase
MOST_PERMUTED = 4  # choices, in 24 orders
BETWEEN = "\n\n"  # examples, and the item behind them
# What a text may have beside the question: columns of BoolQ, MMLU and SciQ.
ITEM_FACTS = ("passage", "subject", "support")


@dataclass(frozen=True)
class LetterSettings(Settings):
    """How the scoring rule `letter` asks.

    Args:
        orders: Orders in which to list the choices: "one", that of the file; "cyclic", in which
            each choice gets each label once; "all", for up to 4 choices.
    """

    orders: Orders = "one"


@dataclass(frozen=True)
class PromptSettings(Settings):
    """The texts around items.

    Args:
        file: YAML file with the texts around questions, for letters and in a chat;
            configs/prompt/harness.yaml has the one of lm-evaluation-harness around questions.
        system: System message of a chat.
        begin: Beginning of the answer in a chat, which the model continues.
        thinking: Thought before the answer in a chat: as the "template" writes a finished answer;
            "empty", as the template writes it with enable_thinking=False; or "never" one.
        seed: Seed for drawing the examples and their labels.
    """

    file: ranges.PathText = "configs/prompt/default.yaml"
    system: str = ""
    begin: str = ""
    thinking: Thinking = "template"
    seed: ranges.Seed = 0


@dataclass(frozen=True, kw_only=True)
class Templates:
    """The texts around an item and its choices, see configs/prompt/default.yaml."""

    __pydantic_config__: ClassVar = STRICT

    choice: str
    mc_qa: str
    mc_mlm: str
    minimal_pair: str
    chat_mc_qa: str
    chat_mc_mlm: str
    words_mc_qa: str = ""  # none: a question as it is
    words_minimal_pair: str = ""

    @classmethod
    def read(cls, path: str | Path) -> Templates:
        """Read templates from a file; those that it leaves out are the default ones.

        Raises:
            ConfigError: If it cannot be read, or a template lacks a place or has an unknown one.
        """
        texts = read_yaml(path)
        if isinstance(texts, dict):
            texts = read_yaml(shipped_path(PromptSettings().file)) | texts
        templates = typed(cls, texts, str(path), ConfigError)
        needed = {
            "choice": {"label", "text"},
            "mc_qa": {"question", "choices"},
            "mc_mlm": {"question", "choices"},
            "minimal_pair": {"choices"},
            "chat_mc_qa": {"question"},
            "chat_mc_mlm": {"question"},
            **({"words_mc_qa": {"question"}} if templates.words_mc_qa else {}),
            **({"words_minimal_pair": {"sentence"}} if templates.words_minimal_pair else {}),
        }
        for name, needed_fields in needed.items():
            try:
                fields = {f for _, f, _, _ in Formatter().parse(getattr(templates, name))}
            except ValueError as error:
                raise ConfigError(f"{path}: `{name}`: {error}; write a brace as {{{{") from None
            facts = {*ITEM_FACTS} if name in ("mc_qa", "words_mc_qa") else set[str]()
            if (fields - {None} - facts) != needed_fields:
                names = " and ".join(f"{{{field}}}" for field in sorted(needed_fields))
                but = f" but {', '.join(f'{{{fact}}}' for fact in sorted(facts))}" if facts else ""
                raise ConfigError(f"{path}: `{name}` must have {names}, and no other{but}")
        return templates

    def around_words(self, setup: Setup) -> str:
        """Return the text around an item that is answered by words; empty where there is none."""
        texts = {"mc_qa": self.words_mc_qa, "minimal_pair": self.words_minimal_pair}
        return texts.get(setup, "")

    def letters(self, record: Record, setup: Setup, order: Order) -> str:
        """Return the prompt for a letter, with the choices in `order`.

        Raises:
            RecordError: If the item has more choices than there are letters.
        """
        if len(order) > len(LABELS):
            most = len(LABELS)
            raise RecordError(f"{record.where}: {len(order)} choices, but only {most} letters")
        listed = [
            self.choice.format(label=label, text=record.choices[index].strip())
            for label, index in zip(LABELS, order, strict=False)
        ]
        template: str = getattr(self, setup)
        text = filled_in(template, record, record.stem.strip(), choices="\n".join(listed))
        return text.replace(MASK, BLANK)


@dataclass(frozen=True, kw_only=True)
class PromptSpec(Settings):
    """What of the settings of prompts decides the numbers of a run.

    Args:
        templates: The texts around an item.
        shots: Examples before each item.
        chat: Whether to use a tokenizer's chat template.
        system: System message of a chat.
        begin: Beginning of the answer in a chat.
        seed: Seed of the examples.
        checksum: Beginning of the checksum of texts that are not the usual ones; else empty.
        thinking: Thought before the answer in a chat.
    """

    templates: Templates
    shots: ranges.NumShots = 0
    chat: Chat = "never"
    system: str = ""
    begin: str = ""
    seed: ranges.Seed = 0
    checksum: str = ""
    thinking: Thinking = "template"

    @property
    def has_context(self) -> bool:
        """Whether items are more than their own texts: there are examples, or a chat."""
        return bool(self.shots) or self.chat != "never"


@dataclass(frozen=True)
class Prompts:
    """How the items of a set are put to a model.

    Attributes:
        templates: The texts around an item; None where there are none.
        setup: The setup of the items.
        group_by: What makes items one group: no item is asked behind an example of its own.
        train: What examples are drawn from.
        num_shots: Examples before each item.
        seed: Of the draw, which does not depend on the order of `train`.
        in_chat: Whether items are the user's messages in a chat, and examples its earlier turns.
        chat: Whether a model with a chat template is to be asked in it.
        system: System message of a chat.
        begin: Beginning of the answer in a chat.
        thinking: Thought before the answer in a chat.
        checksum: Beginning of the checksum of texts that are not the usual ones; else empty.
        controlled_stems: By the item's name the stem that it is asked with, under a control.
    """

    templates: Templates | None
    setup: Setup
    group_by: GroupBy | None = None
    train: tuple[Record, ...] = ()
    num_shots: int = 0
    seed: int = 0
    in_chat: bool = False
    chat: Chat = "never"
    system: str = ""
    begin: str = ""
    thinking: Thinking = "template"
    checksum: str = ""
    controlled_stems: Mapping[str, str] = field(default_factory=dict)

    @property
    def words_template(self) -> str:
        """The text around an item that is answered by words; empty where there is none."""
        if self.templates is None or self.in_chat:
            return ""
        return self.templates.around_words(self.setup)

    def controlled(self, record: Record) -> Record:
        """Return an item with the stem that it has under the control, if there is one."""
        stem = self.controlled_stems.get(record.name)
        return record if stem is None else replace(record, stem=stem)

    def words(self, record: Record, stem: str | None = None, *, is_prompt: bool = False) -> Record:
        """Return an item as it is asked by words, or with another stem in the place of its own.

        Minimal pairs are whole sentences, whose stem is the text around them, if there is one. A
        stem that `is_prompt` already, such as "Answer:", gets no text around it.
        """
        if self.setup == "minimal_pair" and self.words_template:
            return replace(record, stem=self.words_template.format(sentence=MASK))
        if self.setup == "minimal_pair" or (not self.templates and stem is None):
            return self.controlled(record)
        stem = self.controlled(record).stem if stem is None else stem
        if self.in_chat:
            turns = tuple((self._message(e.stem), e.gold) for e in self.shots(record))
            return replace(record, stem=f"{self._message(stem)} {MASK}", turns=turns)
        examples = []
        for example in self.shots(record):
            text, answer = self._in_template(example, example.stem), example.gold.strip()
            has_blank = MASK in text
            filled = text.replace(MASK, answer) if has_blank else f"{text.rstrip()} {answer}"
            examples.append(filled.replace(MASK, BLANK))  # the item has its own
        text = stem if is_prompt else self._in_template(record, stem)
        return replace(record, stem=BETWEEN.join([*examples, text]))

    def letters(self, record: Record, order: Order) -> Record:
        """Return a sentence whose blank is at its end and takes a label; choices are in `order`."""
        assert self.templates is not None
        labels = tuple(LABELS[: len(order)])
        rng = Random(self.seed)
        first = rng.randrange(len(LABELS))  # not always the first labels, of few examples
        draws = [*range(first, first + self.num_shots)]
        rng.shuffle(draws)
        turns = []
        for example, draw in zip(self.shots(record), draws, strict=True):
            # Each label is right equally often, whatever the file's order.
            label, size = draw % len(example.choices), len(example.choices)
            shown_order = tuple((example.answer - label + n) % size for n in range(size))
            text = self.templates.letters(example, self.setup, shown_order)
            turns.append((text, LABELS[label]))
        text = self.templates.letters(self.controlled(record), self.setup, order)
        if not self.in_chat:
            text = BETWEEN.join([*map(" ".join, turns), text])
            turns = []
        name = f"{record.name} in the order {' '.join(str(index + 1) for index in order)}"
        return Record(
            name,
            f"{text} {MASK}",
            labels,
            order.index(record.answer),
            position=record.position,
            file=record.file,
            turns=tuple(turns),
        )

    def shots(self, record: Record) -> tuple[Record, ...]:
        """Return the examples before an item, none of its group or with its very words.

        Where all items share their choices, each of these is right equally often.

        Raises:
            UsageError: If there are too few.
        """
        if not self.num_shots:
            return ()
        usual = self._drawn_examples[: self.num_shots]
        own_groups = self._groups(record)
        are_allowed = all(own_groups.isdisjoint(groups) for groups, _ in usual)
        if len(usual) == self.num_shots and are_allowed:
            return tuple(example for _, example in usual)
        outside = [e for groups, e in self._drawn_examples if own_groups.isdisjoint(groups)]
        examples = self._in_turns(outside)
        if len(examples) < self.num_shots:
            raise UsageError(
                f"--shots {self.num_shots}: the train split has only {len(examples)} items outside "
                f"the group of {record.where}; "
                + (f"give --shots {len(examples)} or fewer" if examples else "leave it out")
            )
        return tuple(examples[: self.num_shots])

    @cached_property
    def _drawn_examples(self) -> list[tuple[frozenset[tuple[str, str]], Record]]:
        """Return all examples with their groups, in the order in which they are taken."""
        drawn = self._in_turns(nested_sample(self.train, self.seed))
        return [(self._groups(record), record) for record in drawn]

    def _groups(self, record: Record) -> frozenset[tuple[str, str]]:
        """Return the groups of an item; examples of the same groups are not used for it."""
        texts = [record.stem, *sorted(choice.strip() for choice in record.choices)]
        words = " | ".join(texts).casefold().split()
        return frozenset({("words", " ".join(words)), ("group", group_of(record, self.group_by))})

    def _in_turns(self, records: Sequence[Record]) -> list[Record]:
        """Order items so that right answers alternate, if all items share their choices."""
        if not share_choices(self.train):
            return [*records]
        by_gold: dict[str, list[Record]] = defaultdict(list)
        for record in records:
            by_gold[record.gold].append(record)
        turns = zip_longest(*by_gold.values())
        return [record for turn in turns for record in turn if record is not None]

    def _in_template(self, record: Record, stem: str) -> str:
        """Return a stem within the template of questions, if there is a template."""
        template = self.words_template
        return filled_in(template, record, _question(stem)) if template else stem

    def _message(self, stem: str) -> str:
        assert self.templates is not None
        if self.setup == "mc_qa":
            return self.templates.chat_mc_qa.format(question=_question(stem))
        return self.templates.chat_mc_mlm.format(question=stem.replace(MASK, BLANK).strip())


def facts_in(template: str) -> list[str]:
    """Return which facts of an item a text has beside the question."""
    return [name for name in ITEM_FACTS if f"{{{name}}}" in template]


def filled_in(template: str, record: Record, question: str, **texts: str) -> str:
    """Return a text with a question in it, and with what else it has of the item.

    A passage that is in the text is left out of the question.

    Raises:
        RecordError: If the item lacks a fact that the text has.
    """
    for name in facts_in(template):
        fact = record.meta.get(name)
        if not isinstance(fact, str):
            raise RecordError(
                f"{record.where}: the text of the prompt has {{{name}}}, but the item has no "
                f"`{name}`; use another text for this set"
            )
        texts[name] = fact.replace("_", " ") if name == "subject" else fact.lstrip()
    question = question.removeprefix(texts.get("passage", "")).lstrip()
    return template.format(question=question, **texts)


def _question(stem: str) -> str:
    # A mask at the end says no more than that the answer comes next.
    return stem.strip().removesuffix(MASK).replace(MASK, BLANK).strip()


def orders_of(record: Record, orders: Orders) -> list[Order]:
    """Return the orders in which an item's choices are shown, that of its file first.

    Raises:
        UsageError: If all orders are asked for of an item with more choices than `MOST_PERMUTED`.
    """
    indices = tuple(range(len(record.choices)))
    if orders == "one":
        return [indices]
    if orders == "cyclic":
        return [indices[first:] + indices[:first] for first in indices]
    if len(indices) > MOST_PERMUTED:
        raise UsageError(
            f"--letters.orders all: {record.where} has {len(indices)} choices, but at most "
            f"{MOST_PERMUTED} can be listed in all orders; give --letters.orders cyclic"
        )
    return list(permutations(indices))


def by_choice(scores: Sequence[float], order: Order) -> list[float]:
    """Return the scores of labels (K,) in the order of the item's choices."""
    choice_scores = [0.0] * len(order)
    for index, score in zip(order, scores, strict=True):
        choice_scores[index] = score
    return choice_scores
