"""All pages and calls, asked by who may and by who may not."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markupsafe import escape
from PIL import Image
from sqlalchemy import inspect, select

from annotate.making import ABOVE, ORIGIN, Browser, Project, browser, pose, project
from partly.annotate import passwords, tables
from partly.annotate.accounts import csrf_token
from partly.annotate.app import make_app
from partly.images.worker import ImageLocation
from partly.items import ImageFiles, ImageSource, texts

NASTY = "</title><script>alert(1)</script><img src=x onerror=alert(2)>' OR 1=1; --"
SQL = [
    "' OR '1'='1",
    "1; DROP TABLE annotate_people; --",
    '" UNION SELECT secret FROM annotate_people --',
    "\x00",
    "%27",
]
OPEN = {"/static/{name}", "/start", "/log-in", "/join", "/renew", "/api/log-in", "/api/join", "/api/renew"}
SAID: dict[str, Any] = {"value": "yes", "seconds": 1.5, "view": "label"}


def routes(context: Any) -> list[tuple[str, str]]:
    """Method and path of each, those of routers that were taken in too."""
    found, waiting = [], list(make_app(context).app.app.routes)  # type: ignore[attr-defined]
    while waiting:
        route = waiting.pop()
        inside = getattr(route, "original_router", None)
        waiting += [] if inside is None else inside.routes
        found += [(method, route.path) for method in getattr(route, "methods", ()) if method != "HEAD"]
    return sorted(found)


def concrete(path: str) -> str:
    return path.replace("{item}", "0").replace("{name}", "labels.csv")


def sent(made: Project) -> int:
    """Statements of people in the ledger."""
    return sum(batch.count for batch in made.ledger.log() if batch.kind == "person")


def test_nobody_gets_anything_without_a_session(tmp_path: Path) -> None:
    """Every route there is, but for those of the door; a new one is asked without anybody thinking of it."""
    made = project(tmp_path)
    context = made.context(has_accounts=True)
    nobody = Browser(context)
    found = routes(context)
    assert {path for _, path in found} >= {"/label", "/overview", "/export/{name}", "/api/answer", "/picture/{item}"}
    for method, path in found:
        if path in OPEN:
            continue
        answer = nobody.get(concrete(path)) if method == "GET" else nobody.call(concrete(path), {})
        assert answer.status_code in (401, 303), (method, path)
        assert answer.headers.get("location", "/log-in") == "/log-in"
    assert nobody.get("/label").status_code == 303


def test_a_made_up_or_old_session_is_none(tmp_path: Path) -> None:
    made = project(tmp_path)
    one = browser(made)
    assert one.get("/label").status_code == 200
    for token in ("", "guess", "x" * 5000):
        assert Browser(made.context(), token).get("/label").status_code == 401
    made.people.sign_out(next(iter(one.cookies.values())))
    assert one.get("/label").status_code == 401


def test_a_replayed_start_is_refused(tmp_path: Path) -> None:
    made = project(tmp_path)
    token, context = made.people.create_start_token(made.person().id), made.context()
    first, second = Browser(context), Browser(context)
    answer = first.get("/start", params={"token": token})
    assert answer.status_code == 200
    cookie = answer.headers["set-cookie"].lower()
    assert all(part in cookie for part in ("httponly", "samesite=strict", "path=/"))
    assert "secure" not in cookie.replace("samesite", "")
    assert first.get("/label").status_code == 200
    assert second.get("/start", params={"token": token}).status_code == 403
    assert second.get("/label").status_code == 401


def test_csrf(tmp_path: Path) -> None:
    """A page of another context has the cookie sent along, at worst; what our pages know it does not."""
    made = project(tmp_path)
    pose(made, [(0, 3)])
    one, other = browser(made), browser(made, "bela")
    asked = {"view": "label", "count": 1}
    for page in ("NONE", "", "guess", other.page):
        assert one.call("/api/questions", asked, x_partly_page=page).status_code == 403
    assert one.call("/api/questions", asked, origin="http://evil.example").status_code == 403
    assert one.call("/api/questions", asked, origin="NONE").status_code == 403
    assert one.call("/api/questions", asked, host="evil.example").status_code == 400
    assert one.post("/api/questions", data={"view": "label"}, headers={"origin": ORIGIN}).status_code == 415
    assert one.call("/api/questions", asked).status_code == 200


def test_the_loop_by_calls(tmp_path: Path) -> None:
    made = project(tmp_path, hierarchy=ABOVE)
    pose(made, [(0, 1), (1, 1)])
    one = browser(made)
    told = one.call("/api/questions", {"view": "label", "count": 5}).json()
    assert [(q["label"], q["name"], q["seen"]["kind"]) for q in told["questions"]] == [
        ("cat", f"item {i}", "row") for i in (0, 1)
    ]
    assert "probability" not in told["questions"][0]  # no anchoring
    assert "random" not in json.dumps(told)  # nor which arm it is of
    shown = one.call("/api/questions", {"view": "label", "count": 5, "suggest": True}).json()
    assert shown["questions"][0]["probability"] == 0.7
    number = told["questions"][0]["id"]
    answer = one.call("/api/answer", SAID | {"question": number}).json()
    assert answer["implied"] == {"animal": "yes"}
    assert answer["probability"] == 0.7
    assert (answer["answered"], answer["open"]) == (1, 1)
    assert one.call("/api/undo", {}).status_code == 422  # which answer? The last one may be another one by now
    for _ in range(2):
        assert one.call("/api/undo", {"answer": answer["batch"]}).json()["question"]["id"] == number
    assert one.call("/api/skip", {"question": number}).json() == {}
    assert made.known() == {}
    assert one.get("/api/standing").json()["open"] == 2


def test_the_lease_of_another_is_refused(tmp_path: Path) -> None:
    made = project(tmp_path)
    pose(made, [(0, 1)])
    one, other = browser(made), browser(made, "bela", "annotator", has_accounts=True)
    number = one.call("/api/questions", {"view": "label", "count": 1}).json()["questions"][0]["id"]
    assert other.call("/api/answer", SAID | {"question": number}).status_code == 409
    assert sent(made) == 0


def test_one_person_without_accounts_decides_against_a_language_model(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.ledger.append(["item 0"], ["boat"], [0], kind="model", author="<qwen>", run="language-model x")
    pose(made, [(0, 3)])  # boat
    one = browser(made)
    number = one.call("/api/questions", {"view": "label", "count": 1}).json()["questions"][0]["id"]
    assert one.call("/api/answer", SAID | {"question": number}).status_code == 200
    assert one.get("/disagreements").status_code == 200
    page = one.get("/overview").text
    assert 'href="/disagreements"' in page
    assert 'href="/people"' not in page
    assert "<bdi>&lt;qwen&gt;</bdi>, <bdi>language-model x</bdi>" in page
    (found,) = one.call("/api/disagreements", {}).json()["disagreements"]
    assert found["votes"] == [["anna", "yes"], ["model <qwen>", "no"]]


def test_admin_pages_are_for_admins(tmp_path: Path) -> None:
    made = project(tmp_path)
    other = browser(made, "bela", "annotator", has_accounts=True)
    assert other.get("/overview").status_code == 200
    for path in ("/people", "/export/labels.csv"):
        assert other.get(path).status_code == 403
    for path, given in (
        ("/api/invite", {"role": "admin"}),
        ("/api/import", []),
        ("/api/block", {"person": 1}),
        ("/api/unblock", {"person": 1}),
        ("/api/renewal", {"person": 1}),
        ("/api/revoke", {"link": "0" * 64}),
    ):
        assert other.call(path, given).status_code == 403
    one = browser(made, has_accounts=True)
    assert one.get("/people").status_code == 200
    assert one.call("/api/invite", {"role": "root"}).status_code == 422
    path = one.call("/api/invite", {"role": "annotator"}).json()["path"]
    new = Browser(made.context(has_accounts=True))
    assert new.get(path).status_code == 200
    token = path.partition("=")[2]
    joined = new.call("/api/join", {"token": token, "name": "Carl", "password": "a long password"})
    assert joined.status_code == 200
    assert new.get("/label").status_code == 200
    again = {"token": token, "name": "Dora", "password": "a long password"}
    assert Browser(made.context(has_accounts=True)).call("/api/join", again).status_code == 403


def test_without_accounts_nobody_joins_or_logs_in(tmp_path: Path) -> None:
    made = project(tmp_path)
    nobody = Browser(made.context())
    assert nobody.get("/log-in").status_code == 404
    assert nobody.call("/api/log-in", {"name": "anna", "password": ""}).status_code == 404


def test_cookies_of_a_public_address_are_secure(tmp_path: Path) -> None:
    from partly.annotate.security_middleware import public_address

    made = project(tmp_path)
    context = made.context(has_accounts=True)
    context.address = public_address("https://labels.example.org")
    one = Browser(context)
    one.base_url = "https://labels.example.org"  # type: ignore[assignment]
    given = {"token": made.people.invite("admin"), "name": "Anna", "password": "a long password"}
    cookie = one.call("/api/join", given, origin="https://labels.example.org").headers["set-cookie"]
    assert cookie.startswith("__Host-partly=")
    assert "secure" in cookie.lower()


def test_sql_in_every_parameter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "N", 1 << 4)  # the strength of passwords is tested elsewhere
    monkeypatch.setattr(passwords, "DUMMY_HASH", f"scrypt$16$8$3${'00' * 16}${'00' * 32}")
    made = project(tmp_path)
    pose(made, [(0, 1)])
    one = browser(made, has_accounts=True)
    number = one.call("/api/questions", {"view": "label", "count": 1}).json()["questions"][0]["id"]
    with made.ledger.store.reading() as connection:
        before = sorted(inspect(connection).get_table_names())
    for words in (*SQL, NASTY):
        refused_everywhere(one, number, words)
    with made.ledger.store.reading() as connection:
        assert sorted(inspect(connection).get_table_names()) == before
        assert connection.scalar(select(tables.questions.c.state)) == "open"
    assert sent(made) == 0


def refused_everywhere(one: Browser, number: int, words: str) -> None:
    wrong = [
        ("/api/questions", {"view": words, "count": 1}),
        ("/api/questions", {"view": "label", "count": words}),
        ("/api/answer", SAID | {"question": words}),
        ("/api/answer", SAID | {"question": number, "value": words}),
        ("/api/answer", SAID | {"question": number, "seconds": words}),
        ("/api/answer", SAID | {"question": number, "view": words}),
        ("/api/answer", SAID | {"question": number, "more": words}),
        ("/api/undo", {"answer": words}),
        ("/api/skip", {"question": words}),
        ("/api/invite", {"role": words}),
        ("/api/log-in", {"name": words, "password": words}),
        ("/api/join", {"token": words, "name": "Eve", "password": "a long password"}),
        ("/api/renew", {"token": words, "password": "a long password"}),
        ("/api/password", {"old": words, "new": "a long password"}),
        ("/api/block", {"person": words}),
        ("/api/unblock", {"person": words}),
        ("/api/renewal", {"person": words}),
        ("/api/revoke", {"link": words}),
    ]
    for path, given in wrong:
        answer = one.call(path, given)
        assert 400 <= answer.status_code < 500, (path, given)
        if path != "/api/invite":
            assert words not in answer.text  # what was sent is not given back: it may be a password
    for path in ("/picture/", "/export/", "/static/"):
        assert one.get(path + words.replace("\x00", "%00")).status_code in (404, 422)
    assert one.get("/start", params={"token": words}).status_code == 403


def test_markup_in_names_stays_text(tmp_path: Path) -> None:
    """Of labels, items, people and the data: escaped in pages, and in JSON only ever set as text."""
    made = project(tmp_path, names=("boat", NASTY), ids=[NASTY, "b"], items=texts([NASTY, "plain"]))
    pose(made, [(0, 1)])
    one = browser(made, "<b>anna</b>", has_accounts=True)
    one.app.app.app.state.context.title = NASTY  # type: ignore[attr-defined]
    told = one.call("/api/questions", {"view": "label", "count": 1})
    assert told.headers["content-type"] == "application/json"
    question = told.json()["questions"][0]
    assert (question["label"], question["name"], question["seen"]["text"]) == (NASTY, NASTY, NASTY)
    one.call("/api/answer", SAID | {"question": question["id"]})
    for path in ("/label", "/item", "/overview", "/people"):
        page = one.get(path).text
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "<b>anna" not in page
    assert f"<title>Overview · {escape(NASTY)}</title>" in one.get("/overview").text
    script = one.get("/static/page.js").text
    assert "innerHTML" not in script
    assert "outerHTML" not in script


def pictures(folder: Path, contents: list[bytes]) -> ImageFiles:
    places = []
    for i, content in enumerate(contents):
        (folder / f"{i}.jpg").write_bytes(content)
        places.append(ImageLocation(str(folder / f"{i}.jpg")))
    return ImageFiles(ImageSource(places, [f"{i}.jpg" for i in range(len(places))], str(folder)))


def png(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.arange(width * height * 3, dtype=np.uint8).reshape(height, width, 3)).save(file, "PNG")
    return file.getvalue()


def test_pictures_are_encoded_anew_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTLY_WORKERS", "0")
    secret = png(20, 10) + b"SECRET after the end"
    made = project(tmp_path, count=2, items=pictures(tmp_path, [secret, png(900, 300)]))
    one = browser(made)
    small, large = one.get("/picture/0"), one.get("/picture/1")
    assert (small.headers["content-type"], large.headers["content-type"]) == ("image/png", "image/jpeg")
    assert b"SECRET" not in small.content
    assert Image.open(io.BytesIO(small.content)).size == (20, 10)
    assert Image.open(io.BytesIO(large.content)).size == (640, 213)  # nothing is cut off
    assert small.headers["x-content-type-options"] == "nosniff"


def test_svg_and_html_are_no_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTLY_WORKERS", "0")
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    page = b"<!DOCTYPE html><script>alert(1)</script>"
    made = project(tmp_path, count=3, items=pictures(tmp_path, [svg, page, b"GIF89a<script>alert(1)</script>"]))
    one = browser(made)
    for item in range(3):
        answer = one.get(f"/picture/{item}")
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/json"
        assert str(tmp_path) not in answer.text  # where things lie is nobody's business


PATHS = [
    "../labels.db",
    "..%2flabels.db",
    "%2e%2e%2flabels.db",
    "..%252flabels.db",
    "%2fetc%2fpasswd",
    "/etc/passwd",
    "0/../../labels.db",
    "-1",
    "99",
    "1e3",
    "0.0",
    "link.jpg",
]


def test_no_path_leads_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "link.jpg").symlink_to("/etc/passwd")
    made = project(tmp_path, count=2)
    one = browser(made)
    for path in (door + path for door in ("/picture/", "/static/", "/export/") for path in PATHS):
        answer = one.get(path)
        assert answer.status_code in (404, 422), path
        assert b"root:" not in answer.content
        assert b"SQLite" not in answer.content


def test_oversized_and_broken_bodies(tmp_path: Path) -> None:
    one = browser(project(tmp_path))
    assert one.call("/api/questions", {"view": "label", "count": 1, "more": "x" * 70_000}).status_code == 413
    headers = {"origin": ORIGIN, "content-type": "application/json", "x-partly-page": one.page}
    for content in (b"", b"{", b"[" * 60_000, b"\xff\xfe", b'{"view": NaN}', b"null"):
        assert one.post("/api/questions", content=content, headers=headers).status_code in (400, 422)


@pytest.mark.filterwarnings("ignore:.*cannot hold labels")
def test_export_and_import(tmp_path: Path) -> None:
    z = np.zeros((12, 4), np.int8)
    z[0, 3], z[1, 3] = 1, -1
    made = project(tmp_path, z=z)
    one = browser(made)
    lines = one.get("/export/labels.csv").text.splitlines()
    assert lines[0].replace('"', "").split(",")[-4:] == ["animal", "cat", "dog", "boat"]
    assert lines[1].endswith(",1")
    assert lines[2].endswith(",0")
    assert one.get("/export/labels.parquet").content[:4] == b"PAR1"
    choices = {"from_name": "yes", "to_name": "item", "type": "choices", "value": {"choices": ["cat"]}}
    tasks = [{"data": {"item": "item 5"}, "annotations": [{"result": [choices], "was_cancelled": False}]}]
    assert one.call("/api/import", tasks).json() == {"statements": 1, "imported_before": 0}
    assert made.known()["item 5", "cat"] == 1
    batch = len(made.ledger.log())
    assert one.call("/api/import", tasks).json() == {"statements": 0, "imported_before": batch}
    assert len(made.ledger.log()) == batch
    assert one.call("/api/import?force=true", tasks).json() == {"statements": 1, "imported_before": 0}
    tasks[0]["data"] = {"item": "stranger"}
    assert "stranger" in one.call("/api/import", tasks).json()["error"]
    assert one.call("/api/import", {"no": "tasks"}).status_code == 422
    back = one.get("/export/label-studio.json").json()
    assert len(back) == 12


def test_the_overview_says_how_things_are(tmp_path: Path) -> None:
    made = project(tmp_path)
    pose(made, [(0, 1), (1, 1)])
    one = browser(made)
    for question in one.call("/api/questions", {"view": "label", "count": 2}).json()["questions"]:
        one.call("/api/answer", SAID | {"question": question["id"]})
    page = one.get("/overview").text
    assert "2 yes, 0 no, 0 cannot tell" in page
    assert "2 of 48 (4.2 %)" in page
    assert "by label</dt><dd>1.5</dd>" in page


def test_the_token_of_the_page_outlives_a_restart(tmp_path: Path) -> None:
    made = project(tmp_path)
    session = made.people.sign_in_by_link(made.people.create_start_token(made.person().id))
    assert csrf_token(session) in Browser(made.context(), session).get("/label").text
    assert Browser(made.context(), session).call("/api/questions", {"view": "label", "count": 1}).status_code == 200
