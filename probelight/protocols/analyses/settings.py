"""What the analyses are asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

from probelight.build.prediction_grids import (
    AGES,
    BIRTH_YEARS,
    PredictionGrid,
    Wording,
    age_grids,
    size_grid,
)
from probelight.io.errors import UsageError
from probelight.io.ranges import Settings, Within

Panel = Literal["A", "B", "C", "D", "sizes"]
Measure = Literal["zero_shot", "max"]


Age = Annotated[int, Within(0, 1_000)]
Year = Annotated[int, Within(0, 9_999)]


@dataclass(frozen=True)
class GridSettings(Settings):
    """Which grids are filled.

    Args:
        panels: "A" ages in the age sentence, "B" birth years in the birth-year sentence, "C" birth
            years in the age sentence, "D" ages in the birth-year sentence, "sizes" objects.
        first_age: Smallest age; the paper says that models compare ages from 15 to 105 and fail
            outside.
        last_age: Largest age.
        first_year: Earliest birth year.
        last_year: Latest birth year.
        step: Distance of two neighbouring ages or years; 1 takes every one.
        wordings: "paper" or "released", the two wordings of the age sentence, or both.
    """

    panels: list[Panel] = field(default_factory=lambda: list(get_args(Panel)))
    first_age: Age = AGES[0]
    last_age: Age = AGES[-1]
    first_year: Year = BIRTH_YEARS[0]
    last_year: Year = BIRTH_YEARS[-1]
    step: Annotated[int, Within(1, 1_000)] = 1
    wordings: list[Wording] = field(default_factory=lambda: ["paper"])

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, first, last in (
            ("age", self.first_age, self.last_age),
            ("year", self.first_year, self.last_year),
        ):
            if last < first + self.step:
                raise UsageError(
                    f"--grid.first_{name} {first} and --grid.last_{name} {last} with a step of "
                    f"{self.step} give one value or none; at least two are needed"
                )

    def grids(self) -> list[PredictionGrid]:
        """The grids asked for, wording by wording."""
        ages = range(self.first_age, self.last_age + 1, self.step)
        years = range(self.first_year, self.last_year + 1, self.step)
        return [
            grid
            for wording in self.wordings
            for grid in (*age_grids(ages, years, wording), size_grid(wording=wording))
            if grid.name in self.panels
        ]


DEFAULT_GRID = GridSettings()
