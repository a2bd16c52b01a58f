"""The page's first screen in a browser: what it holds, where it scrolls, and where it leads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probelight.reports.build import build_report
from tests.fixtures.items import write_lines
from tests.fixtures.results import write_run, zero_shot_rows

pytestmark = pytest.mark.browser
ITEM: dict[str, Any] = {"set": "p", "id": "a&b", "position": 1, "question": "What is <b>it</b>?"}
ITEM |= {"choices": ["this", "that"], "scores": [2.0, 1.0], "prediction": 0, "tied": 1}
ITEM |= {"answer": 0, "correct": 1.0}
BOTTOM = "selector => document.querySelector(selector).getBoundingClientRect().bottom"


def test_the_first_screen_holds_the_grid(browser: Any, demo_folder: Path) -> None:
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    page.goto(build_report(demo_folder).as_uri())
    assert page.evaluate(BOTTOM, "#table-verdicts") < 900
    page.close()


def test_an_example_leads_to_its_item(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path, "a", zero_shot_rows("p", 40, 100, 2))
    write_lines(run, [ITEM, {**ITEM, "position": 2}])
    page = browser.new_page()
    page.goto(build_report(tmp_path).as_uri())
    assert page.locator("#overview td.example").inner_text().startswith("What is <b>it</b>?")
    page.locator("#overview td.example a").click()
    page.locator("#items [role=status]", has_text="1 of 2").wait_for()  # both are there at first
    assert page.locator("#items .item").count() == 1
    page.close()


def test_a_long_grid_scrolls_in_itself_and_its_heads_stay(browser: Any, tmp_path: Path) -> None:
    for skill in range(12):
        for model in range(12):
            rows = zero_shot_rows(f"skill_{skill}", 40, 100, 2, model=f"model-{model}")
            write_run(tmp_path, f"{skill}-{model}", rows)
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(build_report(tmp_path).as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.locator("#overview .scroll").evaluate("grid => grid.scrollTo(600, 400)")
    head, skill = (
        page.locator(f"#overview {selector}").first.bounding_box()
        for selector in ("thead .first", "tbody:nth-of-type(6) th.first")
    )
    assert head["x"] == pytest.approx(skill["x"], abs=1)
    grid = page.locator("#overview .scroll").bounding_box()
    assert head["y"] == pytest.approx(grid["y"], abs=1)
    assert grid["height"] < 844
    page.close()
