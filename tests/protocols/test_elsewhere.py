"""Every job of every command can be made by another process, from its folder and what it is told.

The commands run here, as always. Another process, which has read and remembers nothing, then makes
each of their runs in a folder that holds the configs of the runs alone: the rows are the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from probelight.probes.importers.items import write_ai2
from probelight.probes.source import load_probe
from probelight.protocols import cli
from probelight.protocols.engine.predictions import Predictions
from probelight.protocols.jobs.job import Job, RunContext, Runner, make_run
from probelight.results.predictions import write_predictions
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import CommandFolder, RunFolder
from tests.fixtures.checkout import ROOT
from tests.fixtures.rows import read_results
from tests.fixtures.wordnet import write_wordnet
from tests.golden.world import ANIMALS
from tests.protocols.conftest import questions, sentences

# Twenty seconds: twice the runs of ten commands.
pytestmark = pytest.mark.slow

QUIET = ["--trainer.accelerator=cpu", "--trainer.progress_bar=false"]
POINTS = ["--grid.sizes=[8]", "--grid.seeds=[1]", "--grid.modes=[mlp]", "--grid.epochs=1"]
COMMANDS = (
    "named sets",
    "a file",
    "heads on files",
    "networks behind a first stage",
    "phrasings",
    "inoculation with files",
    "original task",
    "grids",
    "distances",
    "words",
)
# Makes the runs that it reads of, each as if it were the first thing that this process does.
ELSEWHERE = """
import json, sys
from pathlib import Path
from probelight.protocols.jobs.job import RunContext
from probelight.protocols.jobs.job import make_run
from probelight.results.run_folder import RunFolder
for path, runner, told in json.load(sys.stdin):
    run = RunFolder.at(Path(path))
    make_run(runner, run, run.config, RunContext.from_json(told))
"""


class World:
    """The folders of all commands and what their jobs were told."""

    def __init__(self, folder: Path, model: Path, probes: Path, original: Path) -> None:
        self.folder = folder
        self.pairs, self.asked = probes / "pairs.yaml", probes / "asked.yaml"
        self.mirror = f"--mirror={probes / 'mirror'}"
        self.model, self.original = f"--model.name_or_path={model}", original
        self.told: list[tuple[str, str, dict[str, Any]]] = []

    def out(self, name: str, where: str = "here") -> Path:
        return self.folder / where / name

    def files(self, setup: str) -> list[str]:
        """Options of files of one's own, with train and dev rows."""
        options = [f"--data.setup={setup}"]
        for split, num_items in (("train", 80), ("dev", 22)):
            path = self.folder / f"whales-{setup}-{split}.jsonl"
            masked, asked = sentences(num_items, 0), questions("whales", num_items, num_items)
            write_ai2(path, masked if setup == "mc_mlm" else asked)
            options.append(f"--data.{split}={path}")
        return options

    def command(self, name: str) -> list[str]:
        """The command of a name, without folder and trainer."""
        if name == "named sets":
            sets = f"--probes={self.pairs}:dev,{self.asked}:dev"
            return ["zero-shot", sets, "--ranks=true", self.model, self.mirror]
        if name == "a file":
            path = self.folder / "my.own.jsonl"
            write_ai2(path, sentences(8, 3))
            return ["zero-shot", f"--data.path={path}", "--data.setup=mc_mlm", self.model]
        if name == "heads on files":
            return ["curve", *self.files("mc_mlm"), self.model, *POINTS]
        if name == "networks behind a first stage":
            stage = [f"--first_stage={self.asked}:dev", "--grid.full.epochs=1"]
            controls = "--grid.controls=[standard, no_language]"
            probe = f"--probes={self.asked}"
            return ["curve", probe, *stage, controls, self.model, self.mirror, *POINTS]
        if name == "phrasings":
            (self.folder / "otherwise.yaml").write_text(self.pairs.read_text())
            names = f"--phrasings={self.pairs},{self.folder / 'otherwise.yaml'}"
            return ["curve", names, self.model, self.mirror, *POINTS]
        if name == "inoculation with files":
            sizes = ["--dose=8", "--epochs=1", "--probe.selection_items=20"]
            return ["inoculate", *self.task(), *self.files("mc_qa"), *sizes, self.model]
        if name == "original task":
            first = {"name": "before", "sets": [str(self.original / "second.yaml")], "epochs": 1}
            return ["original", *self.task(), f"--original.first={json.dumps(first)}", self.model]
        if name == "grids":
            values = ["--grid.panels=[A, sizes]", "--grid.first_age=20", "--grid.last_age=22"]
            return ["grid", *values]
        results = f"--results={self.answered()}"
        if name == "distances":
            folder = self.folder / "wordnet"
            folder.mkdir()
            return ["taxonomy-distance", results, f"--wordnet={write_wordnet(folder, ANIMALS)}"]
        options = ["unigrams", results, "--measure=zero_shot", "--model_a=a", "--model_b=b"]
        for one, text in (("a", "older\t5\nyear\t4\n"), ("b", "older\t1\nanimal\t5\n")):
            (self.folder / f"{one}.txt").write_text(text)
            options.append(f"--counts_{one}={self.folder / f'{one}.txt'}")
        return options

    def task(self) -> list[str]:
        sets = f"[{self.original / 'first.yaml'}]"
        task = [f"--original.sets={sets}", f"--original.report_sets={sets}", "--original.name=t"]
        return [*task, "--original.epochs=1", f"--mirror={self.original / 'mirror'}"]

    def answered(self) -> Path:
        """Finished runs of two models on two probes, one of them of taxonomy."""
        folder = self.folder / "answered"
        for model, values in (("a", (0.9, 0.4)), ("b", (0.6, 0.5))):
            for probe, value in zip(("age_small", "taxonomy_small"), values, strict=True):
                run = RunFolder(folder / "runs", f"{probe}-{model}", {"model": model})
                records = load_probe(probe, "dev").records
                lines = Predictions(probe, records, [[1.0, 0.0, 0.0]] * len(records)).lines()
                write_predictions(run, lines)
                about = {"protocol": "zero_shot", "model": model, "probe": probe}
                row = Row(**about, metric="accuracy", value=value, num_train=0, split="dev")
                run.finish(RunRecord(**about, rows=(row,)))
        return folder

    def run(self, name: str) -> None:
        """Runs a command, and leaves the configs of its runs elsewhere."""
        command = self.command(name)
        trainer = [] if command[0] in ("taxonomy-distance", "unigrams") else QUIET
        assert cli.main([*command, *trainer, f"--output_dir={self.out(name)}"]) == 0

    def note(self, runner: Runner | str, run: RunFolder, context: RunContext) -> None:
        """Keeps what another process is told of a run, and makes its folder there."""
        runs_dir = self.out(run.path.parents[1].name, "elsewhere") / "runs"
        found = RunFolder(runs_dir, run.key.rpartition("-")[0], run.config)
        name = Job("", {}, runner).runner_name
        self.told.append((str(found.path), name, context.to_json()))


@pytest.fixture(scope="module")
def world(
    tmp_path_factory: pytest.TempPathFactory,
    curve_model: Path,
    curve_probes: Path,
    tiny_probes: Path,
) -> World:
    """All commands have been run, and their jobs again by another process."""
    found = World(tmp_path_factory.mktemp("world"), curve_model, curve_probes, tiny_probes)

    def noted(runner: Any, run: RunFolder, config: Any, context: RunContext) -> None:
        found.note(runner, run, context)
        make_run(runner, run, config, context)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("probelight.protocols.jobs.run.make_run", noted)
        for name in COMMANDS:
            found.run(name)
    command = [sys.executable, "-c", ELSEWHERE]
    subprocess.run(command, cwd=ROOT, input=json.dumps(found.told), text=True, check=True)
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_the_rows_are_those_of_the_command(name: str, world: World) -> None:
    elsewhere = CommandFolder(world.out(name, "elsewhere"), {})
    rows = read_results(elsewhere.write_results())
    assert rows == read_results(world.out(name) / "results.csv")
    assert {row["run_dir"] for row in rows} <= {f"runs/{run.key}" for run in elsewhere.finished()}
    assert rows
