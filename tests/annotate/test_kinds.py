"""The pages, the trainer and a browser together: tables, pictures and texts all reach the third round."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import partly
from annotate.kinds import KINDS, Kind, write_kind
from annotate.running import running
from partly.annotate.project import ProjectConfig, open_project
from partly.annotate.stats import read_snapshot
from partly.annotate.trainer import Trainer
from partly.cli.options import DataOptions
from partly.cli.query import query
from partly.items import PrecomputedFeatures

PATIENCE = 300  # seconds; the machine may be busy, and the trainer stands back


def round_on(page: Any) -> int:
    found = re.search(r"Round (\d+)", page.locator("#standing").inner_text())
    return 0 if found is None else int(found[1])


def answer_until(page: Any, round_number: int) -> None:
    """Answer what is on the screen, key after key and screen after screen, until this round is there."""
    end = time.monotonic() + PATIENCE
    while round_on(page) < round_number:
        assert time.monotonic() < end, page.locator("main").inner_text()
        if page.locator("#next").is_visible():
            page.keyboard.press("Enter")
        elif page.locator(".question:not([data-value])").count():
            page.keyboard.press("yn"[int(time.monotonic()) % 2])
        page.wait_for_timeout(100)


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_reaches_round_three(tmp_path: Path, chromium: Any, kind: Kind) -> None:
    """With the defaults of everything that decides how to train and what to ask."""
    data, labels = write_kind(tmp_path, kind)
    words = (data.name, "--labels", labels.name, "--ledger", "labels.db", "-n", "12", "--every", "4", "--name", "anna")
    with running(tmp_path, *words) as pages:
        page = chromium.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.goto(pages.link)
        page.wait_for_url("**/label")
        answer_until(page, 3)
        page.goto(f"{pages.address}/overview")
        assert page.locator("#failure").count() == 0
        rounds = page.get_by_role("region", name="Rounds").locator("tbody tr")
        assert [row.split()[:2] for row in rounds.all_inner_texts()][-3:] == [
            ["3", "uncertainty"],
            ["2", "uncertainty"],
            ["1", "before"],
        ]
        page.close()


@pytest.mark.parametrize("kind", ["pictures", "texts"])
def test_features_are_computed_once_and_used_for_all(tmp_path: Path, kind: Kind, place: Callable[[], str]) -> None:
    data, labels = write_kind(tmp_path, kind)
    plan = ProjectConfig(str(data), place(), str(labels), count=12, every=4)
    said: list[str] = []
    trainer = Trainer(plan, *open_project(plan), said.append)
    trainer.pose_first_questions()
    assert said == []  # the first questions wait for nothing
    for _ in range(2):
        assert trainer.run_round() == 12
    assert isinstance(trainer.items, PrecomputedFeatures)
    assert [one for one in said if "features" in one] == ["Computing features of 30 items. This happens once."]
    assert [one["query"] for one in read_snapshot(trainer.queue).rounds] == [
        "before any model",
        "uncertainty",
        "uncertainty",
    ]


@pytest.mark.parametrize("kind", ["pictures", "texts"])
def test_a_run_is_asked_for_diverse_questions(tmp_path: Path, kind: Kind) -> None:
    """`partly query` had the same fault."""
    data, labels = write_kind(tmp_path, kind)
    opened = partly.read(data, labels=labels)
    partly.Classifier(run_dir=tmp_path / "run", progress=False).fit(opened.items, opened.labels)
    questions = tmp_path / "questions.csv"
    assert query(tmp_path / "run", str(data), questions, reading=DataOptions(labels), query="diverse", count=5) == 5
