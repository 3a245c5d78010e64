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
SLACK = 1e-12  # a cosine below this is no reason to give a weight of 0 another try
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

    Parameters
    ----------
    features, labels : Tensor, [B, D] and [B, L]
        The items that are rebuilt.
    atom_features, atom_labels : Tensor, [M, D] and [M, L]
        What they are rebuilt from.
    k : int
        At most so many atoms an item.
    lambda_y, lambda_f : float
        How much labels and features count.
    exclude : Tensor, [B], optional
        An atom that the item may not use, or -1.
    solver : "nnls", "clip" or "ls"
        How weights are fitted.
    stop : "sign" or "score"
        When the search ends.
    tolerance : float
        Of "score".

    Returns
    -------
    tuple of Tensor
        Support, label weights and feature weights, each [B, k].

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
    """The search for a block of items, in cosines: everything comes from inner products of items and atoms, all taken
    for length 1, and what is left of an item is never made."""

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
        """Support [B, k] and weights [2, B, k]."""
        _, items, atoms = self.first.shape
        if atoms <= items * (k - 1):  # then all inner products of atoms are fewer than those that would be asked for
            self.whole = torch.stack([atom @ atom.T for atom in self.atoms])
        support = torch.full((items, k), -1, device=self.first.device)
        gram = torch.eye(k, dtype=torch.float64, device=support.device).repeat(2, items, 1, 1)
        wanted, weights, scale = (gram.new_zeros(2, items, k) for _ in range(3))
        rows = self.first.new_empty(2, items, k, atoms)  # of the Gram matrix of all atoms
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
            # To an item that has stopped the new atom is a stranger: it is not wanted, and is like none of the others.
            with_chosen = torch.where(going[:, None], rows[:, :, step].gather(2, chosen).double(), 0.0)
            gram[..., step, now] = gram[..., now, step] = with_chosen
            gram[..., step, step] = 1.0 + self.ridge
            wanted[..., step] = torch.where(going, _at(self.first, best), 0.0)
            scale[..., step] = self.per_length[:, best]
            weights[..., now] = _fitted(gram[..., now, now], wanted[..., now], solver)
            if step + 1 < k:
                taken_off = weights[..., None, now].to(rows.dtype) @ rows[:, :, now]
                products = self.first - taken_off[:, :, 0]
        return support, weights * scale * self.lengths[..., None]

    def _best(self, products: Tensor, stop: Stop, tolerance: float) -> tuple[Tensor, Tensor]:
        """The atom for each item [B], and whether it is good enough [B]."""
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
        """Cosines of these atoms with all atoms, [2, B, M]."""
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


def _fitted(gram: Tensor, wanted: Tensor, solver: Solver) -> Tensor:
    """Weights [..., t] from the inner products of atoms [..., t, t] and with the item [..., t]."""
    if solver == "nnls":
        return _nonnegative(gram, wanted)
    weights = _least_squares(gram, wanted, torch.ones_like(wanted, dtype=torch.bool))
    return weights.clamp(min=0) if solver == "clip" else weights


def _nonnegative(gram: Tensor, wanted: Tensor) -> Tensor:
    """Non-negative least squares by Murty's principal pivoting: as long as a weight is negative, or one that is held at
    0 would lower the error, the last such weight changes sides. For a positive definite matrix no set comes twice."""
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
    """Weights of the free atoms; 0 for all others. By Cholesky: torch's lstsq is not deterministic."""
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
