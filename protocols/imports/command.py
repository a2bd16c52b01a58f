"""`train.py import`: what other programs measured, as runs of ours."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from protocols.cli.command import Command, command
from protocols.engine.settings import DEFAULT_FILE, FileSettings, listed
from protocols.imports.kept_scores import Kept
from protocols.imports.run import Asked, asked_of, make_run
from protocols.zero_shot.data import LoadedSet, load_sets
from results.importers.formats.plain import read_gold
from results.importers.registry import reader_of
from results.row import Row
from results.run_folder import CommandFolder
from storage.errors import UsageError
from storage.escaping import visible


@command(
    Command(
        "other programs' results on items as runs of ours",
        example="train.py import lm_eval out/gpt2/samples_age_small_2026*.jsonl --probe age_small "
        "--output_dir runs/imported",
        shown="format files output_dir probe model gold scores mirror data.path data.setup",
        positional=True,
    )
)
def import_results(
    format: str,
    files: list[Path],
    output_dir: str = "",
    probe: str = "",
    model: str | list[str] = "",
    gold: Path | None = None,
    scores: Kept = "as_given",
    mirror: str | None = None,
    data: FileSettings = DEFAULT_FILE,
) -> list[Row]:
    """Makes other programs' scores of items runs of ours, with intervals, tables and a page.

    The same command goes on where it stopped.

    Args:
        format: lm_eval (--log_samples of lm-evaluation-harness), minicons (a table), hf_trainer
            (NumPy files of Trainer.predict) or plain (JSON lines or a table).
        files: Files in that format, a run each.
        output_dir: Folder of the results.
        probe: The probe whose items were answered, `name` or `name:split`; none takes the items
            as the files have them.
        model: What tables call the models, one a file or one for all, by commas; needed where a
            file does not say it.
        gold: JSON lines or a table of `id` or `text` with `gold`, the text of the right candidate.
        scores: What is kept of each: itself, the higher the better, the "logarithm" of a
            probability, or the score "per_character" of its choice (acc_norm of lm_eval).
        mirror: Folder or address that stands for the addresses of the released files.
        data: A file of one's own in place of `probe`.

    Returns:
        The rows of results.csv.

    Raises:
        UsageError: If there is no such format, a file is none of it by its name, or it is not said
            whose results they are or where they go.
        RecordError: If a file is malformed, or fits the items not one to one.
    """
    from reports.terminal import print_tables

    read = reader_of(format)
    if not output_dir:
        raise UsageError("--output_dir is required: the folder of the results")
    chosen = _chosen_set(probe, data, mirror)
    golden = None if gold is None else read_gold(gold)
    found = [read(path) for path in files]
    names = _models(listed(model), [one.model for one in found], files)
    asked = [
        asked_of(format, one, name, chosen, golden, scores)
        for one, name in zip(found, names, strict=True)
    ]
    _refuse_repeated(asked)
    config = {"command": "import", "runs": [dict(one.config) for one in asked]}
    folder = CommandFolder(Path(output_dir), config, [used for one in asked for used in one.files])
    for one in asked:
        run = folder.run(one.name, one.config)
        if run.result() is None:
            make_run(run, one)
        else:
            print(f"{', '.join(reversed(one.of))}: complete")
    folder.write_results()
    print_tables(folder.path, "zero_shot")
    return folder.rows()


def _chosen_set(probe: str, data: FileSettings, mirror: str | None) -> LoadedSet | None:
    if not probe and not data.path:
        return None
    if probe and data.path:
        raise UsageError("give --probe or --data.path, not both")
    if "," in probe:
        raise UsageError("--probe: one probe a command; give another --output_dir to the next one")
    [chosen] = load_sets(probe, data, None, mirror)
    return chosen


def _models(given: list[str], said: list[str], files: list[Path]) -> list[str]:
    """The model of each file.

    Raises:
        UsageError: If it is not said of one, or there are others than one a file.
    """
    if len(given) not in (0, 1, len(files)):
        raise UsageError(f"--model: {len(given)} names, but {len(files)} files; give one a file")
    names = given * (len(files) if len(given) == 1 else 1) or said
    for name, path in zip(names, files, strict=True):
        if not name:
            raise UsageError(f"{path}: it does not say whose results they are; give --model NAME")
    return [visible(name) for name in names]


def _refuse_repeated(asked: list[Asked]) -> None:
    of = Counter(one.of for one in asked)
    (model, probe), number = of.most_common(1)[0]
    if number > 1:
        raise UsageError(
            f"{number} files have results of {model} on {probe}, which tables could not tell "
            "apart; give a name a file: --model a,b"
        )
