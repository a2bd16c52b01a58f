from __future__ import annotations

import subprocess
import sys
from typing import get_args

from probelight.lightning_modules.modes import HeadMode, Mode
from tests.fixtures.checkout import ROOT


def test_what_is_trained_on_a_frozen_encoder_is_a_part_of_what_is_trained() -> None:
    assert set(get_args(Mode)) - set(get_args(HeadMode)) == {"zero_shot", "full"}


def test_settings_name_a_mode_without_torch() -> None:
    code = "import sys, probelight.lightning_modules.modes; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
