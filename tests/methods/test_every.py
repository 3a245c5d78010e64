"""Each method has a test of its own, found by its name."""

from __future__ import annotations

from pathlib import Path

import partly.methods

HERE = Path(__file__).parent
FILES = [path for path in Path(partly.methods.__file__).parent.glob("*.py") if path.stem != "__init__"]


def test_every_method_has_a_test_of_its_name() -> None:
    assert len(FILES) >= 37
    without = [path.stem for path in FILES if not (HERE / f"test_{path.stem}.py").exists()]
    assert not without, f"These methods have no file tests/methods/test_NAME.py: {without}"


def test_every_test_is_that_of_a_method() -> None:
    named = {f"test_{path.stem}" for path in FILES} | {Path(__file__).stem}
    left_over = [path.stem for path in HERE.glob("test_*.py") if path.stem not in named]
    assert not left_over, f"There are no methods of these names: {left_over}"
