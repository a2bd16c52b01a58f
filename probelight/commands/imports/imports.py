"""`train.py import`: other programs' measurements as runs of ours.

A file's answers are fitted to items (`imports.fitting`); its run has the rows of a zero-shot run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Self

from probelight.commands.command import Command, command
from probelight.commands.imports import fitting, tables
from probelight.evaluation.evaluate import Evaluation
from probelight.evaluation.letters import ByLetter, LetterAnswers
from probelight.evaluation.measures import PROTOCOL
from probelight.evaluation.sets import LoadedSet, load_sets
from probelight.io.errors import UsageError, nearest
from probelight.io.escaping import visible
from probelight.io.process import without_collector
from probelight.io.ranges import Mirror, Texts
from probelight.metrics.scoring_rules import LETTER
from probelight.probes.user_files import DEFAULT_FILE, FileSettings
from probelight.results.importers import correct, hf_trainer, letters, lm_eval, minicons, plain
from probelight.results.importers.answers import IMPORTED, Gold, Imported, with_gold
from probelight.results.importers.columns import NUMBERS, Columns, for_model
from probelight.results.measured import Predictions, classes_are_positions
from probelight.results.predictions import write_predictions
from probelight.results.record import FromFiles, ModelSource, RunRecord, checksums
from probelight.results.row import Row
from probelight.results.run_folder import CommandFolder, RunFolder

FORMATS: Mapping[str, Callable[[Path], Imported]] = {  # what reads a file of each
    "lm_eval": lm_eval.read,
    "minicons": minicons.read,
    "hf_trainer": hf_trainer.read,
    "plain": plain.read,
    "letters": letters.read,
    "correct": correct.read,
}
BY_CHANCE = 1e-3  # how likely an order must be by chance not to tell of ranks
TABLE = "table"  # the format of a table whose kind its columns tell


@command(
    Command(
        example="train.py import lm_eval out/gpt2/samples_age_small_2026*.jsonl --probe age_small "
        "--output_dir runs/imported",
        options="format files output_dir probe model gold columns candidates scores mirror "
        "data.path data.setup data.name",
        positional=True,
    )
)
@without_collector()
def import_results(
    format: str,
    files: list[Path],
    output_dir: str = "",
    probe: str = "",
    model: Texts = (),
    gold: Path | None = None,
    candidates: Texts = (),
    columns: Texts = (),
    scores: fitting.KeptScores = "as_given",
    mirror: Mirror | None = None,
    data: FileSettings = DEFAULT_FILE,
) -> list[Row]:
    """Imports what another program measured, for intervals, tables and a page.

    Rerun the same command to resume.

    Args:
        format: lm_eval (--log_samples of lm-evaluation-harness), minicons (a table), hf_trainer
            (NumPy files of Trainer.predict), plain (JSON lines or a table), letters (scores of
            labels, in one or several orders of the choices), or table (without choices: right or
            wrong, V-information, data maps, gains with losses, or counts, as its columns tell).
        files: Files in that format, one run each. FILE=MODEL names the model that answered.
        output_dir: Folder of the results.
        probe: Probe whose items were answered, as `name` or `name:split`. By default the items come
            from the files.
        model: Names of the models in tables, separated by commas: one per file, or one for all.
            Needed if a file does not name its model.
        gold: JSON lines or a table with `id` or `text`, and `gold`, the text of the right choice.
        columns: Names of the columns or keys of a file that are called otherwise, as OURS=THEIRS
            by commas: id=item_id,scores=logprob_a+logprob_b. {model} is the model's name.
        candidates: Columns of a `plain` table that have the scores of candidates, separated by
            commas, where it has a row for each item.
        scores: "as_given" uses the scores as they are, higher is better; "logarithm" takes the
            logarithm of probabilities; "per_character" divides each score by the number of
            characters of its choice (acc_norm of lm_eval).
        mirror: Folder or address with copies of the released files.
        data: Your own file instead of `probe`. `data.name` alone turns files that answer the same
            items as the first one into a single probe, which `compare` needs.

    Returns:
        The rows of results.csv.

    Raises:
        UsageError: If there is no such format, a file's name does not fit the format, or you do not
            name the model or the output folder.
        RecordError: If a file is malformed, or its answers do not fit the items one to one.
    """
    from probelight.reports.formats import print_tables

    formats = list(dict.fromkeys([*FORMATS, TABLE, *tables.KINDS]))
    if format not in formats:
        near = nearest(format.lower().replace("-", "_"), formats)
        raise UsageError(f"there is no format {format!r}{near}; choose from {', '.join(formats)}")
    if not output_dir:
        raise UsageError("give --output_dir FOLDER for the results")
    if candidates and format != "plain":
        raise UsageError("--candidates names columns of plain tables; leave it out")
    names = _columns(format, columns)
    files_with_models = _files_with_models(files, model)
    if format == TABLE:
        kinds = [tables.kind_of_table(path, for_model(names, m)) for path, m in files_with_models]
        if len({*kinds}) > 1:
            raise UsageError(
                f"the files are of several kinds: {', '.join(kinds)}; import each alone"
            )
        format = kinds[0]
    if format in tables.KINDS and (probe or gold or scores != "as_given" or data.path):
        raise UsageError(
            f"{format} files have their own items; leave out --probe, --gold, --scores, --data"
        )
    if format in tables.PROTOCOLS:
        rows = tables.import_tables(
            format, files_with_models, Path(output_dir), data.name or "", names
        )
        print_tables(Path(output_dir), tables.PROTOCOLS[format])
        return rows
    chosen = _chosen_set(probe, data, mirror)
    gold_answers = None if gold is None else plain.read_gold(gold)
    read_file: Callable[..., Imported] = FORMATS[format]
    if format == "plain":
        choices = {c for record in (chosen.data.records if chosen else ()) for c in record.choices}
        read_file = partial(plain.read, candidates=candidates, choices=choices)
    imported_files = _read_files(read_file, files_with_models, gold_answers, names)
    sets = [chosen] * len(imported_files) if chosen else _sets_of_files(imported_files, data.name)
    imports = [
        Import.of(
            format,
            imported,
            items,
            gold_answers,
            scores,
            for_model(names, imported.model),
            is_probe_given=chosen is not None,
        )
        for imported, items in zip(imported_files, sets, strict=True)
    ]
    del imported_files  # of a million items, they take as much memory as the rest
    counts = Counter((planned.file.model, planned.items.name) for planned in imports)
    [((name, set_name), number)] = counts.most_common(1)
    if number > 1:
        raise UsageError(
            f"{number} files have results of {name} on {set_name}, so tables could not distinguish "
            "them; give each file its own name: FILE=MODEL, or --model a,b"
        )
    # Where choices are in the order of one model's scores, positions are ranks for all models.
    ranked = {planned.items.name for planned in imports if planned.ranked}
    imports = [replace(planned, ranked=planned.items.name in ranked) for planned in imports]
    config = {"command": "import", "runs": [planned.config for planned in imports]}
    used = [file for planned in imports for file in planned.files]
    folder = CommandFolder(Path(output_dir), config, used)
    for planned in imports:
        run = folder.run(f"import-{planned.items.name}-{planned.file.model}", planned.config)
        if run.result() is None:
            run.finish(planned.make(run))
        else:
            print(f"{planned.items.name}, {planned.file.model}: complete")
    folder.write_results()
    print_tables(folder.path, "zero_shot")
    return folder.rows()


def _columns(format: str, columns: Sequence[str]) -> dict[str, str]:
    """Return the names of a file's columns by ours, from OURS=THEIRS."""
    headers = {**minicons.CHOICES, **minicons.PAIRS}.values()
    columns_by_kind = {kind: tables.columns_of(kind) for kind in tables.KINDS}
    names_by_format = {
        "plain": [*sum(plain.CANDIDATES.values(), ()), *plain.KEYS],
        "minicons": [*dict.fromkeys(sum(headers, ()))],
        "letters": letters.KEYS,
        TABLE: [*dict.fromkeys(chain.from_iterable(columns_by_kind.values()))],
        **columns_by_kind,
    }
    if columns and format not in names_by_format:
        raise UsageError(f"--columns is for {', '.join(names_by_format)}, not for {format} files")
    mapping: dict[str, str] = {}
    for column in columns:
        ours, equals, theirs = (text.strip() for text in column.partition("="))
        if not (ours and equals and theirs):
            raise UsageError(f"--columns {column}: give OURS=THEIRS, such as id=item_id")
        if ours not in (names := names_by_format[format]):
            raise UsageError(
                f"--columns {column}: {format} files have no {ours!r}{nearest(ours, names)}; what "
                f"they have is {', '.join(names)}"
            )
        if ours in mapping or (theirs in mapping.values() and ours not in NUMBERS):
            raise UsageError(f"--columns {column}: {ours} or {theirs} is there twice; give it once")
        mapping[ours] = theirs
    return mapping


def _chosen_set(probe: str, data: FileSettings, mirror: str | None) -> LoadedSet | None:
    if not probe and not data.path:
        if data.setup or data.choices or data.gold:
            raise UsageError("--data.setup, .choices and .gold need a file; give it as --data.path")
        return None
    if probe and data.name:
        raise UsageError("--data.name is for items that are not a probe; give it or --probe")
    if probe and data.path:
        raise UsageError("give --probe or --data.path, not both")
    if "," in probe:
        raise UsageError("--probe: give one probe per command, each with its own --output_dir")
    [chosen] = load_sets([probe] if probe else [], data, None, mirror)
    return chosen


def _files_with_models(files: Sequence[Path], models: Sequence[str]) -> list[tuple[Path, str]]:
    """Return each file with its model by --model or FILE=MODEL; "" for none."""
    if len(models) not in (0, 1, len(files)):
        raise UsageError(f"--model: {len(models)} names, but {len(files)} files; give one per file")
    files_with_models = []
    for number, argument in enumerate(files):
        name = models[number % len(models)] if models else ""
        path, equals, model = str(argument).rpartition("=")
        if not equals or argument.exists():
            files_with_models.append((argument, name))
            continue
        if not path or not model.strip():
            raise UsageError(f"{argument}: there is no such file; FILE=MODEL needs both parts")
        if name:
            raise UsageError("--model and FILE=MODEL both name the model; give only one of them")
        files_with_models.append((Path(path), model.strip()))
    return files_with_models


def _read_files(
    read: Callable[..., Imported],
    files: Sequence[tuple[Path, str]],
    gold: Gold | None,
    columns: Columns,
) -> list[Imported]:
    """Return each file with the name of its model, which may be given, and the right choices."""
    imported_files = []
    for path, model_name in files:
        imported = read(path, columns=for_model(columns, model_name)) if columns else read(path)
        if not (model_name or imported.model):
            raise UsageError(
                f"{path}: the file does not name its model; give --model NAME, or the file as "
                f"{path}=NAME"
            )
        answers = with_gold(imported.answers, gold) if gold else imported.answers
        name = visible(model_name or imported.model)
        imported_files.append(replace(imported, model=name, answers=answers))
    return imported_files


def _sets_of_files(imported_files: Sequence[Imported], name: str | None) -> list[LoadedSet]:
    """Return the items of each file; with a name, all answer those of the first one."""
    files = [replace(imported, name=visible(name or imported.name)) for imported in imported_files]
    if not name:
        return [LoadedSet(imported.name, "", fitting.items_of_file(imported)) for imported in files]
    first = LoadedSet(files[0].name, "", fitting.items_of_file(files[0]))
    fitting.refuse_other_questions(imported_files)
    return [first] * len(imported_files)


@dataclass(frozen=True)
class Import:
    """The answers in a file, fitted to items: a run to make."""

    format: str
    file: Imported
    items: LoadedSet
    gold: Gold | None
    scores: fitting.KeptScores
    columns: Columns  # names of the file's columns by ours, where it has others
    predictions: Predictions  # the scores of the items, in their order
    matched_by: str  # what the answers were fitted by
    ranked: bool  # whether each item's choices are in the order of these scores
    letters: LetterAnswers | None  # where the scores are of labels

    @classmethod
    def of(
        cls,
        format: str,
        file: Imported,
        items: LoadedSet,
        gold: Gold | None,
        scores: fitting.KeptScores,
        columns: Columns,
        *,
        is_probe_given: bool,
    ) -> Self:
        """Fit a file to its set, which is a probe or, if none `is_probe_given`, the file's own."""
        fitted, matched_by = fitting.answers_in_order(file, items.data)
        # The harness has the choices in the order of its documents.
        is_free = not is_probe_given and format != "lm_eval"
        scores_of_file = [answer.scores for answer in fitted]
        ranked = format != "letters" and _are_ranked(scores_of_file, is_free=is_free)
        if scores != "as_given":
            with_scores = replace(file, answers=fitting.with_kept_scores(file.answers, scores))
            fitted, _ = fitting.answers_in_order(with_scores, items.data)
        letters = fitting.letters_of(fitted, items.data) if format == "letters" else None
        item_scores = [answer.scores for answer in fitted]
        predictions = Predictions(items.name, items.data.records, item_scores)
        if letters:
            predictions = letters.over_orders
        file = replace(file, answers=())
        return cls(
            format, file, items, gold, scores, columns, predictions, matched_by, ranked, letters
        )

    @property
    def source(self) -> dict[str, str]:
        """The format and the checksum of the file."""
        return {"format": self.format, "sha256": self.file.files[0].sha256}

    @property
    def config(self) -> dict[str, Any]:
        """The config of the run."""
        return {
            "protocol": PROTOCOL,
            "model": self.file.model,
            "probe": self.items.name,
            "split": self.items.split,
            "data": checksums(self.items.data),
            IMPORTED: self.source,
            "gold": self.gold.files[0].sha256 if self.gold else None,
            "scores": self.scores,
            **({"columns": self.columns} if self.columns else {}),
        }

    @property
    def files(self) -> list[FromFiles]:
        """Those that the numbers come from."""
        return [self.items.data, self.file, *([self.gold] if self.gold else [])]

    @property
    def origin(self) -> str:
        """Where the numbers come from."""
        path, num_items = Path(self.file.files[0].path), len(self.items.data.records)
        is_probe = self.items.data.files != self.file.files
        return (
            f"{self.file.model} on {self.items.name}: imported from {path.name} ({self.format}), "
            f"measured by another program; {num_items} item{'s' * (num_items > 1)} "
            + (f"matched by their {self.matched_by}" if is_probe else "as the file has them")
            + ("" if self.scores == "as_given" else f", scores: {self.scores.replace('_', ' ')}")
        )

    def make(self, run: RunFolder) -> RunRecord:
        """Return the record of the run, with the rows of a zero-shot run, and write its files."""
        from probelight.io.progress import tracked_items  # not above: --help is quick

        predictions, data = self.predictions, self.items.data
        mode = IMPORTED if self.scores == "as_given" else f"{IMPORTED}_{self.scores}"
        evaluation = Evaluation.of(data, predictions, mode, is_ranked=self.ranked)
        if letters := self.letters:
            evaluation = replace(
                evaluation,
                mode=f"{mode}, by {LETTER}" + ", mean over orders" * letters.has_orders,
                answers=((ByLetter(None), replace(letters, mode=mode)),),
                gold_labels=letters.gold_labels,
            )
        row = Row(
            protocol=PROTOCOL,
            model=self.file.model,
            control="standard",
            num_train=0,
            split=self.items.split,
            role="model",
            kind=IMPORTED,
        )
        notices = [self.origin, *data.notices, *self.file.notices, *evaluation.notices]
        is_pairs = data.config.setup == "minimal_pair"
        if self.ranked and classes_are_positions(data.config, predictions.records) and not is_pairs:
            notices.append(
                f"the choices of each item of {self.items.name} are in the order of a model's "
                "scores: positions are ranks, so there is no macro accuracy or share by position"
            )
        rows = evaluation.rows(row)
        run.write_metrics(rows)
        num_items, title = (
            len(predictions.records),
            f"writing the predictions of {data.config.name}",
        )
        write_predictions(run, tracked_items(evaluation.lines(), num_items, title))
        return replace(
            evaluation.record(row, rows, (), self.files),
            probe=self.items.name,
            notices=tuple(notices),
            source=ModelSource(loaded_from=f"{self.format} import"),
            facts={IMPORTED: self.source},
            versions={},
        )


def _are_ranked(scores: Sequence[Sequence[float]], *, is_free: bool) -> bool:
    """Return whether each item's choices are in the order of their scores, and hardly by chance.

    In an order that the file was not free to choose a model may always answer the first choice, so
    that only the order of the others tells of ranks.
    """
    is_falling = all(list(row) == sorted(row, reverse=True) for row in scores)
    is_rising = all(list(row) == sorted(row) for row in scores)
    # Of n different scores, n! orders are as likely; of more than ten, ten are enough to tell.
    orders = (math.factorial(min(10, len(set(row)) - (not is_free))) for row in scores)
    return (is_falling or is_rising) and math.prod(1 / number for number in orders) < BY_CHANCE
