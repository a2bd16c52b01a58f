from __future__ import annotations

import errno

import pytest

from probelight.io.errors import ConfigError, UsageError
from probelight.protocols.cli.errors import FAILURE, USAGE_ERROR, complain, report_error


class PretrainedError(RuntimeError):
    """Known by its name alone, as that of the checkpoints is."""


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("give --a"), USAGE_ERROR, "train.py x: error: give --a"),
        (ConfigError("a.yaml: no"), USAGE_ERROR, "train.py x: error: a.yaml: no"),
        (ValueError("torn"), FAILURE, "train.py x: failed: torn"),
        (PretrainedError("no folder"), FAILURE, "train.py x: failed: no folder"),
    ],
)
def test_what_is_known_is_one_line(
    error: Exception, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report_error("x", error) == code
    assert capsys.readouterr().err.splitlines() == [said]


def test_a_full_disk_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_error("x", OSError(errno.ENOSPC, "No space left on device", "a")) == FAILURE
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("train.py x: failed: ")


def test_what_is_not_known_has_its_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert report_error("x", KeyError("place")) == FAILURE
    assert "KeyError: 'place'\n" in capsys.readouterr().err
    monkeypatch.setenv("PROBELIGHT_DEBUG", "1")
    assert report_error("x", UsageError("give --a")) == USAGE_ERROR
    assert "probelight.io.errors.UsageError: give --a\n" in capsys.readouterr().err


def test_what_a_file_says_does_nothing_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    complain("x: \x1b[2J")
    assert "\x1b" not in capsys.readouterr().err
