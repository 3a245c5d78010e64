from __future__ import annotations

from typing import Any

import pytest

from evidence import by_number


def line(share: str, score: float, method: str = "refine", data: str = "voc:2000") -> dict[str, Any]:
    return {"data": data, "scenario": share, "method": method, "test": {"mAP": score}}


LINES = [
    line("coarse-only:0.25", 0.8),
    line("coarse-only:0.25", 0.6),
    line("coarse-only:0.0625", 0.5),
    line("full", 0.9),
    line("coarse-only:0.25", 0.7, "auto"),
    line("coarse-only:0.25", 0.7, data="voc"),  # how many items that is, its name does not say
    line("coarse-only:0.25", 0.4, "bce"),  # of one number alone there is nothing to see
]


def test_scores_stand_over_the_number_of_items() -> None:
    (one,) = by_number.gather(LINES, "mAP")
    assert (one.data, one.method) == ("voc:2000", "refine")
    assert list(one.points) == [125, 500]
    assert [point.value for point in one.points.values()] == pytest.approx([0.5, 0.7])
    assert one.points[125].margin is None


def test_a_panel_for_each_set() -> None:
    other = [line(share, 0.5, data="coco:3000") for share in ("coarse-only:0.25", "coarse-only:0.5")]
    picture = by_number.draw(by_number.gather([*LINES, *other], "mAP"), "mAP").decode()
    assert picture.count("fully labeled items") == 2
    assert "coco:3000" in picture
    assert all(f">{number}<" in picture for number in (125, 500, 750, 1500))
    assert "mathdefault" not in picture
