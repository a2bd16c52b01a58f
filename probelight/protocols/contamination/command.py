"""`train.py probes contamination`: how much of a probe stands in other data, and what that does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from probelight.io.errors import UsageError
from probelight.io.ranges import NumItems, ShareOrNone, Within
from probelight.protocols.cli.command import Command, command


@command(
    Command(
        "what of a probe stands in other data",
        example="train.py probes contamination hypernymy --against openbookqa,arc_easy "
        "--corpus wiki.txt.gz --results runs/zero_shot --output_dir runs/contamination",
        shown="probe against corpus results output_dir ngram min_share max_groups "
        "wrong_choices mirror",
        positional=True,
    )
)
def contamination(
    probe: str,
    against: str | list[str] = "",
    corpus: str | list[str] = "",
    results: Path | None = None,
    output_dir: Path | None = None,
    ngram: Annotated[int, Within(1, 100)] = 8,
    min_share: ShareOrNone = 0.0,
    max_groups: NumItems = 10,
    wrong_choices: bool = True,
    mirror: str | None = None,
) -> None:
    """Counts the items of a probe that stand in other data, and what runs score without them.

    Args:
        probe: A name (its dev and test items; `name:split` for others), a .yaml file, a folder
            with train, dev and test files, or a file of items.
        against: Other items, by commas and named likewise: all splits of an original task, the
            train items of another probe (`name:train`).
        corpus: Text files, plain, .gz or .zip, by commas.
        results: Folder of finished runs: what they score on contaminated items and on the others.
        output_dir: Gets items.jsonl, a line an item, and the tables as csv files.
        ngram: Words of an n-gram.
        min_share: An item is contaminated where more than this share of its n-grams is found.
        max_groups: What more groups of items than this (or half of few) have in common is taken
            for the probe's templates and left out.
        wrong_choices: Also looks in the wrong answers of other items, which are trained on too.
        mirror: Folder or address that stands for the addresses of the released files.

    Raises:
        UsageError: If there is nothing to look in, or no such probe.
    """
    from probelight.io.limits import regular_file
    from probelight.protocols.contamination.items import held_out
    from probelight.protocols.contamination.look import Looked
    from probelight.protocols.contamination.scores import answers_of, scored
    from probelight.protocols.contamination.shown import counts_of, show, write
    from probelight.reports.contamination.tables import scores_table
    from probelight.results.load import load_results

    names, texts = _listed(against), _listed(corpus)
    if not names and not texts:
        raise UsageError("give --against NAMES_OR_FILES, --corpus TEXT_FILES or both")
    # What is wrong with a path is said before minutes are spent on others.
    for path in texts:
        regular_file(path)
    if output_dir is not None:
        output_dir.mkdir(parents=True, exist_ok=True)
    loaded = load_results(results) if results else None
    looked = Looked(held_out(probe, mirror), ngram, max_groups, min_share)
    for name in names:
        looked.in_items(name, mirror, wrong_choices)
    for path in texts:
        looked.in_text(path)
    tables, notices = [counts_of(looked)], looked.notices
    if loaded is not None:
        answers, said = answers_of(loaded, looked.parts)
        notices += [*loaded.left_out, *said]
        if flags := looked.flags():
            tables.append(scores_table(list(scored(answers, looked.groups, flags))))
        else:
            notices.append("nothing contaminates an item, so all scores are without")
    show(tables, notices)
    if output_dir is not None:
        write(output_dir, tables, looked)


def _listed(given: str | list[str]) -> list[str]:
    parts = given.split(",") if isinstance(given, str) else given
    return list(dict.fromkeys(part.strip() for part in parts if part.strip()))
