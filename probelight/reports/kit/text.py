"""Numbers as people read them, in tables, figures and sentences."""

from __future__ import annotations

from probelight.metrics.intervals import FEW

NOT_INTERPRETABLE = "not interpretable"
ABSENT = "–"  # a number that was not measured
INTERVAL = "Beside each accuracy stands its 95% interval"
BY_GROUPS = "by groups where items come in groups, else Wilson's"
MAX_TOLD = 6  # findings of each kind; the tables hold the rest


def percent(value: float | None) -> str:
    """A fraction as per cent with one decimal."""
    return ABSENT if value is None else f"{100 * value:.1f}"


def points(value: float | None) -> str:
    """A difference of fractions in percentage points, signed."""
    if value is None:
        return ABSENT
    text = f"{100 * value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def unsigned(value: float) -> str:
    """A difference in percentage points for running text: no plus, but a minus."""
    return points(value).removeprefix("+")


def between(low: float | None, high: float | None) -> str:
    """An interval of fractions in per cent; empty where there is none."""
    return "" if low is None or high is None else f"{100 * low:.1f}–{100 * high:.1f}"


def points_between(low: float | None, high: float | None) -> str:
    """An interval of differences in percentage points; empty where there is none."""
    return "" if low is None or high is None else f"{points(low)} to {points(high)}"


def count(number: int | None) -> str:
    """A whole number with thousands separators."""
    return ABSENT if number is None else f"{number:,}"


def sample(num_items: int | None, num_groups: int | None) -> str:
    """Items measured, and the groups that their interval goes by; said in words where few."""
    if not num_items:
        return ""
    text = f"n = {count(num_items)}"
    if num_groups in (None, num_items):
        return text
    few = "only " if num_groups is not None and num_groups < FEW else ""
    return f"{text} in {few}{count(num_groups)} {'group' if num_groups == 1 else 'groups'}"


def with_facts(value: float | None, *facts: str) -> str:
    """Per cent and, in brackets, what else is known of it; facts that are empty are left out."""
    inside = ", ".join(filter(None, facts))
    return f"{percent(value)}% ({inside})" if inside else f"{percent(value)}%"


def rate(value: float | None) -> str:
    """A learning rate, 1e-05 written as 1e-5."""
    return ABSENT if value is None else f"{value:g}".replace("e-0", "e-")


def probability(value: float | None) -> str:
    """A p-value with its sign of relation; one that would print as zero is given as a bound."""
    if value is None:
        return "not recorded"
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def way(mode: str) -> str:
    """How choices got their scores; empty where a masked LM gave them at the mask."""
    return "" if mode in ("", "zero_shot") else mode.replace("_", " ")


def in_words(name: str) -> str:
    """A probe's name as a person says it: "taxonomy (small)" of `taxonomy_small`."""
    words = name.replace("_", " ")
    return f"{words.removesuffix(' small')} (small)" if words.endswith(" small") else words


def listed(parts: list[str]) -> str:
    """Parts of a sentence, the last one behind an "and"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def few(sentences: list[str], noun: str) -> list[str]:
    """The first of many findings of a kind, and how many more `noun` there are."""
    rest = len(sentences) - MAX_TOLD
    if rest <= 0:
        return sentences
    return [*sentences[:MAX_TOLD], f"{rest} more {noun} stand in the tables below."]
