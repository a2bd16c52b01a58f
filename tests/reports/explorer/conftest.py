from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from results.load import Results, load_results

WriteRun = Callable[..., Path]
HOSTILE = "</script><img src=x onerror=alert(1)>\u2028<!-- \ud800"


def lines(name: str, right: str, **more: Any) -> list[dict[str, Any]]:
    """Items with the choices "a" and "b": "+" is right, "-" wrong, "=" tied, "?" no answer."""
    found = []
    for place, own in enumerate(right):
        item = {
            "set": name,
            "id": f"q{place}",
            "position": place + 1,
            "question": f"Question {place}?",
        }
        item |= {"choices": ["a", "b"], "answer": 0, "group": f"c{place // 2}", "hops": place % 2}
        said = {
            "+": {"scores": [1.23456, -2], "prediction": 0, "tied": 1, "correct": 1.0},
            "-": {"scores": [None, 0.5], "prediction": 1, "tied": 1, "correct": 0.0},
            "=": {"scores": [1, 1], "prediction": 0, "tied": 2, "correct": 0.5},
            "?": {"scores": [None, 1], "prediction": None, "tied": 0, "correct": 0.0},
        }[own]
        found.append({**item, **said, **more})
    return found


def write_lines(folder: Path, rows: list[dict[str, Any]]) -> None:
    (folder / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def answered(tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace) -> Results:
    """Zero shot, two doses of an inoculation on its items, a diagnostic, and a damaged run."""
    zero = write_run(tmp_path, "z", rows.zero_shot("hypernymy", 5, 8, 2, model="m"))
    write_lines(zero, lines("hypernymy", "+-=?"))
    for dose, after in ((50, "+---"), (100, "-+=+")):
        made = [row | {"dose": dose} for row in rows.inoculation(seed=0, model="m")]
        facts = {"original_task": "science", "selection": "train", "report_split": "test"}
        run = write_run(tmp_path, f"k{200 - dose}", made, **facts)
        padded = lines("report_original", "+", choices=["a", "b", ""], scores=[1, 0, -1])
        own = lines("report_probe_before", "+-+=") + lines("report_probe", after)
        write_lines(run, [*own, *padded])
    said = {"context": "He is not a", "target": "dog", "expected": ["cat"], "split": ["dog"]}
    role = [
        {"protocol": "diagnose", "model": "m", "probe": "role", "metric": "accuracy@1", "value": 1}
    ]
    write_lines(
        write_run(tmp_path, "d", role),
        [said | {"predictions": ["cat", HOSTILE], "probability": 0.012345}],
    )
    cut = write_run(tmp_path, "cut", rows.zero_shot("age", 5, 8, 2, model="m"))
    (cut / "predictions.jsonl").write_text('{"set": "age", "choices"')
    write_run(tmp_path, "none", rows.zero_shot("antonyms", 5, 8, 2, model="m"))
    return load_results(tmp_path)
