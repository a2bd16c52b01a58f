"""Figures of a benchmark as a table, and as a JSON file."""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from probelight.io.atomic import write_text_atomic
from probelight.results.record import git_commit, versions


def report(title: str, figures: Mapping[str, float], arguments: argparse.Namespace) -> None:
    """Print figures, and write them with arguments and versions to `arguments.output`."""
    table = Table(title=title, title_justify="left")
    table.add_column("what")
    table.add_column("value", justify="right")
    for name, value in figures.items():
        table.add_row(name, f"{value:.4g}")
    Console().print(table)
    if arguments.output:
        content = {
            "title": title,
            "figures": dict(figures),
            "arguments": vars(arguments),
            "machine": platform.processor() or platform.machine(),
            "versions": versions(),
            "git_commit": git_commit(),
        }
        write_text_atomic(Path(arguments.output), json.dumps(content, indent=1) + "\n")
