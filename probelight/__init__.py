"""Did a language model know this already, or did it learn it from your fine-tuning data?

    results = probelight.zero_shot("bert-base-uncased", ["age_comparison", "my.csv"])
    results.frame, results.items

The names below are imported when they are first used, so that `import probelight` takes no time.
"""

from __future__ import annotations

from functools import cache, wraps
from inspect import Parameter, isfunction, signature
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from probelight.api.call import ModelLike
    from probelight.api.calls import (
        audit,
        compare,
        curve,
        diagnose,
        explain,
        forgetting,
        import_results,
        inoculate,
        load,
        original,
        sweep,
        zero_shot,
    )
    from probelight.api.check import Checked, ForgottenError, check
    from probelight.api.score import Model, Scores, load_model, load_probe, score
    from probelight.io.errors import ProbelightError
    from probelight.probes.importers.items import ProbeLike
    from probelight.reports.notebook import Results
    from probelight.runs.estimates import Plan

_MODULES = {
    "api.call": ("ModelLike",),
    "api.calls": (
        "audit",
        "compare",
        "curve",
        "diagnose",
        "explain",
        "forgetting",
        "import_results",
        "inoculate",
        "load",
        "original",
        "sweep",
        "zero_shot",
    ),
    "api.check": ("Checked", "ForgottenError", "check"),
    "api.score": ("Model", "Scores", "load_model", "load_probe", "score"),
    "io.errors": ("ProbelightError",),
    "probes.importers.items": ("ProbeLike",),
    "reports.notebook": ("Results",),
    "runs.estimates": ("Plan",),
}
__all__ = [
    "Checked",
    "ForgottenError",
    "Model",
    "ModelLike",
    "Plan",
    "ProbeLike",
    "ProbelightError",
    "Results",
    "Scores",
    "audit",
    "check",
    "compare",
    "curve",
    "diagnose",
    "explain",
    "forgetting",
    "import_results",
    "inoculate",
    "load",
    "load_model",
    "load_probe",
    "original",
    "score",
    "sweep",
    "zero_shot",
]


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return _checked(resolve_name(f"probelight.{module}:{name}"))
    from probelight.io.errors import nearest

    raise AttributeError(f"module 'probelight' has no attribute {name!r}{nearest(name, __all__)}")


@cache
def _checked(public: Any) -> Any:
    """Return a function that refuses arguments which it does not have in one line, or a class."""
    if not isfunction(public):
        return public

    @wraps(public)
    def checked(*args: Any, **options: Any) -> Any:
        from probelight.io.errors import UsageError, nearest

        arguments = signature(public)
        names = list(arguments.parameters)
        takes_any = arguments.parameters[names[-1]].kind is Parameter.VAR_KEYWORD
        for name in () if takes_any else (name for name in options if name not in names):
            hint = nearest(name, names) or f"; its arguments are {', '.join(names)}"
            raise UsageError(f"{public.__name__}: there is no argument {name!r}{hint}")
        try:
            arguments.bind(*args, **options)
        except TypeError as error:
            raise UsageError(f"{public.__name__}: {error}") from None
        return public(*args, **options)

    return checked


def __dir__() -> list[str]:
    return [*globals(), *__all__]
