"""The command line, as `python -m probelight`."""

from __future__ import annotations

import sys

from probelight.io.stop_signals import STOP

if __name__ == "__main__":
    STOP.listen()  # before all else, so that a signal is answered at any moment

from probelight.protocols.cli import main

if __name__ == "__main__":
    sys.exit(main())
