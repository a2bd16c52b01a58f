from __future__ import annotations

from probelight.reports.page.glossary import glossary, linked, used


def test_a_heading_leads_to_its_words() -> None:
    assert linked("WS %") == (f'<a class="term" href="#term-ws" title="{_meaning("ws")}">WS</a> %')
    assert linked("zero-shot %").startswith('<a class="term" href="#term-zero-shot"')


def test_what_is_no_word_of_the_glossary_stays_text() -> None:
    assert linked("model <b> & k2") == "model &lt;b&gt; &amp; k2"
    assert linked("") == ""


def test_words_that_are_not_used_are_not_explained() -> None:
    assert list(used(["MAX %", "The cost was 3.3 points.", "Kmax"])) == ["max", "cost"]
    assert list(used(["its 95% interval"])) == ["interval"]


def test_a_heading_is_of_one_word() -> None:
    headings = [word for term in glossary().values() for word in term.headings]
    assert len(headings) > 20
    assert len(set(headings)) == len(headings)


def _meaning(name: str) -> str:
    return glossary()[name].meaning
