"""Each check finds what is planted for it, and on clean data all are silent, over several seeds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import partly
from partly import Labels
from partly.cli.doctor import examine, page
from partly.data import write_labels
from partly.data.formats.feature_table import write_numbers
from partly.doctor import checks
from partly.doctor.checks import discover, measure_dispersion
from partly.doctor.context import CheckContext, Finding
from partly.doctor.model_checks import wrong_labels
from partly.errors import DataError, LabelError
from partly.items import as_items
from partly.registry import About

nan = np.nan
N, D, L = 400, 8, 6


def clean(seed: int = 0, share: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, the truth, of which a third is yes, and what is known of it, by chance."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, D)).astype(np.float32)
    s = x @ rng.normal(size=(D, L)) + 0.5 * rng.logistic(size=(N, L))
    y = (s > np.quantile(s, 0.65, axis=0)).astype(float)
    return x, y, np.where(rng.random(y.shape) < share, y, nan)


def levels(found: dict[str, Any]) -> dict[str, str]:
    """Check -> level, of what is not fine."""
    return {one["check"]: one["level"] for one in found["findings"] if one["level"] != "fine"}


def of(found: dict[str, Any], check: str) -> dict[str, Any]:
    return next(one for one in found["findings"] if one["check"] == check)


def quick(*args: Any, **more: Any) -> dict[str, Any]:
    return partly.doctor(*args, method="bce", **more)


@pytest.fixture(autouse=True)
def plain_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use logistic regression, which is fast and right for this data."""

    def linear(*args: Any, **options: Any) -> partly.Classifier:
        return partly.Classifier(*args, **options | {"head": "linear"})

    monkeypatch.setattr("partly.doctor.context.Classifier", linear)
    monkeypatch.setattr("partly.doctor.model_checks.Classifier", linear)


# -------------------------------------------------------------------- clean data


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("share", [1.0, 0.4])
def test_clean_data_raise_no_alarm(seed: int, share: float) -> None:
    x, _, known = clean(seed, share)
    other = np.random.default_rng(99).normal(size=(50, D)).astype(np.float32)
    found = quick(known, x, test=other)
    assert set(levels(found)) <= ({"hidden-yes"} if share < 1 else set())  # those there are
    assert found["skipped"] == {}
    assert {one["check"] for one in found["findings"]} <= set(discover())


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_the_tests_of_dispersion_hold_their_rate(share: float) -> None:
    """Where entries are known by chance, p is below 0.05 not more often than that."""
    rng = np.random.default_rng(0)
    by_item, by_label = [], []
    for _ in range(300):
        known = rng.random((200, 20)) < rng.uniform(share / 2, share, 20)
        by_item.append(measure_dispersion(known.sum(axis=1), known.mean(axis=0)))
        known = rng.random((200, 20)) < rng.uniform(share / 2, share, (200, 1))
        by_label.append(measure_dispersion(known.sum(axis=0), known.mean(axis=1)))
    for found in (by_item, by_label):
        p = np.array([one[0] for one in found if one is not None])
        assert len(p) == 300
        assert (p < 0.05).mean() < 0.09
        assert (p < 0.01).mean() < 0.03


# -------------------------------------------------------------------- planted


def test_missing_by_item_and_by_label() -> None:
    _, y, _ = clean()
    rng = np.random.default_rng(1)
    for axis, what in ((0, "label"), (1, "item")):
        chance = rng.choice([0.2, 0.8], size=y.shape[1 - axis])
        known = np.where(rng.random(y.shape) < (chance if axis == 0 else chance[:, None]), y, nan)
        told = {one["numbers"]["by"]: one["level"] for one in quick(known)["findings"] if one["check"] == "missing"}
        assert told == {"item": "fine", "label": "fine"} | {what: "note"}
    one_each = np.full_like(y, nan)
    one_each[np.arange(N), rng.integers(L, size=N)] = 1
    (told,) = [o for o in quick(one_each)["findings"] if o["check"] == "missing" and o["numbers"]["by"] == "item"]
    assert told["numbers"]["variance_ratio"] == 0
    assert "varies less" in told["words"]


def test_missing_by_features() -> None:
    x, y, _ = clean()
    rng = np.random.default_rng(1)
    known = np.where(rng.random(y.shape) < 1 / (1 + np.exp(-1.5 * x[:, :1])), y, nan)
    found = of(quick(known, x), "missing-by-features")
    assert found["level"] == "warning"
    assert 0.6 < found["numbers"]["low"] < found["numbers"]["auc"] < found["numbers"]["high"] < 1


@pytest.mark.parametrize("sign", ["of the entries are yes", "exactly one yes", "no yes at all"])
def test_zeros_that_may_be_unknown(sign: str) -> None:
    y = np.zeros((N, 60))
    if sign == "of the entries are yes":
        y[np.arange(N - 9), np.arange(N - 9) % 60] = 1
    elif sign == "exactly one yes":
        y = np.eye(6)[np.arange(N) % 6]
    else:
        y[: N // 3, :20] = 1
    found = of(quick(y), "zeros-for-unknown")
    assert sign in found["words"]
    assert "from_positives" in found["remedy"]


def test_one_sided_labels() -> None:
    _, y, known = clean(share=0.5)
    known[:, 0] = nan
    known[:, 1] = np.where(known[:, 1] == 1, nan, known[:, 1])
    known[:, 2] = np.where(known[:, 2] == 0, nan, known[:, 2])
    known[np.flatnonzero(known[:, 3] == 1)[4:], 3] = nan
    found = [one for one in quick(known)["findings"] if one["check"] == "one-sided"]
    assert [(one["level"], one["labels"]) for one in found] == [
        ("problem", ["0"]),
        ("problem", ["1"]),
        ("warning", ["2"]),
        ("note", ["3"]),
    ]
    only_yes = quick(np.where(y == 1, 1, nan))
    assert "Only yes is known" in of(only_yes, "one-sided")["words"]


def test_duplicates_contradictions_and_leaks() -> None:
    x, _, known = clean()
    twice, said = np.concatenate([x, x[:3]]), np.concatenate([known, known[:3]])
    assert levels(quick(said, twice)) == {"duplicates": "warning"}
    said[N, 2] = 1 - said[N, 2]
    found = quick(said, twice, test=np.concatenate([x[5:9], x[:1] + 1]))
    assert levels(found) == {"duplicates": "warning", "contradictions": "problem", "leaks": "problem"}
    assert of(found, "duplicates")["numbers"] == {"items": 3, "groups": 3}
    ((entry),) = of(found, "contradictions")["entries"]
    assert (entry["label"], set(entry["said"])) == ("2", {"0", str(N)})
    assert of(found, "leaks")["numbers"] == {"items": 4, "share": 0.8}


def test_wrong_labels_are_found_and_ranked() -> None:
    x, y, _ = clean(3)
    wrong = np.random.default_rng(1).random(y.shape) < 0.05
    found = of(quick(np.where(wrong, 1 - y, y), x), "wrong-labels")
    assert 0.02 <= found["numbers"]["share"] <= 0.08
    hits = [wrong[int(one["item"]), int(one["label"])] for one in found["entries"]]
    assert len(hits) > 50
    assert np.mean(hits[:30]) > 0.9
    assert np.mean(hits) > 0.7
    chances = [one["chance_to_be_wrong"] for one in found["entries"]]
    assert chances == sorted(chances, reverse=True)
    sparse = Labels.from_ternary(sp.csr_array(np.where(wrong, 1 - y, y) * 2 - 1))
    (again,) = wrong_labels(CheckContext(sparse, as_items(x), method="bce"))
    assert again.entries == tuple(found["entries"])


def test_hidden_yes_are_estimated() -> None:
    x, y, _ = clean(1)
    known = np.where((y == 1) & (np.random.default_rng(0).random(y.shape) < 0.4), 1, nan)
    found = of(partly.doctor(known, x, method="assume-negative"), "hidden-yes")
    hidden = sum(found["numbers"]["hidden"].values())
    true = y.sum() - np.nansum(known)
    assert true / 1.6 < hidden < true * 1.6
    assert "too high" in found["words"]


# -------------------------------------------------------------------- encodings, the command and the door


def test_strange_values_are_named_with_their_meanings(tmp_path: Path) -> None:
    found = partly.doctor([[1, -1, 0], [0, -100, -1]])
    assert found["findings"][0]["numbers"] == {"values": {"-1": 2, "-100": 1}}
    assert "torch's 'ignore'" in found["findings"][0]["words"]
    (tmp_path / "labels.csv").write_text("item,a,b\nx,1,-1\ny,,2\n")
    found = examine(str(tmp_path / "labels.csv"))
    assert found["findings"][0]["numbers"] == {"values": {"-1": 1, "2": 1}}
    assert "Not checked (the labels cannot be read)" in page(found)
    (tmp_path / "ragged.csv").write_text("item,a,b\nx,1\n")
    with pytest.raises(DataError, match="not as wide"):
        examine(str(tmp_path / "ragged.csv"))
    with pytest.raises(LabelError):
        partly.doctor(np.zeros((2, 2, 2)))


def test_the_command_reads_files_and_leaves_out_what_it_cannot_check(tmp_path: Path) -> None:
    x, _, known = clean(share=0.5)
    labels = Labels.from_nan(known, names=[f"label {j}" for j in range(L)], ids=[f"i{k}" for k in range(N)])
    write_labels(labels, tmp_path / "y.csv")
    write_numbers(tmp_path / "x.csv", labels.ids, [f"f{j}" for j in range(D)], [x])
    alone = examine(str(tmp_path / "y.csv"))
    assert alone["skipped"]["leaks"] == "needs the items: give features"
    found = examine(str(tmp_path / "y.csv"), str(tmp_path / "x.csv"), method="bce")
    assert found["skipped"] == {"leaks": "needs a test set"}
    assert json.loads(json.dumps(found)) == found
    assert found["known"] == labels.summary()
    assert found["labels"][0]["label"] == "label 0"
    text = page(found)
    assert "400 items, 6 labels" in text
    assert "OK (missing)" in text


def test_a_decorated_function_is_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks._CHECKS, "_functions", dict(checks._CHECKS._functions))

    @checks.check(About(needs="items"))
    def too_few_items(context: CheckContext) -> list[Finding]:
        return [Finding("note", f"There are {len(context.labels)} items.")]

    assert partly.doctor([[1.0], [0.0]])["skipped"]["too-few-items"] == "needs the items: give features"
    assert of(partly.doctor([[1.0], [0.0]], np.eye(2)), "too-few-items")["words"] == "There are 2 items."


def test_items_and_labels_must_fit() -> None:
    with pytest.raises(DataError, match="X has 3 items and labels 2"):
        partly.doctor([[1.0], [0.0]], np.zeros((3, 2)))
