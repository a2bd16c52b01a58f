"""Whose results may stand beside a paper's numbers: by what a run recorded, never by a name alone.

A folder may be called roberta-large and an original task science, whatever is in them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from reports.kit.published import BASELINES, PAPER_VECTORS, RANDOM_WEIGHTS

# Organisation on the Hub of the papers' checkpoints, which are known there without it as well.
_OWNERS = {
    "roberta-large": "FacebookAI",
    "roberta-base": "FacebookAI",
    "bert-large-uncased-whole-word-masking": "google-bert",
    "bert-large-uncased": "google-bert",
    "bert-base-uncased": "google-bert",
}
_HUB_IDS = {f"{owner}/{name}": name for name, owner in _OWNERS.items()} | {n: n for n in _OWNERS}
_COMMIT = re.compile("[0-9a-f]{40}")

# The science collection of Richardson & Sabharwal 2020; MCQL is what was reserved of it.
SCIENCE = frozenset({"arc_easy", "arc_challenge", "openbookqa", "sciq", "textbookqa"})
_RESERVED = "mcql"


def paper_model(label: str, facts: Mapping[str, Any]) -> str | None:
    """Which row of the papers' tables a run's model may stand beside; None for none.

    A checkpoint is known by its id on the Hub, of the main branch or a commit. Random weights have
    no row. A baseline has one only with the paper's vectors (SPEC E10).

    Args:
        label: The model's name in results.
        facts: result.json of its run.
    """
    if RANDOM_WEIGHTS in label:
        return None
    for name, published in BASELINES.items():
        if label.startswith(name):
            return published if f"({PAPER_VECTORS}" in label else None
    revision = facts.get("model_revision")
    pinned = revision in (None, "main") or bool(_COMMIT.fullmatch(str(revision)))
    return _HUB_IDS.get(str(facts.get("model_hub_id"))) if pinned else None


def on_paper_task(facts: Mapping[str, Any]) -> bool:
    """Whether a run's original task has the parts of the paper's, all their questions.

    Args:
        facts: result.json of the run.
    """
    parts = facts.get("original_parts")
    if not isinstance(parts, Mapping) or not isinstance(parts.get("sets"), list):
        return False
    return set(parts["sets"]) - {_RESERVED} == SCIENCE and parts.get("train_items") is None
