from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from probelight.probes.record import Record

WORDS = "cat dog cow hen fox ant pig owl bee elk which is a not".split()


@torch.no_grad()
def scores(module: Any, records: Sequence[Record]) -> Tensor:
    batch = module.encoder().encode(records).collate(range(len(records)))
    logits: Tensor = module.eval()(batch)
    return logits
