"""Do models prefer the nearer hypernym? Edges in WordNet against answers (Talmor 2020, 4.4).

"A crow and a horse are both a type of [MASK].": bird is four edges above crow and animal seven, so
bird is the nearer one, and the wrong one. The paper says that models choose a nearer distractor in
80% of the items that have one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import fsum
from pathlib import Path
from statistics import fmean
from typing import Any

from metrics.ties import credit_of
from probes.controls import STANDARD
from probes.record import Record
from probes.source import ProbeData, load_probe
from probes.sources.wordnet import hypernym_edges, open_wordnet
from probes.splits import groups_of
from probes.taxonomy_edges import Edges, ItemDistances, item_distances
from protocols.engine.evaluation import grouped_row
from reports.terminal import print_tables
from results.provenance import data_files
from results.record import RunRecord
from results.row import Row
from results.run_folder import CommandFolder
from results.subset import NearerDistractor
from storage.errors import ConfigError, UsageError
from storage.files import read_lines, sha256_of
from storage.left_files import check_left

PROTOCOL = "taxonomy_distance"
SOURCES = ("zero_shot", "curve")
Line = dict[str, Any]


def distance_rows(
    items: Sequence[ItemDistances],
    chosen: Sequence[Sequence[int]],
    groups: Sequence[str],
    row: Row,
) -> list[Row]:
    """Share of nearer distractors chosen among the items that have one, and what to read it by.

    Args:
        items: The items answered.
        chosen: The best choices of each: one or, on a tie, several, of which each counts as chosen
            in its share; none where nothing was said.
        groups: The group of each.
        row: The columns that all rows share.
    """
    placed = [one for one in zip(items, chosen, groups, strict=True) if one[0].is_placed]
    with_nearer = [one for one in placed if one[0].nearer]
    rows: list[Row] = []
    if with_nearer:
        took = [fsum(credit_of(best, c) for c in item.nearer) for item, best, _ in with_nearer]
        among = [group for *_, group in with_nearer]
        guess = fmean(len(item.nearer) / len(item.record.choices) for item, *_ in with_nearer)
        rows.append(grouped_row(took, among, replace(row, metric="nearer_chosen")))
        by_guessing = replace(row, metric="nearer_chosen_by_guessing", value=guess)
        rows.append(replace(by_guessing, num_items=len(with_nearer)))
    for exists in (True, False):
        if part := [one for one in placed if bool(one[0].nearer) == exists]:
            right = [credit_of(best, item.record.answer) for item, best, _ in part]
            among = [group for *_, group in part]
            own = replace(row, metric="accuracy", subset=NearerDistractor(exists))
            rows.append(grouped_row(right, among, own))
    return rows


def measure_distances(output_dir: str, results: str, wordnet: str, mirror: str | None) -> None:
    """Holds what runs answered against WordNet; the command of this name says what each is."""
    runs = list(_answered(Path(results), mirror))
    if not runs:
        raise UsageError(
            f"--results {results}: no zero-shot or curve run there answered a taxonomy probe "
            "(one whose stems name two concepts of which they are both a type)"
        )
    reader = open_wordnet(wordnet)
    database = sha256_of(Path(wordnet) / "data.noun")
    known: dict[str, dict[str, int] | None] = {}

    def edges(word: str) -> Mapping[str, int] | None:
        if word not in known:
            known[word] = hypernym_edges(reader, word)
        return known[word]

    folder = CommandFolder(Path(output_dir), {"command": "taxonomy-distance"})
    for source, data, entities in runs:
        _measure(folder, source, data, entities, edges, database)
    folder.write_results()
    print_tables(folder.path, PROTOCOL)


def _measure(
    folder: CommandFolder,
    source: Path,
    data: ProbeData,
    entities: Mapping[str, tuple[str, str]],
    edges: Edges,
    database: str,
) -> None:
    """One run of this protocol for one run of another."""
    start = time.perf_counter()
    answered = RunRecord.read(source / "result.json")
    check_left(source, "predictions.jsonl")
    config = {
        "protocol": PROTOCOL,
        "run": answered.key,
        "predictions": sha256_of(source / "predictions.jsonl"),
        "wordnet": database,
    }
    run = folder.run(f"taxonomy-distance-{data.config.name}-{answered.model}", config)
    if run.result() is not None:
        print(f"{answered.key}: complete")
        return
    measured = {r.name: item_distances(r, entities[r.name], edges) for r in data.records}
    rows: list[Row] = []
    lines: list[Line] = []
    row = _measured_row(answered.rows, data.config.name)
    for (name, seed), answers in _sets(source).items():
        answers = {item: best for item, best in answers.items() if item in measured}
        items = [measured[item] for item in answers]
        own = replace(row, seed=seed if row.num_train else None)
        groups = groups_of((item.record for item in items), data.config.group_by)
        rows += distance_rows(items, list(answers.values()), groups, own)
        lines += [_line(name, item, answers[item.record.name]) for item in items]
    run.write_lines("distances.jsonl", lines)
    run.finish(
        RunRecord(
            protocol=PROTOCOL,
            model=answered.model,
            probe=data.config.name,
            rows=tuple(rows),
            counts={
                "items": len(measured),
                "placed": sum(item.is_placed for item in measured.values()),
            },
            notices=(*data.notices, *_notices(list(measured.values()))),
            seeds=answered.seeds,
            data=data_files([data]),
            model_sha256=answered.model_sha256,
            seconds=round(time.perf_counter() - start, 3),
            facts={"answered": answered.key},
        )
    )


def _measured_row(rows: Sequence[Row], probe: str) -> Row:
    """The columns that say what was measured, from the rows of the run that answered."""
    first = next(row for row in rows if row.metric == "accuracy")
    return Row(
        protocol=PROTOCOL,
        model=first.model,
        probe=probe,
        mode=first.mode,
        num_train=first.num_train,
        learning_rate=first.learning_rate,
        split=first.split,
        role=first.role,
        kind=first.kind,
    )


def _answered(
    results: Path, mirror: str | None
) -> Iterator[tuple[Path, ProbeData, dict[str, tuple[str, str]]]]:
    """(run folder, items, their two entities) of every run that answered a taxonomy probe."""
    loaded: dict[tuple[str, str], ProbeData | None] = {}
    for path in sorted(results.rglob("runs/*/predictions.jsonl")):
        if not (path.parent / "result.json").exists():
            continue
        record = RunRecord.read(path.parent / "result.json")
        if record.protocol not in SOURCES or not record.rows:
            continue
        key = (record.probe, record.rows[0].split)
        if key not in loaded:
            loaded[key] = _taxonomy_probe(*key, mirror)
        data = loaded[key]
        if data is not None:
            yield path.parent, data, {r.name: _entities(data, r) for r in data.records}


def _taxonomy_probe(name: str, split: str, mirror: str | None) -> ProbeData | None:
    """The split of a probe, if its stems ask of which type two concepts both are."""
    try:
        data = load_probe(name, split, mirror=mirror)
    except ConfigError:  # a file of one's own, without a config
        return None
    asks = [r for r in data.records if "type of" in r.stem and len(_entities(data, r)) == 2]
    left_out = len(data.records) - len(asks)
    notice = f"{left_out} of {len(data.records)} stems of {name} name no two concepts: left out"
    notices = (*data.notices, notice) if left_out else data.notices
    return replace(data, records=tuple(asks), notices=notices) if asks else None


def _entities(data: ProbeData, record: Record) -> tuple[str, str]:
    """The two concepts of a stem, in its order; another number where it is no such stem."""
    found = data.config.find_arguments(record.stem)
    words = [record.stem[start:end] for start, end in found[1]] if found else []
    return tuple(words)  # type: ignore[return-value]  # two, where it counts


def _sets(source: Path) -> dict[tuple[str, int | None], dict[str, tuple[int, ...]]]:
    """Best choices by item, by set and seed: the unchanged probe, each seed a set of its own."""
    sets: dict[tuple[str, int | None], dict[str, tuple[int, ...]]] = {}
    for _, line in read_lines(source / "predictions.jsonl"):
        row = json.loads(line)
        if row.get("control", STANDARD) == STANDARD:  # of a curve, each line names its own
            key = (str(row["set"]), row.get("seed"))
            sets.setdefault(key, {})[f"{row['id']}@{row['position']}"] = best_of(row)
    return sets


def best_of(row: Line) -> tuple[int, ...]:
    """The best choices of a row of predictions.jsonl, which names the first and their number."""
    first, scores = row["prediction"], row["scores"]
    if first is None:
        return ()
    # Written scores are rounded, which can make more of them equal than share the best score.
    equal = [place for place in range(first, len(scores)) if scores[place] == scores[first]]
    return tuple(equal[: row.get("tied", 1)])  # older files do not count ties


def _line(name: str, item: ItemDistances, best: Sequence[int]) -> Line:
    return {
        "set": name,
        "id": item.record.id,
        "position": item.record.position,
        "entities": list(item.entities),
        "choices": list(item.record.choices),
        "edges": [list(pair) for pair in item.edges],
        "nearer": list(item.nearer),
        "prediction": best[0] if best else None,
        "tied": len(best),
        "answer": item.record.answer,
    }


def _notices(items: Sequence[ItemDistances]) -> list[str]:
    """What was left out, and why."""
    said = []
    unknown = sorted({word for item in items for word in item.unknown})
    if unknown:
        shown = ", ".join(unknown[:10]) + (", …" if len(unknown) > 10 else "")
        touched = sum(bool(item.unknown) for item in items)
        said.append(f"{len(unknown)} words of {touched} items are not in WordNet: {shown}")
    if left_out := sum(not item.is_placed for item in items):
        said.append(
            f"{left_out} of {len(items)} items are left out: WordNet does not have the right "
            "answer above both concepts"
        )
    return said
