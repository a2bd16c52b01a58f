from __future__ import annotations

from pathlib import Path

import pytest

from probelight.reports.kit import published_files
from probelight.reports.kit.published import published_templates
from probelight.reports.kit.published_files import PublishedError


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("table,probe,model\n", "1: no column accuracy, question, template"),
        ("table,probe,model,template,question,accuracy\n", "no row is there"),
        ("table,probe,model,template,question,accuracy\n6,p,m\n", "2: 3 cells, the header 6"),
        ("table,probe,model,template,question,accuracy\n6,p,m,t,q,x\n", "accuracy is 'x'"),
        ("table,probe,model,template,question,accuracy\n6,p,m,t,q,120\n", "accuracy is '120'"),
        (
            "table,probe,model,template,question,accuracy\n6,p,m,t,q,\n",
            "accuracy is '', not a number",
        ),
        (
            "table,probe,model,template,question,accuracy\nT,p,m,t,q,5\n",
            "table is 'T', not a whole",
        ),
    ],
)
def test_damaged_files_are_named(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "talmor2020_templates.csv").write_text(text)
    monkeypatch.setattr(published_files, "PUBLISHED_DIR", tmp_path)
    with pytest.raises(PublishedError, match=said):
        published_templates.__wrapped__()
