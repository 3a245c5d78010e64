"""Reliability of sources: known confusions are found again, bad sources do not count, people stay above models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partly import Ledger, read
from partly.errors import DataError
from partly.ledger import source_quality
from partly.ledger.reliability import find_contradictions
from partly.ledger.resolve import RANKS, Statements, resolve_entries

LABELS = 3


def simulate(confusions: dict[str, Any], items: int = 400, share: float = 0.8, seed: int = 0) -> tuple[Any, Statements]:
    """Return the truth [N, L] and what each voice says: rows of the confusion are yes and no, columns the answers."""
    rng = np.random.default_rng(seed)
    truth = rng.random((items, LABELS)) < [0.5, 0.3, 0.1]
    parts = []
    for voice, (kind, confusion) in enumerate(confusions.values()):
        rows, columns = np.nonzero(rng.random(truth.shape) < share)
        chances = np.array(confusion)[np.where(truth[rows, columns], 0, 1)]
        answer = (rng.random((len(rows), 1)) > chances.cumsum(axis=1)).sum(axis=1)
        z = np.array([1, -1, 0], np.int8)[np.minimum(answer, 2)]
        rank = np.full(len(rows), RANKS[kind], np.int8)
        parts.append(Statements(rows, columns, z, np.full(len(rows), voice), rank))
    return truth, Statements(*(np.concatenate(part) for part in zip(*(vars(p).values() for p in parts), strict=True)))


GOOD = [[0.9, 0.05, 0.05], [0.04, 0.9, 0.06]]
FAIR = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]
LIAR = [[0.1, 0.85, 0.05], [0.85, 0.1, 0.05]]
NOISE = [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]


def fitted(statements: Statements, voices: int) -> source_quality.Confusions:
    shared, entry = source_quality.select_shared(statements)
    found = source_quality.fit(shared, entry, voices, LABELS)
    assert found is not None
    return found


def test_known_confusions_are_found_again() -> None:
    _, statements = simulate({"a": ("person", GOOD), "b": ("person", FAIR), "c": ("model", FAIR), "d": ("model", GOOD)})
    found = fitted(statements, 4)
    for voice, confusion in enumerate((GOOD, FAIR, FAIR, GOOD)):
        np.testing.assert_allclose(found.pooled[voice], confusion, atol=0.06)


def test_a_liar_and_noise_get_no_weight() -> None:
    _, statements = simulate(
        {"a": ("person", GOOD), "b": ("person", FAIR), "c": ("model", LIAR), "d": ("model", NOISE)}
    )
    weights = fitted(statements, 4).weights
    np.testing.assert_array_equal(weights[2], 0)
    assert np.abs(weights[3]).max() < 0.5 < np.abs(weights[:2]).min()


def accuracy(truth: Any, statements: Statements, policy: str, weights: Any = None) -> float:
    entries = resolve_entries(statements, policy, weights)
    known = entries.z != 0
    return float(((entries.z == 1) == truth[entries.item, entries.label])[known].mean())


def test_weights_beat_the_majority_where_sources_differ() -> None:
    people = {"a": ("person", GOOD), "b": ("person", NOISE), "c": ("person", NOISE), "d": ("person", FAIR)}
    truth, statements = simulate(people)
    weights = fitted(statements, 4).weights
    assert accuracy(truth, statements, "weighted", weights) > accuracy(truth, statements, "majority") + 0.05


def test_without_enough_shared_entries_the_majority_decides() -> None:
    _, statements = simulate({"a": ("person", GOOD), "b": ("person", GOOD)})
    shared, entry = source_quality.select_shared(statements)
    assert source_quality.fit(shared, entry, 2, LABELS) is None  # of two, nobody can tell which is right
    _, few = simulate(dict.fromkeys("abc", ("person", GOOD)), items=9)
    shared, entry = source_quality.select_shared(few)
    assert source_quality.fit(shared, entry, 3, LABELS) is None
    for left, right in zip(
        vars(resolve_entries(few, "weighted")).values(), vars(resolve_entries(few, "majority")).values(), strict=True
    ):
        np.testing.assert_array_equal(left, right)


def test_shared_statements_are_the_latest_of_each_voice() -> None:
    item, label = np.array([0, 0, 0, 1, 2, 2]), np.zeros(6, np.int64)
    z, voice = np.array([1, -1, 1, 1, 1, -1], np.int8), np.array([0, 0, 1, 0, 1, 1])
    shared, entry = source_quality.select_shared(Statements(item, label, z, voice, np.full(6, 3, np.int8)))
    assert [(int(v), int(a)) for v, a in zip(shared.voice, shared.z, strict=True)] == [(0, -1), (1, 1)]
    np.testing.assert_array_equal(entry, [0, 0])


def test_people_stay_above_models_whatever_the_weights() -> None:
    z, rank = np.array([1, -1, -1, -1], np.int8), np.array([3, 1, 1, 1], np.int8)
    one = Statements(np.zeros(4, np.int64), np.zeros(4, np.int64), z, np.arange(4), rank)
    weights = np.tile([0.01, -100.0], (4, 1, 1))
    assert resolve_entries(one, "weighted", weights).z.tolist() == [1]
    weights[0] = 0  # the only person stands, even of weight zero
    assert resolve_entries(one, "weighted", weights).z.tolist() == [1]


def test_a_model_of_weight_zero_is_silent() -> None:
    one = Statements(*(np.array([k]) for k in (0, 0)), np.array([1], np.int8), np.array([0]), np.array([1], np.int8))
    assert resolve_entries(one, "weighted", np.zeros((1, 1, 2))).z.tolist() == [0]
    assert resolve_entries(one, "weighted", np.array([[[0.5, -0.5]]])).z.tolist() == [1]


# ---------------------------------------------------------------- in a ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger with two people and two language models, of which one is wrong on purpose."""
    voices = {"anna": ("person", GOOD), "bela": ("person", FAIR), "good": ("model", GOOD), "liar": ("model", LIAR)}
    _, statements = simulate(voices, items=120)
    ledger = Ledger.create(tmp_path / "labels.db", names=["a", "b", "c"])
    for voice, (name, (kind, _)) in enumerate(voices.items()):
        own = statements[statements.voice == voice]
        values = [None if z == 0 else int(z == 1) for z in own.z.tolist()]
        run = f"language-model {name}" if kind == "model" else ""
        ledger.append(
            [f"i{k}" for k in own.item], ["abc"[k] for k in own.label], values, kind=kind, author=name, run=run
        )
    return ledger


def test_the_quality_of_each_source(ledger: Ledger) -> None:
    found = {quality.source[1]: quality for quality in ledger.source_quality()}
    assert set(found) == {"anna", "bela", "good", "liar"}
    assert found["liar"].weight == 0 < found["bela"].weight < found["good"].weight
    assert found["anna"].sensitivity == pytest.approx(0.9 / 0.95, abs=0.1)
    assert found["liar"].specificity < 0.3
    assert set(found["anna"].label_weights) == {"a", "b", "c"}
    assert ledger.source_quality(at=2) == []


def test_the_policy_of_a_ledger(ledger: Ledger, tmp_path: Path) -> None:
    people = ledger.labels(policy="majority")
    weighted = ledger.labels(policy="weighted", models=True)
    assert weighted.known.sum() > people.known.sum()
    assert read_policy(tmp_path) == weighted
    for policy in ("latest", "majority", "weighted"):
        state = ledger.resolve(policy=policy, models=True)
        without = ledger.resolve(policy=policy)
        ranks = dict(zip(zip(state.entries.item, state.entries.label, strict=True), state.entries.rank, strict=True))
        of_people = set(zip(without.entries.item, without.entries.label, strict=True))
        assert of_people < set(ranks)
        assert all(ranks[entry] == RANKS["person"] for entry in of_people)


def read_policy(folder: Path) -> Any:
    from partly.data.formats.ledger_db import read as read_labels
    from partly.data.label_semantics import LabelSemantics

    return read_labels(Path(f"{folder}/labels.db?policy=weighted&models=yes"), None, LabelSemantics())


def test_a_language_model_is_audited_before_it_is_learned_from(tmp_path: Path) -> None:
    items = [f"i{k}" for k in range(100)]
    ledger = Ledger.create(tmp_path / "labels.db", names=["a"])
    ledger.append(items, ["a"] * 100, [1] * 100, kind="model", author="qwen", run="language-model abc")
    ledger.append(items, ["a"] * 100, [1] * 100, kind="model", author="certified", run="runs/7")
    (tmp_path / "x.csv").write_text("\n".join(["item,f", *(f"{name},1.5" for name in items)]) + "\n")
    place = f"{tmp_path / 'labels.db'}?models=yes"
    with pytest.raises(DataError, match="qwen: people have answered 0 of its entries, 30 are needed"):
        read(tmp_path / "x.csv", place)
    ledger.append(items[:29], ["a"] * 29, [1] * 29, author="anna")
    ledger.append(items[29:31], ["a"] * 2, [None] * 2, author="anna")  # cannot tell is no audit
    with pytest.raises(DataError, match="answered 29"):
        read(tmp_path / "x.csv", place)
    ledger.append(items[32:33], ["a"], [0], author="anna")
    assert read(tmp_path / "x.csv", place).labels.known.sum() == 98
    assert ledger.unaudited() == []


def test_contradictions_of_people_and_language_models(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "labels.db", names=["a"])
    items = ["same", "differs", "people differ", "cannot tell", "other model"]
    for name, values in {"anna": [1, 1, 1, 1, 1], "bela": [1, 1, 0, 1, 1]}.items():
        ledger.append(items, ["a"] * 5, values, author=name)
    ledger.append(items[:4], ["a"] * 4, [1, 0, 0, None], kind="model", author="qwen", run="language-model x")
    ledger.append(items[4:], ["a"], [0], kind="model", author="certified", run="runs/7")
    with ledger.store.reading() as connection:
        found = find_contradictions(ledger.store, connection, ledger._history(None))
    assert [(entry.item, entry.z, entry.models) for entry in found] == [(1, 1, (("qwen", -1),))]
