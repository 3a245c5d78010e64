from __future__ import annotations

import numpy as np
import pytest

from evidence.regimes import compute_gradient, draw
from partly.errors import SettingError

P = np.array([0.1, 0.5, 0.8])


def test_regimes_by_hand():
    np.testing.assert_allclose(compute_gradient("assume-negative", P), P)  # of -log(1 - p)
    np.testing.assert_allclose(compute_gradient("assume-negative", P, entry=1), P - 1)
    x = np.log(P / (1 - P))
    np.testing.assert_allclose(compute_gradient("em[alpha=0.2]", P), 0.2 * x * P * (1 - P), atol=1e-12)
    np.testing.assert_allclose(compute_gradient("bce", P), 0)


def test_a_loss_that_counts_the_labels_of_an_item_is_asked_about_items_of_several():
    np.testing.assert_allclose(compute_gradient("weak-assume-negative", P, labels=5), P / 4)


def test_a_schedule_is_taken_at_its_end():
    with_yes = compute_gradient("splc[gamma=0]", P)  # above 0.6 it is a yes by then
    np.testing.assert_allclose(with_yes, [0.1, 0.5, -0.2])


def test_what_is_no_loss_is_refused():
    with pytest.raises(SettingError, match="role is not a loss"):
        compute_gradient("role")


def test_a_picture_names_who_is_in_it():
    drawn = draw(["assume-negative", "em"]).decode()
    assert "<svg" in drawn
    assert "assume-negative" in drawn
