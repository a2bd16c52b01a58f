"""Errors of user input: items, configs and requests."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


class RecordError(ValueError):
    """A malformed item or file; the message names the file, the line and the mistake."""


class ConfigError(ValueError):
    """A config is wrong or missing; the message names file and key."""


class UsageError(ValueError):
    """A command cannot do what the user asked for; the message says what to change."""


def nearest(word: object, known: Sequence[str]) -> str:
    """Return a suggestion for a mistyped word, or nothing."""
    near = difflib.get_close_matches(str(word), known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
