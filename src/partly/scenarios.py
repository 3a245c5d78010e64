"""Scenarios: from the truth to labels that are only partly known, as pure functions of (truth, seed).

`truth` is `Labels`, or an array of 1 yes, 0 no, NaN unknown. What it does not know stays unknown, names and ids
stay, and what is sparse stays sparse.

Every entry has a number in [0, 1) that depends on the scenario, the seed, its row and its column, and on nothing
else; so has every item, where whole items are chosen. The smallest numbers are chosen. So the first items
get the same labels however many more there are (unless a count over all items is asked for), and what is
known at one share is known at every larger one.
"""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.clock import seed_for
from partly.errors import SettingError, did_you_mean
from partly.labels import Labels, as_labels
from partly.labels.hierarchy import Hierarchy
from partly.labels.matrix import Ternary, blocks
from partly.labels.names import Names

Draws = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
NEVER = 2.0  # larger than any draw


def uniform(truth: Any, share: float, seed: int, *, per_entry: bool = False) -> Labels:
    """round(share x L) entries of each item are known, or all that the truth knows where that is less.

    Python's round: a half goes to the even number. With `per_entry` each entry is known with probability `share`.
    """
    share, seed = _share(share, "uniform"), _seed(seed)
    labels = as_labels(truth, "truth")
    count = round(share * labels.shape[1])

    def rule(z: Ternary, rows: slice) -> Ternary:
        draws = np.where(z == 0, NEVER, _draws("uniform", seed, rows, z.shape[1]))
        if per_entry:
            return np.where(draws < share, z, 0)
        keep = np.zeros(z.shape, bool)
        if count:
            np.put_along_axis(keep, np.argpartition(draws, count - 1, axis=1)[:, :count], True, axis=1)
        return np.where(keep, z, 0)

    return labels.mapped(rule)


def positives(truth: Any, share: float, seed: int, *, keep_at_least_one: bool = False) -> Labels:
    """round(share x their number) of all yes entries are known, wherever they are; all else is unknown.

    `positives` with share 0.25 is "25 % left". An item may lose all its yes; `keep_at_least_one` keeps one of
    each item first, even where that is more than the share.
    """
    share, seed = _share(share, "positives"), _seed(seed)
    labels = as_labels(truth, "truth")

    def yes_draws(z: Ternary, rows: slice) -> Draws:
        draws = _draws("positives", seed, rows, z.shape[1])
        if keep_at_least_one:
            draws -= _smallest(z == 1, draws)  # before all others
        return np.where(z == 1, draws, NEVER)

    blockwise = (yes_draws(labels.rows(block), block) for block in blocks(labels.shape))
    found = np.concatenate([draws[draws < NEVER] for draws in blockwise])
    count = max(round(share * len(found)), int((found < 0).sum()))
    limit = np.partition(found, count - 1)[count - 1] if count else -np.inf
    return labels.mapped(lambda z, rows: np.where(yes_draws(z, rows) <= limit, z, 0))


def single_positive(truth: Any, seed: int) -> Labels:
    """One yes of each item, any of them with equal chance; no no. An item without yes stays unknown."""
    seed = _seed(seed)

    def rule(z: Ternary, rows: slice) -> Ternary:
        return np.where(_smallest(z == 1, _draws("single_positive", seed, rows, z.shape[1])), z, 0)

    return as_labels(truth, "truth").mapped(rule)


def one_yes_all_no(truth: Any, seed: int) -> Labels:
    """The yes that `single_positive` keeps of each item, and every no; only the other yes are unknown."""
    seed = _seed(seed)

    def rule(z: Ternary, rows: slice) -> Ternary:
        kept = _smallest(z == 1, _draws("single_positive", seed, rows, z.shape[1]))
        return np.where(kept | (z == -1), z, 0)

    return as_labels(truth, "truth").mapped(rule)


def dense(truth: Any, share: float, seed: int) -> Labels:
    """round(share x N) items are known as far as the truth knows them, of the others nothing."""
    share, seed = _share(share, "dense"), _seed(seed)
    labels = as_labels(truth, "truth")
    whole = _items("dense", seed, len(labels), round(share * len(labels)))
    return labels.mapped(lambda z, rows: np.where(whole[rows, None], z, 0))


def noisy(truth: Any, share: float, seed: int) -> Labels:
    """Every entry is known, and right with probability `share`: the others say the opposite of the truth."""
    share, seed = _share(share, "noisy"), _seed(seed)

    def rule(z: Ternary, rows: slice) -> Ternary:
        return np.where(_draws("noisy", seed, rows, z.shape[1]) < share, z, -z)

    return as_labels(truth, "truth").mapped(rule)


def noisy_plus(truth: Any, seed: int) -> Labels:
    """One yes of each item is kept and every other known entry says no, rightly or not."""
    seed = _seed(seed)

    def rule(z: Ternary, rows: slice) -> Ternary:
        kept = _smallest(z == 1, _draws("noisy_plus", seed, rows, z.shape[1]))
        return np.where(kept | (z == 0), z, -1)

    return as_labels(truth, "truth").mapped(rule)


def coarse_only(truth: Any, hierarchy: Hierarchy, share: float, seed: int) -> Labels:
    """All coarse labels are known, of the fine ones only those below a coarse no; and some items wholly.

    Coarse are the names that have children in the hierarchy; where the truth has no column for one, its no is worked
    out from its children. Labels outside the hierarchy count as fine. Wholly known are round(share x N)
    items, one at least unless share is 0.
    """
    share, seed = _share(share, "coarse_only"), _seed(seed)
    labels = as_labels(truth, "truth")
    count = min(len(labels), max(round(share * len(labels)), int(share > 0)))
    whole = _items("coarse_only", seed, len(labels), count)
    coarse = _under(hierarchy.coarsen(labels), hierarchy.names)
    follows = _under(hierarchy.deduce(coarse), labels.names)
    return labels.mapped(lambda z, rows: np.where((follows.rows(rows) != 0) | whole[rows, None], z, 0))


# -------------------------------------------------------------------- scenarios by name


def names() -> list[str]:
    """The scenarios, as the command line writes them."""
    return list(_BY_NAME)


def kind(text: str) -> str:
    """The name of a scenario without its share: 'uniform' of 'uniform:0.1'."""
    return text.partition(":")[0].strip().replace("_", "-")


def parse(text: str) -> Callable[..., Labels]:
    """'uniform:0.1', 'single-positive', ... as a function (truth, seed, hierarchy=None) -> Labels."""
    name, (_, colon, number) = kind(text), text.strip().partition(":")
    if name not in _BY_NAME:
        raise SettingError(f"There is no scenario {name!r}.{did_you_mean(name, _BY_NAME)}")
    scenario = _BY_NAME[name]
    takes = inspect.signature(scenario).parameters
    if ("share" in takes) != bool(colon):
        right = f"{name}:0.1" if "share" in takes else name
        raise SettingError(
            f"Scenario {text!r}: {'no share given' if not colon else 'takes no share'}; write {right!r}."
        )
    settings = {"share": _share(_number(number), name)} if colon else {}

    def play(truth: Any, seed: int, hierarchy: Hierarchy | None = None) -> Labels:
        if "hierarchy" not in takes:
            return scenario(truth, seed=seed, **settings)
        if hierarchy is None:
            raise SettingError(f"Scenario {name!r} needs a hierarchy of the labels (child -> parent); none was given.")
        return scenario(truth, hierarchy, seed=seed, **settings)

    return play


_BY_NAME: dict[str, Callable[..., Labels]] = {
    scenario.__name__.replace("_", "-"): scenario
    for scenario in (uniform, positives, single_positive, one_yes_all_no, dense, noisy, noisy_plus, coarse_only)
} | {"uniform-per-entry": partial(uniform, per_entry=True)}


# -------------------------------------------------------------------- numbers that decide


def _draws(scenario: str, seed: int, rows: slice, width: int) -> Draws:
    """The numbers of some rows, [rows, width]; those of a row do not depend on which others are asked for."""
    bits = np.random.PCG64(seed_for(seed, scenario))
    bits.advance(rows.start * width)  # a number takes one step of the generator
    return np.random.Generator(bits).random((rows.stop - rows.start, width))


def _smallest(among: Mask, draws: Draws) -> Mask:
    """In each row the one entry of `among` with the smallest number: at most one, [B, L]."""
    chosen = np.zeros_like(among)
    if among.size:
        best = np.where(among, draws, NEVER).argmin(axis=1, keepdims=True)
        np.put_along_axis(chosen, best, True, axis=1)
    return chosen & among


def _items(scenario: str, seed: int, items: int, count: int) -> Mask:
    """`count` of the items, [N]."""
    chosen = np.zeros(items, bool)
    chosen[np.argsort(_draws(scenario, seed, slice(0, items), 1)[:, 0], kind="stable")[:count]] = True
    return chosen


def _under(labels: Labels, wanted: Names) -> Labels:
    """The same under the names that are wanted: other columns go, those that are missing are unknown."""
    column = {name: j for j, name in enumerate(labels.names)}
    have = [i for i, name in enumerate(wanted) if name in column]

    def rule(z: Ternary, _: slice) -> Ternary:
        result = np.zeros((len(z), len(wanted)), np.int8)
        result[:, have] = z[:, [column[wanted[i]] for i in have]]
        return result

    return labels.mapped(rule, wanted)


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text  # refused with the range that is right


def _share(share: Any, scenario: str) -> float:
    number = isinstance(share, numbers.Real) and not isinstance(share, bool)
    if not number or not 0 <= share <= 1:
        raise SettingError(f"{scenario}: share must be a number from 0 to 1 (10 % is 0.1); got {share!r}.")
    return float(share)


def _seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral):
        raise SettingError(f"seed must be a whole number; got {seed!r}.")
    return int(seed)
