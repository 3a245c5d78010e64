"""The story of a team: files on disk, invited people who answer in a browser, an admin who decides, labels, a model."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from annotate.kinds import NAMES, ids_of, truth_of, write_kind
from annotate.running import SOURCE, running
from partly import Ledger

PATIENCE = 300_000  # milliseconds; the machine may be busy
PASSWORD = "a long password"
COUNT = 30
TRUTH = {
    (item, label): "yes" if value else "no"
    for item, row in zip(ids_of(COUNT), truth_of(COUNT), strict=True)
    for label, value in zip(NAMES, row, strict=True)
}
GUIDELINES = 'red = "The upper third is red."\n[blue]\ntext = "The lower third is blue."\nno = ["a green house"]\n'


def new_page(chromium: Any) -> Any:
    page = chromium.new_context(viewport={"width": 1100, "height": 800}).new_page()
    page.set_default_timeout(PATIENCE)
    return page


def join(chromium: Any, link: str, name: str) -> Any:
    page = new_page(chromium)
    page.goto(link)
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    page.wait_for_url("**/label")
    return page


def invite(admin: Any, address: str) -> str:
    """The address that lets one person in."""
    from playwright.sync_api import expect

    admin.goto(f"{address}/people")
    admin.get_by_role("button", name="Create link").click()
    expect(admin.locator("#invitation")).not_to_have_value("", timeout=PATIENCE)
    return str(admin.locator("#invitation").input_value())


def answer_screen(page: Any, wrong: int = 0) -> list[tuple[str, str]]:
    """Answer all questions of a screen by the truth, but the first few the other way round; which entries they were."""
    page.locator(".question").first.wait_for()
    label, cards = page.locator("#asked bdi").inner_text(), page.locator(".question").all()
    entries = [(card.locator("figcaption").inner_text(), label) for card in cards]
    for place, (card, entry) in enumerate(zip(cards, entries, strict=True)):
        right = TRUTH[entry] == "yes"
        card.locator(f"button[data-say={'yes' if right != (place < wrong) else 'no'}]").click()
    page.locator(f".question[data-saved] >> nth={len(cards) - 1}").wait_for()
    return entries


@pytest.fixture
def project_folder(tmp_path: Path) -> Path:
    write_kind(tmp_path, "pictures", COUNT, known=0.4)
    (tmp_path / "labels.toml").write_text(GUIDELINES)
    return tmp_path


def test_a_team_labels_pictures_and_trains_on_them(project_folder: Path, chromium: Any) -> None:
    words = ["photos", "--labels", "labels.csv", "--ledger", "labels.db", "--accounts", "--votes", "2", "-n", "9"]
    words += ["--every", "1000", "--repeat", "0", "--guidelines", "labels.toml"]
    with running(project_folder, *words) as pages:
        admin = join(chromium, pages.link, "Anna")
        bela = join(chromium, invite(admin, pages.address), "Bela")
        answered = answer_screen(bela)
        carl = join(chromium, invite(admin, pages.address), "Carl")
        assert answer_screen(carl, wrong=1)[: len(answered)] == answered  # asked the same, first of all
        admin.goto(f"{pages.address}/disagreements")
        item, label = answered[0]
        admin.get_by_role("button", name=f"{TRUTH[item, label].title()}: {label}, {item}", exact=True).click()
        admin.get_by_text(f"Decided: {label} is {TRUTH[item, label]} for {item}.").wait_for()
        admin.goto(f"{pages.address}/overview")
        with admin.expect_download() as download:
            admin.get_by_role("link", name="labels.csv").click()
        download.value.save_as(project_folder / "exported.csv")
        for page in (admin, bela, carl):
            page.context.close()
    exported = read_known(project_folder / "exported.csv")
    assert exported.items() <= TRUTH.items()
    assert set(answered) <= set(exported)
    labels = Ledger(project_folder / "labels.db").labels(policy="majority")
    assert len(exported) == int(labels.known_per_item().sum())
    trained = partly(project_folder, "train", "photos", "--labels", "labels.db?policy=majority", "--run", "run")
    assert trained.returncode == 0, trained.stderr
    scored = partly(project_folder, "predict", "run", "photos", "--out", "scores.csv")
    assert scored.returncode == 0, scored.stderr
    assert (project_folder / "scores.csv").read_text().count("\n") == COUNT + 1


def read_known(path: Path) -> dict[tuple[str, str], str]:
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    values = {"1": "yes", "0": "no"}
    return {(row["item"], name): values[row[name]] for row in rows for name in NAMES if row[name]}


def partly(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(filter(None, (SOURCE, os.environ.get("PYTHONPATH", ""))))
    command = [sys.executable, "-m", "partly", *words]
    env = os.environ | {"PYTHONPATH": paths}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
