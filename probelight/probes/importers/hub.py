"""Reading data sets of the Hugging Face Hub, whose columns have one of the known layouts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from probelight.io.download import ADVICE, DownloadError, is_offline
from probelight.io.errors import ConfigError, RecordError
from probelight.io.files import MAX_ITEMS, DataFile
from probelight.probes.catalog import HubSource, ProbeConfig
from probelight.probes.importers.items import (
    LABELS,
    ItemFile,
    ai2_row,
    notices_of,
    record_from_row,
    refuse_repeated_ids,
)
from probelight.probes.importers.tables import pair_row

Row = Mapping[str, Any]


def read_hub(
    config: ProbeConfig,
    split: str,
    *,
    cache_dir: str | Path | None = None,
    offline: bool | None = None,
) -> ItemFile:
    """Read one split of a probe from the Hub; rows without an id get `<name>-<row>`, from 1.

    `split` is our name of it; `offline` uses only the cache of `datasets`. A ConfigError says that
    the Hub has no such split, a DownloadError that it cannot be had, a RecordError that its columns
    are unknown, a row is malformed or an id repeats.
    """
    source = config.hub
    if source is None or split not in source.splits:
        raise ConfigError(f"{config.name}: it has no {split!r} split on the Hub; use --mirror")
    rows = _load(source, split, cache_dir, is_offline(offline))
    where = f"{source.repo} {source.config or ''}".strip() + f", split {source.splits[split]}"
    if len(rows) > MAX_ITEMS:
        raise RecordError(f"{where}: {len(rows):,} rows; a set can have at most {MAX_ITEMS:,}")
    columns = set(rows.column_names)
    adapter = adapter_of(columns)
    if adapter is None:
        known = "; ".join(", ".join(sorted(needed)) for needed, _ in _ADAPTERS)
        raise RecordError(
            f"{where}: its columns {', '.join(sorted(columns))} match no known layout; the known "
            f"layouts are {known}"
        )
    records = []
    for number, row in enumerate(rows, start=1):
        if number in config.leave_out.get(split, ()):
            continue
        try:
            record = record_from_row(
                adapter(row), config.setup, default_id=f"{config.name}-{number}", position=number
            )
        except RecordError as error:
            raise RecordError(
                f"{where}, row {number}: {error}. To leave this row out, write in the probe's "
                f"config `leave_out: {{{split}: [{number}]}}`"
            ) from None
        records.append(replace(record, file=where))
    if not config.ids_repeat:
        refuse_repeated_ids(records)
    read = [[r.id, r.stem, r.choices, r.answer] for r in records]
    sha256 = hashlib.sha256(json.dumps(read).encode()).hexdigest()
    name = "/".join(filter(None, ["hub:" + source.repo, source.config, source.splits[split]]))
    notices = notices_of(records)
    if leave_out := config.leave_out.get(split):
        notices += (f"{len(leave_out)} rows left out by the config",)
    return ItemFile(tuple(records), (DataFile(name, sha256, len(records)),), notices)


def adapter_of(columns: Collection[str]) -> Callable[[Row], dict[str, Any]] | None:
    """Return what makes a row of the AI2 format of one with these columns; None if unknown."""
    return next((adapter for needed, adapter in _ADAPTERS if needed <= {*columns}), None)


def _load(source: HubSource, split: str, cache_dir: str | Path | None, offline: bool) -> Any:
    # Any, and imported here: `datasets` takes a second to import and most probes do not need it.
    import datasets.config
    import huggingface_hub.constants

    # HF_HUB_OFFLINE=1 is read once by both, when they are imported.
    places: tuple[Any, ...] = (datasets.config, huggingface_hub.constants)
    before = [place.HF_HUB_OFFLINE for place in places]
    try:
        for place in places if offline else ():
            place.HF_HUB_OFFLINE = True
        return datasets.load_dataset(
            source.repo,
            source.config,
            split=source.splits[split],
            revision=source.revision,
            cache_dir=str(cache_dir) if cache_dir else None,
        )
    except Exception as error:  # whatever it raises (there are many), the user needs the same help
        state = "from the local cache (offline mode is on)" if offline else "from the Hub"
        raise DownloadError(
            f"{source.repo}: could not be loaded {state}: {type(error).__name__}: {error}. {ADVICE}"
        ) from error
    finally:
        for place, value in zip(places, before, strict=True):
            place.HF_HUB_OFFLINE = value


def _arc(row: Row) -> dict[str, Any]:
    """ai2_arc: question, choices {text, label}, answerKey; openbookqa: the same, question_stem."""
    stem = row["question_stem"] if "question_stem" in row else row["question"]
    labels, texts = row["choices"]["label"], row["choices"]["text"]
    return ai2_row(stem, texts, row["answerKey"], labels) | {"id": row.get("id")}


def _sciq(row: Row) -> dict[str, Any]:
    """sciq: gold and distractors are separate columns, so their order is drawn by content."""
    texts = [row["correct_answer"], *(row[f"distractor{number}"] for number in (1, 2, 3))]
    drawn = [hashlib.sha256(f"{row['question']}\0{text}".encode()).hexdigest() for text in texts]
    order = sorted(range(len(texts)), key=drawn.__getitem__)
    return ai2_row(row["question"], [texts[i] for i in order], LABELS[order.index(0)])


def _race(row: Row) -> dict[str, Any]:
    """race: the stem is the article, the choices the question filled in with each option.

    A choice is never cut before the end of an article is (as in RoBERTa's RACE recipe).
    """
    question = row["question"]
    texts = [
        question.replace("_", option, 1) if "_" in question else f"{question} {option}"
        for option in row["options"]
    ]
    notes = {"source": row.get("example_id") or "race", "question": question}
    return ai2_row(row["article"], texts, row["answer"]) | {"notes": notes}


_ADAPTERS: tuple[tuple[frozenset[str], Callable[[Row], dict[str, Any]]], ...] = (
    (frozenset({"question_stem", "choices", "answerKey"}), _arc),
    (frozenset({"question", "choices", "answerKey"}), _arc),
    (frozenset({"question", "correct_answer", "distractor1", "distractor2", "distractor3"}), _sciq),
    (frozenset({"sentence_good", "sentence_bad"}), pair_row),
    (frozenset({"article", "question", "options", "answer"}), _race),
)
