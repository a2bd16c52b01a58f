"""`train.py compare`: systems in folders of results, on the items that they share.

The answers of runs are read (`compare.systems`), systems that answered the same items are found
(`compare.blocks`) and compared, and each block of them becomes a run of the command's folder.
"""

from __future__ import annotations

import hashlib
import json
import math
import os.path
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from probelight.commands.command import Command, command
from probelight.evaluation.answers import read_answers, refuse_unanswered
from probelight.integrations.wandb import publish_results
from probelight.io.errors import UsageError, nearest
from probelight.io.ranges import Names
from probelight.io.wandb import DEFAULT_WANDB, WandbSettings
from probelight.metrics.comparisons import Compared, compare_runs
from probelight.metrics.intervals import Interval, num_groups, runs_interval
from probelight.metrics.scoring_rules import DEBIASED, RULES
from probelight.results.blocks import ALONE, Block, blocks_of, names_in_blocks
from probelight.results.details import ComparisonDetails
from probelight.results.importers.answers import IMPORTED
from probelight.results.record import RunRecord
from probelight.results.row import Row, Subset
from probelight.results.run_folder import CommandFolder
from probelight.results.systems import OWN, RunScores, System, systems_of

PROTOCOL = "compare"


@command(
    Command(
        example="train.py compare runs/bert runs/roberta --output_dir runs/compared",
        options="folders output_dir probes scoring mix_rules wandb.project",
        positional=True,
    )
)
def compare(
    folders: list[Path],
    output_dir: Path | None = None,
    probes: Names = (),
    scoring: Names = (),
    mix_rules: bool = False,
    wandb: WandbSettings = DEFAULT_WANDB,
) -> Path:
    """Compares models or settings item by item: is the difference real?

    A system is a model in one setting, with all its seeds. Every pair of systems gets its
    difference in accuracy, tests adjusted for all comparisons, and the smallest difference that
    would have been detected.

    Args:
        folders: Output folders of two or more commands, or of one that ran several models or
            settings. Up to eight systems that answered the same items in the same setting (number
            of examples, dose) are compared in pairs. With several folders, systems must come from
            at least two of them.
        output_dir: Folder of the comparison and its page.
        probes: Probes, or original tasks, to compare on; by default all that the results share.
        scoring: Scoring rules of zero-shot runs to compare by, separated by commas (see `zero-shot
            --scoring`); by default "own", the model's own score.
        mix_rules: Compare answers by different rules, or to items asked in different ways (in a
            chat, after examples), with each other. By default each is compared separately.
        wandb: Logging to Weights & Biases: one run with accuracies and differences as summary, the
            tables and the page.

    Returns:
        The path of the HTML page.

    Raises:
        FileNotFoundError: If a folder has no result that can be read.
        UsageError: If systems answered different items of the same set, or share no set.
    """
    from probelight.reports.build import build_report
    from probelight.reports.formats import page_line, print_tables

    if output_dir is None:
        raise UsageError("give --output_dir FOLDER for the comparison")
    all_rules = (OWN, *RULES, DEBIASED)
    for rule in scoring:
        if rule not in all_rules:
            near = nearest(rule.lower(), all_rules)
            raise UsageError(
                f"--scoring: there is no rule {rule!r}{near}; choose from {', '.join(all_rules)}"
            )
    rules = scoring or (OWN,)
    real_paths = [os.path.realpath(folder) for folder in folders]
    if repeated := [str(f) for n, f in enumerate(folders) if real_paths[n] in real_paths[:n]]:
        raise UsageError(f"{repeated[0]} is given twice: every difference would be 0")
    answers: list[RunScores] = []
    left_out: list[str] = []
    damaged: list[str] = []
    for folder_answers, results, name in read_answers(folders, rules, mixed=mix_rules):
        answers += folder_answers
        left_out += [f"{name}: {notice}" for notice in results.left_out]
        damaged += [f"{name}: {notice}" for notice in results.damaged]
    refuse_unanswered(probes, [run.key.probe for run in answers])
    chosen = [run for run in answers if not probes or run.key.probe in probes]
    systems, system_notices = systems_of(chosen)
    blocks, block_notices = blocks_of(systems, across_folders=len(folders) > 1)
    if not blocks:
        reasons = [*damaged, *system_notices, *block_notices]
        raise UsageError(_why_not_compared(answers, reasons, rules))
    compared_blocks = [
        compare_systems(*pair) for pair in zip(blocks, names_in_blocks(blocks), strict=True)
    ]
    block_by_answers: dict[object, ComparedBlock] = {}
    for compared in compared_blocks:  # a model's own score may be one of the rules
        paths = tuple((run.folder, run.path) for run in compared.block.runs)
        answers_key = (*compared.block.key[1:], paths, *sorted(compared.checksums().values()))
        if (first := block_by_answers.setdefault(answers_key, compared)) is not compared:
            same_answers = f"the same answers as {first.block.title}, so they are compared once"
            block_notices.append(f"{compared.block.title}: {same_answers}")
    compared_blocks = [*block_by_answers.values()]
    checksums = [[compared.block.title, compared.checksums()] for compared in compared_blocks]
    folder = CommandFolder(output_dir, {"command": PROTOCOL, "compared": checksums})
    notices = (*left_out, *system_notices, *block_notices)
    p_values = adjusted_p_values(compared_blocks)
    num_pairs = sum(map(len, p_values))
    for compared, adjusted_p in zip(compared_blocks, p_values, strict=True):
        write_run(folder, compared, adjusted_p, num_pairs, notices)
        notices = ()  # of all blocks, so the first one has them
    folder.write_results()
    print_tables(folder.path, PROTOCOL)
    page = build_report(folder.path)
    print(page_line(page))
    publish_results(folder.path, wandb, PROTOCOL, folder.rows())
    return page


def _why_not_compared(
    answers: Sequence[RunScores], reasons: Sequence[str], rules: Sequence[str]
) -> str:
    """Return why nothing is compared: what each folder holds, or what was too many."""
    if not answers and tuple(rules) != (OWN,):
        return f"no run in these folders was scored by {' or '.join(rules)}"
    if not answers:
        return (
            "there are no answers to compare: no folder has a zero-shot run, a curve, an "
            "inoculation or an original task with its predictions.jsonl"
        )
    sets_by_folder: dict[str, set[str]] = {}
    for run in answers:
        name = f"{run.key.probe} ({run.key.split}, {run.key.answered})"
        sets_by_folder.setdefault(run.folder, set()).add(name)
    lines = ["no two systems answered the same set (in different folders, if you give several):"]
    lines += [reason for reason in reasons if not reason.startswith(ALONE)]
    lines += [f"{folder}: {', '.join(sorted(names))}" for folder, names in sets_by_folder.items()]
    if len({run.key.answered for run in answers if run.key.answered.startswith("zero shot")}) > 1:
        lines.append(
            "rules and ways of asking are compared separately; --mix_rules compares them with each "
            "other"
        )
    if any(run.setting.get("scored by", "").startswith(IMPORTED) for run in answers):
        lines.append(
            "each imported file is a set of its own; if several have the same items, import them "
            "together as FILE=MODEL FILE=MODEL with --data.name NAME, or with --probe"
        )
    return "\n  ".join(lines)


class ComparedBlock(NamedTuple):
    """A block with what was measured of it, all by the names of its systems."""

    block: Block
    names: Mapping[str, System]
    accuracies: Mapping[str, Interval]
    differences: Mapping[tuple[str, str], Compared]

    def checksums(self) -> dict[str, str]:
        """Return the checksum of each system's answers."""
        items = self.block.items
        groups = None if self.block.groups is None else self.block.groups.tolist()
        checksum_by_name = {}
        for name, system in self.names.items():
            runs = sorted((seed, scores.tolist()) for seed, scores in system.scores(items).items())
            text = json.dumps([items, groups, runs])
            checksum_by_name[name] = hashlib.sha256(text.encode()).hexdigest()
        return checksum_by_name


def compare_systems(block: Block, names: Mapping[str, System]) -> ComparedBlock:
    """Compare the systems of a block, each with each."""
    groups = block.groups
    scores = {name: system.scores(block.items) for name, system in names.items()}
    differences = {}
    for pair in combinations(names, 2):
        first, second = (scores[name] for name in pair)
        is_paired = same_samples(*(names[name] for name in pair))
        differences[pair] = compare_runs(first, second, groups, same_samples=is_paired)
    accuracies = {name: runs_interval(runs, groups) for name, runs in scores.items()}
    return ComparedBlock(block, names, accuracies, differences)


def same_samples(first: System, second: System) -> bool:
    """Return whether runs of one seed were trained on the same sample in both systems."""
    samples = {run.sample for run in (*first.runs, *second.runs)}
    return len(samples) == 1 and None not in samples


def adjusted_p_values(blocks: Sequence[ComparedBlock]) -> list[list[float]]:
    """Return, by block, all p-values adjusted together (Benjamini & Hochberg 1995)."""
    from scipy.stats import false_discovery_control  # half a second, which --help can do without

    p_values = [
        difference.p_value for compared in blocks for difference in compared.differences.values()
    ]
    values = iter(false_discovery_control(p_values).tolist())
    return [[next(values) for _ in compared.differences] for compared in blocks]


def write_run(
    folder: CommandFolder,
    compared: ComparedBlock,
    adjusted_p: Sequence[float],
    num_pairs: int,
    notices: Sequence[str],
) -> None:
    """Write the run of a block, if it is not there yet; `notices` are about all blocks."""
    block = compared.block
    config = {
        "protocol": PROTOCOL,
        "asked": list(block.key),
        "setting": block.setting,
        "systems": compared.checksums(),
        "adjusted": adjusted_p,
    }
    words = [PROTOCOL, block.key.probe, block.key.answered, block.setting]
    run = folder.run("-".join("-".join(words).replace(",", "").split()).strip("-"), config)
    if run.result() is not None:
        return
    rows = tuple(comparison_rows(compared, adjusted_p))
    run.write_metrics(rows)
    details = ComparisonDetails(
        answered=block.key.answered,
        setting=block.setting,
        num_runs={name: len(system.runs) for name, system in compared.names.items()},
        num_pairs=num_pairs,
    )
    run.finish(
        RunRecord(
            protocol=PROTOCOL,
            probe=block.key.probe,
            rows=rows,
            counts={"items": len(block.items)},
            notices=(*notices, *block.notices),
            details=(details,),
        )
    )


def comparison_rows(compared: ComparedBlock, adjusted_p: Sequence[float]) -> Iterator[Row]:
    """Yield the rows of a block: accuracies of its systems, and their differences with p-values."""
    key, groups, items = compared.block.key, compared.block.groups, len(compared.block.items)
    base = Row(
        protocol=PROTOCOL,
        probe=key.probe,
        split=key.split,
        num_items=items,
        num_groups=items if groups is None else num_groups(groups),
    )

    def with_interval(row: Row, interval: Interval) -> Row:
        value, low, high = map(float, np.asarray(interval))
        return replace(row, value=value, ci_low=low, ci_high=high)

    for name, interval in compared.accuracies.items():
        system = Subset.of("model", name, label=name)
        yield with_interval(replace(base, subset=system, metric="accuracy"), interval)
    pairs = zip(compared.differences.items(), adjusted_p, strict=True)
    for ((first, second), comparison), p_value in pairs:
        versus = Subset.of("versus", f"{first} − {second}", first=first, second=second)
        row = replace(base, subset=versus)
        yield with_interval(replace(row, metric="difference"), comparison.interval)
        metrics = {
            "mcnemar_p": comparison.mcnemar_p,
            "p_value": comparison.p_value,
            "adjusted_p_value": p_value,
            "smallest_difference": comparison.smallest,
        }
        for metric, value in metrics.items():
            if math.isfinite(value):
                yield replace(row, metric=metric, value=value)
