"""Words of anybody's making in every page that is served; `report/test_injection.py` has those that are written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from annotate.making import FOUND, Browser, Project, project
from annotate.test_app import concrete, routes
from partly.annotate import dashboard
from partly.annotate.question_selection import QuestionDraft
from partly.annotate.trainer_supervisor import TrainerStatus
from partly.items import texts
from report.test_injection import HARMLESS, PAYLOADS, Words, elements, skeleton

TEMPLATES = Path(__file__).parents[2] / "src" / "partly" / "annotate" / "templates"


GAIN = {"random": 40, "chosen": 80, "saved": 0.5, "low": 0.3, "high": 0.6}
NAMES = {"/log-in": "sign_in", "/renew": "reset_password"}  # path -> template


def asked_about(folder: Path, words: Words) -> Project:
    """Names of labels, ids, texts and people; those who disagree, models that fill in and doubt, and their queries."""
    folder.mkdir()
    ids = [f"{word} {i}" for i, word in enumerate(words)]
    made = project(folder, names=words, ids=ids, items=texts(list(words)))
    for number, word in enumerate(words):
        for value in (0, 1):
            made.ledger.append([ids[number]], [word], [value], author=f"{word} {value}")
        made.ledger.append(ids[:2], [word] * 2, [1, 0], kind="model", author=word, run=word, note=f"{word} {number}")
        made.person(word)
    doubts = [{"item": word, "label": word, "given": word, "chance": 0.1} for word in words]
    found = {
        "doubts": doubts,
        "worth": GAIN | {"words": words[5]},
    }
    for word in words:
        made.queue.pose(FOUND | {"query": word, "found": json.dumps(found)}, [QuestionDraft(3, 4, True, 0.5, 0.7)])
    return made


def pages(made: Project, words: Words) -> Iterator[tuple[str, str]]:
    """Every page there is, and those that refuse: path and HTML. A new one is asked for without anybody thinking of
    it."""
    context = made.context(has_accounts=True, trainer_status=lambda: TrainerStatus(words[2], words[2]))
    context.title = words[0]
    person = made.person(words[1]).id
    inside = Browser(context, made.people.sign_in_by_link(made.people.create_start_token(person)))
    yield "/start", inside.get("/start", params={"token": made.people.create_start_token(person)}).text
    paths = [concrete(path) for method, path in routes(context) if method == "GET"]
    none = [f"/{kind}/{quote(word, safe='')}" for word in words for kind in ("export", "static", "no such page")]
    for path in [*paths, *none]:
        answer = inside.get(path, params={"token": words[0]})
        if answer.headers.get("content-type", "").startswith("text/html"):
            yield path if answer.status_code == 200 else "message", answer.text


def test_pages(tmp_path: Path) -> None:
    usual: dict[str, list[Any]] = {}
    for path, html in pages(asked_about(tmp_path / "good", HARMLESS), HARMLESS):
        usual.setdefault(path, []).append(skeleton(html))
    templates = {path.stem for path in TEMPLATES.glob("*.html")} - {"base", "questions"} | {"label", "item"}
    assert {NAMES.get(path, path.strip("/")) for path in usual} == templates
    for path, html in pages(asked_about(tmp_path / "bad", PAYLOADS), PAYLOADS):
        assert skeleton(html) in usual[path], path
        for one in elements(html):
            assert not [name for name in one.attrib if name.startswith("on")], path
            addresses = [value for name, value in one.attrib.items() if name in ("href", "src")]
            assert all(value.startswith("/") and not value.startswith("//") for value in addresses), path


def test_all_of_the_overview_is_there(tmp_path: Path) -> None:
    """The test above says something only of what is shown."""
    made = asked_about(tmp_path / "one", PAYLOADS)
    found = dashboard.overview_data(made.context(), made.person(PAYLOADS[1]))
    for part in ("labels", "suspects", "disagreements", "audits", "rounds"):
        assert len(found[part]) >= len(PAYLOADS), part
    assert found["gain"].startswith("Selection saves 50 %")  # from numbers; stored text is not shown
