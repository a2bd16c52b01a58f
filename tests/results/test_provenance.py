from __future__ import annotations

import platform
import subprocess
from contextvars import copy_context
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest

from probelight.io.files import DataFile
from probelight.results import provenance
from probelight.results.provenance import DataUse, data_files, git_commit, versions


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit of one file, in place of the project's own."""
    monkeypatch.setattr(provenance, "checkout", lambda: tmp_path)
    (tmp_path / "a.py").write_text("1\n")
    who = ["-c", "user.name=a", "-c", "user.email=a@b.invalid"]
    for command in (["init", "-q"], ["add", "a.py"], [*who, "commit", "-q", "-m", "one"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    return tmp_path


def test_versions_are_those_of_the_packages_that_decide_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(provenance, "PACKAGES", ("numpy", "no-such-package-at-all"))
    assert versions() == {
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "no-such-package-at-all": "absent",
    }


def test_the_commit_says_whether_tracked_files_differ(checkout: Path) -> None:
    head = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    commit = subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()
    assert git_commit() == commit
    (checkout / "b.txt").write_text("not tracked")
    assert git_commit() == commit
    (checkout / "a.py").write_text("2\n")
    assert git_commit() == f"{commit}+changes"


def test_outside_of_git_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "checkout", lambda: tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_commit() == ""
    monkeypatch.setenv("PATH", str(tmp_path))  # nor is there a git
    assert git_commit() == ""


def test_each_file_is_named_once_and_without_its_folder() -> None:
    one, two = DataFile("my/a.jsonl", "0a", 3), DataFile("my/b.jsonl", "1b", 5)
    again = DataFile("elsewhere/a.jsonl", "0a", 3)
    parts = [SimpleNamespace(files=(one,)), SimpleNamespace(files=(two, again))]
    assert data_files(parts) == (
        DataUse(path="a.jsonl", sha256="0a", num_items=3),
        DataUse(path="b.jsonl", sha256="1b", num_items=5),
    )
    assert data_files([]) == ()


def test_the_command_is_kept_as_it_is_typed_without_its_secrets() -> None:
    def kept(*arguments: str) -> str:
        provenance.set_command("zero-shot", arguments)
        return provenance.command_line()

    said = copy_context().run(
        kept, "--data.path", "my file.csv", "--mirror", "https://me:pw@host/x"
    )
    assert said == "train.py zero-shot --data.path 'my file.csv' --mirror https://host/x"
