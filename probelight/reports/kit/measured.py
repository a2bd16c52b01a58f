"""What tables and figures take for a measured number."""

from __future__ import annotations

from typing import Protocol

from probelight.reports.estimates import Bounds as Bounds
from probelight.reports.estimates import Estimate as Estimate


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
