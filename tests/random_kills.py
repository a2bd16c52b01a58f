"""Kill commands at random moments and compare what they leave with calm runs, byte by byte.

    python -m tests.random_kills --kills 200 --seed 0

Each round takes one of `COMMANDS`, starts it in a new folder, ends it at a random moment, starts it
again, and so on; then it runs to its end. Every file on which two calm runs agree must be there
with the same bytes. Compared by contents are training states, as pickle writes a shared object and
two equal ones differently, and result.json, without its times. Two hours on a core. The log has a
line per kill.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import cycle
from pathlib import Path
from typing import Any

import psutil
import torch
import yaml

from tests.fixtures.checkout import ROOT
from tests.fixtures.results import MEASURED
from tests.runs.on_ray.processes import alive, attempts_of, family
from tests.runs.on_ray.test_cluster import Cluster, two_nodes

TRAINER = {"accelerator": "cpu", "threads": 1, "progress_bar": False, "checkpoint_every": 2}
ORIGINAL = {
    "name": "definitions",
    "sets": ["definitions_small"],
    "report_sets": ["definitions_small"],
    "report_split": "test",
    "report_items": 20,
    "selection_share": 0.1,
    "selection_items": 20,
    "reserved_share": 0.1,
    "train_items": 80,
    "epochs": 1,
    "learning_rate": 3.0e-4,
}
PROBE = {
    "name": "hypernymy_small",
    "report_split": "test",
    "report_items": 20,
    "selection_items": 20,
}
INOCULATE = {
    "model": {"name_or_path": "dictionary-lm", "max_length": 64},
    "original": ORIGINAL,
    "probe": PROBE,
    "dose": 32,
    "extra": "none",
    "learning_rate": 1.0e-4,
    "epochs": 2,
    "batch_size": 16,
    "trainer": TRAINER,
}
CHECK = {
    "models": ["bookshelf-lm", "dictionary-lm"],
    "probes": ["taxonomy_small", "age_small"],
    "limit": 200,
    "trainer": TRAINER,
}
CURVE = {
    "model": {"name_or_path": "dictionary-lm"},
    "probes": ["taxonomy_small", "age_small"],
    "grid": {"sizes": [62, 125], "seeds": [1, 2], "controls": ["standard"], "epochs": 2},
    "trainer": TRAINER,
}
FINE_TUNING = {
    "model": {"name_or_path": "dictionary-lm", "max_length": 64},
    "probes": ["hypernymy_small"],
    "grid": {
        "sizes": [32, 48],
        "seeds": [1],
        "controls": ["standard"],
        "full": {"epochs": 2, "batch_size": 16, "patience": 1, "held_out": 0.1},
    },
    "trainer": TRAINER,
}
ZERO_SHOT = {
    "model": {"name_or_path": "dictionary-lm"},
    "probes": ["age_small", "antonym_small", "multihop_small", "taxonomy_small"],
    "trainer": TRAINER,
}
SWEEP = {
    "grid": {
        "models": {"dictionary-lm": INOCULATE["model"]},
        "originals": {"definitions": ORIGINAL},
        "rows": [
            {
                "model": "dictionary-lm",
                "original": "definitions",
                "probe": PROBE,
                "doses": [16, 32],
                "learning_rates": [1.0e-4],
                "extras": ["none"],
                "seeds": [0],
                "epochs": 1,
            }
        ],
    },
    "trainer": TRAINER,
}
FIT = {
    "seed_everything": 0,
    "model": {
        "class_path": "probelight.lightning_modules.sentence_choice.SentenceChoice",
        "init_args": {"model_name_or_path": "dictionary-lm", "head": "pooler", "max_length": 64},
    },
    "data": {
        "class_path": "probelight.datamodules.probe.ProbeDataModule",
        "init_args": {"probe": "hypernymy_small", "train_split": "train", "eval_split": "dev"},
    },
    "trainer": {
        "max_epochs": 1,
        "limit_train_batches": 12,
        "limit_val_batches": 4,
        "accelerator": "cpu",
    },
    "checkpoint_every": 2,
}
TWO_PROCESSES = {**INOCULATE, "trainer": {**TRAINER, "devices": 2}}
LORA = {**INOCULATE, "tuning": {"method": "lora"}, "learning_rate": 1.0e-3}
DISTILLATION = {**INOCULATE, "keeping": {"method": "distillation"}}
RULES = {
    "models": ["bookshelf-lm", "dictionary-lm"],
    "probes": ["taxonomy_small", "capitals"],
    "scoring": ["letter"],
    "limit": 60,
    "trainer": TRAINER,
}
IMPORTED = sorted((ROOT / "tests/fixtures/lm_eval/tiny-gpt2").glob("samples_own_[pt]*.jsonl"))
IMPORT = f"import lm_eval {' '.join(map(str, IMPORTED))} --model gpt2"
REPORT: tuple[str, dict[str, Any]] = ("report {out}", {})
# Of each command its steps: the words behind `probelight`, and the config.
COMMANDS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "zero-shot": [("zero-shot", ZERO_SHOT), REPORT],
    "rules": [
        ("zero-shot", RULES),
        ("compare {out} --scoring own,letter --output_dir {out}/compared", {}),
    ],
    "import": [(IMPORT, {}), REPORT],
    "check": [("check", CHECK)],
    "curve": [("curve", CURVE), REPORT],
    "fine-tuning": [("curve", FINE_TUNING)],
    "inoculate": [("inoculate", INOCULATE), REPORT],
    "lora": [("inoculate", LORA)],
    "distillation": [("inoculate", DISTILLATION)],
    "two-processes": [("inoculate", TWO_PROCESSES)],
    "fit": [("fit", FIT)],
    "sweep": [("sweep plan", SWEEP), ("sweep run", {}), REPORT],
    "two-nodes": [("sweep plan", SWEEP), ("sweep run --engine.address {address}", {})],
}
# By a signal itself a process ends before the program listens, and after its end.
ENDS = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}


@dataclass
class Kill:
    """One line of the log."""

    round: int
    command: str
    step: str
    signal: str
    after_seconds: float
    process: str
    returncode: int


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="commands, with commas between them")
    parser.add_argument("--log", type=Path, default=Path("random_kills.jsonl"))
    args = parser.parse_args()
    names = args.only.split(",") if args.only else list(COMMANDS)
    rng = random.Random(args.seed)
    kills: list[Kill] = []
    wrong: list[str] = []
    more: Counter[str] = Counter()
    num_files = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        calm = {}
        for name in names:
            with cluster_of(name) as cluster:
                calm[name] = calm_runs(folder / name, name, cluster)
        for number, name in enumerate(cycle(names)):
            if len(kills) >= args.kills:
                break
            seconds, expected = calm[name]
            run_folder = folder / name  # as in the calm runs: some files repeat the path
            with cluster_of(name) as cluster, args.log.open("a") as log:
                for kill in disturbed_run(run_folder, name, cluster, seconds, rng, number):
                    kills.append(kill)
                    log.write(json.dumps(asdict(kill)) + "\n")
                    log.flush()
            digests = files_of(run_folder)
            differ = [path for path, digest in expected.items() if digests.get(path) != digest]
            more.update(Path(path).name for path in digests if path not in expected)
            num_files += len(expected)
            wrong += [f"{number}-{name}/{path}" for path in differ]
            print(f"{len(kills)} kills; {name}: {', '.join(differ) or 'the same'}", flush=True)
            if differ:  # to look at
                shutil.copytree(run_folder, args.log.with_suffix(f".{number}"))
            shutil.rmtree(run_folder)
    print(f"kills: {dict(Counter(f'{kill.command} {kill.signal}' for kill in kills))}")
    print(f"other files, by name: {dict(more)}")
    print(f"files compared: {num_files}; that differ: {wrong or 'none'}")
    sys.exit(1 if wrong else 0)


def cluster_of(name: str) -> AbstractContextManager[Cluster | None]:
    return two_nodes() if name == "two-nodes" else nullcontext()


def calm_runs(
    folder: Path, name: str, cluster: Cluster | None
) -> tuple[list[float], dict[str, str]]:
    """Run a command twice; return the seconds of its steps, and the files that are the same."""
    digests: list[dict[str, str]] = []
    seconds: list[float] = []
    for _ in range(2):
        seconds = []
        for step, _ in COMMANDS[name]:
            begun = time.monotonic()
            ended(folder, started(folder, name, step, cluster), {0})
            seconds.append(time.monotonic() - begun)
        digests.append(files_of(folder))
        shutil.rmtree(folder)
    same = dict(digests[0].items() & digests[1].items())
    print(
        f"{name}: {[round(s, 1) for s in seconds]} s undisturbed; {len(same)} files; not compared, "
        f"as they never are the same: {sorted({Path(p).name for p in digests[0].keys() - same})}",
        flush=True,
    )
    return seconds, same


def disturbed_run(
    folder: Path,
    name: str,
    cluster: Cluster | None,
    seconds: list[float],
    rng: random.Random,
    number: int,
) -> Iterator[Kill]:
    """Run a command that is ended up to five times in each step, and then to its end."""
    for (step, _), duration in zip(COMMANDS[name], seconds, strict=True):
        for _ in range(rng.randint(1, 5)):
            run = started(folder, name, step, cluster)
            delay = rng.uniform(0.0, 1.1 * duration)
            try:
                run.wait(timeout=delay)
                break  # it was quicker
            except subprocess.TimeoutExpired:
                pass
            how = rng.choices(list(ENDS), weights=[6, 2, 1])[0]
            everyone = family(run.pid)
            if cluster is not None:
                everyone += [psutil.Process(pid) for pid in attempts_of(folder)]
            # Of several processes any may be lost; of another command the one that was started.
            several = step.startswith("sweep run") or name == "two-processes"
            lost = rng.choice(everyone) if several else everyone[0]
            lost_name = lost.name()
            if lost.pid != run.pid:
                how = signal.SIGKILL
            lost.send_signal(how)
            if lost.pid == run.pid:
                codes = {0, -how, ENDS[how]}
            else:  # a sweep tries a cell again; a process of two cannot go on alone
                codes = {0} if step.startswith("sweep run") else {0, 1, -how}
            returned = ended(folder, run, codes, everyone)
            yield Kill(number, name, step, how.name, round(delay, 2), lost_name, returned)
        ended(folder, started(folder, name, step, cluster), {0})


def started(folder: Path, name: str, step: str, cluster: Cluster | None) -> subprocess.Popen[bytes]:
    """Start a step of a command in its folder."""
    folder.mkdir(exist_ok=True)
    words = step.format(out=folder / "out", address=cluster.address if cluster else "").split()
    words += [] if "--output_dir" in words else [f"--output_dir={folder / 'out'}"]
    config = dict(COMMANDS[name])[step]
    if config:
        path = folder / "config.yaml"
        path.write_text(yaml.safe_dump(config))
        words.append(f"--config={path}")
    joining = cluster.environment if cluster else {}
    with (folder / "log.txt").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "probelight", *words],
            cwd=ROOT,
            env={**os.environ, **joining, "WANDB_MODE": "disabled", "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def ended(
    folder: Path,
    run: subprocess.Popen[bytes],
    codes: Collection[int],
    everyone: list[psutil.Process] | None = None,
) -> int:
    """Wait for the end of a command and of all that it started; return its exit status.

    Raises:
        SystemExit: If it ends with another status, or leaves a process.
    """
    returned = run.wait(timeout=600)
    limit = time.monotonic() + 60
    while running := alive(everyone or []):
        if time.monotonic() > limit:
            sys.exit(f"{folder}: still running: {running}")
        time.sleep(0.1)
    if returned not in codes:
        sys.exit(f"{folder}: ended with {returned}, not {codes}; see log.txt:\n{tail(folder)}")
    return returned


def tail(folder: Path) -> str:
    return "\n".join((folder / "log.txt").read_text(errors="replace").splitlines()[-30:])


def files_of(folder: Path) -> dict[str, str]:
    """Return the checksum of each file that a command left."""
    paths = [path for path in sorted((folder / "out").rglob("*")) if path.is_file()]
    # A cell's log says that it was ended; the page and its table of runs say how long they took.
    timed = {"log.txt", "runs.csv", "runs.md", "runs.tex", "report.html", "report.md"}
    paths = [path for path in paths if path.name not in timed]
    return {str(path.relative_to(folder)): checksum(path) for path in paths}


def checksum(path: Path) -> str:
    """Return the sha256 of a file's bytes; of a training state or a record, of its contents."""
    content: Any
    if ".ckpt" in path.name:  # last.ckpt.previous too
        content = torch.load(path, weights_only=True)
    elif path.name == "result.json":
        record = json.loads(path.read_bytes())
        content = {key: value for key, value in record.items() if key not in MEASURED | {"files"}}
    else:
        return sha256(path.read_bytes()).hexdigest()
    return sha256(json.dumps(content, default=lines).encode()).hexdigest()


def lines(value: torch.Tensor) -> list[str]:
    raw = value.contiguous().flatten().view(torch.uint8).numpy().tobytes()
    return [str(value.dtype), str(list(value.shape)), sha256(raw).hexdigest()]


if __name__ == "__main__":
    main()
