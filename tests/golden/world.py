"""The small runs whose results are kept: one of every command, on cuts of the shipped probes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

import yaml

from probelight import cli
from probelight.probes.importers.items import write_ai2
from probelight.probes.source import load_probe
from tests.fixtures.checkout import ROOT
from tests.fixtures.diagnostics import write_lists, write_recorded, write_released
from tests.fixtures.dictionary import PIECES, small_dictionary
from tests.fixtures.wordnet import write_wordnet
from tools import export as export_tool

FIT_CONFIG = ROOT / "configs" / "experiment" / "fit_masked_choice.yaml"
EXPORT_TOOL = "tools.export"  # no command: `python -m tools.export`
# Name here: the shipped probe it is cut from, and how many rows of its splits.
CUTS = {
    "ages": ("age_small", {"train": 40, "dev": 12}),
    "types": ("taxonomy_small", {"train": 40, "dev": 12}),
    "senses": ("definitions_small", {"train": 60, "test": 12}),
    "kinds": ("hypernymy_small", {"train": 48, "dev": 12, "test": 12}),
}
# Above the concepts of some items of taxonomy_small dev; the first words are those of WordNet.
ANIMALS = """
entity | | a thing with an existence of its own
animal | entity | a living thing
canine | animal | it has a muzzle
wolf | canine | it howls
ungulate | animal | it has hooves
ruminant | ungulate | it chews twice
bovid | ruminant | it has horns
buffalo | bovid | it wallows
antelope | bovid | it leaps
sheep | bovid | it gives wool
deer | ruminant | it has antlers
equine | ungulate | it has one toe
horse | equine | it is ridden
mare | horse | it has foals
mule | equine | it is stubborn
"""
# Whatever model is the default, the numbers kept are of this one.
SMALL = "--model.name_or_path=dictionary-lm"
POOLER = {"name_or_path": "dictionary-lm", "head": "pooler"}
QUIET = ["--trainer.accelerator=cpu", "--trainer.progress_bar=false", "--trainer.threads=1"]


@dataclass
class World:
    """A folder in which each run is made on first use, with those it needs."""

    root: Path
    printed: dict[str, str] = field(default_factory=dict)  # what each run printed

    def __post_init__(self) -> None:
        for name, (shipped, splits) in CUTS.items():
            for split, num_items in splits.items():
                path = self.root / "mirror" / name / f"{split}.jsonl"
                path.parent.mkdir(parents=True, exist_ok=True)
                write_ai2(path, load_probe(shipped, split).records[:num_items])
            config = yaml.safe_load((ROOT / "configs" / "probe" / f"{shipped}.yaml").read_text())
            config |= {"base_url": "https://example.org/", "mirror_folder": name}
            config["files"] = {split: {"path": f"{split}.jsonl"} for split in splits}
            (self.root / f"{name}.yaml").write_text(yaml.safe_dump(config))

    @property
    def mirror(self) -> str:
        return f"--mirror={self.root / 'mirror'}"

    def probe(self, *names: str) -> str:
        """Paths of the cut probes' configs, with commas."""
        return ",".join(str(self.root / f"{name}.yaml") for name in names)

    def folder(self, name: str) -> Path:
        """Where a run is, or will be; the report reads those that it needs, and no others."""
        return self.root / ("measured" if name in MEASURED else "apart") / name

    def run(self, name: str) -> Path:
        """The output folder of a run, which is made now if it is not there."""
        folder = self.folder(name)
        if name not in self.printed:
            for needed in RUNS[name].needs:
                self.run(needed)
            heard = StringIO()
            with redirect_stdout(heard):
                for arguments in RUNS[name].commands(self, folder):
                    if arguments[0] == EXPORT_TOOL:
                        export_tool.main(arguments[1:])
                        continue
                    assert cli.main(arguments) == 0, f"{name}: {arguments}\n{heard.getvalue()}"
            self.printed[name] = heard.getvalue()
        return folder


Commands = Callable[[World, Path], list[list[str]]]


@dataclass(frozen=True)
class Run:
    """What is run, in one folder, and the runs it reads."""

    # The arguments of `cli.main`, one list per command; behind EXPORT_TOOL of that tool.
    commands: Commands
    needs: tuple[str, ...] = ()  # runs that are made before
    # Of whole networks, scores are kept as distances from their mean: the bias of a choice's one
    # logit has no gradient but rounding, of which Adam makes steps, so another CPU moves all scores
    # of an item alike.
    fine_tunes: bool = False
    predictions: bool = True  # kept too; else its rows alone, where the items are many
    says: str | None = None  # printed lines with these words are kept: None for none, "" for all


def command(text: str, out: Path) -> list[list[str]]:
    """The arguments of one command, written as in a shell."""
    return [[*text.split(), f"--output_dir={out}", *QUIET]]


def zero_shot(more: str) -> Commands:
    return lambda world, out: command(f"zero-shot {SMALL} {more.format(w=world)}", out)


def zero_shot_cuts(world: World, out: Path) -> list[list[str]]:
    probes = world.probe("ages", "types", "kinds")
    return command(f"zero-shot {SMALL} --probes={probes} {world.mirror} --ranks=true", out)


def curve_frozen(world: World, out: Path) -> list[list[str]]:
    settings = """--models=dictionary-lm,mlm_baseline --random_weights=true --grid.sizes=[16]
        --grid.seeds=[1,2] --grid.epochs=2 --grid.mlm_baseline.epochs=3 --grid.batch_size=8"""
    probes = world.probe("ages", "types")
    return command(f"curve --probes={probes} {world.mirror} {settings}", out)


def curve_full(world: World, out: Path) -> list[list[str]]:
    settings = """--models=dictionary-lm,esim --grid.sizes=[8] --grid.seeds=[1]
        --grid.controls=[standard] --grid.full.epochs=1 --grid.full.batch_size=4
        --grid.full.learning_rate=1e-4 --grid.esim.epochs=2 --grid.esim.batch_size=4"""
    return command(f"curve --probes={world.probe('kinds')} {world.mirror} {settings}", out)


def original(world: World) -> dict[str, object]:
    return {
        "name": "senses",
        "sets": [world.probe("senses")],
        "report_sets": [world.probe("senses")],
        "selection_share": 0.2,
        "reserved_share": 0.3,
        "epochs": 2,
        "learning_rate": 3e-4,
        "batch_size": 8,
    }


def probe(world: World) -> dict[str, object]:
    return {"name": world.probe("kinds"), "selection_items": 12}


def configured(world: World, out: Path, config: dict[str, object]) -> str:
    """Writes a config next to the run's folder and returns the argument that names it."""
    path = out.with_suffix(".yaml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(config))
    return f"--config={path}"


def original_task(world: World, out: Path) -> list[list[str]]:
    config = configured(world, out, {"original": original(world), "model": POOLER})
    return command(f"original {config} {world.mirror}", out)


def inoculate(world: World, out: Path) -> list[list[str]]:
    config = {
        "original": original(world),
        "model": POOLER,
        "probe": probe(world),
        "dose": 16,
        "extra": "x1",
        "learning_rate": 1e-4,
        "epochs": 2,
        "batch_size": 8,
    }
    return command(f"inoculate {configured(world, out, config)} {world.mirror}", out)


def sweep(world: World, out: Path) -> list[list[str]]:
    [trained] = world.folder("original").glob("runs/original*/checkpoints/best")
    row = {
        "model": "small",
        "original": "senses",
        "probe": probe(world),
        "doses": [8],
        "learning_rates": [5e-4],
        "extras": ["none"],
        "epochs": 2,
        "batch_size": 8,
    }
    grid = {
        "models": {"small": POOLER},
        "originals": {"senses": {**original(world), "checkpoint": str(trained)}},
        "rows": [row],
    }
    config = configured(world, out, {"grid": grid})
    there = [f"--output_dir={out}"]
    return [
        ["sweep", "plan", config, world.mirror, *there, *QUIET],
        ["sweep", "run", *there],
        ["sweep", "status", *there],
    ]


def grid(world: World, out: Path) -> list[list[str]]:
    return command(
        "grid --models=dictionary-lm --grid.step=20 --grid.wordings=[paper,released]", out
    )


def diagnose(world: World, out: Path) -> list[list[str]]:
    outputs, mirror = write_recorded(world.root / "outputs"), world.root / "diagnostics"
    negations = [["animal"], ["animal"], ["page", "text"], ["book"]]
    write_lists(outputs, "NEG-1500-SIMP-GEN", negations)
    folders = f"--recorded={outputs}", f"--mirror={write_released(mirror)}"
    return [["diagnose", *folders, f"--output_dir={out}"]]


def taxonomy_distance(world: World, out: Path) -> list[list[str]]:
    folder = world.root / "wordnet"
    folder.mkdir()
    results = f"--results={world.folder('shipped/dictionary-lm')}"
    wordnet = f"--wordnet={write_wordnet(folder, ANIMALS)}"
    return [["taxonomy-distance", results, wordnet, f"--output_dir={out}"]]


def unigrams(world: World, out: Path) -> list[list[str]]:
    counts = {"a": "older 50\nyear 40\nperson 10\nbird 3", "b": "older 1\nanimal 59\nplant 9"}
    for name, text in counts.items():
        (world.root / f"{name}.txt").write_text(text.replace(" ", "\t") + "\n")
    counts_of = f"--counts_a={world.root / 'a.txt'} --counts_b={world.root / 'b.txt'}"
    text = f"unigrams --results={world.folder('shipped')} {counts_of} --measure=zero_shot"
    models = ["--model_a=dictionary-lm", "--model_b=dictionary-lm (random weights)"]
    return [[*text.split(), *models, f"--output_dir={out}"]]


def lightning(command: str, folder: Path, *more: str) -> list[str]:
    return [
        command,
        f"--config={FIT_CONFIG}",
        f"--output_dir={folder}",
        "--trainer.accelerator=cpu",
        "--data.num_train=32",
        *more,
    ]


def fit(world: World, out: Path) -> list[list[str]]:
    return [lightning("fit", out)]


def after_fit(command: str) -> Commands:
    def commands(world: World, out: Path) -> list[list[str]]:
        state = world.folder("fit") / "checkpoints" / "last.ckpt"
        return [lightning(command, out, f"--ckpt_path={state}")]

    return commands


def export(world: World, out: Path) -> list[list[str]]:
    """Pre-trains a toy on thirty documents, in a cache as `prepare_data` leaves it."""
    text = small_dictionary(world.root / "dictionary")
    sizes = {"vocab_size": len(PIECES), "hidden_size": 16, "num_layers": 1, "num_heads": 2}
    module = {**sizes, "max_length": 24, "warmup_steps": 2}
    config = {
        "seed_everything": 1,
        "model": {
            "class_path": "tools.masked_lm.MaskedLanguageModel",
            "init_args": module,
        },
        "data": {
            "class_path": "tools.dictionary_text.DictionaryText",
            "init_args": text,
        },
        "trainer": {"max_steps": 6, "accelerator": "cpu"},
    }
    return [
        ["fit", configured(world, out, config), f"--output_dir={out}"],
        [EXPORT_TOOL, str(out / "checkpoints" / "last.ckpt"), f"--output_dir={out / 'model'}"],
    ]


def demo(world: World, out: Path) -> list[list[str]]:
    settings = """--plan.probes=[taxonomy_small] --plan.curve_probes=[taxonomy_small]
        --plan.curve.sizes=[16,62] --plan.curve.seeds=[1,2] --plan.curve.epochs=2
        --plan.model.name_or_path=dictionary-lm --plan.model.kind=transformer
        --plan.model.max_length=48
        --plan.original.name=definitions_small --plan.original.checkpoint=null
        --plan.original.sets=[definitions_small] --plan.original.report_sets=[definitions_small]
        --plan.original.selection_share=0.1 --plan.original.reserved_share=0.1
        --plan.original.train_items=48 --plan.original.report_items=24
        --plan.original.selection_items=16 --plan.probe.report_items=24
        --plan.probe.selection_items=16 --plan.dose=24 --plan.extras=[none]
        --plan.seeds=[0] --plan.epochs=1 --plan.learning_rate=1e-4"""
    return command(f"demo {settings}", out)


def report(world: World, out: Path) -> list[list[str]]:
    return [["report", str(world.root / "measured"), f"--output_dir={out}"]]


SHIPPED = "--probes=age_small,antonym_small,taxonomy_small"
MEASURED = (
    "zero_shot",
    "shipped",
    "shipped/dictionary-lm",
    "shipped/random",
    "curve_frozen",
    "curve_full",
    "original",
    "inoculate",
    "sweep",
    "grid",
    "unigrams",
)
RUNS = {
    "zero_shot": Run(zero_shot_cuts),
    "zero_shot_file": Run(
        zero_shot("--data.path={w.root}/mirror/types/dev.jsonl --data.setup=mc_mlm")
    ),
    "shipped/dictionary-lm": Run(zero_shot(SHIPPED)),
    "shipped/random": Run(zero_shot(f"{SHIPPED} --model.random_weights=true")),
    "curve_frozen": Run(curve_frozen),
    "curve_full": Run(curve_full, fine_tunes=True),
    "original": Run(original_task, fine_tunes=True),
    "inoculate": Run(inoculate, fine_tunes=True),
    "sweep": Run(sweep, needs=("original",), fine_tunes=True),
    "grid": Run(grid, predictions=False),
    "diagnose": Run(diagnose, predictions=False),
    "taxonomy_distance": Run(taxonomy_distance, needs=("shipped/dictionary-lm",)),
    "unigrams": Run(unigrams, needs=("shipped/dictionary-lm", "shipped/random")),
    "fit": Run(fit),
    "validate": Run(after_fit("validate"), needs=("fit",)),
    "test": Run(after_fit("test"), needs=("fit",)),
    "predict": Run(after_fit("predict"), needs=("fit",)),
    "export": Run(export, says="held-out"),
    "probes": Run(lambda world, out: [["probes", "list"]], says=""),
    "demo": Run(demo, predictions=False),
    "report": Run(report, needs=tuple(name for name in MEASURED if name != "shipped")),
}
