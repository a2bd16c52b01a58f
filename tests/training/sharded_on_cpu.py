"""train.py where FSDP divides a model among processes on CPUs, which Lightning refuses to.

usage: python -m tests.training.sharded_on_cpu [KILL_AT] COMMAND [OPTIONS]

The first process kills itself at its `KILL_AT`-th training step.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any
from unittest.mock import patch

import torch
from pytorch_lightning.strategies import FSDPStrategy
from torch.distributed import fsdp
from torch.distributed.fsdp import FullyShardedDataParallel

from probelight import cli
from probelight.io.process import follow_first_process
from probelight.lightning_modules.base import ChoiceModule
from probelight.training import sharding


class OnCPU(FSDPStrategy):
    """Lightning refuses FSDP on CPUs by this class's own name alone."""


def state_context(module: Any, world_size: int, rank0_only: bool = True) -> Any:
    """As Lightning's, which takes weights off a device: on a CPU they would be freed while read."""
    settings: dict[str, Any] = {"offload_to_cpu": False, "rank0_only": False}
    return FullyShardedDataParallel.state_dict_type(
        module,
        fsdp.StateDictType.FULL_STATE_DICT,
        fsdp.FullStateDictConfig(**settings),
        fsdp.FullOptimStateDictConfig(**settings),
    )


def main(arguments: list[str]) -> int:
    """Runs the command, and notes in how many units FSDP divides each model."""
    kill_at = int(arguments.pop(0)) if arguments[0].isdigit() else 0
    make, step, steps = FullyShardedDataParallel.__init__, ChoiceModule.training_step, [0]

    def make_on_cpu(self: Any, *args: Any, **options: Any) -> None:
        make(self, *args, **{**options, "device_id": torch.device("cpu")})

    def counted_step(self: ChoiceModule, *args: Any) -> Any:
        units = [m for m in self.trainer.model.modules() if isinstance(m, FullyShardedDataParallel)]
        assert len(units) > 1, "each layer is one"
        steps[0] += 1
        if steps[0] == kill_at and self.trainer.is_global_zero:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(self, *args)

    with (
        patch.object(FullyShardedDataParallel, "__init__", make_on_cpu),
        patch.object(ChoiceModule, "training_step", counted_step),
        patch.object(sharding, "FSDPStrategy", OnCPU),
        patch("pytorch_lightning.strategies.fsdp._get_full_state_dict_context", state_context),
        patch(
            "lightning_fabric.strategies.model_parallel._get_full_state_dict_context",
            state_context,
            create=True,
        ),
        patch("lightning_fabric.strategies.fsdp._get_full_state_dict_context", state_context),
    ):
        return cli.main(arguments)


if __name__ == "__main__":
    follow_first_process()
    sys.exit(main(sys.argv[1:]))
