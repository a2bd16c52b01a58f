"""What tables and figures take for a measured number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

Bounds = tuple[float | None, float | None]  # of an interval; None where it is not known


class Measured(Protocol):
    """A number with its 95% interval: a row of the results, or an estimate made from several."""

    @property
    def value(self) -> float:
        """The number, a fraction."""

    @property
    def ci_low(self) -> float | None:
        """Lower end; None where no interval is known."""

    @property
    def ci_high(self) -> float | None:
        """Upper end."""


class Sized(Protocol):
    """What was measured on a number of items."""

    @property
    def num_items(self) -> int | None:
        """Items measured."""

    @property
    def num_groups(self) -> int | None:
        """Groups that they are drawn in; None where each is its own."""


@dataclass(frozen=True)
class Estimate:
    """A number with its 95% interval, None where it cannot be had."""

    value: float
    ci_low: float | None = None
    ci_high: float | None = None

    @property
    def negative(self) -> Estimate:
        """The same number seen from the other side: a cost as a gain."""
        if self.ci_low is None or self.ci_high is None:
            return Estimate(-self.value)
        return Estimate(-self.value, -self.ci_high, -self.ci_low)
