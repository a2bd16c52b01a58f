"""The device on which models are scored, as the settings and the machine have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probelight.runs.settings import TrainerSettings

if TYPE_CHECKING:
    import torch


def single_device(settings: TrainerSettings) -> torch.device | None:
    """Return the device on which this process answers alone; None where Lightning is needed.

    Lightning is for several processes, for other strategies and precisions, and to refuse what this
    machine does not have.
    """
    import torch

    from probelight.models.answering import PRECISIONS

    is_plain = settings.devices == 1 and settings.strategy == "auto"
    if not is_plain or settings.precision not in PRECISIONS:
        return None
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return None
    if settings.accelerator in {"auto", "gpu", "cuda"} and torch.cuda.is_available():
        return torch.device("cuda", 0)
    if settings.accelerator in {"auto", "gpu", "mps"} and torch.backends.mps.is_available():
        return torch.device("mps", 0) if PRECISIONS[settings.precision] is None else None
    return torch.device("cpu") if settings.accelerator in {"auto", "cpu"} else None


def is_on_gpu(settings: TrainerSettings) -> bool:
    """Return whether a GPU answers, in this process or in several."""
    import torch

    if (device := single_device(settings)) is not None:
        return device.type != "cpu"
    return settings.accelerator in {"auto", "gpu", "cuda"} and torch.cuda.is_available()
