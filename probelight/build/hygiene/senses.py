"""What the words of two definitions tell: that a wrong answer may mean what the right one means."""

from __future__ import annotations

from collections.abc import Sequence

from probelight.build.dictionary_probe.likeness import say_the_same
from probelight.build.hygiene.finding import Finding
from probelight.probes.record import Record


def check_senses(records: Sequence[Record]) -> list[Finding]:
    """Wrong answers that say nearly what the right one says.

    Args:
        records: Items; those whose notes do not count the senses among their choices, as
            DictionaryQA's do, are passed over.
    """
    return [
        Finding("wrong answer like the gold", record.where, f"{text[:60]!r}, {record.gold[:60]!r}")
        for record in records
        if "sense_choices" in record.meta
        for text in record.wrong
        if say_the_same(text, record.gold)
    ]
