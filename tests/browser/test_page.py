"""The page in a browser: who may read it, where it fits, and that its links lead somewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from probelight.reports.build import build_report, to_html
from probelight.reports.items import MOST_IN_PAGE, items_of
from probelight.results.load import RunSet
from tests.fixtures.results import write_run, zero_shot_rows

pytestmark = pytest.mark.browser
DESKTOP, PHONE = 1300, 390
PAPER, ACROSS = 688, 1016  # CSS pixels; A4 without its margins, upright and across
OVERFLOW = """() => [...document.querySelectorAll('body *')].filter(element => {
    if (element.closest('.scroll, .plot, .skip')) return false;
    const box = element.getBoundingClientRect();
    return box.width && box.right > document.documentElement.clientWidth + 1;
}).map(element => element.outerHTML.slice(0, 120))"""
WIDE_TABLES = """() => [...document.querySelectorAll('table')]
    .filter(table => table.getBoundingClientRect().right > document.body.clientWidth + 1)
    .map(table => table.getAttribute('aria-labelledby'))"""
DANGLING = """() => [...document.querySelectorAll('a[href^="#"]')]
    .map(link => link.getAttribute('href').slice(1))
    .filter(name => !name.startsWith('items?') && !document.getElementById(name))"""


@pytest.fixture
def addresses(demo_folder: Path, answered: RunSet, tmp_path: Path) -> list[str]:
    """A page of zero-shot runs, curves and inoculations, and one with single items."""
    assert answered.folder is not None
    paths = [build_report(demo_folder, tmp_path / "demo"), build_report(answered.folder)]
    return [path.as_uri() for path in paths]


@pytest.fixture
def opened(browser: Any) -> Iterator[Any]:
    contexts: list[Any] = []

    def act(address: str, width: int, **options: Any) -> Any:
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, **options))
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: pytest.fail(str(error)))
        page.on("console", lambda line: line.type == "error" and pytest.fail(line.text))
        page.on("request", lambda r: r.url.startswith("file:") or pytest.fail(r.url))
        page.goto(address)
        return page

    yield act
    for context in contexts:
        context.close()


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(
    addresses: list[str], opened: Any, axe: str, scheme: str, width: int
) -> None:
    for address in addresses:
        page = opened(address, width, color_scheme=scheme)
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        page.evaluate(axe)
        violations = page.evaluate("axe.run()")["violations"]
        assert [
            (v["id"], v["impact"], [node["html"][:160] for node in v["nodes"][:3]])
            for v in violations
            if v["impact"] in ("serious", "critical")
        ] == []


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_nothing_is_wider_than_the_screen(addresses: list[str], opened: Any, width: int) -> None:
    for address in addresses:
        page = opened(address, width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(OVERFLOW) == []


def test_on_paper_tables_are_whole_and_what_is_folded_is_there(
    addresses: list[str], opened: Any
) -> None:
    for address in addresses:
        page = opened(address, PAPER)
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate(WIDE_TABLES) == []
        assert page.locator("details.long:not([open])").count() == 0


def test_a_table_of_many_models_is_whole_on_a_page_across(tmp_path: Path, opened: Any) -> None:
    for number in range(5):
        rows = zero_shot_rows("a_probe", 5, 10, 2, model=f"model-of-a-long-name-{number}")
        write_run(tmp_path, str(number), rows)
    page = opened(build_report(tmp_path).as_uri(), ACROSS)
    page.emulate_media(media="print")
    assert page.locator(".across #table-zero_shot").count() == 1
    assert page.locator(".across").evaluate("one => getComputedStyle(one).page") == "across"
    assert page.evaluate(WIDE_TABLES) == []


def test_links_lead_somewhere_and_open_what_is_folded(addresses: list[str], opened: Any) -> None:
    for address in addresses:
        page = opened(address, DESKTOP)
        assert page.evaluate(DANGLING) == []
        run = page.locator("[id^=run-]").first.get_attribute("id")
        page.goto(f"{address}#{run}")
        page.wait_for_function("name => document.getElementById(name).checkVisibility()", arg=run)


@pytest.mark.parametrize("most_in_page", [MOST_IN_PAGE, 0])
def test_what_got_into_the_page_may_not_act(
    answered: RunSet, tmp_path: Path, browser: Any, most_in_page: int
) -> None:
    items = items_of(answered, most_in_page)
    html = to_html(answered, [], items)
    slipped_in = (
        "<script>window.ran = 1</script><img src=x onerror='window.ran = 1'>"
        "<script src='https://example.org/x.js'></script><base href='https://example.org/'>"
        "<link rel=stylesheet href='https://example.org/x.css'><iframe src='other.html'></iframe>"
    )
    path = tmp_path / "report.html"
    path.write_text(html.replace('<main id="main">', f'<main id="main">{slipped_in}'), "utf-8")
    page, refused, urls = browser.new_page(), [], []
    page.on("console", lambda line: refused.append(line.text) if line.type == "error" else None)
    page.on("requestfinished", lambda request: urls.append(request.url))
    page.goto(path.as_uri())
    assert page.evaluate("window.ran") is None
    assert page.evaluate("document.baseURI") == path.as_uri()
    fetched = "fetch('https://example.org').then(() => 'sent', (error) => error.name)"
    assert page.evaluate(fetched) == "TypeError"
    assert urls == [path.as_uri()]
    for rule in ("script-src", "img-src", "style-src", "default-src", "base-uri"):
        assert any(f'"{rule} ' in line for line in refused), rule
    page.close()
