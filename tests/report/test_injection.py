"""Words of anybody's making in every page that is written: they are read as text by a parser that reads as browsers do.

A page full of payloads must have, element for element and attribute for attribute, what the same page has that is full
of harmless words.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import html5lib
import numpy as np
import pytest
import yaml
from markdown_it import MarkdownIt
from rich.console import Console

from comparison.making import lines as result_lines
from partly import Classifier, engine, export
from partly.active import rounds_page
from partly.active.selection import Questions
from partly.cli import doctor, explain, printing
from partly.comparison import markdown, study
from partly.comparison import page as comparison
from partly.comparison.label_budget import Point, Study
from partly.comparison.live_view import LiveView as view_of_cells
from partly.doctor import run_checks
from partly.doctor.context import CheckContext
from partly.images import progress as showing
from partly.items import as_items, texts
from partly.labels import Labels
from partly.report import page
from partly.report.page import Examples, Report
from report.test_page import guesses, labels
from report.test_page import run as view

PAYLOADS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(2)",
    '" autofocus onfocus="alert(3)" x="',
    "javascript:alert(4)",
    "<svg/onload=alert(5)><animate onbegin=alert(5)>",
    "</title></style></script></textarea></svg><b>out</b>",
    "<!-- --!><![CDATA[ ]]><?php echo 6 ?>",
    "{{ 7 * 7 }}{% for x in y %}{# comment #}",
    "${7*7} $\\frac{ #{7*7} \\n",
    "&lt;b&gt;&#x3c;i&#x3e;&Tab;&",
    "\uff1cscript\uff1e\u202egpj.exe\u202c\u2066",
    "one\r\n\n<div>two\n---\n# three\n\x1b[2J\x1b]0;title\x07\u2028\x85",
    "=cmd|'/c calc'!A1",
    "[x](javascript:alert(8)) ![y](//evil.example/y)",
    "`code``` **b** __c__ | cell | ~~d~~ \\",
    '<iframe srcdoc="&lt;script&gt;alert(9)&lt;/script&gt;" src="data:text/html;base64,PHNjcmlwdD4=">',
    "<a href=https://evil.example>https://evil.example www.evil.example mail@evil.example</a>",
)
HARMLESS = tuple(f"word number {i}" for i in range(len(PAYLOADS)))
Words = tuple[str, ...]


def elements(html: str) -> list[Any]:
    """The elements and their attributes, as a browser makes them of a page."""
    return list(html5lib.parse(html, namespaceHTMLElements=False).iter())


def skeleton(html: str) -> list[tuple[str, list[str]]]:
    return [(str(one.tag), sorted(one.attrib)) for one in elements(html)]


def assert_text_stays_text(html: str, twin: str) -> None:
    assert skeleton(html) == skeleton(twin)
    for one in elements(html):
        for name, value in one.attrib.items():
            assert not name.startswith("on")
            if name in ("src", "href"):
                assert value.startswith(("data:image/", "#")), value
                if value.startswith("data:image/svg+xml"):
                    assert_harmless_picture(base64.b64decode(value.partition(",")[2]))


def assert_harmless_picture(svg: bytes) -> None:
    for one in ElementTree.fromstring(svg).iter():
        assert not one.tag.endswith(("script", "foreignObject", "animate", "}a"))
        assert not [name for name in one.attrib if name.startswith("on")]
        addresses = [value for name, value in one.attrib.items() if name.endswith("href")]
        assert all(address.startswith(("#", "data:image/png")) for address in addresses)


# ---------------------------------------------------------------- pages


def report_page(words: Words) -> str:
    """Names of labels, ids, texts, names of runs, the title, what a run saw and why, and a note."""
    observed, truth, few = labels(60, words, 0.5), labels(40, words, seed=1), labels(30, words, seed=2)
    ids = [f"{words[i % len(words)]} {i}" for i in range(30)]
    few = Labels.from_ternary(few.ternary(), names=words, ids=ids)
    runs = [view(words[i], observed, truth, 1.0 + i) for i in range(3)]
    runs[0] = replace(runs[0], reason=words[6], description=runs[0].description | {"started": words[0]})
    runs[2] = replace(runs[2], privilege=words[1])
    shown = tuple(guesses(few, skill, 5) for skill in (1.0, 2.0, 4.0))
    seen = texts([f"{words[i % len(words)]} {i}" for i in range(30)])
    return page.render(Report(words[0], observed, tuple(runs), truth, Examples(shown, few, few, seen), note=words[3]))


def comparison_page(words: Words) -> str:
    """Names of methods, data, heads, machines and settings, the title and a note."""
    scores = {words[i]: [0.4 + i / 50, 0.45 + i / 50] for i in range(len(words))}
    made = result_lines({"bce": [0.5, 0.6], **scores}, data=words[0], machine=words[1], head=words[2])
    for one in made:
        one["settings"] = {"weights": words[3]}
    return comparison.render(made, words[6], note=words[7])


def studied(words: Words) -> list[Study]:
    point = {0: 0.5, 1: 0.6}
    points = (Point("uniform", 0.5, 0.4, point), Point("dense", 0.5, 0.3, {0: 0.4, 1: 0.4}))
    return [Study(one, one[::-1], points, {0: 0.7, 1: 0.8}) for one in words]


def rounds(words: Words) -> str:
    """Names of labels, ids, queries, the title and what is said."""
    scores = [{"P@1": 0.5 + n / 10, "mAP": None} for n in range(2)]
    told = [{"round": n, "answers": n, "implied": n, "known": 4 + n, "scores": scores[n]} for n in range(2)]
    known = Labels.from_ternary(np.eye(len(words), dtype=int), names=words, ids=words)
    every = np.arange(len(words))
    asked = Questions(every, every, {"score": every / 99})
    return rounds_page.render(words[0], list(words), dict.fromkeys(words, told), known, asked)


@pytest.mark.parametrize(
    "made",
    [report_page, comparison_page, rounds, lambda words: study.render_html(studied(words), words[0])],
    ids=["report", "comparison", "rounds", "study"],
)
def test_pages(made: Callable[[Words], str]) -> None:
    assert_text_stays_text(made(PAYLOADS), made(HARMLESS))


# ---------------------------------------------------------------- Markdown, as the strictest reader of it makes a page


def read_markdown(text: str) -> str:
    """With tables, and HTML let through. Addresses become links elsewhere, so they must not stand there whole."""
    assert not re.search(r"https?://|www\.evil|mail@", text)
    return "<!doctype html>" + MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)


def assert_markdown_stays_text(text: str, twin: str) -> None:
    assert skeleton(read_markdown(text)) == skeleton(read_markdown(twin))


def test_the_card_of_a_model(tmp_path: Path) -> None:
    def card(words: Words) -> str:
        rng = np.random.default_rng(0)
        known = Labels.from_ternary(rng.choice([-1, 0, 1], size=(40, len(words))), names=words)
        # What a folder can be named, at its worst: all but a slash.
        folder = tmp_path / ("x" if words is HARMLESS else "`` `<b onclick=alert(1)>` [x](y)\n# z")
        model = Classifier("em", "linear", epochs=1, run_dir=folder, progress=False).fit(
            rng.normal(size=(40, 3)), known
        )
        model.fitted_.method.notes["reason"] = words[0]
        model.fitted_.config.head_settings["weights"] = words[15]
        export.model_card(
            model, tmp_path / "card.md", onnx="it.onnx" if words is HARMLESS else words[15], overwrite=True
        )
        return (tmp_path / "card.md").read_text("utf-8")

    made, twin = card(PAYLOADS), card(HARMLESS)
    parts, twins = made.split("---\n", 2), twin.split("---\n", 2)
    assert yaml.safe_load(parts[1]).keys() == yaml.safe_load(twins[1]).keys()
    assert_markdown_stays_text(parts[2], twins[2])


def test_tables_of_a_comparison_and_of_a_study() -> None:
    def tables(words: Words) -> str:
        scores = {word: [0.4 + i / 50, 0.45 + i / 50] for i, word in enumerate(words)}
        return markdown.render(result_lines({"bce": [0.5, 0.6], **scores}, data=words[0], head=words[4]))

    def answers(words: Words) -> str:
        saved: list[str] = []
        made = study.render_markdown(studied(words), 2, lambda name, svg: saved.append(name) or f"{len(saved)}.svg")  # type: ignore[func-returns-value]
        assert len(set(saved)) == len(words)
        return made

    assert_markdown_stays_text(tables(PAYLOADS), tables(HARMLESS))
    assert_markdown_stays_text(answers(PAYLOADS), answers(HARMLESS))


# ---------------------------------------------------------------- terminals

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def assert_says_nothing_to_a_terminal(text: str) -> None:
    """No name begins a line of its own, moves anything or changes the direction of reading."""
    assert not CONTROL.search(text)
    assert "\n# three" not in text


def test_what_is_said_of_labels() -> None:
    rng = np.random.default_rng(0)
    known = Labels.from_ternary(rng.choice([-1, 0, 1], size=(40, len(PAYLOADS))), names=PAYLOADS)
    assert_says_nothing_to_a_terminal(doctor.page(run_checks(CheckContext(known))))


def test_what_is_said_of_an_entry() -> None:
    rng = np.random.default_rng(0)
    ids = [f"{PAYLOADS[i % len(PAYLOADS)]} {i}" for i in range(40)]
    known = Labels.from_ternary(rng.choice([-1, 0, 1], size=(40, len(PAYLOADS))), names=PAYLOADS, ids=ids)
    x = rng.normal(size=(40, 3))
    model = Classifier("bce", "linear", epochs=1, progress=False).fit(x, known)
    assert_says_nothing_to_a_terminal(explain.page(engine.reasons(model.fitted_, as_items(x), known, 12, 12, 40)))


def test_tables_and_bars_take_names_as_they_are(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    row = {"mAP": 0.5, "CF1": 0.5, "OF1": 0.5, "exact_match": 0.5, "P@1": 0.5, "labels_counted": 1, "entries_known": 2}
    printing.print_scores({"[/b][red]x :cat: \x1b[2J": row})
    said = capsys.readouterr().out
    assert "[/b]" in said
    assert "\x1b[2J" not in said
    (made,) = result_lines({"bce[a=1]": [0.5]}, data="[/b]data")
    Console(width=99).print(view_of_cells(1, [made], enabled=False).build_table())
    said = capsys.readouterr().out
    assert "[/b]data" in said
    assert "bce[a=1]" in said
    drawn = io.StringIO()
    monkeypatch.setattr("sys.stderr", drawn)
    monkeypatch.setattr(drawn, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=drawn, force_terminal=True, width=99))
    assert len(list(showing.track_progress(range(300), 300, "[/b]data[red]"))) == 300
    assert "[/b]data[red]" in drawn.getvalue()
