from __future__ import annotations

import re

import yaml

from probelight.io.package import version
from tests.fixtures.checkout import ROOT

CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
TEMPLATES = ROOT / ".github" / "ISSUE_TEMPLATE"


def test_the_citation_is_of_this_version_and_has_what_its_format_requires() -> None:
    assert CITATION["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(CITATION)
    assert CITATION["version"] == version().partition("+")[0]
    for work in (CITATION, *CITATION["references"]):
        assert all({"name"} <= set(a) or {"family-names"} <= set(a) for a in work["authors"])


def test_the_citation_names_the_papers_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Cite")[2]
    works = CITATION["references"]
    addresses = {
        f"https://doi.org/{work['doi']}" if "doi" in work else work["url"] for work in works
    }
    assert addresses == {*re.findall(r"\((https://(?:doi|arxiv)[^)]+)\)", readme)}
    readme = " ".join(readme.split())
    assert [work["title"] for work in works if work["title"] not in readme] == []


def test_issue_templates_ask_by_fields_that_their_format_knows() -> None:
    forms = sorted(path for path in TEMPLATES.glob("*.yml") if path.name != "config.yml")
    assert len(forms) == 2
    for path in forms:
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert {"name", "description", "body"} <= set(form)
        ids = [field["id"] for field in form["body"]]
        assert len(set(ids)) == len(ids)
        assert {field["type"] for field in form["body"]} <= {"textarea", "checkboxes"}
        assert all(field["attributes"]["label"] for field in form["body"])
