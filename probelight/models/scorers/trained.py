"""Modules that were trained to choose, asked through the same seam as models that were not."""

from __future__ import annotations

from probelight.lightning_modules.base import ChoiceModule
from probelight.models.checkpoints.weights import model_fingerprint
from probelight.models.scorers.base import Question, Scorer


class TrainedScorer(Scorer):
    """Answers with the head that a module was trained with: one logit a choice, and nothing else.

    Args:
        module: The module; it is used, not copied.
    """

    mode = "fine_tuned"

    def __init__(self, module: ChoiceModule) -> None:
        super().__init__()
        self.module = module
        self.eval()

    def choice_scores(self) -> Question:
        return Question(self.module.encoder(), self.module)

    def fingerprint(self) -> str:
        return model_fingerprint(self.module)
