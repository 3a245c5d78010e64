"""What a caller may give as a teacher."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from partly import teachers
from partly.errors import SettingError


def test_what_a_caller_may_mean(tmp_path: Path) -> None:
    path = tmp_path / "scores.npz"
    np.savez(path, scores=np.zeros((2, 3)))
    assert teachers.as_teachers(None) == teachers.as_teachers("none") == ()
    own = teachers.LabelNames()
    kinds = [type(teacher).__name__ for teacher in teachers.as_teachers(["names", path, str(path), np.eye(2), own])]
    assert kinds == ["LabelNames", "Scores", "Scores", "Scores", "LabelNames"]
    assert teachers.as_teachers(own) == (own,)
    assert [type(teacher).__name__ for teacher in teachers.as_teachers([[0.5, 0.2], [0.1, 0.3]])] == ["Scores"]


def test_a_typo_is_refused() -> None:
    with pytest.raises(SettingError, match=r"'nmaes': there is no such file. Did you mean 'names'"):
        teachers.as_teachers("nmaes")
