"""`train.py probes validate` and `probes stats`: what is wrong with a file of items, and its sizes.

Both take a file, or a folder with the files of several splits, which are compared.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from probelight.build.dictionary_probe.entries import check_senses
from probelight.build.drafts import SPLITS
from probelight.build.hygiene import (
    Finding,
    check_records,
    check_splits,
    findings_text,
    stats_of,
    stats_table,
)
from probelight.build.sources.wordnet import DEFAULT_DIR
from probelight.io.errors import UsageError
from probelight.io.ranges import PathText
from probelight.probes.record import Record
from probelight.probes.source import FORMS, read_file
from probelight.protocols.cli.command import Command, command

_ENDINGS = tuple(f".{form}{packed}" for form in FORMS for packed in ("", ".gz", ".zip"))


@command(
    Command(
        example="train.py probes validate runs/probes/definitions",
        shown="file wordnet_dir",
        positional=True,
    )
)
def validate(file: PathText, wordnet_dir: PathText = str(DEFAULT_DIR)) -> None:
    """Checks a probe: answers in stems, right answers among the wrong ones, leaks between splits.

    Exits with 1 where something is found.

    Args:
        file: A file of items, or a folder with train, dev and test files.
        wordnet_dir: Folder of a WordNet 3.0 database, which items whose notes name synsets, and
            conjunctions of two concepts, are held against; without one that is said, and only
            their text is checked.
    """
    splits = read_splits(Path(file))
    findings = [found for records in splits.values() for found in check_records(records)]
    findings += [found for records in splits.values() for found in check_senses(records)]
    findings += check_splits(splits)
    findings += _against_wordnet(splits, Path(wordnet_dir))
    total = sum(len(records) for records in splits.values())
    if not findings:
        print(f"{file}: nothing found in {total:,} items ({', '.join(splits)})")
        return
    print(findings_text(findings))
    print(f"{file}: {len(findings):,} findings in {total:,} items ({', '.join(splits)})")
    sys.exit(1)


def _against_wordnet(splits: Mapping[str, Sequence[Record]], wordnet_dir: Path) -> list[Finding]:
    """Hold items that name synsets, or join two concepts, against WordNet, if it is there."""
    from probelight.build.sources.wordnet import open_wordnet
    from probelight.build.wordnet_probes.checks import (
        check_conjunctions,
        check_synsets,
        conjunctions,
        knows,
    )
    from probelight.build.wordnet_probes.graph import read_graph

    named = [records for records in splits.values() if knows(records)]
    joint = [records for records in splits.values() if conjunctions(records)]
    findings = list[Finding]()
    try:
        if joint:
            wordnet = open_wordnet(wordnet_dir)
            findings += [found for one in joint for found in check_conjunctions(one, wordnet)]
        if named:
            graph = read_graph(wordnet_dir)
            findings += [found for one in named for found in check_synsets(one, graph)]
    except FileNotFoundError as error:
        print(f"only the text is checked, not held against WordNet: {error}")
    return findings


@command(
    Command(
        example="train.py probes stats runs/probes/definitions",
        shown="file",
        positional=True,
    )
)
def stats(file: str) -> None:
    """Counts questions, concepts, right answers and their places, split by split.

    Args:
        file: A file of items, or a folder with train, dev and test files.
    """
    print(stats_table(stats_of(read_splits(Path(file)))))
    print(
        "\nunique: different pairs of stem and right answer; concepts: the clusters that items "
        "name;\nat place 1, 2, ...: how often the right answer is there"
    )


def read_splits(path: Path) -> dict[str, tuple[Record, ...]]:
    """Return the items of a file, or of each split's file in a folder.

    Raises:
        UsageError: If a folder has no such file.
        FileNotFoundError: If there is neither.
    """
    files = split_files(path)
    return {split: read_file(own, ids_repeat=True).records for split, own in files.items()}


def split_files(path: Path) -> dict[str, Path]:
    """Return the file of each split in a folder; of a file that file, by how its name begins.

    Raises:
        UsageError: If a folder has none.
    """
    if not path.is_dir():
        return {path.name.partition(".")[0]: path}
    found = {split: [path / f"{split}{end}" for end in _ENDINGS] for split in SPLITS}
    files = {s: next((p for p in paths if p.is_file()), None) for s, paths in found.items()}
    if not any(files.values()):
        raise UsageError(f"{path}: no train, dev or test file ending in {', '.join(_ENDINGS)}")
    return {split: own for split, own in files.items() if own is not None}
