"""False alarms and power of `check`, and of the published rules of two other tools.

    python -m benchmarks.check_rules [--checks 500] [--measured runs/check runs/check_bf16]

Each rule gets the same scores before and after, of ten probes with four choices per item: a model
knows a share of the items of each, from a third to nine in ten, and guesses the others anew each
time. Either nothing changed, or one probe, of which it knew 70%, lost points of accuracy. With
`--measured`, it also says what each rule names in finished folders of `train.py check`.

- pyrecall 0.12.1 (`check`): the mean score fell by more than 0.10 (its nine skills have 20 prompts
  each).
- finetunecheck 2.0.2 (`ftcheck`): the mean after is below 0.95 of that before (its `quick` profile
  asks 10 samples per category, the full one 100).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from probelight.metrics.forgetting import changes
from probelight.metrics.verdicts import verdicts

NUM_CHOICES = 4
SHARES = np.linspace(0.33, 0.9, 9)  # known of the probes that lose nothing
KNOWN = 0.7  # of the one that may
SIZES = (20, 100, 300)
LOSSES = (0.0, 0.1, 0.2)  # of accuracy
Pair = tuple[np.ndarray, np.ndarray]  # (N,) scores before and after
Rule = Callable[[Sequence[Pair]], list[bool]]


def _by_check(pairs: Sequence[Pair]) -> list[bool]:
    evidence = [
        changes({0: old}, {0: new}, [NUM_CHOICES] * len(old)).evidence for old, new in pairs
    ]
    return [verdict.word == "forgot" for verdict in verdicts(evidence)]


RULES: dict[str, Rule] = {
    "probelight check": _by_check,
    "pyrecall 0.12.1": lambda pairs: [old.mean() - new.mean() > 0.10 for old, new in pairs],
    "finetunecheck 2.0.2": lambda pairs: [
        bool(old.mean()) and new.mean() / old.mean() < 0.95 for old, new in pairs
    ],
}


def main() -> None:
    """Simulate, and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--checks", type=int, default=500, help="simulated checks per row")
    parser.add_argument("--measured", type=Path, nargs="*", default=[], help="folders of checks")
    arguments = parser.parse_args()
    simulate(arguments.checks)
    for folder in arguments.measured:
        named_in(folder)


def simulate(num_checks: int) -> list[dict[str, float]]:
    """Print in how many checks each rule names a probe that lost nothing, and the one that did."""
    rng = np.random.default_rng(0)
    rows = []
    for num_items in SIZES:
        for loss in LOSSES:
            false_alarms, hits = dict.fromkeys(RULES, 0), dict.fromkeys(RULES, 0)
            for _ in range(num_checks):
                pairs = [_asked(rng, KNOWN, num_items, loss)]
                pairs += [_asked(rng, share, num_items) for share in SHARES]
                for name, rule in RULES.items():
                    first, *others = rule(pairs)
                    false_alarms[name] += any(others) or (first and not loss)
                    hits[name] += bool(loss) and first
            row = {"items": num_items, "loss": loss}
            row |= {f"false, {name}": n / num_checks for name, n in false_alarms.items()}
            row |= {f"found, {name}": n / num_checks for name, n in hits.items()} if loss else {}
            rows.append(row)
            print(f"{num_items} items per probe, one loses {100 * loss:.0f} points")
            for name in RULES:
                found = f", the loss found in {row[f'found, {name}']:.1%}" if loss else ""
                print(f"  {name:<20} a false alarm in {row[f'false, {name}']:.1%} of checks{found}")
    return rows


def _asked(rng: np.random.Generator, share: float, num_items: int, loss: float = 0.0) -> Pair:
    """Return scores of a model that knows a share of the items, before and after it lost some."""
    known = rng.random(num_items) < share
    lost = rng.random(num_items) < loss / (1 - 1 / NUM_CHOICES) / share
    old, new = (
        (knows | (rng.random(num_items) < 1 / NUM_CHOICES)).astype(float)
        for knows in (known, known & ~lost)
    )
    return old, new


def named_in(folder: Path) -> None:
    """Print what each rule names in a finished check, by its accuracies and verdicts."""
    check = json.loads((folder / "check.json").read_text(encoding="utf-8"))
    probes = check["probes"]
    named: dict[str, list[str]] = {name: [] for name in RULES}
    for probe in probes:
        old, new = probe["before"]["value"], probe["after"]["value"]
        means = np.array([old]), np.array([new])
        for name, rule in RULES.items():
            is_ours = rule is _by_check
            if probe["verdict"] == "forgot" if is_ours else rule([means])[0]:
                named[name].append(f"{probe['probe']} {100 * old:.1f} to {100 * new:.1f}")
    print(f"{folder}: {' and '.join(check['models'])}, {len(probes)} probes")
    for name, names in named.items():
        print(f"  {name:<20} names {', '.join(names) or 'nothing'}")


if __name__ == "__main__":
    main()
