from __future__ import annotations

from probelight.reports.fits import fits_table
from probelight.results.load import Results, Run
from probelight.results.row import Row
from tests.fixtures.report import named, records


def test_the_last_validation_is_next_to_the_best() -> None:
    common = {"protocol": "fit", "model": "m", "probe": "ages", "seed": 1, "num_train": 62}
    rows = (
        Row(**common, metric="val/loss", value=0.25, epoch=3, extra="last"),
        Row(**common, metric="val/accuracy", value=0.5, epoch=3, extra="last"),
        Row(**common, metric="val/accuracy", value=0.75, epoch=1, extra="best"),
        Row(**common, metric="train/loss", value=0.1, extra="other"),
    )
    run = Run(protocol="fit", model="m", probe="ages", rows=rows, key="fit-a", path="runs/fit-a")
    table = fits_table(Results("made", (run,)))
    assert table is not None
    loss, accuracy = ({name: cell.text for name, cell in named(table, i).items()} for i in (0, 1))
    assert loss == {"model": "m", "data": "ages", "metric": "val/loss", "last": "0.25",
                    "epoch": "3", "best": "–", "best epoch": "–"}  # fmt: skip
    assert (accuracy["last"], accuracy["best"], accuracy["best epoch"]) == ("0.5", "0.75", "1")
    assert records(table)[1] == {
        "model": "m", "probe": "ages", "mode": "", "num_train": 62, "seed": 1,
        "learning_rate": None, "metric": "val/accuracy", "last": 0.5, "last_epoch": 3,
        "best": 0.75, "best_epoch": 1,
    }  # fmt: skip
    assert table.runs == (("fit-a",), ("fit-a",))
    assert fits_table(Results("none", ())) is None
