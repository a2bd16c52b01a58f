"""`train.py probes validate` and `probes stats`: the errors in a file of items, and its sizes."""

from __future__ import annotations

import sys
from pathlib import Path

from probelight.build import hygiene
from probelight.build.builder import SPLITS
from probelight.build.dictionary_entries import check_senses
from probelight.build.sources.wordnet import DEFAULT_DIR
from probelight.io.errors import UsageError
from probelight.io.ranges import PathText
from probelight.probes.importers.items import read_file
from probelight.probes.record import Record
from probelight.probes.source import FORMS
from probelight.protocols.cli.command import Command, command


@command(
    Command(
        example="train.py probes validate runs/probes/definitions",
        shown="file wordnet_dir",
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
    from probelight.build.olmpics.taxonomy import check_conjunctions, conjunctions
    from probelight.build.sources.wordnet import open_wordnet
    from probelight.build.wordnet_probes.graph import check_synsets, read_graph

    splits = read_splits(Path(file))
    records = [record for split in splits.values() for record in split]
    findings = [found for split in splits.values() for found in hygiene.check_records(split)]
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
        shown="file",
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


def read_splits(path: Path) -> dict[str, tuple[Record, ...]]:
    """Return the items of a file, or of each split's file in a folder."""
    files = split_files(path)
    return {split: read_file(path, ids_repeat=True).records for split, path in files.items()}


def split_files(path: Path) -> dict[str, Path]:
    """Return a folder's file of each split, or a single file under the first part of its name."""
    if not path.is_dir():
        return {path.name.partition(".")[0]: path}
    endings = [f".{form}{packed}" for form in FORMS for packed in ("", ".gz", ".zip")]
    every = [(split, path / f"{split}{ending}") for split in SPLITS for ending in endings]
    # The first one counts where a split has several.
    files = {split: file for split, file in reversed(every) if file.is_file()}
    if not files:
        raise UsageError(f"{path}: no train, dev or test file ending in {', '.join(endings)}")
    return {split: files[split] for split in SPLITS if split in files}
