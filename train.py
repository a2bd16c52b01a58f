"""The command line, from a checkout. Installed, it is the command `probelight`."""
# PYTHON_ARGCOMPLETE_OK

from __future__ import annotations

import sys

from probelight.cli import main

if __name__ == "__main__":
    sys.exit(main())
