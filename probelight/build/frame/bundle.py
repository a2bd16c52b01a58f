"""Several probes of one source by one command, in processes beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

from probelight.build.frame.builder import BuildSettings
from probelight.build.frame.progress import hide_bars, tracked
from probelight.build.frame.registry import builder_of
from probelight.build.frame.write import write_probe
from probelight.io.ranges import Within

Processes = Annotated[int, Within(1, 4)]


@dataclass(frozen=True)
class BundleSettings(BuildSettings):
    """The settings that all bundles have; what else a bundle's dataclass holds, its builders take.

    Args:
        num_processes: Builders at work at once; each reads the sources for itself.
    """

    num_processes: Processes = 2


@dataclass(frozen=True)
class Bundle:
    """Builders that share a source.

    Attributes:
        name: The name on the command line.
        builders: Their names; those that take longest first.
        settings: The dataclass of what is set for all of them.
    """

    name: str
    builders: tuple[str, ...]
    settings: type[BundleSettings]


def write_bundle(bundle: Bundle, settings: BundleSettings, output_dir: Path) -> Iterator[Path]:
    """Builds and writes each probe; the files are those of its own command, byte for byte.

    Raises:
        HygieneError: If a check finds something: an error of a builder.
        FileNotFoundError: If a source is missing, with how to get it.
    """
    own = {one.name for one in fields(BundleSettings)} - {one.name for one in fields(BuildSettings)}
    shared = {name: value for name, value in vars(settings).items() if name not in own}
    if settings.num_processes == 1:
        for name in bundle.builders:
            yield from _write(name, shared, output_dir)
        return
    pool = ProcessPoolExecutor(
        settings.num_processes, mp_context=get_context("spawn"), initializer=hide_bars
    )
    with pool:
        waiting = [pool.submit(_write, name, shared, output_dir) for name in bundle.builders]
        for one in tracked(waiting, bundle.name):
            yield from one.result()


def _write(name: str, shared: dict[str, Any], output_dir: Path) -> list[Path]:
    builder = builder_of(name)
    return write_probe(builder, builder.settings(**shared), output_dir)
