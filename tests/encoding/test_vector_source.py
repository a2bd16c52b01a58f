"""Which file of word vectors is meant, and what it is called in tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from probelight.encoding.vector_source import EMBEDDED_PATH, located, vectors_label


@pytest.mark.parametrize(
    "source", ["x/glove.6B.50d.txt", "glove.6B.50d.txt.gz", "d/glove.6B.zip:glove.6B.50d.txt"]
)
def test_label(source: str) -> None:
    assert vectors_label(source) == "glove.6B.50d"


def test_a_file_an_archive_and_one_of_its_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert located("embedded") == (EMBEDDED_PATH, None)
    assert located("v.txt") == (Path("v.txt"), None)
    assert located("~/v.vec") == (tmp_path / "v.vec", None)
    assert located("d/v.zip") == (Path("d/v.zip"), None)
    assert located("~/v.zip:in/v.50d.txt") == (tmp_path / "v.zip", "in/v.50d.txt")
    assert located("v.zip:") == (Path("v.zip:"), None)  # no member: a file of that name
