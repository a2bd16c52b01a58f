"""Rows of the AI2 format, to be made wrong in one place."""

from __future__ import annotations

from typing import Any


def row(**changes: Any) -> dict[str, Any]:
    """A row in which nothing is wrong, with other values for some keys."""
    choices = [{"label": "A", "text": "older"}, {"label": "B", "text": "younger"}]
    question = {"stem": "He is [MASK] than me", "choices": choices} | changes.pop("question", {})
    return {"id": "x", "question": question, "answerKey": "B"} | changes


def choices(*texts: str) -> dict[str, Any]:
    """A question's choices, labelled 0, 1, ..."""
    return {"choices": [{"label": str(n), "text": text} for n, text in enumerate(texts)]}
