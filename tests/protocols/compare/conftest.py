"""Folders whose every answer is written in a test: "1" right, "0" wrong, "2" half of a tie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probelight.io.files import DataFile
from probelight.results.details import InoculationDetails
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import CommandFolder

CREDIT = {"0": 0.0, "1": 1.0, "2": 0.5}
ROW = Row(probe="made", split="test", metric="accuracy", value=0.5)
TRAIN = DataFile(path="train.jsonl", sha256="0" * 64)


def lines(right: str, groups: Sequence[int] | None = None, word: str = "is", **more: Any) -> Any:
    """Lines of predictions.jsonl about as many items."""
    return [
        {
            "set": "made",
            "id": f"i{number}",
            "position": number + 1,
            "question": f"Item {number} {word} [MASK].",
            "choices": ["larger", "smaller"],
            "scores": [0.0, 1.0],
            "prediction": 1,
            "tied": 1,
            "answer": 1,
            "correct": CREDIT[one],
            **({} if groups is None else {"interval_group": groups[number]}),
            **more,
        }
        for number, one in enumerate(right)
    ]


class Leave:
    """Leaves runs in a folder."""

    def zero_shot(self, folder: Path, model: str, right: str, **more: Any) -> Path:
        """A zero-shot run on one probe."""
        probe = more.pop("probe", "made")
        groups = more.pop("num_groups", None)
        step = -1 if more.pop("turned", False) else 1
        row = replace(ROW, protocol="zero_shot", model=model, probe=probe, mode="zero_shot")
        row = replace(row, num_items=len(right), num_groups=groups)
        return self._run(folder, lines(right, **more)[::step], row)

    def curve(
        self, folder: Path, model: str, size: int, by_seed: Mapping[int, str], **more: Any
    ) -> Path:
        """A point of a curve, with a control whose answers are no answers to the items."""
        row = replace(ROW, protocol="curve", model=model, mode="mlp", num_train=size)
        row = replace(row, control="standard")
        control = lines("1" * len(next(iter(by_seed.values()))), control="no_language", seed=1)
        told = [
            line
            for seed, right in by_seed.items()
            for line in lines(right, control="standard", seed=seed, **more)
        ]
        return self._run(folder, [*control, *told], row, data=(TRAIN,))

    def inoculation(self, folder: Path, dose: int, seed: int, after: str, before: str) -> Path:
        """An inoculation whose probe and original task have the same items."""
        row = Row(
            protocol="inoculation", model="m", probe="made", dose=dose, extra="none", seed=seed,
            learning_rate=1e-4, split="report", metric="probe_accuracy", value=0.5,
        )  # fmt: skip
        sets = {"report_probe": after, "report_original": after}
        sets |= {"report_probe_before": before, "report_original_before": before}
        told = [line for name, right in sets.items() for line in lines(right, set=name)]
        facts = InoculationDetails(original_task="task", setup="abc")
        return self._run(folder, told, row, details=(facts,))

    def _run(self, folder: Path, told: Any, row: Row, **facts: Any) -> Path:
        command = CommandFolder(folder, {"command": "made"})
        run = command.run(f"{row.protocol}-{row.model}-{row.dose}", {"row": repr(row)})
        run.write_lines("predictions.jsonl", told)
        rows = (row,)
        run.finish(
            RunRecord(protocol=row.protocol, model=row.model, probe=row.probe, rows=rows, **facts)
        )
        return folder


@pytest.fixture
def leave() -> Leave:
    """The writer."""
    return Leave()
