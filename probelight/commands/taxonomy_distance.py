"""`train.py taxonomy-distance`: do models prefer the nearer hypernym? (Talmor 2020, section 4.4).

"A crow and a horse are both a type of [MASK].": bird, the wrong answer, is nearer to crow than
animal is. A job compares the answers of one finished run with WordNet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import fsum
from pathlib import Path
from statistics import fmean
from typing import Any, Self

from probelight.builders.sources.wordnet import DEFAULT_DIR, hypernym_edges, open_wordnet
from probelight.commands.command import Command, command
from probelight.io.errors import ConfigError, UsageError
from probelight.io.escaping import visible
from probelight.io.files import sha256_of
from probelight.io.ranges import Mirror, PathText
from probelight.metrics.choices import item_score
from probelight.probes.controls import STANDARD
from probelight.probes.record import Record, groups_of
from probelight.probes.source import ProbeData, load_probe
from probelight.probes.taxonomy_edges import Edges, ItemDistances, item_distances
from probelight.results.measured import grouped_row
from probelight.results.predictions import PREDICTIONS, ItemLine, read_item_file
from probelight.results.record import RunRecord, changed_since, check_artifact, data_files
from probelight.results.row import Row, Subset
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext, cached
from probelight.runs.run import run_command
from probelight.runs.spec import Job, RunSpec

PROTOCOL = "taxonomy_distance"
SOURCES = ("zero_shot", "watch", "curve")  # protocols whose answers are read
RESULTS, WORDNET = "results", "wordnet"  # in `RunContext.paths`


@dataclass(frozen=True, kw_only=True)
class DistanceSpec(RunSpec):
    """The comparison of the answers of a finished run with WordNet.

    Args:
        run: Key of the run.
        model: Its model.
        probe: Its probe.
        predictions: Checksum of its predictions.
        wordnet: Checksum of WordNet's nouns.
    """

    protocol = PROTOCOL

    run: str
    model: str
    probe: str
    predictions: str
    wordnet: str

    @classmethod
    def of(cls, source: Path, answered: RunRecord, wordnet: str) -> Self:
        """Return the spec about the run in a folder, with its record."""
        return cls(
            run=answered.key,
            model=answered.model,
            probe=answered.probe,
            predictions=predictions_sha256(source),
            wordnet=wordnet,
        )

    @property
    def name(self) -> str:
        """Readable beginning of the key."""
        return f"taxonomy-distance-{self.probe}-{self.model}"

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        """Compare the answers."""
        return measure_distances(run, self, context)


@command(
    Command(
        example="train.py taxonomy-distance --results runs/zero_shot --output_dir runs/distance",
        options="output_dir results wordnet mirror",
    )
)
def taxonomy_distance(
    output_dir: PathText,
    results: PathText,
    wordnet: PathText = str(DEFAULT_DIR),
    mirror: Mirror | None = None,
) -> None:
    """Counts how often a model chose a wrong hypernym nearer to one concept than the right one.

    Args:
        output_dir: Folder of the results.
        results: Folder of finished zero-shot or curve runs whose predictions to read.
        wordnet: Folder of a WordNet 3.0 database.
        mirror: Folder or address with copies of the released files.

    Raises:
        UsageError: If no run there answered a taxonomy probe.
    """
    context = RunContext(mirror=mirror, paths={RESULTS: results, WORDNET: wordnet})
    answered = list(taxonomy_runs(context))
    if not answered:
        raise UsageError(
            f"--results {results}: no zero-shot or curve run there answered a taxonomy probe "
            "(one whose stems ask for the type that two concepts share)"
        )
    database, _ = wordnet_of(context)
    jobs = [
        Job(DistanceSpec.of(path, record, database), title=record.key) for path, record in answered
    ]
    config = {"command": "taxonomy-distance"}
    run_command(output_dir, config, jobs, context, table=PROTOCOL)


def taxonomy_runs(context: RunContext, key: str = "*") -> Iterator[tuple[Path, RunRecord]]:
    """Yield folder and record of each finished run of a taxonomy probe; copies share the key."""
    for path in sorted(Path(context.paths[RESULTS]).rglob(f"runs/{key}/{PREDICTIONS}")):
        if not (path.parent / "result.json").exists():
            continue
        record = RunRecord.read(path.parent / "result.json")
        if record.protocol not in SOURCES or not record.rows:
            continue
        if taxonomy_items(context, record.probe, record.rows[0].split):
            yield path.parent, record


@cached(most=None)
def taxonomy_items(context: RunContext, probe: str, split: str) -> ProbeData | None:
    """Return a probe's items about a hypernym of two concepts; None if there are none."""
    try:
        data = load_probe(probe, split, mirror=context.mirror)
    except ConfigError:  # a user's file, without a config
        return None
    records = [r for r in data.records if "type of" in r.stem and len(entities_of(data, r)) == 2]
    left_out = len(data.records) - len(records)
    notice = (
        f"{left_out} of {len(data.records)} stems of {probe} are left out, because they do not "
        "name two concepts"
    )
    notices = (*data.notices, notice) if left_out else data.notices
    return replace(data, records=tuple(records), notices=notices) if records else None


def entities_of(data: ProbeData, record: Record) -> tuple[str, str]:
    """Return the two concepts of a stem, in order; another number of them in any other stem."""
    match = data.config.find_arguments(record.stem)
    words = [record.stem[start:end] for start, end in match.spans] if match else []
    return tuple(words)  # type: ignore[return-value]  # two, where it counts


@cached()
def wordnet_of(context: RunContext) -> tuple[str, Edges]:
    """Return the checksum of WordNet's nouns, and the words above each word with their edges."""
    folder = context.paths[WORDNET]
    edges = cache(partial(hypernym_edges, open_wordnet(folder)))
    return sha256_of(Path(folder) / "data.noun"), edges


def predictions_sha256(source: Path) -> str:
    """Return the checksum of a run's predictions, which must be those that its record names."""
    check_artifact(source, PREDICTIONS)
    return sha256_of(source / PREDICTIONS)


def measure_distances(run: RunFolder, spec: DistanceSpec, context: RunContext) -> RunRecord:
    """Make the run that compares the planned answers of another run with the planned WordNet."""
    runs = dict(taxonomy_runs(context, spec.run))
    planned = [path for path in runs if predictions_sha256(path) == spec.predictions]
    if not planned:
        raise changed_since([str(path / PREDICTIONS) for path in runs] or [context.paths[RESULTS]])
    source, answered = planned[0], runs[planned[0]]
    database, edges = wordnet_of(context)
    if database != spec.wordnet:
        raise changed_since([context.paths[WORDNET]])
    data = taxonomy_items(context, answered.probe, answered.rows[0].split)
    assert data is not None
    items = {
        visible(record.name): item_distances(record, entities_of(data, record), edges)
        for record in data.records
    }
    accuracy = next(row for row in answered.rows if row.metric == "accuracy" and not row.scoring)
    row = Row(
        protocol=PROTOCOL,
        model=accuracy.model,
        probe=data.config.name,
        mode=accuracy.mode,
        num_train=accuracy.num_train,
        learning_rate=accuracy.learning_rate,
        split=accuracy.split,
        role=accuracy.role,
        kind=accuracy.kind,
    )
    sets: dict[tuple[str, int | None], dict[str, tuple[int, ...]]] = {}
    for line in read_item_file(source / PREDICTIONS):
        name = f"{line.id}@{line.position}"
        if name in items and line.control in ("", STANDARD):  # each line of a curve names its own
            sets.setdefault((line.set, line.seed), {})[name] = best_of(line)
    rows, lines = list[Row](), list[dict[str, Any]]()
    for (set_name, seed), answers in sets.items():
        answered_items = [items[name] for name in answers]
        groups = groups_of((item.record for item in answered_items), data.config.group_by)
        seed_row = replace(row, seed=seed if row.num_train else None)
        rows += distance_rows(answered_items, list(answers.values()), groups, seed_row)
        for item, best in zip(answered_items, answers.values(), strict=True):
            lines.append(
                {
                    "set": set_name,
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
            )
    run.write_lines("distances.jsonl", lines)
    notices = list(data.notices)
    if unknown := sorted({word for item in items.values() for word in item.unknown}):
        words = ", ".join(unknown[:10]) + (", …" if len(unknown) > 10 else "")
        touched = sum(bool(item.unknown) for item in items.values())
        notices.append(f"{len(unknown)} words of {touched} items are not in WordNet: {words}")
    placed = sum(item.is_placed for item in items.values())
    if left_out := len(items) - placed:
        notices.append(
            f"{left_out} of {len(items)} items are left out, because in WordNet the right answer "
            "is not above both concepts"
        )
    return RunRecord(
        protocol=PROTOCOL,
        model=answered.model,
        probe=data.config.name,
        rows=tuple(rows),
        counts={"items": len(items), "placed": placed},
        notices=tuple(notices),
        seeds=answered.seeds,
        data=data_files([data]),
        model_sha256=answered.model_sha256,
        facts={"answered": answered.key},
    )


def distance_rows(
    items: Sequence[ItemDistances],
    chosen: Sequence[Sequence[int]],
    groups: Sequence[str],
    row: Row,
) -> list[Row]:
    """Return how often the nearer distractor is chosen, also by guessing, and accuracy without it.

    `chosen` has the best choices of each item: several on a tie, each of which counts in its share;
    none where no score was a number.
    """
    placed = [item for item in zip(items, chosen, groups, strict=True) if item[0].is_placed]
    with_nearer = [item for item in placed if item[0].nearer]
    rows: list[Row] = []
    if with_nearer:
        scores = [fsum(item_score(best, c) for c in item.nearer) for item, best, _ in with_nearer]
        groups = [group for *_, group in with_nearer]
        guess = fmean(len(item.nearer) / len(item.record.choices) for item, *_ in with_nearer)
        rows.append(grouped_row(scores, groups, replace(row, metric="nearer_chosen")))
        by_guessing = replace(row, metric="nearer_chosen_by_guessing", value=guess)
        rows.append(replace(by_guessing, num_items=len(with_nearer)))
    for exists in (True, False):
        if subset_items := [item for item in placed if bool(item[0].nearer) == exists]:
            scores = [item_score(best, item.record.answer) for item, best, _ in subset_items]
            groups = [group for *_, group in subset_items]
            text = "with a nearer distractor" if exists else "without"
            subset = Subset.of("nearer_distractor", text, exists=exists)
            subset_row = replace(row, metric="accuracy", subset=subset)
            rows.append(grouped_row(scores, groups, subset_row))
    return rows


def best_of(line: ItemLine) -> tuple[int, ...]:
    """Return the best choices of a line of predictions.jsonl: it has the first and their number."""
    first, scores = line.prediction, line.scores
    if first is None:
        return ()
    # Written scores are rounded, which can make more of them equal than share the best score.
    equal = [index for index in range(first, len(scores)) if scores[index] == scores[first]]
    return tuple(equal[: line.tied])
