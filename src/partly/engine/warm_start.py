"""A model that begins where another one ended, though the labels have changed: labels that stay keep their weights, a
new one starts with those of the label that it is a part of, or with the mean of those that it was made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from partly.engine.fitting import Fitted
from partly.engine.recipe import Recipe
from partly.errors import SettingError, listing
from partly.items import Items
from partly.labels import Hierarchy, Labels
from partly.networks import Network

HEADS = ("linear", "mlp", "kernel")  # in which a label has a row of weights to itself, and nothing else of its own
ALIKE = ("method", "head", "head_settings", "backbone", "backbone_settings")  # what must be the same


def warm_start(
    before: Fitted, recipe: Recipe, items: Items, labels: Labels, sources: Sequence[Sequence[int]]
) -> dict[str, Tensor]:
    """What `run.fit` takes as `start`. `sources`: for each label the positions, among the labels of the finished run
    `before`, of those whose weights it starts with; none: it starts as it would by itself."""
    differ = [
        f"{name}: {getattr(before.recipe, name)!r} there, {getattr(recipe, name)!r} now"
        for name in ALIKE
        if getattr(before.recipe, name) != getattr(recipe, name)
    ]
    if differ:
        raise SettingError(
            f"{before.folder}: a model starts from one of its own kind; these differ" + listing(differ, len(differ))
        )
    method = recipe.build(items, labels.shape[1], labels)
    if not method.supports_distributed:
        raise SettingError(
            f"start_from: {recipe.method} with the head {recipe.head} is solved, and where it starts makes no "
            "difference. Leave it out, or train by steps: head_settings={'solve': False}, --head-setting solve=false."
        )
    if recipe.head not in HEADS:
        raise SettingError(
            f"start_from: the labels of a head {recipe.head!r} share weights, which cannot be told apart by label. "
            f"Take one of {', '.join(HEADS)}, or train anew."
        )
    networks = [name for name, part in method.named_modules() if isinstance(part, Network)]
    heads = {f"method.{name}.head.{part}" for name in networks for part in ("weight", "bias")}
    inside = tuple(f"method.{name}." for name in networks)
    fresh, old = method.weights(), before.method.weights()
    start: dict[str, Tensor] = {}
    for name, tensor in fresh.items():
        if name in heads:
            start[name] = tensor.clone()
            for row, found in enumerate(sources):
                if found:
                    start[name][row] = old[name][list(found)].mean(dim=0)
            continue
        by_label = not name.startswith(inside) and labels.shape[1] in tensor.shape
        if by_label or name not in old or old[name].shape != tensor.shape:
            raise SettingError(
                f"start_from: {name.removeprefix('method.')} of {recipe.method} cannot be carried over to other "
                "labels or items: it is not kept label by label. Train anew."
            )
        start[name] = old[name]
    return start


def sources_of(
    names: Sequence[str],
    before: Sequence[str],
    heirs: Mapping[str, Sequence[str]] | None = None,
    hierarchy: Hierarchy | None = None,
) -> list[tuple[int, ...]]:
    """For each label, positions in `before` of those it starts from: itself; else those of whom it is said to be the
    heir; else the nearest one above it."""
    at, parents = {name: j for j, name in enumerate(before)}, {} if hierarchy is None else hierarchy.parents

    def nearest(name: str) -> tuple[int, ...]:
        up: str | None = name
        while up is not None and up not in at:
            up = parents.get(up)
        return () if up is None else (at[up],)

    said = heirs or {}
    return [tuple(at[one] for one in said[name] if one in at) if name in said else nearest(name) for name in names]
