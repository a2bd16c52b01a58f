"""`train.py probes list` and `probes build`: which probes there are, and how to build them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from probelight.builders.builder import Builder, BuildSettings, S, write_probe
from probelight.builders.catalogue import BUILDERS, build_probes, builder_of
from probelight.builders.wordnet_probes.builders import (
    WORDNET_QA,
    WordNetQASettings,
    write_wordnet_qa,
)
from probelight.commands.command import Command, command
from probelight.commands.probes.filtering import DEFAULT_FILTER, FilterSettings, filter_probe
from probelight.io.errors import UsageError
from probelight.io.files import sha256_of
from probelight.io.package import as_typed
from probelight.io.ranges import PathText, Seed
from probelight.probes.catalog import load_probe_config, probe_names
from probelight.probes.record import groups_of
from probelight.probes.source import load_probe


@command(Command(example="train.py probes list"))
def list_probes() -> None:
    """Lists the probes that are available, and those that you can build."""
    for name in probe_names():
        config = load_probe_config(name)
        print(f"{name:<26}{config.setup:<14}{', '.join(config.splits):<18}{config.description}")
    built = (
        f"probes build NAME --output_dir DIR builds one of {', '.join([*BUILDERS, WORDNET_QA])}."
    )
    print("", *textwrap.wrap(as_typed(f"train.py {built}"), 100), sep="\n")


def settings_of(name: str) -> type[BuildSettings]:
    """Return the settings of the builder that is named on the command line."""
    return WordNetQASettings if name == WORDNET_QA else builder_of(name).settings


@command(
    Command(
        example="train.py probes build definitions --output_dir runs/probes",
        options="output_dir seed filter",
        named="probelight.commands.probes.build:settings_of",
    )
)
def build(
    output_dir: PathText,
    seed: Seed = 0,
    filter: bool = False,
    filtering: FilterSettings = DEFAULT_FILTER,
    name: str = "",
    settings: BuildSettings | None = None,
) -> None:
    """Builds a probe from its sources, or all shipped probes again.

    The same sources, settings and seed give the same bytes.

    Args:
        output_dir: Folder to write to: a folder with the probe's files and data card, or for the
            shipped ones `probes/`, as in assets/ of a checkout.
        seed: Seed of the probes.
        filter: Leave out items that choice-only models, trained on the other splits, get right.
        filtering: How those models are trained, and how many of them must agree.
        name: The probe to build, or wordnet_qa.
        settings: Settings of the builder.

    Raises:
        UsageError: If `filter` is given for several probes.
    """
    if filter and (settings is None or name == WORDNET_QA):
        raise UsageError("--filter is for one probe; name it: train.py probes build NAME")
    folder = Path(output_dir)
    paths: Iterable[Path]
    if settings is None:
        paths = build_probes(folder / "probes", seed=seed)
    elif isinstance(settings, WordNetQASettings):
        paths = write_wordnet_qa(settings, folder)
    else:
        builder = builder_of(name)
        if filter:
            builder = filtering_builder(builder, settings, filtering)
        paths = write_probe(builder, settings, folder)
    for path in paths:
        print(f"{sha256_of(path)[:12]}  {path}", flush=True)


def filtering_builder(builder: Builder[S], settings: S, filtering: FilterSettings) -> Builder[S]:
    """Return a builder of what the filter leaves; its data card tells what was left out."""
    probe = builder.build(settings)
    with TemporaryDirectory() as folder:
        # Read again, since only then does an item say what its config groups it by.
        write_probe(replace(builder, build=lambda _: probe), settings, Path(folder))
        config = load_probe_config(Path(folder, builder.name, f"{builder.name}.yaml"))
        records = [record for split in probe for record in load_probe(config, split).records]
    filtered = filter_probe(probe, groups_of(records, config.group_by), filtering)
    print(filtered.summary, flush=True)
    about = "\n\n".join(filter(None, (builder.about, filtered.summary)))
    return replace(builder, build=lambda _: filtered.probe, about=about)
