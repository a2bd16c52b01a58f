"""What a run takes: seconds, and tokens with the padding around them."""

from __future__ import annotations

import time

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from probelight.io.workload import Workload, count_read, uncounted


def test_a_run_takes_what_is_read_while_it_lasts() -> None:
    count_read(1000, 900)
    workload = Workload()
    count_read(12, torch.tensor([4, 3, 2]).sum())
    count_read(5, 5)
    with uncounted():  # a check of the network
        count_read(100, 50)
    with FakeTensorMode():
        count_read(100, torch.ones(50).sum())
    time.sleep(0.01)
    measured = workload.measured()
    assert measured.pop("seconds") > 0.009
    assert measured == {"tokens_read": 14, "padding_read": 3}
    assert Workload().measured()["tokens_read"] == 0
