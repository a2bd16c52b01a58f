"""Controls and variants of a probe: functions Record -> Record.

`CONTROLS` has the controls: the language controls of Talmor et al. 2020, section 3.3, and others.
`VARIANTS` has the variants, which ask another question about the same items.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from probelight.io.errors import ConfigError, RecordError, UsageError, nearest
from probelight.probes.catalog import KEPT, Arguments, ProbeConfig
from probelight.probes.record import MASK, GroupBy, Record, groups_of
from probelight.probes.source import ProbeData

STANDARD = "standard"  # the probe as it is
AUTO = "auto"  # the controls that need no config
CHOICE_ONLY = "choice_only"
SEED = 0  # of what is drawn where a user gives none
FIRST_DISTRACTOR = "first_distractor"  # in a row's notes: the wrong answer with the first property
NONSENSE_WORDS = ("blah", "ya", "foo", "snap", "woo", "boo", "da", "wee", "foe", "fee")


class NonsenseError(ConfigError):
    """Too few meaningless words are a single token in all models."""


def choose_nonsense(config: ProbeConfig, usable: Callable[[str], bool]) -> dict[str, str]:
    """Choose a meaningless word for each candidate: the one in the config, if it is usable.

    Args:
        config: The probe's config. If it has no closed set of candidates, the result is empty.
        usable: Returns whether a word is a single token in every model.

    Raises:
        NonsenseError: If there are fewer usable words than candidates.
    """
    chosen = {c: word for c, word in config.nonsense.items() if usable(word)}
    free = (w for w in NONSENSE_WORDS if w not in chosen.values() and usable(w))
    for candidate in config.candidates:
        if candidate not in chosen:
            word = next(free, None)
            if word is None:
                raise NonsenseError(
                    f"{config.name}: {len(config.candidates)} candidates, but only {len(chosen)} "
                    "nonsense words are a single token in all of these models"
                )
            chosen[candidate] = word
    return {candidate: chosen[candidate] for candidate in config.candidates}


def draw_substitutes(config: ProbeConfig, seed: int) -> dict[str, str]:
    """Draw a meaningless word for each of the probe's key words, all different if possible.

    Raises:
        ConfigError: If the probe has no key words.
    """
    if not config.key_words:
        raise ConfigError(
            f"{config.name}: no `key_words`, so there is no perturbed_language control"
        )
    generator = random.Random(f"{seed} {config.name}")
    words: list[str] = []
    while len(words) < len(config.key_words):
        words += generator.sample(NONSENSE_WORDS, len(NONSENSE_WORDS))
    return dict(zip(config.key_words, words, strict=False))


def no_language(record: Record, config: ProbeConfig, nonsense: Mapping[str, str]) -> Record:
    """Keep only `[MASK]` and the arguments, in their order: "24 [MASK] 55".

    Words that the template marks as `kept` stay too: without "larger", the item "bat [MASK] larger
    wolf" would have no answer.

    Args:
        record: An item of the probe.
        config: The probe's config, with the templates.
        nonsense: Candidate to meaningless word, the same for the whole probe. If it is empty, as
            for probes whose candidates vary, the choices stay as they are.

    Raises:
        RecordError: If no template of the probe fits, a candidate has no meaningless word, or the
            stem does not change.
    """
    arguments = _arguments(record, config)
    spans = arguments.spans + arguments.kept_spans
    if MASK in record.stem:
        start = record.stem.index(MASK)
        spans.append((start, start + len(MASK)))
    stem = " ".join(record.stem[start:end] for start, end in sorted(spans))
    missing = [choice for choice in record.choices if nonsense and choice not in nonsense]
    if missing:
        raise RecordError(f"{record.where}: there is no nonsense word for {missing[0]!r}")
    choices = tuple(nonsense.get(choice, choice) for choice in record.choices)
    return _changed(record, stem, choices)


def perturbed_language(
    record: Record, config: ProbeConfig, substitutes: Mapping[str, str]
) -> Record:
    """Replace the probe's key words; `[MASK]`, arguments and candidates stay as they are.

    Args:
        record: An item of the probe.
        config: The probe's config, with the templates.
        substitutes: Key word to meaningless word (see `draw_substitutes`).

    Raises:
        RecordError: If no template of the probe fits, or the stem contains no key word.
    """
    if not substitutes:
        raise RecordError(f"{record.where}: there are no words to replace")
    keep = _arguments(record, config).spans
    by_length = sorted(substitutes, key=len, reverse=True)
    lower = {word.lower(): substitute for word, substitute in substitutes.items()}
    words = "|".join(re.escape(word) for word in by_length)

    def substitute(match: re.Match[str]) -> str:
        inside = any(start < match.end() and match.start() < end for start, end in keep)
        return match.group() if inside else lower[match.group().lower()]

    stem = re.sub(rf"(?<![\w\[])(?:{words})(?![\w\]])", substitute, record.stem, flags=re.I)
    return _changed(record, stem, record.choices)


def choice_only(record: Record, config: ProbeConfig, words: Mapping[str, str]) -> Record:
    """Show the choices without their question: an empty stem, or `[MASK]` alone if it has one.

    What a model learns from the choices alone, the choices give away (Richardson et al. 2020,
    section 4.1).
    """
    return replace(record, stem=MASK if MASK in record.stem else "")


def shuffled_words(record: Record, config: ProbeConfig, words: Mapping[str, str]) -> Record:
    """Put the words of the question, as white space separates them, into another order.

    The word with the `[MASK]` stays where it is: at another place other words fit, whatever the
    question is, and a causal model would read another part of it.

    Raises:
        RecordError: If there are no two different words to shuffle.
    """
    stem_words = record.stem.split()
    indices = [index for index, word in enumerate(stem_words) if MASK not in word]
    movable = [stem_words[index] for index in indices]
    if len({*movable}) < 2:
        raise RecordError(f"{record.where}: no two different words to shuffle in {record.stem!r}")
    generator, shuffled = random.Random(f"{SEED} {record.name} {record.stem}"), movable
    while shuffled == movable:
        shuffled = generator.sample(movable, len(movable))
    for index, word in zip(indices, shuffled, strict=True):
        stem_words[index] = word
    return replace(record, stem=" ".join(stem_words))


def other_question(record: Record, config: ProbeConfig, words: Mapping[str, str]) -> Record:
    """Ask the question that `words` has for the item's name (see `draw_questions`)."""
    return replace(record, stem=words[record.name])


def draw_questions(records: Sequence[Record], group_by: GroupBy | None) -> dict[str, str]:
    """Draw the question of an item of another group for each item, by its name.

    Each question is drawn once, unless more than half of the items are one group.

    Raises:
        ConfigError: If all items are one group.
    """
    groups = groups_of(records, group_by)
    by_group: dict[str, list[Record]] = {}
    for index in random.Random(SEED).sample(range(len(records)), len(records)):
        by_group.setdefault(groups[index], []).append(records[index])
    if len(by_group) < 2:
        raise ConfigError("all of its items are one group, so there is no question of another")
    largest_first = sorted(by_group.values(), key=len, reverse=True)
    order, step = [record for group in largest_first for record in group], len(largest_first[0])
    # No group is longer than the step, so it leads out of each.
    donors = [order[step + index % (len(order) - step)] for index in range(step)]
    donors += [order[(index + step) % len(order)] for index in range(step, len(order))]
    return {record.name: donor.stem for record, donor in zip(order, donors, strict=True)}


def _arguments(record: Record, config: ProbeConfig) -> Arguments:
    arguments = config.find_arguments(record.stem)
    if arguments is None:
        raise RecordError(f"{record.where}: no template of {config.name} fits {record.stem!r}")
    return arguments


def _changed(record: Record, stem: str, choices: tuple[str, ...]) -> Record:
    if stem == record.stem:
        raise RecordError(f"{record.where}: the control does not change {record.stem!r}")
    return replace(record, stem=stem, choices=choices)


def phrased(record: Record, config: ProbeConfig, phrasing: str) -> Record:
    """Return an item in another wording, one of the `phrasings` of its probe's config.

    Raises:
        RecordError: If no template of the probe fits, or the wording needs an argument that the
            stem does not have.
    """
    arguments = _arguments(record, replace(config, arguments=config.phrased or config.arguments))
    texts = {str(n): record.stem[slice(*span)] for n, span in enumerate(arguments.spans, start=1)}
    for span in arguments.kept_spans:
        texts[KEPT] = record.stem[slice(*span)]
    text, placeholder = config.phrasings[phrasing], re.compile(r"\{(\w+)\}")
    if missing := {*placeholder.findall(text)} - texts.keys():
        raise RecordError(
            f"{record.where}: `phrasings.{phrasing}` of {config.name} has {{{min(missing)}}}, but "
            f"there are {len(arguments.spans)} arguments in {record.stem!r}"
        )
    return replace(record, stem=placeholder.sub(lambda match: texts[match[1]], text))


def phrasings_named(config: ProbeConfig, names: Sequence[str], option: str) -> list[str]:
    """Return the phrasings of a probe that the user chose.

    Args:
        config: The probe's config.
        names: Names of phrasings; "all" stands for all of them.
        option: The option that chose them, for messages.

    Raises:
        UsageError: If the probe has no such phrasing; the message lists those it has.
    """
    phrasings = [*config.phrasings]
    if not phrasings:
        raise UsageError(
            f"{option}: {config.name} has no `phrasings` in its config (docs/own_probe.md)"
        )
    for name in names:
        if name not in (*phrasings, "all"):
            raise UsageError(
                f"{option}: {config.name} has no phrasing {name!r}{nearest(name, phrasings)}; it "
                f"has {', '.join(phrasings)}; give all for all of them"
            )
    return phrasings if "all" in names else [*names]


@dataclass(frozen=True)
class Control:
    """A version of a probe on which a model should fail, or learn no faster, for a known reason.

    Attributes:
        change: Maps a record, its probe's config and the new words to the record under the control.
        replaces: What the new words replace, which are drawn once per probe: candidates
            (`choose_nonsense`), key words (`draw_substitutes`), the question (`draw_questions`), or
            nothing.
        needs_arguments: Whether it needs the `arguments` of a probe's config.
    """

    change: Callable[[Record, ProbeConfig, Mapping[str, str]], Record]
    replaces: Literal["the candidates", "key words", "the question", ""] = ""
    needs_arguments: bool = True

    def fits(self, config: ProbeConfig) -> bool:
        """Return whether the probe has a question, and its config what the control needs."""
        has_question = config.setup != "minimal_pair"
        has_words = bool(config.key_words) or self.replaces != "key words"
        return has_question and has_words and (bool(config.arguments) or not self.needs_arguments)


CONTROLS: dict[str, Control] = {
    "no_language": Control(no_language, "the candidates"),
    "perturbed_language": Control(perturbed_language, "key words"),
    CHOICE_ONLY: Control(choice_only, needs_arguments=False),
    "shuffled_words": Control(shuffled_words, needs_arguments=False),
    "other_question": Control(other_question, "the question", needs_arguments=False),
}
WITHOUT_CONFIG = (CHOICE_ONLY, "shuffled_words", "other_question")


def control_named(name: str) -> Control:
    """Return the control with this name.

    Raises:
        ConfigError: If there is none; the message lists the names.
    """
    if name not in CONTROLS:
        names = [STANDARD, *CONTROLS]
        raise ConfigError(
            f"there is no control {name!r}{nearest(name, names)}; choose one of {', '.join(names)}"
        )
    return CONTROLS[name]


def controlled_stems(name: str, data: ProbeData) -> dict[str, str]:
    """Return each item's question under a control without training, by the item's name.

    Choices stay as they are: nothing teaches a model what a meaningless one stands for.

    Raises:
        ConfigError: If the control does not fit the probe.
        RecordError: If it cannot change a question.
    """
    if name == STANDARD:
        return {}
    control, config = control_named(name), data.config
    if not control.fits(config):
        lacks = "`arguments` or `key_words` in its config (docs/own_probe.md)"
        raise ConfigError(f"there is no {'question' if config.setup == 'minimal_pair' else lacks}")
    words: Mapping[str, str] = {}
    if control.replaces == "key words":
        words = draw_substitutes(config, SEED)
    elif control.replaces == "the question":
        words = draw_questions(data.records, config.group_by)
    return {r.name: control.change(r, config, words).stem for r in data.records}


def fitting_controls(names: Sequence[str], data: ProbeData) -> list[str]:
    """Return the controls of `--controls` that fit a set; print which of `auto` do not.

    Raises:
        UsageError: If one that is named is unknown, or does not fit.
    """
    choices = [AUTO, STANDARD, *CONTROLS]
    for name in names:
        if name not in choices:
            near = nearest(name.lower(), choices)
            raise UsageError(
                f"--controls: there is no control {name!r}{near}; choose from {', '.join(choices)}"
            )
    fitting = []
    for control in CONTROLS:
        if control in names or (AUTO in names and control in WITHOUT_CONFIG):
            try:
                controlled_stems(control, data)
                fitting.append(control)
            except (ConfigError, RecordError) as error:
                problem = f"{data.config.name} cannot be asked under {control}: {error}"
                if control in names:
                    raise UsageError(f"--controls: {problem}") from None
                print(problem)
    return fitting


def but_not(record: Record, config: ProbeConfig) -> Record:
    """Turn a conjunction into an exception (Talmor 2020, section 4.4).

    "What is usually located at hand and used for writing?" (pen; spoon, computer) becomes "What is
    usually located at hand but not used for writing?", whose answer is the distractor that has the
    first property and lacks the second. The item's notes must name it as `first_distractor`, as the
    released files shuffle the choices.

    Raises:
        RecordError: If the stem lacks the two properties or the "and" between them, or the notes do
            not say which wrong answer has the first property.
    """
    arguments = config.find_arguments(record.stem)
    if arguments is None or len(arguments.spans) != 2:
        raise RecordError(
            f"{record.where}: the template of {config.name} finds no two arguments in "
            f"{record.stem!r}"
        )
    (_, end), (start, _) = arguments.spans
    conjunction, count = re.subn(
        r"\band( is)?\b",
        lambda match: "but is not" if match[1] else "but not",
        record.stem[end:start],
        count=1,
    )
    if not count:
        raise RecordError(f"{record.where}: no 'and' between the arguments in {record.stem!r}")
    answer = record.meta.get(FIRST_DISTRACTOR)
    if answer is None:
        raise RecordError(
            f"{record.where}: the notes do not say which wrong answer has the first property; "
            "but_not needs it as the right answer. The released files do not say it; in your own "
            f'file, add the text of that answer to the notes of each row as "{FIRST_DISTRACTOR}"'
        )
    if answer not in record.wrong:
        raise RecordError(
            f"{record.where}: `{FIRST_DISTRACTOR}` is {answer!r}, but the wrong answers are "
            + ", ".join(map(repr, record.wrong))
        )
    stem = record.stem[:end] + conjunction + record.stem[start:]
    gold = record.choices.index(answer)
    return replace(record, id=f"{record.id}-but_not", stem=stem, answer=gold)


VARIANTS: Mapping[str, Callable[[Record, ProbeConfig], Record]] = {"but_not": but_not}


def vary(data: ProbeData, variant: str) -> ProbeData:
    """Turn a split of a probe into one of the probe's variants, called `<probe>_<variant>`.

    Raises:
        ConfigError: If the probe's config has no such variant.
        RecordError: If a record does not allow it; the message names the record.
    """
    config = data.config
    if variant not in config.variants or variant not in VARIANTS:
        variants = [name for name in config.variants if name in VARIANTS]
        raise ConfigError(
            f"{config.name} has no variant {variant!r}{nearest(variant, variants)}; "
            f"it has {', '.join(variants) or 'none'}"
        )
    keys = vars(config.variants[variant])
    changed = replace(config, name=f"{config.name}_{variant}", variants={}, **keys)
    records = tuple(VARIANTS[variant](record, config) for record in data.records)
    spent: dict[str, float] = {}
    for record in records:  # its expressions were not tried when the file was read
        changed.find_arguments(record.stem, spent)
    return replace(data, config=changed, records=records)
