"""Joint non-negative orthogonal matching pursuit: a few items that explain both the labels and the features of an item.

Reference
    D. Huynh, E. Elhamifar. Interactive Multi-Label CNN Learning with Partial Labels. CVPR 2020. Algorithm 2.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from partly.errors import DataError, SettingError, did_you_mean, within

Solver = Literal["nnls", "clip", "ls"]
Stop = Literal["sign", "score"]
BLOCK = 1 << 21  # items x atoms per block
RIDGE = 64  # times the machine precision, added to a unit diagonal, so that duplicate atoms are harmless
ROUNDING = 4  # times the ridge; smaller cosines are 0
SLACK = 1e-12  # a weight at 0 is freed only above this cosine
Views = tuple[Tensor, Tensor]  # labels and features


@torch.no_grad()
def joint_nonnegative_omp(
    features: Tensor,
    labels: Tensor,
    atom_features: Tensor,
    atom_labels: Tensor,
    k: int,
    lambda_y: float,
    lambda_f: float,
    exclude: Tensor | None = None,
    *,
    solver: Solver = "nnls",
    stop: Stop = "sign",
    tolerance: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Approximate each item by at most k atoms, with separate weights for its labels and its features.

    Each step adds the atom with the largest lambda_y <r_y, Y>^2 / |Y|^2 + lambda_f <r_f, F>^2 / |F|^2, where r is the
    residual, and refits all weights.

    Parameters
    ----------
    features, labels : Tensor, [B, D] and [B, L]
        The items.
    atom_features, atom_labels : Tensor, [M, D] and [M, L]
        The atoms; labels after the label graph, if there is one.
    k : int
        Maximum number of atoms per item.
    lambda_y, lambda_f : float
        Weights of labels and features.
    exclude : Tensor, [B], optional
        An atom that the item may not use, such as itself, or -1.
    solver : "nnls", "clip" or "ls"
        Non-negative least squares; least squares with negative weights set to 0 (the paper); or plain least squares.
    stop : "sign" or "score"
        "sign" stops when the best atom has a non-positive inner product with either residual (the paper). "score"
        considers only atoms with positive inner products (ignoring a view whose lambda is 0), and stops when the best
        score is below `tolerance` (the authors' code).
    tolerance : float
        Threshold of "score".

    Returns
    -------
    tuple of Tensor
        Support (atom index in order of selection, -1 for none), label weights and feature weights (0 for none), [B, k].

    Examples
    --------
    >>> import torch
    >>> from partly.similarity import joint_nonnegative_omp
    >>> atoms, item = torch.eye(3), torch.tensor([[2.0, 0.0, 1.0]])
    >>> support, by_labels, by_features = joint_nonnegative_omp(
    ...     item, item, atoms, atoms, k=2, lambda_y=1.0, lambda_f=1.0
    ... )
    >>> support, by_labels
    (tensor([[0, 2]]), tensor([[2.0000, 1.0000]]))
    """
    arrays = {"features": features, "labels": labels, "atom_features": atom_features, "atom_labels": atom_labels}
    _check(arrays, k, exclude, solver, stop)
    within(0.0, float("inf"), lambda_y=lambda_y, lambda_f=lambda_f, tolerance=tolerance)
    importance = torch.tensor([lambda_y, lambda_f], dtype=features.dtype).to(features.device)
    size = max(1, BLOCK // max(1, len(atom_labels)))
    results = [
        _Pursuit(
            (labels[rows], features[rows]),
            (atom_labels, atom_features),
            importance,
            None if exclude is None else exclude[rows],
        ).run(k, solver, stop, tolerance)
        for rows in (slice(start, start + size) for start in range(0, max(1, len(labels)), size))
    ]
    support = torch.cat([part[0] for part in results])
    label_weights, feature_weights = torch.cat([part[1] for part in results], dim=1).to(features.dtype)
    return support, label_weights, feature_weights


class _Pursuit:
    """Search for a block of items, on inner products of normalized items and atoms; residuals are never formed."""

    def __init__(self, targets: Views, atoms: Views, importance: Tensor, exclude: Tensor | None) -> None:
        self.atoms = atoms
        self.lengths, self.atom_lengths = (_lengths(part) for part in (targets, atoms))  # [2, B], [2, M]
        self.per_length = 1.0 / torch.where(self.atom_lengths > 0, self.atom_lengths, 1.0)
        self.importance = importance[:, None, None] * self.lengths[..., None] ** 2
        products = torch.stack([target @ atom.T for target, atom in zip(targets, atoms, strict=True)])
        per_target = 1.0 / torch.where(self.lengths > 0, self.lengths, 1.0)
        self.first = products * per_target[..., None] * self.per_length[:, None]  # [2, B, M]
        self.taken = torch.zeros(self.first.shape[1:], dtype=torch.bool, device=products.device)
        if exclude is not None:
            barred = (exclude >= 0).nonzero().squeeze(1)
            self.taken[barred, exclude[barred]] = True
        self.ridge = RIDGE * torch.finfo(products.dtype).eps
        self.whole: Tensor | None = None

    def run(self, k: int, solver: Solver, stop: Stop, tolerance: float) -> tuple[Tensor, Tensor]:
        """Return support [B, k] and weights [2, B, k]."""
        _, items, atoms = self.first.shape
        if atoms <= items * (k - 1):  # precomputing all inner products of atoms is then cheaper
            self.whole = torch.stack([atom @ atom.T for atom in self.atoms])
        support = torch.full((items, k), -1, device=self.first.device)
        gram = torch.eye(k, dtype=torch.float64, device=support.device).repeat(2, items, 1, 1)
        wanted, weights, scale = (gram.new_zeros(2, items, k) for _ in range(3))
        rows = self.first.new_empty(2, items, k, atoms)  # rows of the Gram matrix of all atoms
        going = torch.ones(items, dtype=torch.bool, device=support.device)
        products = self.first
        for step in range(min(k, atoms)):
            best, good = self._best(products, stop, tolerance)
            going = going & good
            if not going.any():
                break
            now = slice(0, step + 1)
            support[:, step] = torch.where(going, best, -1)
            self.taken.scatter_(1, best[:, None], True)
            rows[:, :, step] = self._row(best)
            chosen = support[:, now].clamp(min=0).expand(2, -1, -1)
            # For items that have stopped, the new atom is orthogonal to everything.
            with_chosen = torch.where(going[:, None], rows[:, :, step].gather(2, chosen).double(), 0.0)
            gram[..., step, now] = gram[..., now, step] = with_chosen
            gram[..., step, step] = 1.0 + self.ridge
            wanted[..., step] = torch.where(going, _at(self.first, best), 0.0)
            scale[..., step] = self.per_length[:, best]
            weights[..., now] = _fit_weights(gram[..., now, now], wanted[..., now], solver)
            if step + 1 < k:
                taken_off = weights[..., None, now].to(rows.dtype) @ rows[:, :, now]
                products = self.first - taken_off[:, :, 0]
        return support, weights * scale * self.lengths[..., None]

    def _best(self, products: Tensor, stop: Stop, tolerance: float) -> tuple[Tensor, Tensor]:
        """Return the best atom for each item [B], and whether it passes the stopping rule [B]."""
        zero = ROUNDING * self.ridge
        scores = (products.square() * self.importance).sum(dim=0).masked_fill_(self.taken, -torch.inf)
        if stop == "score":
            matters = self.importance > 0
            scores.masked_fill_(((products <= zero) & matters).any(dim=0), -torch.inf)
        score, best = scores.max(dim=1)
        if stop == "score":
            return best, (score > 0) & (score >= tolerance)
        return best, (_at(products, best) > zero).all(dim=0) & (score > -torch.inf)

    def _row(self, best: Tensor) -> Tensor:
        """Return cosines of these atoms with all atoms, [2, B, M]."""
        if self.whole is not None:
            products = self.whole[:, best]
        else:
            products = torch.stack([atom[best] @ atom.T for atom in self.atoms])
        return products * self.per_length[:, best][..., None] * self.per_length[:, None]


def _lengths(views: Views) -> Tensor:
    return torch.stack([part.norm(dim=1) for part in views])


def _at(values: Tensor, index: Tensor) -> Tensor:
    """values [2, B, M] at index [B]: [2, B]."""
    return values.gather(2, index.expand(2, -1)[..., None])[..., 0]


# -------------------------------------------------------------------- small least squares, many at a time


def _fit_weights(gram: Tensor, wanted: Tensor, solver: Solver) -> Tensor:
    """Return weights [..., t] from inner products between atoms [..., t, t] and with the item [..., t]."""
    if solver == "nnls":
        return _nonnegative(gram, wanted)
    weights = _least_squares(gram, wanted, torch.ones_like(wanted, dtype=torch.bool))
    return weights.clamp(min=0) if solver == "clip" else weights


def _nonnegative(gram: Tensor, wanted: Tensor) -> Tensor:
    """Solve non-negative least squares by Murty's principal pivoting.

    While a weight is negative, or a weight at 0 would reduce the error, the last such weight changes sides. For a
    positive definite matrix no set occurs twice.
    """
    count = wanted.shape[-1]
    free = torch.ones_like(wanted, dtype=torch.bool)
    order = torch.arange(1, count + 1, device=wanted.device)
    for _ in range(2**count):
        weights = _least_squares(gram, wanted, free)
        slack = wanted - (gram @ weights[..., None])[..., 0]
        wrong = torch.where(free, weights < 0, slack > SLACK)
        if not wrong.any():
            break
        last = torch.where(wrong, order, 0).amax(dim=-1, keepdim=True)
        free = free ^ (wrong & (order == last))
    return weights.clamp(min=0)


def _least_squares(gram: Tensor, wanted: Tensor, free: Tensor) -> Tensor:
    """Return weights of the free atoms, 0 for others, by Cholesky: torch's lstsq is not deterministic."""
    eye = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    among = torch.where(free[..., None] & free[..., None, :], gram, eye)
    factor, _ = torch.linalg.cholesky_ex(among)
    return torch.cholesky_solve(torch.where(free, wanted, 0.0)[..., None], factor)[..., 0]


def _check(arrays: dict[str, Tensor], k: int, exclude: Tensor | None, solver: str, stop: str) -> None:
    for name, value, choices in (("solver", solver, get_args(Solver)), ("stop", stop, get_args(Stop))):
        if value not in choices:
            raise SettingError(f"There is no {name} {value!r}.{did_you_mean(value, choices)}")
    within(1, float("inf"), k=k)
    _check_arrays(arrays)
    items, count = len(arrays["features"]), len(arrays["atom_features"])
    if exclude is not None and (exclude.shape != (items,) or not bool(((exclude >= -1) & (exclude < count)).all())):
        raise DataError(
            f"exclude must hold an atom for each of the {items} items, from 0 to {count - 1}, or -1; got shape "
            f"{list(exclude.shape)}."
        )


def _check_arrays(arrays: dict[str, Tensor]) -> None:
    shapes = [list(part.shape) for part in arrays.values()]
    (items, width), (also, labels), (count, atom_width), (atom_count, atom_labels) = (
        shape if len(shape) == 2 else [-1, -2] for shape in shapes
    )
    if (items, width, count, labels) != (also, atom_width, atom_count, atom_labels) or min(items, count) < 0:
        raise DataError(
            "features [B, D], labels [B, L], atom_features [M, D] and atom_labels [M, L] do not fit together; got "
            + ", ".join(map(str, shapes))
            + "."
        )
    kinds = [str(part.dtype).removeprefix("torch.") for part in arrays.values()]
    if len({*kinds}) > 1 or kinds[0] not in ("float32", "float64"):
        raise DataError(f"{', '.join(arrays)} must all be float32 or all float64; they are {', '.join(kinds)}.")
    wrong = {name: ~part.isfinite() for name, part in arrays.items()}
    places = [f"{name}[{', '.join(map(str, at.nonzero()[0].tolist()))}]" for name, at in wrong.items() if at.any()]
    if places:
        raise DataError(
            f"Not finite: {', '.join(places)}, the first place each. Leave such items out, or fill them in."
        )
