from __future__ import annotations

import pytest

from probelight.build.catalogue import BUILDERS
from probelight.build.wordnet_probes.builders import WORDNET_QA
from probelight.probes.catalog import probe_names
from probelight.protocols import cli


def test_probes_alone_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["probes"]) == 0
    bare = capsys.readouterr().out
    assert cli.main(["probes", "list"]) == 0
    assert bare == capsys.readouterr().out
    assert bare.startswith("age_comparison ")
    rows, _, built = bare.partition("\n\n")
    rows = rows.splitlines()
    assert [row.split()[0] for row in rows] == list(probe_names())
    names = ", ".join([*BUILDERS, WORDNET_QA])
    assert " ".join(built.split()).endswith(f" builds one of {names}.")
    assert rows[0].split()[1:4] == ["mc_mlm", "train,", "dev"]
