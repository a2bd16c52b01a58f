"""`train.py compare`: systems in folders of results, on the items that they share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from probelight.io.errors import UsageError, nearest
from probelight.io.escaping import visible
from probelight.protocols.cli.command import Command, command
from probelight.protocols.engine.settings import listed

if TYPE_CHECKING:  # numpy and scipy take their time
    from probelight.protocols.compare.answers import Answers
    from probelight.protocols.compare.rows import Measured
    from probelight.results.run_folder import CommandFolder


@command(
    Command(
        "is the difference between models real, and how large?",
        example="train.py compare runs/bert runs/roberta --output_dir runs/compared",
        shown="folders output_dir probes",
        positional=True,
    )
)
def compare(
    folders: list[Path], output_dir: Path | None = None, probes: str | list[str] = ""
) -> Path:
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
    from probelight.protocols.compare.blocks import blocks_of, named
    from probelight.protocols.compare.rows import PROTOCOL, measure
    from probelight.protocols.compare.systems import systems_of
    from probelight.protocols.report import said_of_page
    from probelight.reports.build import build_report
    from probelight.reports.terminal import print_tables
    from probelight.results.run_folder import CommandFolder

    if output_dir is None:
        raise UsageError("where does the comparison go? Give --output_dir FOLDER")
    answers, left_out, damaged = _answers(folders)
    chosen = listed(probes)
    _check_probes(chosen, [one.asked.probe for one in answers])
    systems, said = systems_of([a for a in answers if not chosen or a.asked.probe in chosen])
    blocks, more = blocks_of(systems, across_folders=len(folders) > 1)
    if not blocks:
        raise UsageError(_nothing_shared(answers, [*damaged, *said, *more]))
    measured = [measure(*one) for one in zip(blocks, named(blocks), strict=True)]
    config = {
        "command": PROTOCOL,
        "compared": [[own.block.title, _checksums(own)] for own in measured],
    }
    folder = CommandFolder(output_dir, config)
    _finish(folder, measured, (*left_out, *said, *more))
    folder.write_results()
    print_tables(folder.path, PROTOCOL)
    page = build_report(folder.path)
    print(said_of_page(page))
    return page


def _answers(folders: Sequence[Path]) -> tuple[list[Answers], list[str], list[str]]:
    """The answers in all folders, what is said of results left out, and of damaged ones alone.

    Raises:
        UnreadableResultError: If answers are damaged; the message names folder, file and line.
    """
    from probelight.protocols.compare.answers import answers_of
    from probelight.results.load import UnreadableResultError, distinct_ends, load_results

    places = [str(folder.resolve()) for folder in folders]
    if twice := [str(f) for n, f in enumerate(folders) if places[n] in places[:n]]:
        raise UsageError(f"{twice[0]} is given twice: every difference would be 0")
    names = distinct_ends(places)
    answers: list[Answers] = []
    said: list[str] = []
    damaged: list[str] = []
    for folder, place in zip(folders, places, strict=True):
        results = load_results(folder)
        try:
            answers += answers_of(results, visible(names[place]))
        except UnreadableResultError as error:  # it names the run's file alone
            raise UnreadableResultError(f"{folder}: {error}") from error
        said += [f"{visible(names[place])}: {sentence}" for sentence in results.left_out]
        damaged += [f"{visible(names[place])}: {sentence}" for sentence in results.damaged]
    return answers, said, damaged


def _check_probes(chosen: Sequence[str], known: Sequence[str]) -> None:
    for name in chosen:
        if name not in known:
            there = ", ".join(sorted(set(known))) or "nothing"
            raise UsageError(
                f"--probes {name}: no such set was answered{nearest(name, known)}; there is {there}"
            )


def _nothing_shared(answers: Sequence[Answers], said: Sequence[str]) -> str:
    """Why nothing is compared: what each folder holds, or what was too many."""
    from probelight.protocols.compare.blocks import ALONE
    from probelight.protocols.imports.run import IMPORTED

    by_folder: dict[str, list[str]] = {}
    for one in answers:
        asked = one.asked
        by_folder.setdefault(one.folder, []).append(
            f"{asked.probe} ({asked.split}, {asked.answered})"
        )
    if not answers:
        return (
            "there are no answers to compare: no folder holds a zero-shot run, a curve, an "
            "inoculation or an original task with its predictions.jsonl"
        )
    held = [f"{folder}: {', '.join(sorted(set(own)))}" for folder, own in by_folder.items()]
    lines = [*(one for one in said if not one.startswith(ALONE)), *held]
    if any(one.setting.get("scored by", "").startswith(IMPORTED) for one in answers):
        lines.append(
            "imported files are sets of their own: to make files of the same items one probe, "
            "import them together as FILE=MODEL FILE=MODEL with --data.name NAME, or with --probe"
        )
    return "no two systems answered the same set, or none in several folders:\n  " + "\n  ".join(
        lines
    )


def _finish(folder: CommandFolder, measured: Sequence[Measured], said: Sequence[str]) -> None:
    """Leaves a run for each set of systems; what is said of all of them stands in the first."""
    from probelight.protocols.compare.rows import PROTOCOL, adjusted, rows_of
    from probelight.results.record import ComparisonFacts, RunRecord

    p_values = adjusted(measured)
    for own, adjusted_p in zip(measured, p_values, strict=True):
        block = own.block
        config = {
            "protocol": PROTOCOL,
            "asked": list(block.asked),
            "setting": block.setting,
            "systems": _checksums(own),
            "adjusted": adjusted_p,
        }
        words = [PROTOCOL, block.asked.probe, block.asked.answered, block.setting]
        run = folder.run("-".join("-".join(words).replace(",", "").split()).strip("-"), config)
        if run.result() is not None:
            continue
        rows = tuple(rows_of(own, adjusted_p))
        run.write_metrics(rows)
        run.finish(
            RunRecord(
                protocol=PROTOCOL,
                probe=block.asked.probe,
                rows=rows,
                counts={"items": len(block.items)},
                notices=(*(said if own is measured[0] else ()), *block.notices),
                comparison=ComparisonFacts(
                    answered=block.asked.answered,
                    setting=block.setting,
                    num_runs={name: len(system.runs) for name, system in own.names.items()},
                    num_pairs=sum(map(len, p_values)),
                ),
            )
        )


def _checksums(measured: Measured) -> dict[str, str]:
    """Of each system the checksum of what it answered."""
    block = measured.block
    groups = None if block.groups is None else block.groups.tolist()
    found = {}
    for name, system in measured.names.items():
        runs = sorted((s, own.tolist()) for s, own in system.credit(block.items).items())
        text = json.dumps([block.items, groups, runs])
        found[name] = hashlib.sha256(text.encode()).hexdigest()
    return found
