"""Did a language model know this already, or did it learn it from your fine-tuning data?

    results = probelight.zero_shot("bert-base-uncased", ["age_comparison", "my.csv"])
    results.frame, results.items

The names below are imported when they are first used, so that `import probelight` takes no time.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from probelight.cli.calls import compare, curve, forgetting, inoculate, load, zero_shot
    from probelight.evaluation.score import Model, Scores, load_model, load_probe, score
    from probelight.io.errors import ProbelightError
    from probelight.reports.notebook import Results

__all__ = [
    "Model",
    "ProbelightError",
    "Results",
    "Scores",
    "compare",
    "curve",
    "forgetting",
    "inoculate",
    "load",
    "load_model",
    "load_probe",
    "score",
    "zero_shot",
]
_MODULES = {
    "io.errors": ("ProbelightError",),
    "cli.calls": ("compare", "curve", "forgetting", "inoculate", "load", "zero_shot"),
    "evaluation.score": ("Model", "Scores", "load_model", "load_probe", "score"),
    "reports.notebook": ("Results",),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return resolve_name(f"probelight.{module}:{name}")
    from probelight.io.errors import nearest

    raise AttributeError(f"module 'probelight' has no attribute {name!r}{nearest(name, __all__)}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
