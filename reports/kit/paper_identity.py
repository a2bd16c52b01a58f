"""Whose results may stand beside a paper's numbers: by what a run recorded, never by a name alone.

A folder may be called roberta-large and an original task science, whatever is in them.
"""

from __future__ import annotations

import re

from reports.kit.published import BASELINES, PAPER_VECTORS
from results.load import Run

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


def paper_model(run: Run) -> str | None:
    """Which row of the papers' tables a run's model may stand beside; None for none.

    A checkpoint is known by its id on the Hub, of the main branch or a commit. Random weights have
    no row. A baseline has one only with the paper's vectors (SPEC E10).
    """
    source = run.source
    if run.role == "control":
        return None
    if run.role == "baseline":
        return BASELINES.get(run.kind) if source.vectors.startswith(PAPER_VECTORS) else None
    pinned = source.revision in (None, "main") or bool(_COMMIT.fullmatch(source.revision))
    return _HUB_IDS.get(source.hub_id or "") if pinned else None


def on_paper_task(run: Run) -> bool:
    """Whether a run's original task has the parts of the paper's, all their questions."""
    parts = run.original_parts
    return (
        parts is not None and set(parts.sets) - {_RESERVED} == SCIENCE and parts.train_items is None
    )
