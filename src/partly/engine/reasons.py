"""Explain the probability of an entry, for any method that learns from features.

- **Features**: change of the logit when one feature is set to its mean (to 0 if sparse), one at a time. It holds
  for this model and item with any method, but misses joint effects of features.
- **Words** of texts: change of the logit when one word is removed.
- **Neighbors**: the nearest items by standardized features with a known label. They describe the data, not the model.
- **Paths**, for methods that explain themselves (`imcl`): similar items and related labels, as it learned them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import expit
from torch import Tensor

from partly import items as things
from partly.engine.feature_cache import cached_features
from partly.engine.fitted_model import FittedModel
from partly.errors import SettingError, within
from partly.items import Items, SparseRows, as_matrix, decode_texts
from partly.labels import Labels
from partly.pool import Pool

ITEMS_PER_BLOCK = 512
WORD = re.compile(r"\w+")
MAX_WORDS = 200  # only the first words of a text are tried
VALUE_NAMES = {1: "yes", -1: "no"}


def reasons(fitted: FittedModel, items: Items, labels: Labels, item: int, label: int, most: int = 5) -> dict[str, Any]:
    """Return plain data about the entry (item, label), given as positions.

    items: contain the item, and are searched for neighbors; labels: what is known of them; most: number of reasons of
    each kind.
    """
    within(0, len(items) - 1, item=item)
    within(0, len(fitted.names) - 1, label=label)
    explain = getattr(fitted.method, "explain", None)
    prepared = fitted.prepare_items(items)
    if prepared.kind != "features" and explain is None:
        raise SettingError(
            f"{fitted.config.method} gives no reasons of its own, and its network takes {items.kind} as they are. "
            "Train on features that a frozen backbone makes once (--freeze); of pictures see `partly train --evidence`."
        )
    logit = float(fitted.logits(items[np.array([item])])[0, label])
    threshold = float(fitted.thresholds[label])
    explanation: dict[str, Any] = {"item": labels.id_at(item), "label": fitted.names[label]}
    explanation |= {"probability": float(expit(logit)), "threshold": threshold, "called": expit(logit) >= threshold}
    explanation["called"] = "yes" if explanation["called"] else "no"
    explanation["given"] = VALUE_NAMES.get(int(labels.rows(np.array([item]))[0, label]), "unknown")
    if items.kind == "features":
        row = as_matrix(prepared[np.array([item])])  # as they were given
        values = (row if isinstance(row, np.ndarray) else row.toarray())[0].tolist()
        explanation["features"] = _features(fitted, prepared, values, item, label, logit, most)
    if items.kind == "texts":
        explanation["words"] = _words(fitted, items, item, label, logit, most)
    if prepared.kind == "features":
        explanation["neighbours"] = _neighbors(cached_features(prepared), labels, item, label, most)
    if explain is not None:
        path_explanation = explain(item, label, Pool(prepared, labels))
        explanation["paths"] = [
            {
                "item": labels.id_at(path.neighbor),
                "label": fitted.names[path.label],
                "value": path.value,
                "known": path.known,
                "contribution": path.contribution,
            }
            for path in path_explanation.evidence[:most]
        ]
    return explanation


def _features(
    fitted: FittedModel, items: Items, values: list[float], item: int, label: int, logit: float, most: int
) -> list[dict[str, Any]]:
    """Return the features whose absence would change the logit most."""
    x, usual = items.take(slice(item, item + 1))[0], _usual(items)
    places = torch.nonzero(x != usual).ravel()
    changes = [
        logit - fitted.logits(_as_seen(_without(x, usual, part), items))[:, label]
        for part in places.split(ITEMS_PER_BLOCK)
    ]
    falls = np.concatenate([np.empty(0, np.float32), *changes])
    names = items.names or tuple(map(str, range(len(x))))
    return [
        {"feature": names[int(places[k])], "value": values[int(places[k])], "adds": float(falls[k])}
        for k in np.argsort(-np.abs(falls), kind="stable")[:most]
    ]


def _words(fitted: FittedModel, items: Items, item: int, label: int, logit: float, most: int) -> list[dict[str, Any]]:
    """Return the words whose absence would change the logit most; every occurrence is removed."""
    (text,) = decode_texts(items.take(slice(item, item + 1)))
    unique_words = list(dict.fromkeys(WORD.findall(text.casefold())))[:MAX_WORDS]
    texts_without = [re.sub(rf"\b{re.escape(word)}\b", " ", text, flags=re.IGNORECASE) for word in unique_words]
    variants = [(word, other) for word, other in zip(unique_words, texts_without, strict=True) if other.strip()]
    if not variants:
        return []
    falls = logit - fitted.logits(things.texts([other for _, other in variants]))[:, label]
    order = np.argsort(-np.abs(falls), kind="stable")[:most]
    return [{"word": variants[k][0], "adds": float(falls[k])} for k in order]


def _as_seen(x: Tensor, items: Items) -> Items:
    """Return rows of features as items that need no conditioning."""
    return replace(things.features(x.numpy(), "X", items.names).condition_as(None), encoding=items.encoding)


def _usual(items: Items) -> Tensor:
    mean = items.statistics.mean.float()
    return torch.zeros_like(mean) if isinstance(items, SparseRows) else mean


def _without(x: Tensor, usual: Tensor, places: Tensor) -> Tensor:
    """Return a row for each place, [len(places), D], with the usual value at that place."""
    rows = x.repeat(len(places), 1)
    rows[torch.arange(len(places)), places] = usual[places]
    return rows


def _neighbors(items: Items, labels: Labels, item: int, label: int, most: int) -> list[dict[str, Any]]:
    """Return the nearest other items with a known label."""
    scale = items.statistics.keeping_size.scale.float()
    inverse = torch.where(scale > 0, 1 / scale, torch.zeros_like(scale))
    x = items.take(slice(item, item + 1))
    distances: list[npt.NDArray[np.float32]] = []
    values: list[npt.NDArray[np.int8]] = []
    for start in range(0, len(items), ITEMS_PER_BLOCK):
        rows = slice(start, min(start + ITEMS_PER_BLOCK, len(items)))
        distances.append(((items.take(rows) - x) * inverse).norm(dim=1).numpy())
        values.append(labels.rows(rows)[:, label])
    distance, known = np.concatenate(distances), np.concatenate(values)
    distance[known == 0] = np.inf
    distance[item] = np.inf
    nearest = np.argsort(distance, kind="stable")[:most]
    return [
        {"item": labels.id_at(int(k)), "given": VALUE_NAMES[int(known[k])], "distance": float(distance[k])}
        for k in nearest
        if np.isfinite(distance[k])
    ]
