"""One inoculation: train or take an original-task model, add one dose, and count the cost."""

from __future__ import annotations

import time
from typing import Any

from protocols.engine.training import best_dir
from protocols.inoculation.configs import INOCULATION, inoculation_config
from protocols.inoculation.original_task import original_model
from protocols.inoculation.settings import Setting
from protocols.inoculation.steps import REPORT, InoculationSteps
from results.run_folder import CommandFolder


def inoculate_once(
    folder: CommandFolder, steps: InoculationSteps, setting: Setting
) -> dict[str, Any]:
    """Runs one inoculation from beginning to end, or goes on with it; returns its result."""
    steps.items(setting)  # a dose that is too large is said before hours of training
    model_folder = original_model(
        folder,
        steps.model,
        steps.original,
        steps.original_data,
        steps.context,
    )
    parts = (steps.probe_data, steps.original_data)
    name = f"inoculate-{steps.probe_name}-k{setting.dose}-{setting.extra}-s{setting.seed}"
    run = folder.run(
        name,
        inoculation_config(
            INOCULATION,
            steps.model,
            steps.original,
            steps.probe,
            parts,
            steps.context.trainer,
            setting,
        ),
    )
    finished = run.result()
    if finished is not None:
        print(f"{run.key}: complete")
        return finished
    start = time.perf_counter()
    before = steps.before(run, model_folder)
    history, problems = steps.train(run, model_folder, setting, before)
    steps.keep(run, before)  # somebody may have removed them in the meantime
    after = steps.score(best_dir(run), steps.sets(REPORT))
    result = steps.report(run, best_dir(run), setting, before, after, history, problems, start)
    run.finish(result)
    found = run.result()
    assert found is not None
    return found
