from __future__ import annotations

import pytest

from probelight.io.errors import RecordError
from probelight.io.json_object import json_object


def test_an_object_is_read() -> None:
    assert json_object('{"a": [1, null], "b": "é"}') == {"a": [1, None], "b": "é"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "a list, where an object is needed; so"),
        ("null", "missing or null, where"),
        ('{"a": NaN}', "NaN is not a JSON value"),
        ('{"a": 1, "a": 2}', "the key 'a' is given twice"),
        ('{"a": ', "invalid JSON: .* at character 7; so"),
        ('{"a": "\\ud800"}', "half of a character"),
        ("[" * 100_000, "invalid JSON"),
    ],
)
def test_whatever_else_is_refused(text: str, said: str) -> None:
    with pytest.raises(RecordError, match=said):
        json_object(text, hint="; so")
