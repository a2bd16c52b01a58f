"""`probelight.score`: a probe's items scored by a model, with no folder and no Lightning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pandas as pd

from probelight.io.documents import as_settings
from probelight.io.errors import UsageError
from probelight.io.from_python import quietly
from probelight.probes.importers.objects import write_items
from probelight.probes.record import Setup, groups_of
from probelight.probes.source import ITEM_FILES, ProbeData, load_entry, load_file
from probelight.protocols.engine.predictions import predict
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.jobs.job import TrainerSettings
from probelight.results.frames import item_columns
from probelight.results.measured import accuracy_row, score_notices
from probelight.results.row import Row

if TYPE_CHECKING:
    from probelight.models.scorer import Scorer


class Model:
    """A model that scores probes: loaded when it is first needed, or one in memory.

    Attributes:
        settings: How its text is made and its answers are scored.
    """

    def __init__(self, settings: ModelSettings, network: Any = None, tokenizer: Any = None) -> None:
        self.settings = settings
        self._network = network
        self._tokenizer = tokenizer
        self._scorers: dict[tuple[Setup, bool], Scorer] = {}

    def __repr__(self) -> str:
        return f"Model({self.settings.label}, {self.settings.kind})"

    @contextmanager
    def asked(self, setup: Setup, trainer: TrainerSettings) -> Iterator[Scorer]:
        """Yield what answers probes of a setup; a network in memory is left as it was."""
        from probelight.protocols.engine.devices import is_on_gpu
        from probelight.protocols.engine.models import scorer_for

        if self._network is None:
            # On a GPU the weights may be in another precision than on the CPU.
            known = setup, is_on_gpu(trainer)
            yield self._scorers.get(known) or self._scorers.setdefault(
                known, scorer_for(self.settings, setup, trainer=trainer)
            )
            return
        from probelight.models.in_memory import TextSettings, as_it_was, scorer_of

        names = {field.name for field in fields(TextSettings)}
        settings = TextSettings(**{n: v for n, v in vars(self.settings).items() if n in names})
        with as_it_was(self._network):
            yield scorer_of(self._network, self._tokenizer, setup, settings)


@dataclass(frozen=True, repr=False)
class Scores:
    """The answers of a model to a probe.

    Attributes:
        model: Its name.
        probe: The probe's name.
        accuracy: Mean score of the items.
        interval: Its 95% interval, by the probe's groups.
        chance: Accuracy of guessing.
        items: A row per item, with the score of every choice; the columns are those of
            `Results.items` without those of a run.
        notices: What was skipped, cut or tied.
    """

    model: str
    probe: str
    accuracy: float
    interval: tuple[float, float]
    chance: float
    items: pd.DataFrame
    notices: tuple[str, ...] = ()

    def __repr__(self) -> str:
        low, high = (f"{100 * bound:.1f}" for bound in self.interval)
        return (
            f"{self.model} on {self.probe}: {100 * self.accuracy:.1f}% ({low} to {high}) of "
            f"{len(self.items):,} items, chance {100 * self.chance:.1f}%"
        )


def load_model(model: Any, tokenizer: Any = None, **settings: Any) -> Model:
    """Return a model for `score`.

    Args:
        model: A name of a config, folder or Hub name; or a model of transformers in memory.
        tokenizer: Of a model in memory.
        **settings: As `ModelSettings`: `max_length`, `multi_token`, `revision` and so on.

    Raises:
        UsageError: If a model in memory has no tokenizer, or its type is not supported.
        PretrainedError: If there is no such model.
    """
    from probelight.protocols.engine.chosen_models import model_of, with_model_type

    if isinstance(model, str | Path):
        with quietly():
            found = asdict(model_of(str(model))) | settings
            return Model(with_model_type(as_settings(ModelSettings, found, "load_model")))
    if tokenizer is None:
        raise UsageError("load_model: give the tokenizer of a model in memory too")
    from probelight.models.in_memory import name_of, type_of

    given = {"name": name_of(model), "kind": type_of(model), **settings}
    return Model(as_settings(ModelSettings, given, "load_model"), model, tokenizer)


def load_probe(
    probe: Any,
    split: str | None = None,
    *,
    name: str | None = None,
    setup: Setup | None = None,
    mirror: str | None = None,
) -> ProbeData:
    """Return the items of a probe.

    Args:
        probe: Name of a probe, `name:split` or path of its config, a file of items, or items: a
            list of dicts, a `datasets.Dataset` or a DataFrame (see
            `probelight.probes.importers.objects.items_text`).
        split: Split of a probe with a config; dev by default, or test where there is no dev.
        name: What results call it; by default its own name, that of the file, or "items".
        setup: "mc_mlm", "mc_qa" or "minimal_pair", of items without a config; by default as their
            first one is.
        mirror: Folder or address in place of the addresses of the released files.

    Raises:
        ProbelightError: If there is no such probe, split or file, or an item is malformed.
    """
    with quietly():
        if not isinstance(probe, str | Path):
            with TemporaryDirectory() as folder:
                path = Path(folder) / "items.jsonl"
                written = write_items(path, probe)
                found = load_file(path, setup or written)
        elif setup and str(probe).endswith(ITEM_FILES):
            found = load_file(probe, setup)
        else:
            found, _ = load_entry(probe, split, mirror=mirror)
    return replace(found, config=replace(found.config, name=name)) if name else found


def score(
    model: Any,
    probe: Any,
    *,
    tokenizer: Any = None,
    trainer: TrainerSettings | Mapping[str, Any] | None = None,
) -> Scores:
    """Score every item of a probe as `zero_shot` does, in this process.

    A model in memory stays as it was: on its device, in its mode, with its gradients.

    Args:
        model: What `load_model` returned or takes.
        probe: What `load_probe` returned or takes.
        tokenizer: Of a model in memory.
        trainer: Device and batch settings, such as {"accelerator": "cpu"}.

    Raises:
        ProbelightError: If the model cannot answer the probe; the message says why.
    """
    if not isinstance(model, Model):
        model = load_model(model, tokenizer)
    if not isinstance(probe, ProbeData):
        probe = load_probe(probe)
    name, config = model.settings.label, probe.config
    settings = replace(as_settings(TrainerSettings, trainer or {}, "trainer"), devices=1)
    settings = replace(settings, progress_bar=False)
    with quietly(), model.asked(config.setup, settings) as scorer:
        found = predict(scorer, {config.name: probe.records}, settings)[config.name]
    groups = groups_of(found.records, config.group_by)
    row = accuracy_row(found, groups, Row(model=name, probe=config.name))
    assert row.ci_low is not None
    assert row.ci_high is not None
    return Scores(
        model=name,
        probe=config.name,
        accuracy=row.value,
        interval=(row.ci_low, row.ci_high),
        chance=found.chance,
        items=pd.DataFrame(
            {"probe": config.name, **item_columns(config.name, line)}
            for line in found.lines(groups)
        ),
        notices=(*probe.notices, *found.notices, *score_notices(found)),
    )
