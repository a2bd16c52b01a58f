"""The command line, as `python -m probelight`."""

from __future__ import annotations

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    # `-m` puts the current folder first: a `datasets.py` in it would stand for the library.
    sys.path.append(sys.path.pop(0))

from probelight.cli import main

if __name__ == "__main__":
    sys.exit(main())
