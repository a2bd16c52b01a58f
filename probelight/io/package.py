"""Where the package lies, and with it the configs and assets that are shipped."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
CONFIGS = PACKAGE / "configs"
ASSETS = PACKAGE / "assets"
