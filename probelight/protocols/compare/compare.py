"""`train.py compare`: systems in folders of results, on the items that they share.

What runs answered is read (`compare.systems`), systems that answered the same items are compared
(`compare.blocks`), and each block of them becomes a run of the command's folder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from probelight.io.errors import UsageError, nearest
from probelight.io.escaping import visible
from probelight.io.ranges import Names
from probelight.protocols.cli.command import Command, command
from probelight.protocols.compare.blocks import (
    ALONE,
    PROTOCOL,
    Measured,
    adjusted,
    blocks_of,
    measure,
    named,
    rows_of,
)
from probelight.protocols.compare.systems import RunAnswers, answers_of, systems_of
from probelight.protocols.imports.imports import IMPORTED
from probelight.results.details import ComparisonDetails
from probelight.results.load import UnreadableResultError, distinct_ends, load_results
from probelight.results.record import RunRecord
from probelight.results.run_folder import CommandFolder


@command(
    Command(
        example="train.py compare runs/bert runs/roberta --output_dir runs/compared",
        shown="folders output_dir probes",
        positional=True,
    )
)
def compare(folders: list[Path], output_dir: Path | None = None, probes: Names = ()) -> Path:
    """Compares models, or settings, by what they answered of the same items.

    A model in one setting, with all its seeds, is a system. Of every two: their difference, tests
    adjusted for all comparisons, and the smallest difference that could have been seen.

    Args:
        folders: Output folders of two or more commands, or of one that ran several models or
            settings. Every two of up to eight that answered the same items, not all in one of
            several folders, are compared, within each setting that they share (number of examples,
            dose).
        output_dir: Folder of the comparison; its page is made there.
        probes: Probes, or original tasks, to compare on; all that are in common by default.

    Returns:
        The path of the HTML page.

    Raises:
        FileNotFoundError: If a folder holds no result that can be read.
        UsageError: If systems answered other items of one set, or nothing in common.
    """
    from probelight.protocols.report import page_line
    from probelight.reports.build import build_report
    from probelight.reports.terminal import print_tables

    if output_dir is None:
        raise UsageError("where does the comparison go? Give --output_dir FOLDER")
    answers, left_out, damaged = _read_answers(folders)
    chosen, known = probes, [run.key.probe for run in answers]
    for name in chosen:
        if name not in known:
            there = ", ".join(sorted(set(known))) or "nothing"
            raise UsageError(
                f"--probes {name}: no such set was answered{nearest(name, known)}; there is {there}"
            )
    systems, about_systems = systems_of(
        [run for run in answers if not chosen or run.key.probe in chosen]
    )
    blocks, about_blocks = blocks_of(systems, across_folders=len(folders) > 1)
    if not blocks:
        reasons = [*damaged, *about_systems, *about_blocks]
        raise UsageError(_why_nothing(answers, reasons))
    measured = [measure(*one) for one in zip(blocks, named(blocks), strict=True)]
    config = {
        "command": PROTOCOL,
        "compared": [[one.block.title, _checksums(one)] for one in measured],
    }
    folder = CommandFolder(output_dir, config)
    _write_runs(folder, measured, (*left_out, *about_systems, *about_blocks))
    folder.write_results()
    print_tables(folder.path, PROTOCOL)
    page = build_report(folder.path)
    print(page_line(page))
    return page


def _read_answers(folders: Sequence[Path]) -> tuple[list[RunAnswers], list[str], list[str]]:
    """Return the answers in all folders, notices of results left out, and of damaged ones alone.

    Raises:
        UnreadableResultError: If answers are damaged; the message names folder, file and line.
    """
    places = [str(folder.resolve()) for folder in folders]
    if twice := [str(f) for n, f in enumerate(folders) if places[n] in places[:n]]:
        raise UsageError(f"{twice[0]} is given twice: every difference would be 0")
    names = distinct_ends(places)
    answers: list[RunAnswers] = []
    left_out: list[str] = []
    damaged: list[str] = []
    for folder, place in zip(folders, places, strict=True):
        results, name = load_results(folder), visible(names[place])
        try:
            answers += answers_of(results, name)
        except UnreadableResultError as error:  # it names the run's file alone
            raise UnreadableResultError(f"{folder}: {error}") from error
        left_out += [f"{name}: {sentence}" for sentence in results.left_out]
        damaged += [f"{name}: {sentence}" for sentence in results.damaged]
    return answers, left_out, damaged


def _why_nothing(answers: Sequence[RunAnswers], reasons: Sequence[str]) -> str:
    """Say why nothing is compared: what each folder holds, or what was too many."""
    if not answers:
        return (
            "there are no answers to compare: no folder holds a zero-shot run, a curve, an "
            "inoculation or an original task with its predictions.jsonl"
        )
    by_folder: dict[str, set[str]] = {}
    for run in answers:
        name = f"{run.key.probe} ({run.key.split}, {run.key.answered})"
        by_folder.setdefault(run.folder, set()).add(name)
    lines = [
        *(reason for reason in reasons if not reason.startswith(ALONE)),
        *(f"{folder}: {', '.join(sorted(names))}" for folder, names in by_folder.items()),
    ]
    if any(run.setting.get("scored by", "").startswith(IMPORTED) for run in answers):
        lines.append(
            "imported files are sets of their own: to make files of the same items one probe, "
            "import them together as FILE=MODEL FILE=MODEL with --data.name NAME, or with --probe"
        )
    first = "no two systems answered the same set, or none in several folders:"
    return "\n  ".join([first, *lines])


def _write_runs(
    folder: CommandFolder, measured: Sequence[Measured], notices: Sequence[str]
) -> None:
    """Write a run for each block; notices about all of them are in the first."""
    p_values = adjusted(measured)
    for one, adjusted_p in zip(measured, p_values, strict=True):
        block = one.block
        config = {
            "protocol": PROTOCOL,
            "asked": list(block.key),
            "setting": block.setting,
            "systems": _checksums(one),
            "adjusted": adjusted_p,
        }
        words = [PROTOCOL, block.key.probe, block.key.answered, block.setting]
        run = folder.run("-".join("-".join(words).replace(",", "").split()).strip("-"), config)
        if run.result() is not None:
            continue
        rows = tuple(rows_of(one, adjusted_p))
        run.write_metrics(rows)
        run.finish(
            RunRecord(
                protocol=PROTOCOL,
                probe=block.key.probe,
                rows=rows,
                counts={"items": len(block.items)},
                notices=(*(notices if one is measured[0] else ()), *block.notices),
                details=(
                    ComparisonDetails(
                        answered=block.key.answered,
                        setting=block.setting,
                        num_runs={name: len(system.runs) for name, system in one.names.items()},
                        num_pairs=sum(map(len, p_values)),
                    ),
                ),
            )
        )


def _checksums(measured: Measured) -> dict[str, str]:
    """Return of each system the checksum of what it answered."""
    block = measured.block
    groups = None if block.groups is None else block.groups.tolist()
    found = {}
    for name, system in measured.names.items():
        runs = sorted((seed, own.tolist()) for seed, own in system.scores(block.items).items())
        text = json.dumps([block.items, groups, runs])
        found[name] = hashlib.sha256(text.encode()).hexdigest()
    return found
