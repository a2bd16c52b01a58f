"""`train.py diagnose`: the psycholinguistic diagnostics of what models say."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from jobs.context import RunContext
from jobs.run import Part, run_jobs, unfinished
from probes.diagnostics.sets import SETS, load_set
from protocols.cli.command import Command, command
from protocols.diagnostics.jobs import PROTOCOL, RECORDED, recorded_job
from protocols.diagnostics.run import asked_of
from results.importers.recorded import find_recorded, read_recorded
from results.row import Row
from results.run_folder import CommandFolder


@command(
    Command(
        "psycholinguistic diagnostics",
        example="train.py diagnose --recorded outputs --output_dir runs/diagnose",
        shown="output_dir recorded mirror",
    )
)
def diagnose(output_dir: str, recorded: str, mirror: str | None = None) -> list[Row]:
    """Word prediction and sensitivity on CPRAG-102, ROLE-88, NEG-136, ROLE-1500 and NEG-1500-SIMP.

    No model is needed: measured are outputs that another program has recorded.

    Args:
        output_dir: Folder of the results.
        recorded: Folder of outputs, as modelpreds-SET-MODEL and modeltgtprobs-SET-MODEL (SET is
            cprag, role, negsimp or negnat), or as SET/MODEL.txt (SET is ROLE-1500,
            NEG-1500-SIMP-TEMP or NEG-1500-SIMP-GEN); any number of models.
        mirror: Folder or address that stands for the addresses of the released files.

    Returns:
        The rows of results.csv.

    Raises:
        UsageError: If there are no outputs, or one of a model's files is missing.
        RecordError: If a file is malformed.
    """
    from reports.terminal import print_tables

    found = find_recorded(Path(recorded), [source.recorded_as for source in SETS.values()])
    names = {source.recorded_as: name for name, source in SETS.items()}
    sets = {
        name: load_set(names[name], mirror) for name in dict.fromkeys(o.recorded_as for o in found)
    }
    for one in found:  # all of them, before the first is measured
        read_recorded(one, asked_of(sets[one.recorded_as]))
    plan = [recorded_job(sets[one.recorded_as], one) for one in found]
    config = {"command": PROTOCOL, "runs": [dict(job.config) for job in plan]}
    folder = CommandFolder(Path(output_dir), config, chain(sets.values(), found))
    missing = {job.key for job in unfinished(plan, folder)}
    for job in plan:
        if job.key not in missing:
            print(f"{job.config['probe']}, {job.config['model']}: complete")
    run_jobs([Part(plan)], folder, RunContext(mirror=mirror, paths={RECORDED: recorded}))
    print_tables(folder.path, PROTOCOL)
    return folder.rows()
