"""`train.py import`: what other programs measured, as runs of ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from probelight.io.errors import UsageError, nearest
from probelight.io.escaping import visible
from probelight.probes.record import with_mask
from probelight.protocols.cli.command import Command, command
from probelight.protocols.engine.settings import DEFAULT_FILE, FileSettings, listed
from probelight.protocols.imports.fit import refuse_other_questions
from probelight.protocols.imports.kept_scores import Kept
from probelight.protocols.imports.own_items import own_items
from probelight.protocols.imports.run import Asked, asked_of, make_run
from probelight.protocols.zero_shot.data import LoadedSet, load_sets
from probelight.results.importers import hf_trainer, lm_eval, minicons, plain
from probelight.results.importers.answers import Imported, with_gold
from probelight.results.row import Row
from probelight.results.run_folder import CommandFolder

FORMATS: Mapping[str, Callable[[Path], Imported]] = {  # what reads a file of each
    "lm_eval": lm_eval.read,
    "minicons": minicons.read,
    "hf_trainer": hf_trainer.read,
    "plain": plain.read,
}


@command(
    Command(
        "other programs' results on items as runs of ours",
        example="train.py import lm_eval out/gpt2/samples_age_small_2026*.jsonl --probe age_small "
        "--output_dir runs/imported",
        shown="format files output_dir probe model gold scores mirror data.path data.setup "
        "data.name",
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
        files: Files in that format, a run each; `FILE=MODEL` says whose answers one holds.
        output_dir: Folder of the results.
        probe: The probe whose items were answered, `name` or `name:split`; none takes the items
            as the files have them.
        model: What tables call the models, one a file or one for all, by commas; needed where a
            file does not say it.
        gold: JSON lines or a table of `id` or `text` with `gold`, the text of the right candidate.
        scores: What is kept of each: itself, the higher the better, the "logarithm" of a
            probability, or the score "per_character" of its choice (acc_norm of lm_eval).
        mirror: Folder or address that stands for the addresses of the released files.
        data: A file of one's own in place of `probe`; its name alone, for files that all answer the
            items of the first one, makes these one probe, which `compare` needs.

    Returns:
        The rows of results.csv.

    Raises:
        UsageError: If there is no such format, a file is none of it by its name, or it is not said
            whose results they are or where they go.
        RecordError: If a file is malformed, or fits the items not one to one.
    """
    from probelight.reports.terminal import print_tables

    if format not in FORMATS:
        near = nearest(format.lower().replace("-", "_"), list(FORMATS))
        raise UsageError(f"there is no format {format!r}{near}; choose of {', '.join(FORMATS)}")
    read = FORMATS[format]
    if not output_dir:
        raise UsageError("--output_dir is required: the folder of the results")
    chosen = _chosen_set(probe, data, mirror)
    golden = None if gold is None else plain.read_gold(gold)
    paths, own_names = zip(*map(_file_and_model, files), strict=True)
    found = [_with_masks(read(path)) for path in paths]
    names = _models(listed(model), own_names, [one.model for one in found], paths)
    if golden:
        golden = replace(golden, right={with_mask(of): one for of, one in golden.right.items()})
        found = [replace(one, answers=with_gold(one.answers, golden)) for one in found]
    if chosen:
        sets = [chosen] * len(found)
    elif data.name:
        sets = [_own_set(found[0], data.name)] * len(found)
        refuse_other_questions(found)
    else:
        sets = [_own_set(one, one.name) for one in found]
    asked = [
        asked_of(format, *own, golden, scores, given=chosen is not None)
        for own in zip(found, names, sets, strict=True)
    ]
    _refuse_repeated(asked)
    # Where choices stand in the order of one model's scores, positions are ranks for all models.
    ranked = {one.one.name for one in asked if one.ranked}
    asked = [replace(one, ranked=one.one.name in ranked) for one in asked]
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
        if data.setup or data.choices:
            raise UsageError("--data.setup and .choices are of a file given as --data.path")
        return None
    if probe and data.name:
        raise UsageError("--data.name names items that are no probe yet; leave it, or --probe")
    if probe and data.path:
        raise UsageError("give --probe or --data.path, not both")
    if "," in probe:
        raise UsageError("--probe: one probe a command; give another --output_dir to the next one")
    [chosen] = load_sets(probe, data, None, mirror)
    return chosen


def _with_masks(found: Imported) -> Imported:
    """Let items be called by their questions with `[MASK]` too, for another program's blank."""
    answers = (
        replace(one, texts=tuple(dict.fromkeys([*one.texts, *map(with_mask, one.texts)])))
        for one in found.answers
    )
    return replace(found, answers=tuple(answers))


def _own_set(found: Imported, name: str) -> LoadedSet:
    """Return the items of a file as a set."""
    name = visible(name)
    return LoadedSet(name, "", own_items(replace(found, name=name)))


def _file_and_model(given: Path) -> tuple[Path, str]:
    """Split FILE=MODEL; the model of a file alone is empty."""
    path, equals, model = str(given).rpartition("=")
    if not equals or given.exists():
        return given, ""
    if not path or not model.strip():
        raise UsageError(f"{given}: there is no such file; FILE=MODEL needs both")
    return Path(path), model.strip()


def _models(
    given: list[str], own: Sequence[str], said: Sequence[str], files: Sequence[Path]
) -> list[str]:
    """Return the model of each file.

    Args:
        given: The names of --model.
        own: Of each file, the one of FILE=MODEL.
        said: Of each file, the one that stands in it.
        files: The files.

    Raises:
        UsageError: If it is not said of one, is said in two ways, or --model has others than one a
            file.
    """
    if given and any(own):
        raise UsageError("--model and FILE=MODEL both say whose results they are; give one of them")
    if len(given) not in (0, 1, len(files)):
        raise UsageError(f"--model: {len(given)} names, but {len(files)} files; give one a file")
    names = given * (len(files) if len(given) == 1 else 1)
    names = names or [first or second for first, second in zip(own, said, strict=True)]
    for name, path in zip(names, files, strict=True):
        if not name:
            raise UsageError(
                f"{path}: it does not say whose results they are; give --model NAME, or the file "
                f"as {path}=NAME"
            )
    return [visible(name) for name in names]


def _refuse_repeated(asked: list[Asked]) -> None:
    of = Counter(one.of for one in asked)
    (model, probe), number = of.most_common(1)[0]
    if number > 1:
        raise UsageError(
            f"{number} files have results of {model} on {probe}, which tables could not tell "
            "apart; give a name a file: FILE=MODEL, or --model a,b"
        )
