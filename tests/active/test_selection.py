"""Which entries are asked: never what follows, never twice, the best first, block by block."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import partly
from partly import Hierarchy, Labels
from partly.active import selection, strategies
from partly.active.selection import select_questions
from partly.clock import Clock
from partly.engine import build_method, make_config
from partly.errors import PartlyError, SettingError
from partly.items import Items, as_items
from partly.method import Method
from partly.registry import Info, read

NAMES = ("a", "b", "c", "d", "e")
SILENT = build_method(make_config("bce", "linear"), as_items(np.zeros((2, 1))), 1)  # nobody asks it


def model(x: Items, labels: Labels) -> Method:
    return build_method(make_config("bce", "linear"), x, labels.shape[1], labels)


def tensor(x: Items) -> torch.Tensor:
    return x.take(slice(None))


def planted(monkeypatch: pytest.MonkeyPatch, table: np.ndarray) -> None:
    """A query of the name `planted` that gives these scores [N, L]."""

    def scores(method: Method, pool: partly.pool.Pool, clock: Clock) -> Iterator[dict[str, np.ndarray]]:
        for batch in pool.in_order():
            part = table[batch.index.numpy()]
            yield {"score": part, "twice": 2 * part}

    module = types.ModuleType("partly.queries.planted", "Planted.")
    module.__file__ = "planted.py"
    monkeypatch.setattr(strategies, "discover", lambda: read(module, "query", lambda _: scores, Info))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Hierarchy, Labels, np.ndarray, list[tuple[int, int]], int, int]:
    """A forest, labels without contradiction, scores with many ties, entries asked before, how many, block size."""
    parents = {}
    for j in range(1, len(NAMES)):
        above = draw(st.integers(-1, j - 1))
        if above >= 0:
            parents[NAMES[j]] = NAMES[above]
    if not parents:
        parents = {"e": "a"}
    items = draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    truth = rng.random((items, len(NAMES))) < 0.6
    for child, parent in sorted(parents.items()):  # parents come first in the alphabet
        truth[:, NAMES.index(child)] &= truth[:, NAMES.index(parent)]
    z = np.where(rng.random(truth.shape) < 0.3, np.where(truth, 1, -1), 0)
    asked = [(int(i), int(j)) for i, j in np.argwhere(rng.random(truth.shape) < 0.2)]
    scores = rng.integers(0, 4, truth.shape).astype(float)
    return (
        Hierarchy(parents),
        Labels.from_ternary(z, names=NAMES),
        scores,
        asked,
        draw(st.integers(1, 12)),
        draw(st.integers(1, 4)),
    )


def closure(hierarchy: Hierarchy, labels: Labels) -> np.ndarray:
    """Slow: what is known, until nothing more follows."""
    z = labels.rows(slice(None)).copy()
    for _ in NAMES:
        for child, parent in hierarchy.parents.items():
            c, p = NAMES.index(child), NAMES.index(parent)
            for row in z:
                if row[c] == 1:
                    row[p] = 1
                if row[p] == -1:
                    row[c] = -1
    return z


def related(hierarchy: Hierarchy, a: str, b: str) -> bool:
    def above(name: str) -> list[str]:
        return [*above(hierarchy.parents[name]), name] if name in hierarchy.parents else [name]

    return a != b and (a in above(b) or b in above(a))


@given(case=cases())
def test_against_a_slow_choice(case: tuple) -> None:
    hierarchy, labels, scores, asked, count, block = case
    z = closure(hierarchy, labels)
    able = [(i, j) for i, j in np.argwhere(z == 0).tolist() if (i, j) not in asked]
    wanted = [
        (-scores[i, j], i, j)
        for i, j in able
        if not any(
            i == k and related(hierarchy, NAMES[j], NAMES[m]) and beats(hierarchy, scores, i, m, j) for k, m in able
        )
    ]
    x = as_items(np.zeros((len(labels), 2)))
    before = tuple(np.array(asked, np.int64).reshape(-1, 2).T)
    labels = hierarchy.deduce(labels)
    with pytest.MonkeyPatch.context() as patch:
        planted(patch, scores)
        patch.setattr(selection, "BLOCK_ITEMS", block)
        found = select_questions("planted", SILENT, x, labels, count, Clock(0), hierarchy=hierarchy, asked=before)
    expected = [(i, j) for _, i, j in sorted(wanted)[:count]]
    assert list(zip(found.rows.tolist(), found.columns.tolist(), strict=True)) == expected
    assert found.scores["score"].tolist() == [scores[i, j] for i, j in expected]
    assert found.scores["twice"].tolist() == [2 * scores[i, j] for i, j in expected]


def beats(hierarchy: Hierarchy, scores: np.ndarray, item: int, one: int, other: int) -> bool:
    """Whether `one` is asked before `other`, a label in the same line: the higher score, or the lower of the two."""
    if scores[item, one] != scores[item, other]:
        return bool(scores[item, one] > scores[item, other])
    return one > other  # names are in an order from the top down


@settings(max_examples=10)
@given(case=cases(), name=st.sampled_from(["random", "uncertainty", "look-ahead"]))
def test_no_query_asks_what_follows_or_twice(case: tuple, name: str) -> None:
    hierarchy, labels, _, _, _, block = case
    if not labels.known_per_item().any():
        return
    x = as_items(np.random.default_rng(0).normal(size=(len(labels), 3)).astype(np.float32))
    asked = np.empty((2, 0), np.int64)
    method, seen, z = model(x, labels), set(), closure(hierarchy, labels)
    labels = hierarchy.deduce(labels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "BLOCK_ITEMS", block)
        while len(
            found := select_questions(name, method, x, labels, 2, Clock(0), hierarchy=hierarchy, asked=tuple(asked))
        ):
            entries = set(zip(found.rows.tolist(), found.columns.tolist(), strict=True))
            assert not entries & seen
            assert all(z[i, j] == 0 for i, j in entries)
            seen |= entries
            asked = np.concatenate([asked, [found.rows, found.columns]], axis=1)
    assert len(seen) == (z == 0).sum()


@pytest.fixture
def small() -> tuple[Items, Labels]:
    rng = np.random.default_rng(3)
    x = as_items(rng.normal(size=(12, 4)).astype(np.float32))
    z = rng.choice([1, -1, 0], size=(12, 3))
    z[:3] = np.where(z[:3] == 0, 1, z[:3])  # three items wholly known
    return x, Labels.from_ternary(z)


def everything(name: str, x: Items, labels: Labels, clock: Clock, **settings: object) -> np.ndarray:
    """The scores of all unknown entries, as a matrix with NaN elsewhere."""
    found = select_questions(name, model(x, labels), x, labels, 10**6, clock, settings=settings)
    table = np.full(labels.shape, np.nan)
    table[found.rows, found.columns] = found.scores["score"]
    return table


def test_random_is_a_function_of_seed_and_round(small: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    first = everything("random", *small, Clock(0, epoch=1))
    for block in (1, 5):
        monkeypatch.setattr(selection, "BLOCK_ITEMS", block)
        np.testing.assert_array_equal(first, everything("random", *small, Clock(0, epoch=1)))
    for other in (Clock(1, epoch=1), Clock(0, epoch=2)):
        assert not np.array_equal(first, everything("random", *small, other), equal_nan=True)


def test_random_prefers_nothing() -> None:
    labels = Labels.from_ternary(np.zeros((200, 5), int))
    x = as_items(np.zeros((200, 1)))
    counts = np.zeros((200, 5))
    for number in range(40):
        found = select_questions("random", model(x, labels), x, labels, 100, Clock(0, epoch=number))
        counts[found.rows, found.columns] += 1
    assert counts.sum() == 4000
    assert counts.sum(axis=0).min() > 700  # 800 each, give or take
    assert abs(counts[:100].sum() - 2000) < 150


def test_uncertainty_is_entropy(small: tuple) -> None:
    x, labels = small
    p = model(x, labels)(tensor(x)).sigmoid().double().detach().numpy()
    slow = -p * np.log(p) - (1 - p) * np.log(1 - p)
    found = everything("uncertainty", x, labels, Clock(0))
    np.testing.assert_allclose(found, np.where(labels.known, np.nan, slow), rtol=1e-5)


def test_entropy_of_sure_predictions_is_exact() -> None:
    from partly.active.strategies.uncertainty import entropy

    logits = torch.tensor([-200.0, -40.0, 0.0, 40.0, 200.0])
    expected = [0.0, 41 * np.exp(-40.0), np.log(2), 41 * np.exp(-40.0), 0.0]
    np.testing.assert_allclose(entropy(logits), expected, rtol=1e-5, atol=1e-40)


@pytest.mark.parametrize("rate", [0.5, 20.0])
def test_look_ahead_against_double_backward(small: tuple, rate: float) -> None:
    """Equations 6, 8, 9 to 11, on one block, with a graph through the step instead of forward mode."""
    x, labels = small
    found = select_questions("look-ahead", model(x, labels), x, labels, 10**6, Clock(0), settings={"rate": rate})
    method, x = model(x, labels), tensor(x)
    z = torch.tensor(labels.rows(slice(None)))
    whole = (z != 0).all(dim=1)
    weights = dict(method.named_parameters())
    logits = method(x)

    def loss(s: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.binary_cross_entropy_with_logits(s, y)

    pseudo = torch.where(z == 0, 0.5, (z > 0).float()).requires_grad_()
    step = torch.autograd.grad(loss(logits, pseudo), weights.values(), create_graph=True)
    moved = {name: w - rate * g for (name, w), g in zip(weights.items(), step, strict=True)}
    after = torch.func.functional_call(method, moved, (x[whole],))
    (slope,) = torch.autograd.grad(loss(after, (z[whole] > 0).float()), pseudo)
    final = torch.where(z == 0, (slope <= 0).float(), pseudo.detach())
    step = torch.autograd.grad(loss(method(x), final), weights.values())
    ahead = {name: w - rate * g for (name, w), g in zip(weights.items(), step, strict=True)}
    with torch.no_grad():
        p, q = method(x).sigmoid().double(), torch.func.functional_call(method, ahead, (x,)).sigmoid().double()
    cross = -(p * q.log() + (1 - p) * (1 - q).log()).numpy()
    entropy = -(p * p.log() + (1 - p) * (1 - p).log()).numpy()
    assert len(found) == (z == 0).sum()
    at = (found.rows, found.columns)
    np.testing.assert_allclose(found.scores["score"], cross[at], rtol=1e-4)
    np.testing.assert_allclose(found.scores["entropy"], entropy[at], rtol=1e-4)
    np.testing.assert_allclose(found.scores["divergence"], (cross - entropy)[at], rtol=1e-2, atol=1e-6)
    assert found.scores["score"].tolist() == sorted(found.scores["score"], reverse=True)


def test_a_tiny_step_is_uncertainty(small: tuple) -> None:
    ahead, now = (
        everything(name, *small, Clock(0), **kw) for name, kw in (("look-ahead", {"rate": 0}), ("uncertainty", {}))
    )
    np.testing.assert_allclose(ahead, now, rtol=1e-5)


def test_without_wholly_known_items_others_judge(small: tuple) -> None:
    x, labels = small
    z = labels.rows(slice(None)).copy()
    z[:, 0] = 0
    assert np.isfinite(everything("look-ahead", x, Labels.from_ternary(z), Clock(0))[:, 0]).all()


@pytest.mark.parametrize("name", ["random", "uncertainty", "look-ahead"])
@pytest.mark.parametrize("mode", [True, False])
def test_asking_leaves_the_model_as_it_was(small: tuple, name: str, mode: bool) -> None:
    x, labels = small
    method = build_method(make_config("bce", "mlp"), x, labels.shape[1], labels).train(mode)
    before = {key: value.clone() for key, value in method.state_dict().items()}
    select_questions(name, method, x, labels, 4, Clock(0))
    assert method.training == mode
    assert torch.is_grad_enabled()
    assert all(torch.equal(before[key], value) for key, value in method.state_dict().items())
    assert all(weight.grad is None for weight in method.parameters())


def test_look_ahead_needs_something_known(small: tuple) -> None:
    x, labels = small
    nothing = Labels.from_ternary(np.zeros(labels.shape, int))
    with pytest.raises(SettingError, match=r"these items have none\. Use the query uncertainty"):
        select_questions("look-ahead", model(x, labels), x, nothing, 4, Clock(0))


def test_what_is_wrong_is_said(small: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    x, labels = small
    with pytest.raises(SettingError, match=r"no query 'uncertain'. Did you mean 'uncertainty'\?"):
        everything("uncertain", x, labels, Clock(0))
    with pytest.raises(SettingError, match=r"look-ahead has no setting 'rates'. Did you mean 'rate'\?"):
        everything("look-ahead", x, labels, Clock(0), rates=1.0)
    with pytest.raises(SettingError, match="fine_items = 0"):
        everything("look-ahead", x, labels, Clock(0), fine_items=0)
    planted(monkeypatch, np.full(labels.shape, np.nan))
    with pytest.raises(PartlyError, match="planted gives scores that are not finite"):
        everything("planted", x, labels, Clock(0))


def test_the_list_of_queries() -> None:
    folder = Path(inspect.getfile(strategies)).parent
    every = partly.queries()
    assert set(every) == {path.stem.replace("_", "-") for path in folder.glob("[!_]*.py")}
    assert every["look-ahead"]["settings"].keys() == {"rate", "fine_items"}
    assert "2109.14676" in every["look-ahead"]["citation"]
    assert all(words["summary"] and words["citation"] for words in every.values())
    for entry in strategies.discover().values():
        assert "Differs:" in entry.text
        assert "Defaults:" in entry.text


@pytest.mark.parametrize(("name", "reads"), [("random", 0), ("uncertainty", 1), ("diverse", 1)])
def test_images_are_decoded_once_or_not_at_all(
    name: str, reads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from PIL import Image

    from partly.items import ImageFiles

    rng = np.random.default_rng(0)
    for number in range(6):
        Image.fromarray(rng.integers(0, 255, (8, 8, 3), np.uint8)).save(tmp_path / f"{number}.png")
    items = partly.read(str(tmp_path)).items.resize(16)
    assert isinstance(items, ImageFiles)
    labels = Labels.from_ternary(np.zeros((6, 2), int))
    method, taken = build_method(make_config("bce", "linear", backbone="small-conv"), items, 2, labels), []
    stream, take = ImageFiles.stream, ImageFiles.take

    def counting_stream(self: ImageFiles, parts: object, *rest: object) -> Iterator[torch.Tensor]:
        for block in stream(self, parts, *rest):
            taken.append(len(block))
            yield block

    def counting_take(self: ImageFiles, index: object) -> torch.Tensor:
        block = take(self, index)
        taken.append(len(block))
        return block

    monkeypatch.setattr(ImageFiles, "stream", counting_stream)
    monkeypatch.setattr(ImageFiles, "take", counting_take)
    monkeypatch.setattr(selection, "BLOCK_ITEMS", 4)
    assert len(select_questions(name, method, items, labels, 5, Clock(0))) == 5
    assert sum(taken) == reads * len(items)


@pytest.mark.parametrize("name", ["uncertainty", "diverse", "look-ahead"])
def test_predictions_respect_the_hierarchy(name: str) -> None:
    """A child that the network finds likely below an unlikely parent is unlikely, so its entropy is the parent's."""
    x = as_items(np.zeros((3, 1), np.float32))
    labels = Labels.from_ternary(np.array([[0, 0, 0], [0, 0, 0], [1, 1, 1]]), names=["animal", "cat", "boat"])
    recipe = make_config("bce", "linear", hierarchy={"cat": "animal"})
    method = build_method(recipe, x, 3, labels)
    with torch.no_grad():
        for key, weight in method.named_parameters():
            weight.copy_(torch.tensor([-2.0, 0.0, -1.0]) if key.endswith("bias") else torch.zeros_like(weight))
    setting = {"rate": 0.0} if name == "look-ahead" else {}
    found = select_questions(name, method, x, labels, 6, Clock(0), settings=setting)
    part = "score" if name == "uncertainty" else "entropy"
    entropy = {(int(i), int(j)): v for i, j, v in zip(found.rows, found.columns, found.scores[part], strict=True)}
    assert entropy[0, 1] == pytest.approx(entropy[0, 0], rel=1e-6)
    assert entropy[0, 2] > entropy[0, 1]


def test_names_of_0_2_warn() -> None:
    with pytest.warns(DeprecationWarning, match=r"choose is now partly\.active\.selection\.select_questions"):
        assert strategies.choose is select_questions
