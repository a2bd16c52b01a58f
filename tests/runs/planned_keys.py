"""Prints, as JSON, the keys of the runs that commands plan; nothing is run.

    python tests/runs/planned_keys.py FOLDER > tests/fixtures/run_keys.json

FOLDER is a copy of tests/fixtures/run_keys, what the commands read; they leave their folders in it.
A process of its own, as `run_jobs` is replaced before the commands import it.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import NoReturn

from probelight.cli import main
from probelight.runs import run as jobs_run
from probelight.runs.job import Job

SMALLS = "curve --models=dictionary-lm"
CURVE = "--grid.sizes=[8,16] --grid.seeds=[1,2]"
SMALL = "--model.name_or_path=dictionary-lm"
ORIGINAL = f"{SMALL} --original.name=definitions --original.sets=[definitions_small]"
INOCULATE = f"inoculate {ORIGINAL} --probe.name=hypernymy_small"
COMMANDS = {
    "zero-shot": f"zero-shot {SMALL} --probes=age_small,taxonomy_small:test",
    "zero-shot of two models": (
        "zero-shot --models=dictionary-lm,vec_similarity --probes=hypernymy_small,wordsense_small"
    ),
    "zero-shot with ranks and scoring": (
        f"zero-shot {SMALL} --probes=age_small --ranks=true"
        " --scoring=sum,mean_token,mean_char,pmi,calibrated"
    ),
    "zero-shot of a file": (
        f"zero-shot {SMALL} --data.path=items.jsonl --data.setup=mc_mlm --split=dev"
        " --model.multi_token=pseudo_log_likelihood --model.pll=within_word_l2r"
    ),
    "zero-shot of minimal pairs": (
        f"zero-shot {SMALL} --data.path=pairs.jsonl --data.setup=minimal_pair"
    ),
    "curve": f"{SMALLS} --probes=age_small --random_weights=true {CURVE}",
    "curve of a baseline": f"curve --models=mlm_baseline --probes=taxonomy_small {CURVE}",
    "curve of whole encoders and baselines": (
        "curve --models=dictionary-lm,esim,choice_only,choice_to_choice,question_to_choice"
        f" --probes=hypernymy_small --grid.controls=[standard] {CURVE}"
    ),
    "curve of masked sentences posed as questions": (
        f"{SMALLS} --probes=antonym_small --setup=mc_qa --grid.controls=[standard] {CURVE}"
    ),
    "curve behind a first stage": (
        f"{SMALLS} --probes=definitions_small --first_stage=wordsense_small:train"
        f" --grid.controls=[standard] {CURVE}"
    ),
    "curve of train rows of the measured split": (
        f"{SMALLS} --probes=multihop_small --grid.train_from=dev {CURVE}"
    ),
    "curve of the best phrasing": f"{SMALLS} --phrasings=age_small,multihop_small {CURVE}",
    "inoculate": f"{INOCULATE} --dose=100",
    "inoculate with extra, in one file": (
        f"{INOCULATE} --dose=50 --extra=x1 --probe.report_split=null --seed=3"
        " --probe.selection_items=100 --original.reserved_share=0.3 --model.head=pooler"
    ),
    "inoculate behind a first stage, in half precision": (
        f"{INOCULATE} --dose=20 --trainer.precision=bf16-mixed --trainer.threads=1"
        " --original.first.name=senses --original.first.sets=[wordsense_small]"
    ),
    "original": f"original {ORIGINAL} --original.report_sets=[definitions_small]",
    "sweep plan": "sweep plan --config=grid.yaml",
    "sweep plan with tpe": "sweep plan --config=grid.yaml --grid.search=tpe --grid.num_trials=3",
    "probes audit": "probes audit hypernymy_small,age_small --training.seeds=[0,1]",
    "probes audit of a transformer": (
        "probes audit definitions_small --baselines=dictionary-lm,esim"
    ),
    "diagnose": (
        "diagnose --models=dictionary-lm --random_weights=true --mirror=mirror"
        " --sets=cprag,role,neg_simp,neg_nat,role_1500 --shuffles=5"
    ),
    "grid": (
        "grid --models=dictionary-lm --grid.panels=[A,B,C,D] --grid.step=20 --random_weights=true"
    ),
    "taxonomy-distance": "taxonomy-distance --results=results --wordnet=wordnet",
    "unigrams": (
        "unigrams --results=results --model_a=first --counts_a=a.txt"
        " '--model_b=second (random weights)' --counts_b=b.txt --measure=zero_shot"
    ),
}


class PlannedError(Exception):
    """A command has planned, and would begin."""


def planned_keys(folder: Path) -> dict[str, list[str]]:
    """Return the keys that each command plans, in the order of its jobs."""
    keys: list[str] = []

    def note(plan: Sequence[Job], *_: object) -> NoReturn:
        keys.extend(job.key for job in plan)
        raise PlannedError

    jobs_run.run_jobs = note
    # An optional package, which the counts of an audit say whether they had.
    sys.modules["wordfreq"] = None  # type: ignore[assignment]
    os.chdir(folder)
    keys_by_name = {}
    for number, (name, command) in enumerate(COMMANDS.items()):
        keys.clear()
        code = main([*shlex.split(command), f"--output_dir=out{number}"])
        if name.startswith("sweep"):
            assert code == 0, name
            keys.extend(sorted(path.name for path in Path(f"out{number}/runs").iterdir()))
        assert keys, name
        keys_by_name[name] = [*keys]
    return keys_by_name


if __name__ == "__main__":
    with redirect_stdout(sys.stderr):
        all_keys = planned_keys(Path(sys.argv[1]))
    print(json.dumps(all_keys, indent=1))
