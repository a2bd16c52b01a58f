"""`train.py probes audit`: can a probe be answered without its question?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from probelight.io.errors import UsageError, nearest
from probelight.io.ranges import PathText
from probelight.probes.catalog import probe_names
from probelight.protocols.audit.data import AuditData, checksums, config_of, load_audit
from probelight.protocols.audit.jobs import audit_jobs, is_trained
from probelight.protocols.audit.settings import DEFAULT_AUDIT, PROTOCOL, AuditSettings
from probelight.protocols.cli.command import Command, command
from probelight.protocols.engine.chosen_models import MODEL_CONFIGS, chosen_models
from probelight.protocols.engine.kinds import kind_of
from probelight.protocols.engine.models import check_module, check_scorer
from probelight.protocols.engine.settings import DEFAULT_MODEL, ModelSettings, listed
from probelight.protocols.jobs.context import DEFAULT_TRAINER, RunContext, TrainerSettings
from probelight.protocols.jobs.run import Part, run_jobs, unfinished
from probelight.protocols.jobs.settings import DEFAULT_ENGINE, EngineSettings
from probelight.results.run_folder import CommandFolder

DEFAULT_BASELINES = "choice_only,vec_similarity"


@command(
    Command(
        "whether a probe can be answered without its question",
        example="train.py probes audit hypernymy_small --output_dir runs/audit",
        shown="probes output_dir baselines vectors training.seeds mirror trainer.threads "
        "engine.kind",
        positional=True,
    )
)
def audit(
    probes: str,
    output_dir: PathText | None = None,
    baselines: str | list[str] = DEFAULT_BASELINES,
    vectors: str | None = None,
    training: AuditSettings = DEFAULT_AUDIT,
    mirror: str | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    engine: EngineSettings = DEFAULT_ENGINE,
) -> None:
    """Trains baselines that see a part of each item, and counts what gives the answers away.

    The same command goes on where it stopped.

    Args:
        probes: Names of probes, folders that `probes build` wrote, configs or files of items, by
            commas.
        output_dir: Folder of the results.
        baselines: Names in configs/model/ or paths of such files, by commas; a transformer is
            trained on the choices alone.
        vectors: Word vectors of the baselines: a file in GloVe's text format; none leaves each its
            own.
        training: How the baselines are trained.
        mirror: Folder or address that stands for the addresses of the released files.
        trainer: Device and batch settings.
        engine: Where the runs are made: here, or on Ray.

    Raises:
        UsageError: If no folder is given, two probes have one name, or a model of `baselines`
            answers no questions.
    """
    if output_dir is None:
        raise UsageError("give --output_dir: the results go there")
    models = _chosen(baselines, vectors)
    sets, context = _loaded(probes, training, RunContext(trainer, mirror=mirror, engine=engine))
    for model in models:
        if is_trained(model) or kind_of(model).scorer is None:
            check_module(model, "mc_qa")
        else:
            check_scorer(model, "mc_qa", [])
    plan = {data.config.name: audit_jobs(data, models, training, trainer) for data in sets}
    config = {
        "command": "probes audit",
        "probes": [{"name": one.config.name, "sha256": checksums(one)} for one in sets],
        "baselines": [model.config() for model in models],
        "settings": training.config(),
        "precision": trainer.precision,
    }
    files = [part for data in sets for part in data.parts.values()]
    folder = CommandFolder(Path(output_dir), config, files)
    for data in sets:
        if not unfinished(plan[data.config.name], folder):
            print(f"{data.config.name}: complete")
    run_jobs([Part([job]) for jobs in plan.values() for job in jobs], folder, context)
    from probelight.reports.terminal import print_tables

    print_tables(folder.path, PROTOCOL)


def _chosen(baselines: str | Sequence[str], vectors: str | None) -> list[ModelSettings]:
    """The baselines, with other vectors if those are given."""
    names = listed(baselines)
    if not names:
        raise UsageError(f"give --baselines, such as {DEFAULT_BASELINES}")
    known = sorted(path.stem for path in MODEL_CONFIGS.glob("*.yaml"))
    for name in names:
        if name not in known and not name.endswith((".yaml", ".yml")):
            near = nearest(name, known)
            raise UsageError(
                f"--baselines: there is no model {name!r}{near}; choose of {', '.join(known)}, or "
                "give the path of such a .yaml file"
            )
    models = chosen_models(names, DEFAULT_MODEL, random_weights=False)
    if vectors is not None:
        models = [replace(m, vectors=vectors) if kind_of(m).title else m for m in models]
    return models


def _loaded(
    probes: str, settings: AuditSettings, context: RunContext
) -> tuple[list[AuditData], RunContext]:
    """Each probe, and the context with the configs that are none of the catalogue."""
    configs = {name: config_of(name) for name in listed(probes)}
    if not configs:
        raise UsageError("name a probe, or a file of items; `train.py probes list` shows probes")
    names = [config.name for config in configs.values()]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise UsageError(
            f"two probes are called {min(repeated)!r}, which tables could not tell apart; audit "
            "them one by one"
        )
    own = {one.name: one for name, one in configs.items() if name not in probe_names()}
    sets = [load_audit(config, settings, context.mirror) for config in configs.values()]
    return sets, replace(context, own=own)
