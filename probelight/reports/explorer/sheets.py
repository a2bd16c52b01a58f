"""What a run answered to a set of items: what readers call it, and where it stands in a list."""

from __future__ import annotations

from dataclasses import dataclass

from probelight.reports.kit.text import count, rate, way
from probelight.results.details import InoculationDetails
from probelight.results.load import INOCULATION, Run
from probelight.results.row import Row

STANDARD = ("", "standard")
_BEFORE = "_before"
# What was said before any example of the probe was seen.
_UNTRAINED = ("zero_shot", "grid", "original", "before")


@dataclass(frozen=True)
class Sheet:
    """What one run answered to one set of items.

    Attributes:
        run: The run.
        set: The name of the set in its predictions.
        seed: Of these answers, where the run has several.
        control: What was done to the words; empty where it is not said of each item.
        places: Of the items in those of the probe.
        answers: JSON of the columns, made at once: as numbers, large results do not fit in memory.
        label: What readers call it, different from that of any other sheet of the model.
    """

    run: Run
    set: str
    seed: int | None
    control: str
    places: tuple[int, ...] = ()
    answers: str = ""
    label: str = ""

    @property
    def name(self) -> str:
        """What an address calls it."""
        return f"{self.run.key}/{self.set}"

    @property
    def row(self) -> Row:
        """What the run measured first."""
        return self.run.rows[0] if self.run.rows else Row()

    @property
    def is_standard(self) -> bool:
        """Whether the items are the probe's own, not a control's."""
        return self.control in STANDARD

    @property
    def before(self) -> bool:
        """Whether they were given before inoculation."""
        return self.run.protocol == "before" or self.set.endswith(_BEFORE)

    @property
    def size(self) -> int:
        """Number of examples it was trained on."""
        untrained = self.before or self.run.protocol in _UNTRAINED
        return 0 if untrained else self.row.dose or self.row.num_train or 0

    @property
    def of_original(self) -> bool:
        """Whether the items are those of the original task of an inoculation."""
        inoculated = self.run.detail(InoculationDetails) is not None
        return inoculated and "original" in self.set.split("_")

    @property
    def probe(self) -> str:
        """The probe, or original task, whose items they are."""
        details = self.run.detail(InoculationDetails)
        if details and self.of_original:
            return details.original_task or "original task"
        return self.run.probe or self.set


def label_of(sheet: Sheet) -> str:
    """What readers call the answers; of one probe and model several may be called the same."""
    run, row = sheet.run, sheet.row
    seed = sheet.seed if sheet.seed is not None else row.seed
    of = f" of {run.probe}" if sheet.of_original else ""
    trained = [f"after {count(sheet.size)} examples{of}", "" if seed is None else f"seed {seed}"]
    learning_rate = f"learning rate {rate(row.learning_rate)}"
    match run.protocol:
        case "zero_shot":
            parts = ["zero shot", way(row.mode)]
        case "curve":
            parts = [*trained, row.mode]
        case "original":
            parts = ["after the original task"]
        case _ if sheet.before:
            parts = ["before inoculation"]
        case protocol if protocol == INOCULATION:
            parts = [*trained, "" if row.extra == "none" else row.extra, learning_rate]
            if sheet.of_original and row.control not in STANDARD:
                parts.append(f"inoculated under {row.control.replace('_', ' ')}")
        case "diagnose":
            parts = ["words behind the context"]
        case protocol:
            parts = [protocol.replace("_", " "), sheet.set, "" if seed is None else f"seed {seed}"]
    parts.append("" if sheet.is_standard else sheet.control.replace("_", " "))
    parts.append("selection items" if sheet.set.startswith("selection") else "")
    return ", ".join(filter(None, parts))


def order_of(sheet: Sheet) -> tuple[int, bool, bool, str, int, str, str]:
    """By the number of examples trained on, the standard items before those of controls."""
    changed = not sheet.is_standard
    seed = sheet.seed or 0
    return sheet.size, sheet.before, changed, sheet.control, seed, sheet.run.key, sheet.set
