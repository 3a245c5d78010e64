"""Joint non-negative OMP against a slow reference: one item at a time, plain loops, SciPy's NNLS."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from torch import Tensor

from conformance.bench import bits
from partly.errors import DataError, SettingError
from partly.similarity import joint_nonnegative_omp, mix_rows, pursuit

Found = tuple[list[list[int]], np.ndarray, np.ndarray]


def problem(seed: int, items: int = 6, atoms: int = 20, width: int = 12, labels: int = 9) -> list[np.ndarray]:
    """features, labels, atom_features, atom_labels; positive enough for several steps."""
    rng = np.random.default_rng(seed)
    shapes = ((items, width), (items, labels), (atoms, width), (atoms, labels))
    return [rng.normal(size=shape) + 0.7 for shape in shapes]


def slow(
    f: np.ndarray, y: np.ndarray, atoms_f: np.ndarray, atoms_y: np.ndarray, k: int, weights: tuple[float, float],
    exclude: list[int] | None = None, solver: str = "nnls",
) -> Found:  # fmt: skip
    supports, label_weights, feature_weights = [], np.zeros((len(y), k)), np.zeros((len(y), k))
    for i in range(len(y)):
        rest_y, rest_f, chosen = y[i], f[i], []
        for _ in range(k):
            best, best_score = -1, -np.inf
            for j in range(len(atoms_y)):
                if j in chosen or (exclude is not None and j == exclude[i]):
                    continue
                score = weights[0] * (rest_y @ atoms_y[j]) ** 2 / (atoms_y[j] @ atoms_y[j])
                score += weights[1] * (rest_f @ atoms_f[j]) ** 2 / (atoms_f[j] @ atoms_f[j])
                if score > best_score:
                    best, best_score = j, score
            if best < 0 or rest_y @ atoms_y[best] <= 0 or rest_f @ atoms_f[best] <= 0:
                break
            chosen.append(best)
            c, d = fit(atoms_y[chosen], y[i], solver), fit(atoms_f[chosen], f[i], solver)
            rest_y, rest_f = y[i] - c @ atoms_y[chosen], f[i] - d @ atoms_f[chosen]
            label_weights[i, : len(chosen)], feature_weights[i, : len(chosen)] = c, d
        supports.append(chosen + [-1] * (k - len(chosen)))
    return supports, label_weights, feature_weights


def fit(atoms: np.ndarray, target: np.ndarray, solver: str) -> np.ndarray:
    if solver == "nnls":
        return nnls(atoms.T, target)[0]
    found = np.linalg.lstsq(atoms.T, target, rcond=None)[0]
    return np.maximum(found, 0) if solver == "clip" else found


def tensors(arrays: list[np.ndarray]) -> list[Tensor]:
    return [torch.from_numpy(array) for array in arrays]


@pytest.mark.parametrize("solver", ["nnls", "clip", "ls"])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), k=st.integers(1, 7), weights=st.sampled_from([(1.0, 0.5), (0.2, 3.0), (1.0, 0.0)]))
def test_the_slow_reference(solver: str, seed: int, k: int, weights: tuple[float, float]) -> None:
    arrays = problem(seed)
    expected = slow(*arrays, k, weights, solver=solver)
    support, label_weights, feature_weights = joint_nonnegative_omp(*tensors(arrays), k, *weights, solver=solver)
    assert support.tolist() == expected[0]
    np.testing.assert_allclose(label_weights, expected[1], atol=1e-6)
    np.testing.assert_allclose(feature_weights, expected[2], atol=1e-6)


def test_the_reference_takes_several_atoms_and_stops_early_too() -> None:
    """Else the test above would say little."""
    lengths = {sum(j >= 0 for j in row) for seed in range(20) for row in slow(*problem(seed), 5, (1.0, 0.5))[0]}
    assert lengths == {0, 1, 2, 3, 4}


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_weights_are_never_negative_and_the_rest_never_grows(seed: int) -> None:
    f, y, atoms_f, atoms_y = tensors(problem(seed, width=5, labels=4))
    last = torch.stack([y.norm(dim=1), f.norm(dim=1)])
    for k in range(1, 8):
        support, *weights = joint_nonnegative_omp(f, y, atoms_f, atoms_y, k, 1.0, 0.5)
        assert all((part >= 0).all() and (part[support < 0] == 0).all() for part in weights)
        rests = [
            (target - mix_rows(atoms, support, part)).norm(dim=1)
            for target, atoms, part in zip((y, f), (atoms_y, atoms_f), weights, strict=True)
        ]
        now = torch.stack(rests)
        assert (now <= last + 1e-9).all()
        last = now


def test_the_same_bits_a_hundred_times() -> None:
    given_ = [part.float() for part in tensors(problem(3, items=32, atoms=64))]
    runs = {tuple(map(bits, joint_nonnegative_omp(*given_, 5, 1.0, 0.5))) for _ in range(100)}
    assert len(runs) == 1


def test_nobody_is_similar_to_itself() -> None:
    f, y, *_ = tensors(problem(1, items=10))
    alone = joint_nonnegative_omp(f, y, f, y, 3, 1.0, 0.5)
    assert alone[0][:, 0].tolist() == list(range(10))
    assert (alone[0][:, 1] == -1).all(), "nothing is left of an item that found itself"
    exclude = [*range(9), -1]
    support, *_ = joint_nonnegative_omp(f, y, f, y, 3, 1.0, 0.5, torch.tensor(exclude))
    expected = slow(f.numpy(), y.numpy(), f.numpy(), y.numpy(), 1, (1.0, 0.5), exclude)[0]
    assert support[:, :1].tolist() == expected
    assert support[9, 0] == 9


def test_single_precision_finds_the_same_atoms() -> None:
    arrays = problem(5, items=30, atoms=200, width=64, labels=20)
    expected = slow(*arrays, 5, (1.0, 0.5))
    found = joint_nonnegative_omp(*(part.float() for part in tensors(arrays)), 5, 1.0, 0.5)
    assert found[0].tolist() == expected[0]
    np.testing.assert_allclose(found[1], expected[1], atol=1e-3)


def test_atoms_that_are_copies_of_each_other() -> None:
    f, y, atoms_f, atoms_y = tensors(problem(2))
    for kind in (torch.float32, torch.float64):
        twice = [torch.cat([part] * 3).to(kind) for part in (atoms_f, atoms_y)]
        support, *weights = joint_nonnegative_omp(f.to(kind), y.to(kind), *twice, 7, 1.0, 0.5)
        once, *expected = joint_nonnegative_omp(f, y, atoms_f, atoms_y, 7, 1.0, 0.5)
        assert all(part.isfinite().all() and (part >= 0).all() for part in weights)
        for target, atoms, more, part, alone in (
            (y, atoms_y, twice[1], weights[0], expected[0]),
            (f, atoms_f, twice[0], weights[1], expected[1]),
        ):
            rest = (target - mix_rows(more, support, part).double()).norm(dim=1)
            torch.testing.assert_close(rest, (target - mix_rows(atoms, once, alone)).norm(dim=1), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("solver", ["nnls", "clip", "ls"])
def test_awkward_problems_stay_finite(solver: str) -> None:
    f, y, atoms_f, atoms_y = (part.float() for part in tensors(problem(4)))
    cases = {
        "atoms of length 0": (f, y, torch.zeros_like(atoms_f), torch.zeros_like(atoms_y)),
        "one view of length 0": (f, y, atoms_f, torch.zeros_like(atoms_y)),
        "items of length 0": (torch.zeros_like(f), torch.zeros_like(y), atoms_f, atoms_y),
        "one label": (f, y[:, :1], atoms_f, atoms_y[:, :1]),
        "fewer atoms than k": (f, y, atoms_f[:2], atoms_y[:2]),
        "no items": (f[:0], y[:0], atoms_f, atoms_y),
        "no atoms": (f, y, atoms_f[:0], atoms_y[:0]),
    }
    for case, arrays in cases.items():
        support, *weights = joint_nonnegative_omp(*arrays, 5, 1.0, 0.5, solver=solver)
        assert support.shape == weights[0].shape == weights[1].shape == (len(arrays[0]), 5), case
        assert all(part.isfinite().all() for part in weights), case
        if "length 0" in case:
            assert (support == -1).all(), case


def test_by_hand() -> None:
    """Item (2, 1): of the unit vectors the first is nearer; then the second takes what is left."""
    eye = torch.eye(2, dtype=torch.float64)
    item = torch.tensor([[2.0, 1.0]], dtype=torch.float64)
    support, label_weights, feature_weights = joint_nonnegative_omp(item, item, eye, eye, 3, 1.0, 1.0)
    assert support.tolist() == [[0, 1, -1]]
    torch.testing.assert_close(label_weights, torch.tensor([[2.0, 1.0, 0.0]], dtype=torch.float64))
    torch.testing.assert_close(feature_weights, label_weights)


def test_when_it_stops() -> None:
    """The largest score is that of an atom that points away: the paper stops there, the code takes the next."""
    atoms_y = torch.tensor([[-1.0, 0.0], [0.6, 0.8]])
    one = torch.ones(2, 1)
    item = torch.tensor([[1.0, 0.0]])
    given_ = (one[:1], item, one, atoms_y)
    assert joint_nonnegative_omp(*given_, 2, 1.0, 0.5)[0].tolist() == [[-1, -1]]
    assert joint_nonnegative_omp(*given_, 2, 1.0, 0.5, stop="score")[0].tolist() == [[1, -1]]
    score = 0.6**2 + 0.5  # of that atom
    for tolerance, expected in ((score - 0.01, 1), (score + 0.01, -1)):
        found = joint_nonnegative_omp(*given_, 2, 1.0, 0.5, stop="score", tolerance=tolerance)
        assert found[0].tolist() == [[expected, -1]]


def test_blocks_of_items_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = tensors(problem(6, items=11))
    whole = joint_nonnegative_omp(*arrays, 4, 1.0, 0.5, torch.arange(11))
    monkeypatch.setattr(pursuit, "BLOCK", 60)
    parts = joint_nonnegative_omp(*arrays, 4, 1.0, 0.5, torch.arange(11))
    assert torch.equal(whole[0], parts[0])
    torch.testing.assert_close(whole[1], parts[1])


def test_what_does_not_fit_is_refused() -> None:
    f, y, atoms_f, atoms_y = tensors(problem(0))
    with pytest.raises(DataError, match=r"\[6, 12\], \[5, 9\]"):
        joint_nonnegative_omp(f, y[:5], atoms_f, atoms_y, 2, 1.0, 0.5)
    with pytest.raises(DataError, match="from 0 to 19"):
        joint_nonnegative_omp(f, y, atoms_f, atoms_y, 2, 1.0, 0.5, torch.full((6,), 20))
    with pytest.raises(DataError, match="they are float64, int8, float64, float64"):
        joint_nonnegative_omp(f, y.to(torch.int8), atoms_f, atoms_y, 2, 1.0, 0.5)
    atoms_y[3, 2], atoms_f[4, 5] = float("nan"), float("inf")
    with pytest.raises(DataError, match=r"Not finite: atom_features\[4, 5\], atom_labels\[3, 2\]"):
        joint_nonnegative_omp(f, y, atoms_f, atoms_y, 2, 1.0, 0.5)
    f, y, atoms_f, atoms_y = tensors(problem(0))
    with pytest.raises(SettingError, match="Did you mean 'nnls'"):
        joint_nonnegative_omp(f, y, atoms_f, atoms_y, 2, 1.0, 0.5, solver="nls")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="lambda_f = -1"):
        joint_nonnegative_omp(f, y, atoms_f, atoms_y, 2, 1.0, -1.0)
