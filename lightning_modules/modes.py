"""What of a model that fills masks is trained; apart from the modules, for settings to name it."""

from __future__ import annotations

from typing import Literal

Mode = Literal["zero_shot", "mlp", "linear", "full"]
HeadMode = Literal["mlp", "linear"]  # on a frozen encoder
