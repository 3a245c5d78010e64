from __future__ import annotations

from typing import Any

from evidence import hidden_pictures


def made(method: str, seed: int, **more: float) -> dict[str, Any]:
    epochs = [{"found": 0.1 * (epoch + 1), "wasserstein": 0.25 + seed * 0.1, **more} for epoch in range(3)]
    return {"method": method, "seed": seed, "epochs": epochs, "scores": {"yes": [0.2, 0.8], "no": [0.9, 0.1]}}


LINES = [made("em", 0), made("em", 1), made("refine", 0, F1=0.5)]


def test_densities_have_a_panel_a_method_and_its_mean_distance() -> None:
    picture = hidden_pictures.draw_densities(LINES, ["em", "refine"]).decode()
    assert picture == hidden_pictures.draw_densities(LINES, ["em", "refine"]).decode()
    assert "distance 0.30" in picture  # the mean of 0.25 and 0.35
    assert "distance 0.25" in picture
    assert picture.count("hidden yes") == 1


def test_only_methods_that_have_a_number_are_in_its_panel() -> None:
    both = hidden_pictures.draw_epochs(LINES, {"found": "found", "F1": "recovered"}).decode()
    assert both.count(">em<") == 1
    assert both.count(">refine<") == 2
