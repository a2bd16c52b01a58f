from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from callbacks.wandb import settings as wandb_settings
from callbacks.wandb.settings import WandbSettings, client_settings, wandb_id


class Client:
    """What `wandb.Settings` is in a version that does not know `finish_timeout` yet."""

    model_fields = ("init_timeout", "console")

    def __init__(self, **values: object) -> None:
        self.values = values


def test_no_key_means_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setattr(wandb_settings, "_has_api_key", lambda: False)
    assert WandbSettings(project="p").offline()
    assert not WandbSettings(project="p", mode="online").offline()
    monkeypatch.setattr(wandb_settings, "_has_api_key", lambda: True)
    assert not WandbSettings(project="p").offline()
    assert WandbSettings(project="p", mode="offline").offline()
    # The client goes by that, whatever mode it is given.
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert WandbSettings(project="p", mode="online").offline()
    # Lightning's logger would wake a client that is switched off to write to disk.
    monkeypatch.setenv("WANDB_MODE", "disabled")
    assert not WandbSettings(project="p", mode="offline").offline()


def test_a_key_comes_from_the_environment_or_from_the_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(api=SimpleNamespace(api_key="")))
    assert WandbSettings(project="p").offline()
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(api=SimpleNamespace(api_key="k")))
    assert not WandbSettings(project="p").offline()
    monkeypatch.setitem(sys.modules, "wandb", None)  # not installed
    assert WandbSettings(project="p").offline()
    monkeypatch.setenv("WANDB_API_KEY", "k")
    assert not WandbSettings(project="p").offline()


def test_ids_are_fixed_and_not_too_long() -> None:
    assert wandb_id("inoculate-k100-0123456789ab") == "inoculate-k100-0123456789ab"
    long = wandb_id("x" * 100 + "-0123456789ab")
    assert long == "x" * 51 + "-0123456789ab"
    assert len(long) == 64


def test_an_older_client_is_given_the_settings_that_it_knows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(Settings=Client))
    assert client_settings().values == {"init_timeout": 60, "console": "off"}
