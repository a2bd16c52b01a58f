from __future__ import annotations

import pytest

import train
from probes.build.frame.registry import BUILDERS, BUNDLES
from probes.catalog import probe_names


def test_probes_alone_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert train.main(["probes"]) == 0
    bare = capsys.readouterr().out
    assert train.main(["probes", "list"]) == 0
    assert bare == capsys.readouterr().out
    assert bare.startswith("age_comparison ")
    rows, _, built = bare.partition("\n\n")
    rows = rows.splitlines()
    assert [row.split()[0] for row in rows] == list(probe_names())
    assert " ".join(built.split()).endswith(f" builds one of {', '.join([*BUILDERS, *BUNDLES])}.")
    assert rows[0].split()[1:4] == ["mc_mlm", "train,", "dev"]
