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

from probelight import cli
from probelight.probes.importers.items import write_ai2
from probelight.probes.source import load_probe
from probelight.results.measured import Predictions
from probelight.results.predictions import write_predictions
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import CommandFolder, RunFolder
from probelight.runs.context import RunContext
from probelight.runs.execution import make_run
from probelight.runs.spec import RunSpec, spec_type
from tests.fixtures.checkout import ROOT
from tests.fixtures.rows import read_results
from tests.fixtures.tiny import questions, sentences
from tests.fixtures.wordnet import write_wordnet
from tests.golden.world import ANIMALS

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
from probelight.runs.context import RunContext
from probelight.runs.execution import make_run
from probelight.runs.spec import spec_from
from probelight.results.run_folder import RunFolder
for path, type_name, context in json.load(sys.stdin):
    run = RunFolder.at(Path(path))
    make_run(spec_from(type_name, run.config), run, RunContext.from_json(context))
"""


class World:
    """The folders of all commands."""

    def __init__(self, folder: Path, model: Path, probes: Path, original: Path) -> None:
        self.folder = folder
        self.pairs, self.questions = probes / "pairs.yaml", probes / "asked.yaml"
        self.mirror = f"--mirror={probes / 'mirror'}"
        self.model, self.original = f"--model.name_or_path={model}", original

    def out(self, name: str, where: str = "here") -> Path:
        return self.folder / where / name

    def files(self, setup: str) -> list[str]:
        """Options of files of one's own, with train and dev rows."""
        options = [f"--data.setup={setup}"]
        for split, num_items in (("train", 80), ("dev", 22)):
            path = self.folder / f"whales-{setup}-{split}.jsonl"
            masked, qa = sentences(num_items, 0), questions("whales", num_items, num_items)
            write_ai2(path, masked if setup == "mc_mlm" else qa)
            options.append(f"--data.{split}={path}")
        return options

    def commands(self) -> dict[str, list[str]]:
        """Each command, without folder and trainer, and the files that it reads."""
        path, wordnet = self.folder / "my.own.jsonl", self.folder / "wordnet"
        write_ai2(path, sentences(8, 3))
        wordnet.mkdir()
        write_wordnet(wordnet, ANIMALS)
        (self.folder / "otherwise.yaml").write_text(self.pairs.read_text())
        (self.folder / "a.txt").write_text("older\t5\nyear\t4\n")
        (self.folder / "b.txt").write_text("older\t1\nanimal\t5\n")
        tiny = [self.model, self.mirror]
        first = {"name": "before", "sets": [str(self.original / "second.yaml")], "epochs": 1}
        sets = f"--probes={self.pairs}:dev,{self.questions}:dev"
        phrasings = f"--phrasings={self.pairs},{self.folder / 'otherwise.yaml'}"
        stage = [f"--probes={self.questions}", f"--first_stage={self.questions}:dev"]
        stage += ["--grid.full.epochs=1", "--grid.controls=[standard, no_language]"]
        sizes = ["--dose=8", "--epochs=1", "--probe.selection_items=20"]
        ages = ["--grid.first_age=20", "--grid.last_age=22"]
        results = f"--results={self.answered()}"
        counts = [f"--counts_{letter}={self.folder / letter}.txt" for letter in "ab"]
        models = ["--measure=zero_shot", "--model_a=a", "--model_b=b"]
        option = f"--original.first={json.dumps(first)}"
        return {
            "named sets": ["zero-shot", sets, "--ranks=true", *tiny],
            "a file": ["zero-shot", f"--data.path={path}", "--data.setup=mc_mlm", self.model],
            "heads on files": ["curve", *self.files("mc_mlm"), self.model, *POINTS],
            "networks behind a first stage": ["curve", *stage, *tiny, *POINTS],
            "phrasings": ["curve", phrasings, *tiny, *POINTS],
            "inoculation with files": [
                *("inoculate", *self.task(), *self.files("mc_qa"), *sizes, self.model),
            ],
            "original task": ["original", *self.task(), option, self.model],
            "grids": ["grid", "--grid.panels=[A, sizes]", *ages],
            "distances": ["taxonomy-distance", results, f"--wordnet={wordnet}"],
            "words": ["unigrams", results, *models, *counts],
        }

    def task(self) -> list[str]:
        sets = f"[{self.original / 'first.yaml'}]"
        task = [f"--original.sets={sets}", f"--original.report_sets={sets}", "--original.name=t"]
        return [*task, "--original.epochs=1", f"--mirror={self.original / 'mirror'}"]

    def answered(self) -> Path:
        """Finished runs of two models on two probes, one of them of taxonomy."""
        folder = self.folder / "answered"
        CommandFolder(folder, {"command": "zero_shot"})
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


@pytest.fixture(scope="module")
def world(
    tmp_path_factory: pytest.TempPathFactory,
    curve_model: Path,
    curve_probes: Path,
    tiny_probes: Path,
) -> World:
    """All commands have been run, and their jobs again by another process."""
    world = World(tmp_path_factory.mktemp("world"), curve_model, curve_probes, tiny_probes)

    jobs: list[tuple[str, str, dict[str, Any]]] = []

    def noted(spec: RunSpec, run: RunFolder, context: RunContext) -> None:
        """Keeps what another process is told of a run, and makes its folder there."""
        elsewhere = CommandFolder(world.out(run.path.parents[1].name, "elsewhere"), {})
        copy = elsewhere.run(run.key.rpartition("-")[0], run.config)
        jobs.append((str(copy.path), spec_type(spec), context.to_json()))
        make_run(spec, run, context)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("probelight.runs.run.make_run", noted)
        for name, command in world.commands().items():
            trainer = [] if command[0] in ("taxonomy-distance", "unigrams") else QUIET
            assert cli.main([*command, *trainer, f"--output_dir={world.out(name)}"]) == 0
    process = [sys.executable, "-c", ELSEWHERE]
    subprocess.run(process, cwd=ROOT, input=json.dumps(jobs), text=True, check=True)
    return world


@pytest.mark.parametrize("name", COMMANDS)
def test_the_rows_are_those_of_the_command(name: str, world: World) -> None:
    elsewhere = CommandFolder(world.out(name, "elsewhere"), {})
    rows = read_results(elsewhere.write_results())
    assert rows == read_results(world.out(name) / "results.csv")
    assert {row["run_dir"] for row in rows} <= {f"runs/{run.key}" for run in elsewhere.finished()}
    assert rows
