"""`probelight.score`: a probe's items scored by a model, with no folder and no Lightning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from probelight.api.call import ModelLike, trainer_of
from probelight.evaluation.evaluate import evaluate
from probelight.evaluation.sets import drawn_data
from probelight.io.errors import UsageError, quietly
from probelight.io.ranges import NumItems
from probelight.io.settings import as_settings, typed
from probelight.models.registry import ModelSettings
from probelight.probes.importers.formats import is_item_file
from probelight.probes.importers.items import ProbeLike
from probelight.probes.record import GoldForm, Setup
from probelight.probes.source import ProbeData, load_entry, load_file, load_items
from probelight.results.frames import item_columns
from probelight.results.row import Row
from probelight.runs.settings import TrainerSettings

if TYPE_CHECKING:
    from probelight.models.scorer import Scorer


class Model:
    """A model that scores probes: one in memory, or one that is loaded when it is first needed.

    Attributes:
        settings: How its input text is made, and how its answers are scored.
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
        """Yield a scorer for probes of a setup; a network in memory is left as it was."""
        from probelight.evaluation.scorers import is_on_gpu, scorer_for

        if self._network is None:
            # On a GPU the weights may be in another precision than on the CPU.
            key = setup, is_on_gpu(trainer)
            yield self._scorers.get(key) or self._scorers.setdefault(
                key, scorer_for(self.settings, setup, trainer=trainer)
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
        model: Name of the model.
        probe: Name of the probe.
        accuracy: Mean score of the items.
        interval: 95% interval of the accuracy, by the probe's groups.
        chance: Accuracy of guessing.
        items: One row per item, with the score of every choice. The columns are those of
            `Results.items`, except those about the run.
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


def load_model(model: ModelLike, tokenizer: Any = None, **settings: Any) -> Model:
    """Load a model for `score`.

    Args:
        model: Name of a config, a folder or a Hub name; settings; or a transformers model in memory
            and its tokenizer, as a pair.
        tokenizer: The tokenizer of a model in memory that is given alone.
        **settings: Fields of `ModelSettings`, such as `max_length`, `multi_token` or `revision`.

    Raises:
        UsageError: If a model in memory has no tokenizer, or its type is not supported.
        PretrainedError: If there is no such model.
    """
    from probelight.models.chosen_models import model_of, with_model_type
    from probelight.models.in_memory import model_inside
    from probelight.models.loading import name_of
    from probelight.models.registry import AUTO, ModelSettings, detected_type

    network: Any = None
    fields_given: dict[str, Any] = {"kind": AUTO}
    with quietly():
        if isinstance(model, str | Path):
            fields_given = asdict(model_of(str(model)))
        elif isinstance(model, ModelSettings):
            fields_given = asdict(model)
        elif isinstance(model, Mapping):
            fields_given |= model
        elif isinstance(model, tuple) and tokenizer is None:
            network, tokenizer = model
        elif model is None:
            raise UsageError("load_model: give a name, a folder, settings, or a model in memory")
        else:
            network = model
        if network is None:
            if tokenizer is not None:
                raise UsageError("load_model: tokenizer= is for a model in memory; leave it out")
            chosen = as_settings(ModelSettings, fields_given | settings, "load_model")
            return Model(with_model_type(chosen))
        if tokenizer is None:
            raise UsageError("load_model: a model in memory needs its tokenizer; give tokenizer=")
        network = model_inside(network)
        fields_given = {"name": name_of(network), "kind": detected_type(network)[0], **settings}
        return Model(as_settings(ModelSettings, fields_given, "load_model"), network, tokenizer)


def load_probe(
    probe: ProbeLike,
    split: str | None = None,
    *,
    name: str | None = None,
    setup: Setup | None = None,
    gold: GoldForm | None = None,
    mirror: str | None = None,
) -> ProbeData:
    """Load the items of a probe.

    Args:
        probe: Name of a probe, `name:split`, path of its config, a file of items, or items in
            memory: a list of dicts, a `datasets.Dataset` or a DataFrame (see
            `probelight.probes.importers.rows`).
        split: Split of a probe that has a config; by default dev, or test if there is no dev.
        name: Name of the probe in results; by default its own, that of the file, or "items".
        setup: "mc_mlm", "mc_qa" or "minimal_pair", for items without a config; by default that of
            all of them.
        gold: How golds name their choice, for items without a config: by its "text", a "letter", or
            its number from 0 ("index") or 1 ("index1"). By default in the one way that fits all.
        mirror: Folder or address with copies of the released files.

    Raises:
        ProbelightError: If there is no such probe, split or file, or an item is malformed.
    """
    has_config = isinstance(probe, str | Path) and not is_item_file(probe)
    misplaced = {"setup": setup, "gold": gold} if has_config else {"split": split}
    for option, choice in misplaced.items():
        if choice is not None:
            probes = "items without" if has_config else "probes with"
            raise UsageError(f"load_probe: {option}= is only for {probes} a config; leave it out")
    with quietly():
        if not isinstance(probe, str | Path):
            probe_data = load_items(probe, setup, gold=gold)
        elif not has_config:
            probe_data = load_file(probe, setup, gold=gold)
        else:
            probe_data, _ = load_entry(probe, split, mirror=mirror)
    return replace(probe_data, config=replace(probe_data.config, name=name)) if name else probe_data


def score(
    model: ModelLike | Model,
    probe: ProbeLike | ProbeData,
    *,
    tokenizer: Any = None,
    limit: int | None = None,
    device: str | None = None,
    batch_tokens: int | None = None,
    trainer: TrainerSettings | Mapping[str, Any] | None = None,
) -> Scores:
    """Score every item of a probe as `zero_shot` does, in this process and without a folder.

    A model in memory stays as it was: on its device, in its mode, with its gradients.

    Args:
        model: The return value of `load_model`, or anything that `load_model` takes.
        probe: The return value of `load_probe`, or anything that `load_probe` takes.
        tokenizer: The tokenizer of a model in memory that is given alone.
        limit: As in `zero_shot`.
        device: As in `zero_shot`.
        batch_tokens: As in `zero_shot`.
        trainer: Device and batch settings, such as {"accelerator": "cpu"}.

    Raises:
        ProbelightError: If the model cannot answer the probe; the message says why.
    """
    if not isinstance(model, Model):
        model = load_model(model, tokenizer)
    if not isinstance(probe, ProbeData):
        probe = load_probe(probe)
    if limit is not None:
        probe = drawn_data(probe, typed(NumItems, limit, "score: limit", UsageError), "limit")
    name, config = model.settings.label, probe.config
    settings = trainer_of(trainer, device, batch_tokens)
    settings = replace(settings, devices=1, progress_bar=False)
    with quietly(), model.asked(config.setup, settings) as scorer:
        evaluation = evaluate(scorer, probe, trainer=settings)
    row = evaluation.accuracy_rows(Row(model=name, probe=config.name))[0]
    assert row.ci_low is not None
    assert row.ci_high is not None
    return Scores(
        model=name,
        probe=config.name,
        accuracy=row.value,
        interval=(row.ci_low, row.ci_high),
        chance=evaluation.predictions.chance,
        items=pd.DataFrame(
            {"probe": config.name, **item_columns(config.name, line)} for line in evaluation.lines()
        ),
        notices=(*probe.notices, *evaluation.accuracy_notices),
    )
