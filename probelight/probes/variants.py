"""Variants of a probe that are made from its records, as functions of a record."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from probelight.io.errors import ConfigError, RecordError, nearest
from probelight.probes.catalog import ProbeConfig
from probelight.probes.record import Record
from probelight.probes.source import ProbeData

FIRST_DISTRACTOR = "first_distractor"  # in a row's notes: the wrong answer with the first property


def but_not(record: Record, config: ProbeConfig) -> Record:
    """A conjunction turned into an exception (Talmor 2020, section 4.4).

    "What is usually located at hand and used for writing?" (pen; spoon, computer) becomes "What is
    usually located at hand but not used for writing?", whose answer is the first distractor of the
    construction: it has the first property and lacks the second. Which one that is only the row
    can say, in `first_distractor` of its notes: the choices of the released files are shuffled, and
    they carry nothing else. The choices and their order stay.

    Args:
        record: An item of the probe.
        config: Says where its two properties stand.

    Raises:
        RecordError: If the two properties are not found, no "and" is between them, or the record
            does not say which wrong answer has the first property.
    """
    found = config.find_arguments(record.stem)
    if found is None or len(found[1]) != 2:
        raise RecordError(
            f"{record.where}: the two arguments of {config.name} are not in {record.stem!r}"
        )
    (_, end), (start, _) = found[1]
    between, count = re.subn(
        r"\band( is)?\b",
        lambda match: "but is not" if match[1] else "but not",
        record.stem[end:start],
        count=1,
    )
    if not count:
        raise RecordError(f"{record.where}: no 'and' between the arguments in {record.stem!r}")
    answer = _first_distractor(record)
    stem = record.stem[:end] + between + record.stem[start:]
    return replace(record, id=f"{record.id}-but_not", stem=stem, answer=answer)


def _first_distractor(record: Record) -> int:
    """The index of the wrong answer that has the first property."""
    said = record.meta.get(FIRST_DISTRACTOR)
    if said is None:
        raise RecordError(
            f"{record.where}: nothing says which wrong answer has the first property, and that is "
            "the answer of but_not. The released files do not say it; in a file of your own, write "
            f'its text into the notes of each row, as "{FIRST_DISTRACTOR}"'
        )
    if said not in record.wrong:
        raise RecordError(
            f"{record.where}: `{FIRST_DISTRACTOR}` is {said!r}, and the wrong answers are "
            + ", ".join(map(repr, record.wrong))
        )
    return record.choices.index(said)


VARIANTS: Mapping[str, Callable[[Record, ProbeConfig], Record]] = {"but_not": but_not}


def vary(data: ProbeData, variant: str) -> ProbeData:
    """A split of a probe in one of its variants, under the name `<probe>_<variant>`.

    Raises:
        ConfigError: If the probe's config declares no such variant.
        RecordError: If a record does not allow it; the message names the record.
    """
    config = data.config
    if variant not in config.variants or variant not in VARIANTS:
        known = [name for name in config.variants if name in VARIANTS]
        raise ConfigError(
            f"{config.name} has no variant {variant!r}{nearest(variant, known)}; "
            f"it has {', '.join(known) or 'none'}"
        )
    own = config.variants[variant]
    changed = replace(
        config,
        name=f"{config.name}_{variant}",
        arguments=own.arguments,
        key_words=own.key_words,
        variants={},
    )
    records = tuple(VARIANTS[variant](record, config) for record in data.records)
    return replace(data, config=changed, records=records)
