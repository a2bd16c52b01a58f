"""`train.py probes contamination`: how much of a probe is in other data, and what that does.

Sources are searched one after the other (`contamination.overlaps`); then the accuracies of finished
runs on contaminated and on clean items are computed from their predictions.jsonl alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.text import Text

from probelight.commands.command import Command, command
from probelight.commands.contamination.overlaps import OverlapSearch, split_items
from probelight.io.atomic import make_folder, write_text_atomic
from probelight.io.errors import UsageError
from probelight.io.escaping import brief, json_text, visible
from probelight.io.files import regular_file
from probelight.io.ranges import Mirror, Names, NumItems, ShareOrNone, Within
from probelight.metrics.intervals import num_groups, runs_interval
from probelight.probes.record import Record
from probelight.results.load import RunSet, UnreadableResultError, load_results
from probelight.results.predictions import read_item_lines

ITEMS = "items.jsonl"
PARTS = {"all": (True, False), "contaminated": (True,), "clean": (False,)}
ItemScores = dict[int, dict[int, float]]  # by seed (0 where there is none), by number of the item


@command(
    Command(
        example="train.py probes contamination hypernymy --against openbookqa,arc_easy "
        "--corpus wiki.txt.gz --results runs/zero_shot --output_dir runs/contamination",
        options="probe against corpus results output_dir ngram min_share max_groups "
        "wrong_choices mirror",
        positional=True,
    )
)
def contamination(
    probe: str,
    against: Names = (),
    corpus: Names = (),
    results: Path | None = None,
    output_dir: Path | None = None,
    ngram: Annotated[int, Within(1, 100)] = 8,
    min_share: ShareOrNone = 0.0,
    max_groups: NumItems = 10,
    wrong_choices: bool = True,
    mirror: Mirror | None = None,
) -> None:
    """Checks a probe for contamination by other data, and shows what runs score without it.

    Args:
        probe: The probe: a name (its dev and test items; `name:split` for others), a .yaml file, a
            folder with train, dev and test files, or a file of items.
        against: Other items to look in, separated by commas, named in the same way: all splits of
            an original task, or the train items of another probe (`name:train`).
        corpus: Text files to look in, separated by commas: plain, .gz or .zip.
        results: Folder of finished runs, to compare their scores on contaminated and clean items.
        output_dir: Folder for items.jsonl, with one line per item, and for the tables as csv files.
        ngram: Number of words in an n-gram.
        min_share: An item is contaminated if more than this share of its n-grams is found.
        max_groups: N-grams in more groups of items than this (or in more than half, if there are
            few groups) are taken for the probe's templates and ignored.
        wrong_choices: Also look in the wrong answers of other items; models train on them too.
        mirror: Folder or address with copies of the released files.

    Raises:
        UsageError: If you give nothing to look in, or if there is no such probe.
    """
    # Only now: they import pandas.
    from probelight.reports.analyses import counts_table, scores_table
    from probelight.reports.formats import print_table, to_csv

    if not against and not corpus:
        raise UsageError("give --against NAMES_OR_FILES, --corpus TEXT_FILES or both")
    for path in corpus:  # before minutes are spent on others
        regular_file(path)
    if output_dir is not None:
        make_folder(output_dir)
    loaded = load_results(results) if results else None
    files = split_items(probe, mirror)
    measured = [file for file in files if file.split in ("dev", "test")] or files
    search = OverlapSearch(measured, ngram, max_groups, min_share)
    for name in against:
        search.search_items(name, mirror, wrong_choices)
    for path in corpus:
        search.search_text(path)
    tables, notices = [counts_table(list(source_counts(search)), ngram, min_share)], search.notices
    if loaded is not None:
        set_scores, run_notices = item_scores(loaded, search.records)
        notices += [*loaded.left_out, *run_notices]
        if flags := search.flags():
            tables.append(scores_table(list(run_scores(set_scores, search.groups, flags))))
        else:
            notices.append("no item is contaminated, so there are no scores to compare")
    console = Console()
    for table in filter(None, tables):
        print_table(table, console)
        if output_dir is not None:
            write_text_atomic(output_dir / f"{table.name}.csv", to_csv(table))
    for notice in notices:
        console.print(Text(brief(f"notice: {notice}"), style="yellow"))
    if output_dir is not None:
        lines = "".join(json_text(line) + "\n" for line in item_lines(search))
        write_text_atomic(output_dir / ITEMS, lines)
        print(f"items: {output_dir / ITEMS}")


def source_counts(search: OverlapSearch) -> Iterator[dict[str, object]]:
    """Yield how many items of each split each source has."""

    def num_known(flags: list[bool | None]) -> int | None:
        known_flags = [flag for flag in flags if flag is not None]
        return sum(known_flags) if known_flags else None

    end = 0
    for file in search.files:
        begin, end = end, end + len(file.records)
        for source in search.sources:
            overlaps, shared = source.overlaps[begin:end], source.shared[begin:end]
            yield {
                "text": source.name,
                "split": file.split,
                "num_items": len(overlaps),
                "stem": sum(bool(overlap.stem) for overlap in overlaps),
                "with_answer": sum(bool(overlap.answer) for overlap in overlaps),
                "contaminated": sum(source.contaminated[begin:end]),
                "entire": sum(overlap.share == 1.0 for overlap in overlaps),
                "concept": num_known([item.concept for item in shared]),
                "answer": num_known([item.answer for item in shared]),
                "longest": max(overlap.longest for overlap in overlaps),
            }


def item_lines(search: OverlapSearch) -> Iterator[dict[str, Any]]:
    """Yield the lines of items.jsonl: an item, and what each source has of it."""
    splits = [file.split for file in search.files for _ in file.records]
    for number, contaminated in enumerate(search.in_any()):
        record = search.records[number]
        overlaps = dict[str, Any]()
        for source in search.sources:
            overlaps[source.name] = {**vars(source.overlaps[number])}
            if source.shared:
                shared = source.shared[number]
                overlaps[source.name] |= {"concept": shared.concept, "same_answer": shared.answer}
        yield {
            "split": splits[number],
            "id": record.id,
            "position": record.position,
            "question": record.stem,
            "answer": record.gold,
            "contaminated": contaminated,
            "found": overlaps,
        }


class SetScores(NamedTuple):
    """The scores of the items that one run answered in one set."""

    model: str
    run: str  # with the set where it answered several
    scores: ItemScores


def item_scores(results: RunSet, records: Sequence[Record]) -> tuple[list[SetScores], list[str]]:
    """Return how runs scored on the items, and notices of runs that did not answer them.

    A line of predictions.jsonl belongs to the item with its id, line and question, which leaves
    answers under a control out. So is a run with a damaged file; a notice names file and line.
    """
    number_by_item: dict[tuple[str, int, str], int] = {}
    for number, record in enumerate(records):
        item_key = (visible(record.id), record.position, visible(record.stem))
        number_by_item.setdefault(item_key, number)
    set_scores, notices, num_unrelated = list[SetScores](), list[str](), 0
    short_keys = [re.sub(r"-[0-9a-f]{12}$", "", run.key) for run in results.runs]
    num_runs = Counter(short_keys)
    for run, short_key in zip(results.runs, short_keys, strict=True):
        try:
            lines = read_item_lines(results, run)
        except UnreadableResultError as error:
            notices.append(str(error))
            continue
        sets: dict[str, ItemScores] = {}
        for line in lines:
            item = number_by_item.get((line.id, line.position, line.question))
            if item is not None:
                # A curve's sets are named by control and seed, and each seed is a run of its own.
                by_seed = sets.setdefault(line.control or line.set, {})
                by_seed.setdefault(line.seed or 0, {})[item] = line.correct
        num_unrelated += not sets
        # Runs that differ in a setting alone have their whole keys.
        key = short_key if num_runs[short_key] == 1 else run.key
        for name, scores in sets.items():
            run_name = f"{key} {name}" if len(sets) > 1 else key
            set_scores.append(SetScores(run.model, run_name, scores))
    if num_unrelated:
        notices.append(f"{num_unrelated} of {len(results.runs)} runs answered none of these items")
    return set_scores, notices


def run_scores(
    answered: Sequence[SetScores],
    groups: Sequence[str],
    flags: Mapping[str, Sequence[bool | None]],
) -> Iterator[dict[str, object]]:
    """Yield each run's accuracy on all items, on the contaminated ones and on the others.

    `flags` tells by source (N,) which items it contaminates; None leaves an item out.
    """
    for scored in answered:
        common_items = sorted(set.intersection(*map(set, scored.scores.values())))
        for source, is_contaminated in flags.items():
            for name, sides in PARTS.items():
                numbers = [number for number in common_items if is_contaminated[number] in sides]
                if not numbers:
                    continue
                group_names = [groups[n] for n in numbers]
                runs = {
                    s: np.array([item_scores[n] for n in numbers])
                    for s, item_scores in scored.scores.items()
                }
                interval = runs_interval(runs, group_names)
                yield {
                    "model": scored.model,
                    "run": scored.run,
                    "contaminated_by": source,
                    "part": name,
                    "accuracy": interval.value,
                    "ci_low": interval.low,
                    "ci_high": interval.high,
                    "num_items": len(numbers),
                    "num_groups": num_groups(group_names),
                }
