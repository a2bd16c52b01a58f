"""Findings as a person reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from probelight.build.hygiene.finding import Finding

_NUM_SHOWN = 3


def said(findings: Sequence[Finding]) -> str:
    """How many findings there are of each check, and the first of each."""
    counts = Counter(found.check for found in findings)
    lines = []
    for check, count in counts.most_common():
        own = [found for found in findings if found.check == check]
        lines.append(f"{check}: {count:,}")
        lines += [f"  {found.where}: {found.text}" for found in own[:_NUM_SHOWN]]
    return "\n".join(lines)
