"""`train.py probes validate` and `probes stats`: the errors in a file of items, and its sizes."""

from __future__ import annotations

import sys
from pathlib import Path

from probelight.builders import hygiene
from probelight.builders.dictionary_entries import check_senses
from probelight.builders.sources.wordnet import DEFAULT_DIR
from probelight.commands.command import Command, command
from probelight.io.ranges import PathText
from probelight.probes.user_files import read_splits


@command(
    Command(
        example="train.py probes validate runs/probes/definitions",
        options="file wordnet_dir",
        positional=True,
    )
)
def validate(file: PathText, wordnet_dir: PathText = str(DEFAULT_DIR)) -> None:
    """Checks a probe: answers in stems, right answers among the wrong ones, leaks between splits.

    The exit code is 1 if it finds something.

    Args:
        file: A file of items, or a folder with train, dev and test files.
        wordnet_dir: Folder of a WordNet 3.0 database, to check items whose notes name synsets or
            whose stems join two concepts. Without it only their text is checked.
    """
    from probelight.builders.olmpics.taxonomy import check_conjunctions, conjunctions
    from probelight.builders.sources.wordnet import open_wordnet
    from probelight.builders.wordnet_probes.graph import check_synsets, read_graph

    splits = read_splits(Path(file))
    records = [record for split in splits.values() for record in split]
    findings = [finding for split in splits.values() for finding in hygiene.check_records(split)]
    findings += [*check_senses(records), *hygiene.check_splits(splits)]
    try:
        if conjunctions(records):
            findings += check_conjunctions(records, open_wordnet(wordnet_dir))
        if any(record.meta.get("chain") for record in records):  # it names synsets
            findings += check_synsets(records, read_graph(Path(wordnet_dir)))
    except FileNotFoundError as error:
        print(f"only the text is checked, not compared with WordNet: {error}")
    items = f"{len(records):,} items ({', '.join(splits)})"
    if not findings:
        print(f"{file}: nothing found in {items}")
        return
    print(hygiene.findings_text(findings))
    print(f"{file}: {len(findings):,} findings in {items}")
    sys.exit(1)


@command(
    Command(
        example="train.py probes stats runs/probes/definitions",
        options="file",
        positional=True,
    )
)
def stats(file: str) -> None:
    """Counts questions, concepts, right answers and their places for each split.

    Args:
        file: A file of items, or a folder with train, dev and test files.
    """
    print(hygiene.stats_table(read_splits(Path(file))))
    print(
        "\nunique: distinct pairs of stem and right answer; concepts: clusters that the items "
        "name;\nat place 1, 2, ...: how often the right answer is in this place"
    )
