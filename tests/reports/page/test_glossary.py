from __future__ import annotations

from probelight.reports.page.glossary import GLOSSARY, linked, used


def test_a_heading_leads_to_its_words() -> None:
    assert linked("WS %") == (f'<a class="term" href="#term-ws" title="{_meaning("ws")}">WS</a> %')
    assert linked("zero-shot %").startswith('<a class="term" href="#term-zero-shot"')


def test_what_is_no_word_of_the_glossary_stays_text() -> None:
    assert linked("model <b> & k2") == "model &lt;b&gt; &amp; k2"
    assert linked("") == ""


def test_words_that_are_not_used_are_not_explained() -> None:
    found = [term.word for term in used(["MAX %", "The cost was 3.3 points.", "Kmax"])]
    assert found == ["MAX", "cost"]


def test_every_word_has_an_address_of_its_own() -> None:
    assert len({term.name for term in GLOSSARY}) == len(GLOSSARY)
    headings = [word for term in GLOSSARY for word in term.headings.split()]
    assert len(set(headings)) == len(headings)


def _meaning(name: str) -> str:
    return next(term.meaning for term in GLOSSARY if term.name == name)
