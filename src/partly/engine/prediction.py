"""Scores of items by a method: block by block, or as one matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from partly.calibration.maps import sigmoid
from partly.errors import DataError, PartlyError, listing
from partly.items import Items, scoring_batch_size, stream_batches
from partly.labels import Labels, scored
from partly.method import Method
from partly.networks import eval_mode

CACHED_NUMBERS = 1 << 20  # features, or scores, of a block: they stay in the cache of a core
Scores = npt.NDArray[np.float32]


def logit_blocks(
    method: Method, items: Items, batch_size: int | None = None, known: Labels | None = None
) -> Iterator[Scores]:
    """Yield logits [B, L], block by block, without side effects on the method; known: labels for a network that takes
    them."""
    device, batch_size = method.device, scoring_batch_size(items, batch_size or _block_size(items, method.task.labels))
    slices = [slice(start, min(start + batch_size, len(items))) for start in range(0, len(items), batch_size)]
    for rows, x in zip(slices, stream_batches(items, slices), strict=True):
        z = () if known is None else (torch.tensor(known.rows(rows), device=device),)
        with eval_mode(method), torch.inference_mode():  # not during the yield: the caller may do other things
            logits: Scores = method.logits(x.to(device), *z).float().cpu().numpy()
        expected = (rows.stop - rows.start, method.task.labels)
        if logits.shape != expected:
            raise PartlyError(f"A forward gave logits of {list(logits.shape)}, not of {list(expected)}.")
        _refuse_non_finite(logits, rows.start)
        yield logits


def predict_blocks(
    method: Method, items: Items, batch_size: int | None = None, known: Labels | None = None
) -> Iterator[Scores]:
    """Yield probabilities [B, L], block by block."""
    return map(sigmoid, logit_blocks(method, items, batch_size, known))


def logits(method: Method, items: Items, batch_size: int | None = None, known: Labels | None = None) -> Scores:
    """Return logits [N, L]."""
    return stack(logit_blocks(method, items, batch_size, known), (len(items), method.task.labels))


def predict(method: Method, items: Items, batch_size: int | None = None, known: Labels | None = None) -> Scores:
    """Return probabilities [N, L]."""
    return stack(logit_blocks(method, items, batch_size, known), (len(items), method.task.labels), sigmoid)


def stack(blocks: Iterable[Scores], shape: tuple[int, int], transform: Callable[..., Any] = np.positive) -> Scores:
    """Return blocks as one matrix; each is transformed while it is in the cache."""
    scores = np.empty(shape, np.float32)
    for rows, block in scored.enumerate_rows(blocks):
        transform(block, out=scores[rows])
    return scores


def _block_size(items: Items, labels: int) -> int:
    return min(4096, max(256, CACHED_NUMBERS // max(items.shape[0], labels))) if items.kind == "features" else 1024


def _refuse_non_finite(scores: Scores, start: int) -> None:
    # The sum needs no mask of all entries; that of finite scores may be infinite, hence the second check.
    if not torch.from_numpy(scores).sum().isfinite() and not np.isfinite(scores).all():
        rows = np.flatnonzero(~np.isfinite(scores).all(axis=1))
        places = (f"item {start + i}" for i in rows)
        raise DataError(
            f"The scores of {len(rows)} items are not finite" + listing(places, len(rows)) + "\nLook for missing (NaN) "
            "or extreme features of these items; if there are none, the weights of the model have diverged."
        )
