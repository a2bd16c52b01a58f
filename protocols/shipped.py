"""`train.py probes`: lists the probes, and remakes what of them and of vectors is shipped."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from probes.catalog import load_probe_config, probe_names
from protocols.cli.command import Command, command
from results.provenance import ROOT
from storage.config.ranges import Seed
from storage.files import sha256_of


@command(
    Command(
        "list the probes, or build the shipped ones anew",
        example="train.py probes build --output_dir runs/assets",
        shown="action output_dir seed",
        positional=True,
        alone=("list",),
    )
)
def probes(
    action: Literal["list", "build"], output_dir: str = str(ROOT / "assets"), seed: Seed = 0
) -> None:
    """Lists the probes there are, or remakes the shipped ones and the word vectors.

    What is remade from WordNet and GCIDE is the same byte for byte.

    Args:
        action: "list" or "build".
        output_dir: Gets `probes/` and `word_vectors.txt`.
        seed: Seed of the probes.
    """
    if action == "list":
        for name in probe_names():
            config = load_probe_config(name)
            print(f"{name:<26}{config.setup:<8}{', '.join(config.splits):<18}{config.description}")
        return
    from probes.build.catalogue import build_probes
    from probes.build.word_vectors import build_vectors

    folder = Path(output_dir)
    for path in build_probes(folder / "probes", seed=seed):
        print(f"{sha256_of(path)[:12]}  {path}")
    print(build_vectors(folder / "word_vectors.txt"))
