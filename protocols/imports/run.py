"""Makes the run of what another program's file says of a set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from probes.splits import groups_of
from protocols.engine.predictions import Predictions, near_tie_notices, score_notices
from protocols.imports.fit import fitted
from protocols.imports.kept_scores import Kept, kept
from protocols.imports.own_items import own_items
from protocols.zero_shot.data import LoadedSet, checksums
from protocols.zero_shot.jobs import PROTOCOL
from protocols.zero_shot.pairs import pair_notices, pair_rows
from protocols.zero_shot.rows import zero_shot_rows
from results.importers.answers import Gold, Imported, with_gold
from results.provenance import FromFiles, data_files
from results.record import ModelSource, RunRecord
from results.row import Row
from results.run_folder import RunFolder
from storage.escaping import visible

IMPORTED = "imported"  # how choices got their scores, and the kind of the model


@dataclass(frozen=True)
class Asked:
    """A run to make.

    Attributes:
        config: What names the run.
        one: The set.
        said: What was said of its items, in their order.
        files: The files that the numbers come from.
        origin: Where they come from, readable.
        notices: What else is to be said of the files.
    """

    config: Mapping[str, Any]
    one: LoadedSet
    said: Predictions
    files: tuple[FromFiles, ...]
    origin: str
    notices: tuple[str, ...]

    @property
    def of(self) -> tuple[str, str]:
        """Model and probe."""
        return self.config["model"], self.config["probe"]

    @property
    def mode(self) -> str:
        """How the choices got their scores."""
        return "_".join(filter(None, (IMPORTED, self.config.get("scores"))))

    @property
    def name(self) -> str:
        """Readable beginning of the run's key."""
        model, probe = self.of
        return f"import-{probe}-{model}"


def asked_of(
    form: str,
    found: Imported,
    model: str,
    chosen: LoadedSet | None,
    gold: Gold | None,
    scores: Kept,
) -> Asked:
    """The run that a file makes; everything is checked before the first one is made.

    Args:
        form: The format.
        found: What the file says.
        model: What tables call the model.
        chosen: The set; None takes the items of the file.
        gold: A second file of right choices.
        scores: What is kept of its scores.

    Raises:
        RecordError: If what the file says does not fit the items one to one.
    """
    answers = with_gold(found.answers, gold) if gold else found.answers
    found = replace(found, answers=kept(answers, scores), name=visible(found.name))
    one = chosen or LoadedSet(found.name, "", own_items(found))
    fit = fitted(found, one.data)
    records = one.data.records
    config = {
        "protocol": PROTOCOL,
        "model": model,
        "probe": one.name,
        "split": one.split,
        "data": checksums(one.data),
        IMPORTED: {"format": form, "sha256": found.file.sha256},
        **({"gold": gold.file.sha256} if gold else {}),
        **({"scores": scores} if scores != "as_given" else {}),
    }
    origin = (
        f"{model} on {one.name}: imported from {Path(found.file.path).name} ({form}), measured by "
        f"another program; {len(records)} item{'s' * (len(records) > 1)} "
        + (f"fitted by their {fit.by}" if chosen else "as the file has them")
        + ("" if scores == "as_given" else f", scores: {scores.replace('_', ' ')}")
    )
    files: tuple[FromFiles, ...] = (one.data, found, *([gold] if gold else []))
    said = Predictions(one.name, records, fit.scores)
    return Asked(config, one, said, files, origin, (*one.data.notices, *found.notices))


def make_run(run: RunFolder, asked: Asked) -> None:
    """Writes the run: rows as those of a zero-shot run, and every item's scores."""
    said, data = asked.said, asked.one.data
    model, probe = asked.of
    row = Row(
        protocol=PROTOCOL,
        model=model,
        probe=data.config.name,
        control="standard",
        mode=asked.mode,
        num_train=0,
        split=asked.one.split,
        role="model",
        kind=IMPORTED,
    )
    rows = (pair_rows if data.config.setup == "minimal_pair" else zero_shot_rows)(said, data, row)
    run.write_metrics(rows)
    run.write_lines("predictions.jsonl", said.rows(groups_of(said.records, data.config.group_by)))
    notices = [*score_notices(said), *near_tie_notices(said), *pair_notices(said.records)]
    imported = asked.config[IMPORTED]
    run.finish(
        RunRecord(
            protocol=PROTOCOL,
            model=model,
            probe=probe,
            rows=tuple(rows),
            counts={"items": len(said.records), "scored": len(said.records)},
            notices=(asked.origin, *asked.notices, *notices),
            data=data_files(asked.files),
            source=ModelSource(loaded_from=f"{imported['format']} import"),
            facts={IMPORTED: imported},
            versions={},
        )
    )
