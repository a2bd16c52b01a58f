"""The number probes that the repository ships: `probes.build.olmpics.ages` in small."""

from __future__ import annotations

from probes.build.drafts import Probe
from probes.build.olmpics.ages import AgeSettings, MultihopSettings, build_ages, build_multihop


def age_comparison(seed: int, num_train: int, num_dev: int, num_test: int) -> Probe:
    """Which of two ages is older? In the paper's wording."""
    return build_ages(AgeSettings(seed, num_train, num_dev, num_test, wording="paper"))


def multihop_composition(seed: int, num_train: int, num_dev: int, num_test: int) -> Probe:
    """Which of three ages is the oldest?"""
    return build_multihop(MultihopSettings(seed, num_train, num_dev, num_test))
