"""Joint non-negative orthogonal matching pursuit: the few items that explain an item's labels and features alike.

Paper: D. Huynh, E. Elhamifar. Interactive Multi-Label CNN Learning with Partial Labels. CVPR 2020. Algorithm 2.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from partly.errors import DataError, SettingError, did_you_mean, within

Solver = Literal["nnls", "clip", "ls"]
Stop = Literal["sign", "score"]
BLOCK = 1 << 21  # items x atoms worked on at a time
RIDGE = 64  # times the precision, on a Gram matrix with ones on its diagonal: atoms that are copies do no harm
ROUNDING = 4  # times the ridge: a cosine below this is 0
SLACK = 1e-12  # by how much a weight of 0 may wish to be more
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
    """At most k atoms for each item, with weights that rebuild its labels and others that rebuild its features.

    features [B, D], labels [B, L], atom_features [M, D], atom_labels [M, L] (through the label graph, if there is one);
    exclude [B]: an atom that the item may not use, itself above all, or -1.

    Returns support [B, k] (atom index in the order of choice, -1 where fewer), label_weights [B, k] and
    feature_weights [B, k] (0 where there is no atom).

    Each step takes the atom with the largest lambda_y <r_y, Y>^2 / |Y|^2 + lambda_f <r_f, F>^2 / |F|^2, r being what is
    left of the item, and fits all weights anew. solver: "nnls", least squares under the condition that no weight is
    negative; "clip", least squares with negative weights set to 0, as the paper writes it; "ls", plain least squares.
    stop: "sign", when the atom with the largest score has an inner product with either rest that is not above 0 (the
    paper); "score", only atoms whose inner products are both above 0 are looked at (a view whose lambda is 0 has no
    say), and the search ends where the best score is below `tolerance` (the authors' code).
    """
    _check((labels, features), (atom_labels, atom_features), k, exclude, solver, stop)
    within(0.0, float("inf"), lambda_y=lambda_y, lambda_f=lambda_f, tolerance=tolerance)
    importance = features.new_tensor([lambda_y, lambda_f])
    size = max(1, BLOCK // max(1, len(atom_labels)))
    parts = [
        _Pursuit(
            (labels[rows], features[rows]),
            (atom_labels, atom_features),
            importance,
            None if exclude is None else exclude[rows],
        ).run(k, solver, stop, tolerance)
        for rows in (slice(start, start + size) for start in range(0, max(1, len(labels)), size))
    ]
    support = torch.cat([part[0] for part in parts])
    label_weights, feature_weights = torch.cat([part[1] for part in parts], dim=1).to(features.dtype)
    return support, label_weights, feature_weights


class _Pursuit:
    """The search for a block of items. Everything comes from inner products; the rest itself is never made."""

    def __init__(self, targets: Views, atoms: Views, importance: Tensor, exclude: Tensor | None) -> None:
        self.atoms, self.importance = atoms, importance
        self.first = torch.stack([target @ atom.T for target, atom in zip(targets, atoms, strict=True)])  # [2, B, M]
        squares = torch.stack([(atom * atom).sum(dim=1) for atom in atoms])  # [2, M]
        self.per_square = torch.where(squares > 0, importance[:, None] / squares, 0.0)
        lengths = torch.stack([target.norm(dim=1) for target in targets])  # [2, B]
        self.ridge = RIDGE * torch.finfo(squares.dtype).eps
        self.noise = (
            ROUNDING * self.ridge * lengths[:, :, None] * squares.sqrt()[:, None, :]
        )  # inner products below this are 0
        self.taken = torch.zeros(self.first.shape[1:], dtype=torch.bool, device=squares.device)
        if exclude is not None:
            barred = (exclude >= 0).nonzero().squeeze(1)
            self.taken[barred, exclude[barred]] = True

    def run(self, k: int, solver: Solver, stop: Stop, tolerance: float) -> tuple[Tensor, Tensor]:
        """Support [B, k] and weights [2, B, k]."""
        _, items, atoms = self.first.shape
        support = torch.full((items, k), -1, device=self.first.device)
        weights = self.first.new_zeros(2, items, k, dtype=torch.float64)
        gram = torch.eye(k, dtype=torch.float64, device=weights.device).repeat(2, items, 1, 1)
        wanted = torch.zeros_like(weights)  # inner products of item and atom
        rows: list[Tensor] = []  # of the Gram matrix of all atoms, [2, B, M] each
        going = torch.ones(items, dtype=torch.bool, device=weights.device)
        products = self.first
        for step in range(min(k, atoms)):
            best, good = self._best(products, stop, tolerance)
            going = going & good
            if not going.any():
                break
            support[:, step] = torch.where(going, best, -1)
            self.taken[torch.arange(items), best] = True
            rows.append(torch.stack([atom[best] @ atom.T for atom in self.atoms]))
            now = slice(0, step + 1)
            with_chosen = rows[-1].gather(2, support[:, now].clamp(min=0).expand(2, -1, -1)).double()
            # Of an item that has stopped, the new atom is a stranger to all others and is not wanted.
            gram[:, going, step, now] = gram[:, going, now, step] = with_chosen[:, going]
            wanted[:, :, step] = torch.where(going, self.first.gather(2, best.expand(2, -1)[..., None])[..., 0], 0.0)
            weights[:, :, now] = _fitted(gram[..., now, now], wanted[..., now], solver, self.ridge)
            if step + 1 < k:
                products = self.first.clone()
                for row, weight in zip(rows, weights.to(products.dtype).unbind(2), strict=False):
                    products.addcmul_(row, weight[..., None], value=-1)
        return support, weights

    def _best(self, products: Tensor, stop: Stop, tolerance: float) -> tuple[Tensor, Tensor]:
        """The atom for each item [B], and whether it is good enough [B]."""
        scores = (products.square() * self.per_square[:, None]).sum(dim=0)
        positive = products > self.noise
        if stop == "score":
            matter = (self.importance > 0)[:, None, None]
            allowed = (positive | ~matter).all(dim=0)
            scores = torch.where(allowed, scores, -torch.inf)
        scores = torch.where(self.taken, -torch.inf, scores)
        score, best = scores.max(dim=1)
        if stop == "score":
            return best, (score > 0) & (score >= tolerance)
        agree = positive.all(dim=0).gather(1, best[:, None])[:, 0]
        return best, agree & (score > -torch.inf)


# -------------------------------------------------------------------- small least squares, many at a time


def _fitted(gram: Tensor, wanted: Tensor, solver: Solver, ridge: float) -> Tensor:
    """Weights [..., t] from the inner products of atoms [..., t, t] and with the item [..., t]."""
    scale = gram.diagonal(dim1=-2, dim2=-1).sqrt()
    scale = torch.where(scale > 0, scale, 1.0)
    gram = gram / scale[..., None] / scale[..., None, :]
    eye = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    gram = torch.where(eye > 0, 1.0 + ridge, gram)
    wanted = wanted / scale
    if solver == "nnls":
        return _nonnegative(gram, wanted) / scale
    weights = _least_squares(gram, wanted, torch.ones_like(wanted, dtype=torch.bool)) / scale
    return weights.clamp(min=0) if solver == "clip" else weights


def _nonnegative(gram: Tensor, wanted: Tensor) -> Tensor:
    """Non-negative least squares by Murty's principal pivoting: as long as a weight is negative, or one that is held at
    0 would lower the error, the last such weight changes sides. For a positive definite matrix no set comes twice."""
    count = wanted.shape[-1]
    free = torch.ones_like(wanted, dtype=torch.bool)
    order = torch.arange(1, count + 1, device=wanted.device)
    limit = SLACK * wanted.abs().amax(dim=-1, keepdim=True)
    for _ in range(2**count):
        weights = _least_squares(gram, wanted, free)
        slack = wanted - (gram @ weights[..., None])[..., 0]
        wrong = torch.where(free, weights < 0, slack > limit)
        if not wrong.any():
            break
        last = torch.where(wrong, order, 0)
        free = free ^ (wrong & (last == last.amax(dim=-1, keepdim=True)))
    return weights.clamp(min=0)


def _least_squares(gram: Tensor, wanted: Tensor, free: Tensor) -> Tensor:
    """Weights of the free atoms; 0 for all others. By Cholesky: torch's lstsq is not deterministic."""
    eye = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    among = torch.where(free[..., None] & free[..., None, :], gram, eye)
    factor, _ = torch.linalg.cholesky_ex(among)
    return torch.cholesky_solve(torch.where(free, wanted, 0.0)[..., None], factor)[..., 0]


def _check(targets: Views, atoms: Views, k: int, exclude: Tensor | None, solver: str, stop: str) -> None:
    for name, value, choices in (("solver", solver, get_args(Solver)), ("stop", stop, get_args(Stop))):
        if value not in choices:
            raise SettingError(f"There is no {name} {value!r}.{did_you_mean(value, choices)}")
    within(1, float("inf"), k=k)
    shapes = [list(part.shape) for part in (targets[1], targets[0], atoms[1], atoms[0])]
    (items, width), (also, labels), (count, atom_width), (atom_count, atom_labels) = (
        shape if len(shape) == 2 else [-1, -2] for shape in shapes
    )
    if (items, width, count, labels) != (also, atom_width, atom_count, atom_labels) or min(items, count) < 0:
        raise DataError(
            "features [B, D], labels [B, L], atom_features [M, D] and atom_labels [M, L] do not fit together; got "
            + ", ".join(map(str, shapes))
            + "."
        )
    if exclude is not None and (exclude.shape != (items,) or not bool(((exclude >= -1) & (exclude < count)).all())):
        raise DataError(
            f"exclude must hold an atom for each of the {items} items, from 0 to {count - 1}, or -1; got shape "
            f"{list(exclude.shape)}."
        )
