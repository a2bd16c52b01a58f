"""Completion as bash asks for it, each time in a process of its own."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.checkout import ROOT

pytest.importorskip("argcomplete")

PROGRAM = """\
#!{python}
import sys
for heavy in ("torch", "transformers", "pytorch_lightning", "pandas", "matplotlib"):
    sys.modules[heavy] = None  # an import fails, and nothing is completed
from probelight.cli import main
sys.exit(main())
"""
# What bash does when TAB is pressed behind the words of its argument.
PRESSED = """\
eval "$({python} -m argcomplete.scripts.register_python_argcomplete probelight)"
[[ $(complete -p probelight) =~ -F\\ ([_a-z]+) ]]
COMP_LINE="$1" COMP_POINT=${{#1}} COMP_TYPE=9
COMP_WORDBREAKS=$' \\t\\n"\\'@><=;|&(:'
"${{BASH_REMATCH[1]}}" probelight
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("probes ", "-h --help --version list build validate stats audit contamination"),
        ("zero-shot --model.na", "--model.name_or_path --model.name"),
        ("zero-shot --probes age_small,always", "age_small,always_never"),
        ("curve --models=dict", "dictionary-lm"),
        ("zero-shot --model.kind cau", "causal"),
        ("probes audit hypern", "hypernymy hypernymy_small"),
        ("probes build definitions --filtering.ag", "--filtering.agree"),
        ("fit --trainer.acc", "--trainer.accumulate_grad_batches --trainer.accelerator"),
        ("report fold", "folder/"),
    ],
)
def test_the_tab_key_completes_words(line: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    program = tmp_path / "bin" / "probelight"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    python_path = f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"
    path = f"{program.parent}:{os.environ['PATH']}"
    pressed = PRESSED.format(python=shlex.quote(sys.executable))
    done = subprocess.run(
        ["bash", "-c", pressed, "", f"probelight {line}"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "PYTHONPATH": python_path},
    )
    assert sorted(done.stdout.split()) == sorted(expected.split())
