"""The whole loop by keyboard alone in a real browser, wide and on a phone. Skipped where there is none."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn

from annotate.making import ABOVE, Project, pose, project
from partly.annotate.app import make_app
from partly.annotate.security_middleware import local_address
from partly.errors import DataError
from partly.items import image_array, texts
from partly.labels.guidelines import Guideline
from partly.ledger import Ledger

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

ANIMAL, CAT, DOG, BOAT = range(4)
NASTY = "<img src=x onerror=\"document.title='ran'\"><script>document.title='ran'</script>"
PATIENCE = 60_000  # milliseconds; the machine may be busy


@contextmanager
def served(made: Project, **how: Any) -> Iterator[str]:
    """The pages on a free port; their address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        context = made.context(**how)
        context.port = listening.getsockname()[1]
        context.address = local_address(context.port)
        server = uvicorn.Server(uvicorn.Config(make_app(context), log_level="error", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{context.port}"
        finally:
            server.should_exit = True
            thread.join(30)


def opened(chromium: Any, made: Project, address: str, name: str = "anna", **how: Any) -> Any:
    """A page of somebody who has come in by the printed address; what goes wrong in it is kept."""
    context = chromium.new_context(**how)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.wrong = []
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    page.on("console", lambda said: page.wrong.append(said.text) if said.type == "error" else None)
    token = made.people.create_start_token(made.person(name).id)
    page.goto(f"{address}/start?token={token}")
    page.wait_for_url("**/label")
    return page


# Waiting by locators: the policy of the pages lets no text be run as script, not even that of a test.


def ready(page: Any, count: int) -> None:
    playwright.expect(page.locator(".question")).to_have_count(count, timeout=PATIENCE)


def saved(page: Any, count: int) -> None:
    playwright.expect(page.locator(".question[data-saved]")).to_have_count(count, timeout=PATIENCE)


def told(page: Any, words: str, where: str = "#said") -> None:
    playwright.expect(page.locator(where)).to_contain_text(words, timeout=PATIENCE)


def current(page: Any) -> str:
    return str(page.locator(".question[aria-current] figcaption").inner_text())


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (400, "dark")])
def test_the_whole_loop_by_keyboard(tmp_path: Path, chromium: Any, width: int, scheme: str) -> None:
    rng = np.random.default_rng(0)
    items = image_array(rng.integers(0, 255, (12, 20, 20, 3)).astype(np.uint8))
    made = project(tmp_path, hierarchy=ABOVE, items=items)
    pose(made, [(i, BOAT) for i in range(5)])
    how = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    with served(made) as address:
        page = opened(chromium, made, address, **how)
        press = page.keyboard.press
        ready(page, 5)
        assert page.locator("h1").inner_text() == "boat?"
        assert current(page) == "item 0"
        press("y")
        press("n")
        press("?")
        saved(page, 3)
        assert current(page) == "item 3"
        press("u")  # takes the third back, and stands there
        told(page, "Undone.")
        assert current(page) == "item 2"
        press("ArrowRight")
        press("s")
        press("ArrowLeft")
        press("N")  # all that is left
        saved(page, 4)
        assert page.locator("#next").is_visible()
        item = "item {}".format
        expected = {(item(0), "boat"): 1, (item(1), "boat"): -1, (item(2), "boat"): -1, (item(4), "boat"): -1}
        assert made.known() == expected  # item 3 was skipped
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        press("Enter")
        told(page, "No questions right now", "h1")
        pose(made, [(7, CAT), (7, BOAT), (8, CAT)])  # a new round comes in without a reload
        ready(page, 2)
        page.goto(f"{address}/item")
        ready(page, 2)
        assert page.locator(".question h2").all_inner_texts() == ["cat", "boat"]
        press("y")
        told(page, "animal: yes")
        assert made.known()[item(7), "animal"] == 1  # implied, and taken back along with it
        press("u")
        told(page, "Undone.")
        assert (item(7), "animal") not in made.known()
        assert page.wrong == []
        page.context.close()


def test_on_a_phone_the_bar_covers_no_question(tmp_path: Path, chromium: Any) -> None:
    made = project(tmp_path)
    pose(made, [(i, BOAT) for i in range(8)])
    with served(made) as address:
        page = opened(chromium, made, address, viewport={"width": 400, "height": 500}, reduced_motion="reduce")
        ready(page, 8)
        for _ in range(3):
            page.keyboard.press("ArrowDown")
            card, bar = (page.locator(one).bounding_box() for one in (".question[aria-current]", "#questions .bar"))
            assert card["y"] + card["height"] <= bar["y"] + 1
        page.context.close()


def test_nobody_is_shown_what_the_model_thinks_unless_they_ask(tmp_path: Path, chromium: Any) -> None:
    made = project(tmp_path)
    pose(made, [(0, BOAT), (1, BOAT)])
    with served(made) as address:
        page = opened(chromium, made, address)
        ready(page, 2)
        assert "Model" not in page.locator("#cards").inner_text()
        page.keyboard.press("y")
        saved(page, 1)
        assert "70 % yes" in page.locator(".question").first.inner_text()
        page.locator("summary").click()
        page.locator("#suggest").check()
        ready(page, 1)
        assert "70 % yes" in page.locator("#cards").inner_text()
        page.context.close()


def test_yes_to_all_is_confirmed_and_no_to_all_is_not(tmp_path: Path, chromium: Any) -> None:
    made = project(tmp_path)
    pose(made, [(i, BOAT) for i in range(5)])
    with served(made) as address:
        page = opened(chromium, made, address)
        ready(page, 5)
        page.keyboard.press("Y")
        told(page, "Answer yes to all 5 remaining questions?", "dialog")
        page.keyboard.press("n")  # goes to nobody behind the dialog
        page.keyboard.press("Escape")
        playwright.expect(page.locator("dialog")).to_have_count(0)
        assert page.locator(".question[data-value]").count() == 0
        page.keyboard.press("n")
        saved(page, 1)
        page.locator("#all-yes").click()
        page.get_by_role("button", name="Cancel").click()
        assert page.locator(".question[data-value]").count() == 1
        page.locator("#all-yes").click()
        page.get_by_role("button", name="Yes to all 4").click()
        saved(page, 5)
        assert sorted(made.known().values()) == [-1, 1, 1, 1, 1]
        assert page.wrong == []
        page.context.close()


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (400, "dark")])
def test_guidelines_and_zoom(tmp_path: Path, chromium: Any, width: int, scheme: str) -> None:
    rng = np.random.default_rng(0)
    made = project(tmp_path, items=image_array(rng.integers(0, 255, (12, 80, 80, 3)).astype(np.uint8)))
    pose(made, [(0, BOAT), (1, BOAT), (0, CAT)])
    guidelines = {"boat": Guideline(f"Floats. {NASTY}", ("a canoe",), ("a car",))}
    with served(made, guidelines=guidelines) as address:
        how = {"viewport": {"width": width, "height": 700}, "color_scheme": scheme}
        page = opened(chromium, made, address, **how)
        ready(page, 2)
        told(page, f"Floats. {NASTY}", "#whole .guideline")
        told(page, "a canoe", ".guideline")
        page.keyboard.press("z")
        frame = page.locator("dialog .frame")
        frame.wait_for()
        wide = frame.locator("img").bounding_box()["width"]
        page.keyboard.press("+")
        page.keyboard.press("y")  # no answer from within
        told(page, "150 %", "dialog output")
        assert frame.locator("img").bounding_box()["width"] == pytest.approx(1.5 * wide, rel=0.05)
        page.get_by_role("button", name="Zoom out").click()
        told(page, "100 %", "dialog output")
        page.get_by_role("button", name="Close").click()
        playwright.expect(page.locator("dialog")).to_have_count(0)
        page.get_by_role("button", name="Zoom: item 1").click()
        page.locator("dialog[aria-label='Item item 1']").wait_for()
        page.keyboard.press("Escape")
        assert made.known() == {}
        page.goto(f"{address}/item")
        ready(page, 2)
        assert [one.count() for one in (page.locator(".guideline"), page.locator("h2"))] == [1, 2]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert "ran" not in page.title()
        assert page.wrong == []
        page.context.close()


def test_an_admin_assigns_labels_and_decides(tmp_path: Path, chromium: Any) -> None:
    made = project(tmp_path, items=texts([f"text {i}" for i in range(12)]))
    made.queue.votes = 2
    pose(made, [(0, BOAT), (1, BOAT), (0, CAT)])
    for name, value in (("bela", "yes"), ("carl", "no")):
        for one in made.queue.lease(made.person(name), "label", 2):
            made.queue.answer(made.person(name), one.id, value, 1.0, "label")
    with served(made, has_accounts=True, guidelines={"boat": Guideline("Floats.")}) as address:
        page = opened(chromium, made, address)
        page.get_by_role("link", name="Disagreements").click()
        told(page, "Disagreements left: 2", "#left")
        ready(page, 2)
        first = page.locator(".question").first
        for words in ("text 0", "Floats.", "bela", "carl", "yes", "no"):
            assert words in first.inner_text()
        first.get_by_role("button", name="No: boat, item 0", exact=True).click()
        told(page, "Decided: boat is no for item 0.")
        told(page, "Disagreements left: 1", "#left")
        assert made.known()["item 0", "boat"] == -1
        page.get_by_role("button", name="Undo last decision").click()
        told(page, "Disagreements left: 2", "#left")
        page.get_by_role("button", name="Yes: boat, item 0", exact=True).click()
        page.get_by_role("button", name="Cannot tell: boat, item 1", exact=True).click()
        told(page, "No disagreements", "#left")
        assert made.known() == {("item 0", "boat"): 1}
        page.get_by_role("link", name="People").click()
        section = page.locator("details").filter(has_text="bela")
        section.get_by_text("bela: all labels").click()
        section.get_by_label("Labels: bela").fill("boat\ncta")
        section.get_by_role("button", name="Assign").click()
        told(page, "There is no label 'cta'. Did you mean 'cat'?", ".error:not(:empty)")
        section.get_by_label("Labels: bela").fill("boat\n\n dog ")
        section.get_by_role("button", name="Assign").click()
        section.get_by_text("bela: 2 of 4 labels").wait_for()
        assert made.queue.lease(made.person("bela"), "label", 5) == []  # cat is left
        assert [one.label for one in made.queue.lease(made.person("anna"), "label", 5)] == ["cat"]
        assert [one for one in page.wrong if "422" not in one] == []
        page.context.close()


def test_no_markup_of_the_data_runs(tmp_path: Path, chromium: Any) -> None:
    made = project(tmp_path, names=("boat", NASTY), ids=[NASTY, "b"], items=texts([NASTY, "plain"]))
    pose(made, [(0, 1), (1, 1)])
    with served(made) as address:
        page = opened(chromium, made, address)
        ready(page, 2)
        assert NASTY in page.locator("h1").inner_text()
        assert page.locator(".text").first.inner_text() == NASTY
        page.keyboard.press("y")
        saved(page, 1)
        page.goto(f"{address}/overview")
        assert NASTY in page.locator("main").inner_text()
        assert "ran" not in page.title()
        assert page.wrong == []
        page.context.close()


def test_three_people_at_once(tmp_path: Path, chromium: Any) -> None:
    """Each holds questions of his own, and every answer is there once, under its name."""
    made = project(tmp_path, count=36)
    pose(made, [(i, BOAT) for i in range(36)])
    with served(made) as address:
        pages = {name: opened(chromium, made, address, name) for name in ("anna", "bela", "carl")}
        for page in pages.values():
            ready(page, 12)
        for key in "ynyn":
            for page in pages.values():
                page.keyboard.press(key)
        for page in pages.values():
            page.keyboard.press("Y")
            page.get_by_role("button", name="Yes to all 8").click()
            saved(page, 12)
            assert page.wrong == []
            page.context.close()
    said = [one for i in range(36) for one in made.ledger.show(f"item {i}") if one.batch.kind == "person"]
    assert len(said) == 36
    assert {name: sum(one.batch.author == name for one in said) for name in pages} == dict.fromkeys(pages, 12)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(tmp_path: Path, chromium: Any, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is not installed").Axe()
    made = project(tmp_path)
    pose(made, [(0, BOAT), (1, BOAT), (2, BOAT)])
    with served(made, has_accounts=True) as address:
        page = opened(chromium, made, address, color_scheme=scheme)
        ready(page, 3)
        for key in "yn?":
            page.keyboard.press(key)
        saved(page, 3)
        page.locator("summary").click()
        found = [("/label", axe.run(page))]
        for path in ("/item", "/overview", "/people", "/disagreements"):
            page.goto(address + path)
            page.wait_for_load_state("networkidle")
            found.append((path, axe.run(page)))
        page.context.clear_cookies()
        for path in ("/log-in", "/join?token=x"):
            page.goto(address + path)
            found.append((path, axe.run(page)))
        wrong = [
            (path, one["id"], [node["html"] for node in one["nodes"]][:3])
            for path, result in found
            for one in result.response["violations"]
            if one["impact"] in ("serious", "critical")
        ]
        assert wrong == []
        page.context.close()


def test_a_server_that_is_away_for_a_while_costs_no_answer(tmp_path: Path, chromium: Any) -> None:
    made = project(tmp_path)
    pose(made, [(0, BOAT), (1, BOAT)])
    with served(made) as address:
        page = opened(chromium, made, address)
        ready(page, 2)
        page.context.set_offline(True)
        page.keyboard.press("y")
        told(page, "Not saved yet")
        assert made.known() == {}
        page.context.set_offline(False)
        saved(page, 1)
        assert made.known() == {("item 0", "boat"): 1}
        page.context.close()


def test_passwords_and_who_is_kept_out(tmp_path: Path, chromium: Any) -> None:
    """A wrong password is said on the page, another one is chosen, and who is blocked stays out."""
    made = project(tmp_path)
    made.people.join(made.people.invite("admin"), "Anna", "a long password")
    made.people.join(made.people.invite("annotator"), "Bela", "a long password")
    with served(made, has_accounts=True) as address:

        def logs_in(name: str, password: str) -> Any:
            page = chromium.new_context(viewport={"width": 400, "height": 800}).new_page()
            page.set_default_timeout(PATIENCE)
            page.goto(f"{address}/log-in")
            page.get_by_label("Name").fill(name)
            page.get_by_label("Password").fill(password)
            page.keyboard.press("Enter")
            return page

        bela = logs_in("Bela", "not this one")
        told(bela, "The name or the password is wrong.", "form .error")
        bela.get_by_label("Password").fill("a long password")
        bela.keyboard.press("Enter")
        bela.wait_for_url("**/label")
        bela.get_by_role("link", name="Bela").click()
        bela.wait_for_url("**/account")
        bela.get_by_label("Current password").fill("not this one")
        bela.get_by_label("New password").fill("another password")
        bela.keyboard.press("Enter")
        told(bela, "The name or the password is wrong.", "form .error")
        bela.get_by_label("Current password").fill("a long password")
        bela.keyboard.press("Enter")
        bela.wait_for_url("**/label")

        anna = logs_in("Anna", "a long password")
        anna.wait_for_url("**/label")
        anna.goto(f"{address}/people")
        anna.get_by_role("button", name="Reset password: Bela").click()
        playwright.expect(anna.get_by_label("Link", exact=True)).not_to_have_value("", timeout=PATIENCE)
        link = anna.get_by_label("Link", exact=True).input_value()
        anna.get_by_role("button", name="Block: Bela").click()
        anna.get_by_role("button", name="Unblock: Bela").wait_for()
        bela = bela.context.new_page()  # the open page goes to the sign-in page by itself, at any time
        bela.set_default_timeout(PATIENCE)
        bela.goto(f"{address}/label")
        bela.wait_for_url("**/log-in")
        bela.goto(link)
        bela.get_by_label("New password").fill("a third password")
        bela.keyboard.press("Enter")
        told(bela, "revoked", "form .error")  # a block voids what is on its way
        anna.get_by_role("button", name="Unblock: Bela").click()
        anna.get_by_role("button", name="Block: Bela").wait_for()
        logs_in("Bela", "another password").wait_for_url("**/label")


def test_addresses_are_listed_and_revoked(tmp_path: Path, chromium: Any) -> None:
    made = project(tmp_path)
    with served(made, has_accounts=True) as address:
        page = opened(chromium, made, address)
        page.goto(f"{address}/people")
        page.get_by_role("button", name="Create link").click()
        playwright.expect(page.get_by_label("Link", exact=True)).not_to_have_value("", timeout=PATIENCE)
        link = page.get_by_label("Link", exact=True).input_value()
        page.reload()
        told(page, "Invitation: annotator", "#links")
        told(page, "anna", "#links")
        page.get_by_role("button", name="Revoke: Invitation: annotator").click()
        page.locator("#links").wait_for(state="detached")
        page.goto(link)
        page.get_by_label("Name").fill("Carl")
        page.get_by_label("Password").fill("a long password")
        page.keyboard.press("Enter")
        told(page, "revoked", "form .error")
        page.context.close()


def test_a_fault_of_the_server_costs_no_answer(tmp_path: Path, chromium: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page sends an answer, and what is taken back, again until it is acknowledged."""
    made = project(tmp_path)
    pose(made, [(0, BOAT), (1, BOAT)])
    broken = True
    append, undo = Ledger.append, Ledger.undo

    def faulty(job: Any) -> Any:
        def called(*given: Any, **how: Any) -> Any:
            if broken:
                raise DataError("the database is locked")
            return job(*given, **how)

        return called

    monkeypatch.setattr(Ledger, "append", faulty(append))
    monkeypatch.setattr(Ledger, "undo", faulty(undo))
    with served(made) as address:
        page = opened(chromium, made, address)
        ready(page, 2)
        page.keyboard.press("y")
        told(page, "Not saved yet")
        assert made.known() == {}
        broken = False
        saved(page, 1)
        assert made.known() == {("item 0", "boat"): 1}
        broken = True
        page.keyboard.press("u")
        told(page, "Not saved yet")
        broken = False
        told(page, "Undone.")
        assert made.known() == {}
        page.context.close()
