"""The stages of a network that somebody else wrote: what comes before its layers, each layer, and what comes after."""

from __future__ import annotations

from torch import nn


def layers_of(model: nn.Module) -> list[nn.Module]:
    """The first list of layers that is met on the way in, layer by layer; what comes before it is the first stage, what
    comes after (a last normalisation) belongs to the last. Without such a list, the children of the model."""
    listed = _list_of(model)
    if listed is None:
        return list(model.children())
    before, after = _around(model, listed)
    *layers, last = listed
    first = [nn.ModuleList(before)] if before else []
    return [*first, *layers, nn.ModuleList([last, *after])]


def _list_of(model: nn.Module) -> nn.ModuleList | None:
    """Breadth first, so that a list of stages is found before the list of layers in one of them."""
    here = [model]
    while here:
        found = next((part for part in here if isinstance(part, nn.ModuleList) and len(part)), None)
        if found is not None:
            return found
        here = [child for part in here for child in part.children()]
    return None


def _around(model: nn.Module, listed: nn.Module) -> tuple[list[nn.Module], list[nn.Module]]:
    """The parts of a model before and after the one that holds the list, on every level down to it."""
    before: list[nn.Module] = []
    after: list[nn.Module] = []
    while model is not listed:
        children = list(model.children())
        place = next(i for i, child in enumerate(children) if any(part is listed for part in child.modules()))
        before += children[:place]
        after = children[place + 1 :] + after
        model = children[place]
    return before, after
