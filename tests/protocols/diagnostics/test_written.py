from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probelight.io.errors import UsageError
from probelight.probes.diagnostics.sets import SETS, load_set
from probelight.protocols import cli
from probelight.protocols.diagnostics.run import asked_of
from probelight.protocols.diagnostics.written import file_name, write_recorded
from probelight.results.importers.recorded import find_recorded, read_recorded
from tests.fixtures.diagnostics import write_released
from tests.fixtures.rows import read_results

COUNTED = ("probe", "metric", "subset", "value", "ci_low", "ci_high", "num_items")


def test_what_is_written_is_read_again_with_the_same_counts(
    tmp_path: Path, asked_model: Path
) -> None:
    mirror, written = write_released(tmp_path / "mirror"), tmp_path / "written"
    chosen = "--sets=cprag,role,neg_1500_simp_gen"
    command = ["diagnose", chosen, f"--mirror={mirror}", "--trainer.accelerator=cpu"]
    own = [f"--models={asked_model}", f"--write_recorded={written}", "--shuffles=1"]
    quiet = "--trainer.progress_bar=false"
    assert cli.main([*command, *own, quiet, f"--output_dir={tmp_path / 'one'}"]) == 0
    read = [f"--recorded={written}", f"--output_dir={tmp_path / 'two'}"]
    assert cli.main([*command, *read]) == 0
    first, second = (
        {tuple(row[name] for name in COUNTED) for row in rows if not row["perturbation"]}
        for rows in (read_results(tmp_path / name / "results.csv") for name in ("one", "two"))
    )
    assert first == second
    # Three of four contexts of ROLE-88 have an expected word that the vocabulary has.
    assert {row[-1] for row in second if row[:3] == ("role", "accuracy@1", "")} == {"3"}
    assert sorted(path.name for path in written.iterdir()) == [
        "NEG-1500-SIMP-GEN", "cprag-contextlist", "cprag-targetlist",
        *(f"{kind}-{name}-asked" for kind in ("modelpreds", "modelsplit", "modeltgtprobs")
          for name in ("cprag", "role")),
        "role-contextlist", "role-targetlist",
    ]  # fmt: skip
    lines = (written / "modeltgtprobs-cprag-asked").read_text().splitlines()
    assert [line == "nan" for line in lines] == [False, False, True, False, False, False]
    contexts = (written / "role-contextlist").read_text().splitlines()
    assert contexts[1] == "the owner forgot which customer the waitress had [MASK]"


def line(words: list[str], **more: Any) -> dict[str, Any]:
    return {"context": "c", "target": "t", "predictions": words, "probability": 0.1, **more}


def test_one_set_in_lists(tmp_path: Path) -> None:
    lines = [line(["it's", '"', "\\"]), line(["a", "b", "c"], split=["t"])]
    write_recorded(tmp_path, SETS["role_1500"], "some/model (random weights)", lines)
    data = load_set("role_1500", write_released(tmp_path / "mirror"))
    [one] = find_recorded(tmp_path, ["ROLE-1500"])
    assert one.model == "some-model (random weights)"
    assert len(one.files) == 2
    outputs = read_recorded(one, asked_of(data))
    assert outputs.predictions == (("it's", '"', "\\"), ("a", "b", "c"))
    assert outputs.split == {"t"}
    # A model of that name that splits nothing.
    write_recorded(tmp_path, SETS["role_1500"], "some/model (random weights)", [line(["a"])] * 2)
    [one] = find_recorded(tmp_path, ["ROLE-1500"])
    assert one.split is None


def test_what_no_form_can_say_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"m on CPRAG-102: its numbers are none \(NaN\)"):
        write_recorded(tmp_path, SETS["cprag"], "m", [line([])])
    assert not list(tmp_path.iterdir())
    (tmp_path / "modelsplit-cprag-m").write_text("word\n")
    (tmp_path / "modelpreds-cprag-n").write_text("a\n")
    (tmp_path / "modeltgtprobs-cprag-n").write_text("0.1\n")
    with pytest.raises(UsageError, match="there are no outputs of m on cprag it belongs to"):
        find_recorded(tmp_path, ["cprag"])
    assert file_name("a/b\\c\nd") == "a-b-c-d"


def test_commands_that_would_write_what_cannot_be_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = f"--recorded={tmp_path}"
    (tmp_path / "modelpreds-cprag-n").write_text("a\n")
    (tmp_path / "modeltgtprobs-cprag-n").write_text("0.1\n")
    for options, said in (
        ([same], "writes what models say; give --models or --model"),
        ([same, "--models=embedded"], "is where --recorded reads; give another one"),
    ):
        command = ["diagnose", *options, f"--write_recorded={tmp_path}", "--output_dir=never"]
        mirror = write_released(tmp_path.parent / "mirror")
        assert cli.main([*command, f"--mirror={mirror}"]) == cli.USAGE_ERROR
        assert said in capsys.readouterr().err
