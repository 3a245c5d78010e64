"""Start a model from the weights of a finished run whose labels may differ.

Labels that are in both keep their weights. A new label starts from its nearest ancestor, or from the mean of the labels
that it was made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from partly.engine.fitted_model import FittedModel
from partly.engine.plan import Plan
from partly.errors import SettingError, listing
from partly.labels import Hierarchy
from partly.networks import Network

HEADS = ("linear", "mlp", "kernel")  # in which a label has a row of weights to itself, and nothing else of its own
LANDMARKS = ".landmarks"  # of kernel features: what items are compared with
REQUIRED_EQUAL = ("method", "head", "head_settings", "backbone", "backbone_settings")


def warm_start(before: FittedModel, plan: Plan, sources: Sequence[Sequence[int]]) -> dict[str, Tensor]:
    """Return the weights that `fit` takes as `start`.

    sources: for each label the positions, among the labels of the finished run `before`, of those whose mean weights
    it starts from; a label without any starts from its usual initial weights.
    """
    config = plan.config
    differ = [
        f"{name}: {getattr(before.config, name)!r} there, {getattr(config, name)!r} now"
        for name in REQUIRED_EQUAL
        if getattr(before.config, name) != getattr(config, name)
    ]
    if differ:
        raise SettingError(
            f"{before.folder}: a model starts from one of its own kind; these differ" + listing(differ, len(differ))
        )
    method = plan.build()
    if not method.supports_distributed:
        raise SettingError(
            f"start_from: {config.method} with the head {config.head} is solved, and where it starts makes no "
            "difference. Leave it out, or train by steps: head_settings={'solve': False}, --head-setting solve=false."
        )
    if config.head not in HEADS:
        raise SettingError(
            f"start_from: the labels of a head {config.head!r} share weights, which cannot be told apart by label. "
            f"Take one of {', '.join(HEADS)}, or train anew."
        )
    networks = [name for name, part in method.named_modules() if isinstance(part, Network)]
    heads = {
        f"method.{name}.head.{layer}{part}"
        for name in networks
        for layer in ("", "start.", "linear.")  # those of a solved start and the change to it
        for part in ("weight", "bias")
    }
    inside = tuple(f"method.{name}." for name in networks)
    fresh, old = method.weights(), before.method.weights()
    if any(_differs(name, fresh, old) for name in fresh if LANDMARKS in name):
        raise SettingError(
            f"start_from: {config.method} with the head {config.head} starts at a baseline that is solved on kernel "
            "features, and these compare items with other training items than in the finished run. Train anew: leave "
            "out start_from. Or use the same items, or the head linear in both runs."
        )
    start: dict[str, Tensor] = {}
    for name, tensor in fresh.items():
        if name in heads:
            start[name] = tensor.clone()
            for row, positions in enumerate(sources):
                if positions:
                    start[name][row] = old[name][list(positions)].mean(dim=0)
            continue
        by_label = not name.startswith(inside) and plan.labels.shape[1] in tensor.shape
        if by_label or name not in old or old[name].shape != tensor.shape:
            raise SettingError(
                f"start_from: {name.removeprefix('method.')} of {config.method} cannot be carried over to other "
                "labels or items: it is not kept label by label. Train anew."
            )
        start[name] = old[name]
    return start


def _differs(name: str, fresh: Mapping[str, Tensor], old: Mapping[str, Tensor]) -> bool:
    return name not in old or old[name].shape != fresh[name].shape or not old[name].equal(fresh[name])


def match_labels(
    names: Sequence[str],
    before: Sequence[str],
    label_sources: Mapping[str, Sequence[str]] | None = None,
    hierarchy: Hierarchy | None = None,
) -> list[tuple[int, ...]]:
    """Return for each label the positions in `before` of its sources: those given for it, else itself, else its nearest
    ancestors."""
    position = {name: j for j, name in enumerate(before)}

    def nearest(name: str) -> tuple[int, ...]:
        if name in position:
            return (position[name],)
        return () if hierarchy is None else tuple(position[above] for above in hierarchy.nearest(name, position))

    explicit_sources = label_sources or {}
    return [
        tuple(position[source] for source in explicit_sources[name] if source in position)
        if name in explicit_sources
        else nearest(name)
        for name in names
    ]
