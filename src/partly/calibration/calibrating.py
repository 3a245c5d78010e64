"""A calibration, found on held-out scores and what is known of their entries.

A label with too few held-out known entries is not given a map or a threshold of its own: it takes that of all labels
together that are judged in the same way (by known no's, or by the share of yes), and where even these have too few,
scores stay as they are and yes is called from one half on. `Calibration.told` says which labels these are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from scipy.special import expit, logit

from partly.calibration.calibrated import FEWEST, Calibration, From, LabelCalibration
from partly.calibration.goals import NEVER, ROUNDING, choose_threshold, choose_threshold_for_share, read_goal
from partly.calibration.judged import CalibrationSample, Floats, calibration_samples, pooled_sample, shares
from partly.calibration.maps import IDENTITY, METHODS, Map
from partly.errors import SettingError, did_you_mean
from partly.labels import scored

T = TypeVar("T")


def check(method: Any, goal: Any) -> None:
    """Refuse what is neither a way to calibrate nor a goal, before anything is trained."""
    if method is not None and method not in METHODS:
        raise SettingError(f"calibrate = {method!r}: there is no such way.{did_you_mean(str(method), METHODS)}")
    if goal is not None:
        read_goal(goal)


def calibration_of(
    scores: Any, labels: Any, method: str | None = None, goal: str | None = None, thresholds: Floats | None = None
) -> Calibration:
    """From held-out logits [N, L] and what is known of these items, `Labels` or an array of 1 yes, 0 no, NaN unknown.

    method: "platt", "isotonic", or None, which leaves scores as they are. goal: "f1", "precision:0.9", "recall:0.9",
    "share", or None, which keeps the model's own thresholds, [L] (None: one half).
    """
    check(method, goal)
    scores, labels = scored.check_scores(scores, labels)
    share = shares(scores, labels)
    each = calibration_samples(scores, labels, share)
    maps: list[tuple[Map, From]] = [(IDENTITY, "none")] * len(each)
    if method is not None:
        maps = _own_or_pooled(each, METHODS[method], FEWEST[method], IDENTITY)
    cuts = _cuts(scores, each, maps, share, goal, thresholds)
    return Calibration(method, goal, tuple(_labels(each, maps, cuts, share)))


def _cuts(
    scores: Floats,
    each: Sequence[CalibrationSample],
    maps: Sequence[tuple[Map, From]],
    share: Floats,
    goal: str | None,
    thresholds: Floats | None,
) -> list[tuple[float, From]]:
    """Thresholds on calibrated logits, and where they come from."""
    if goal is None:  # what the model called yes stays so
        own = np.zeros(len(each)) if thresholds is None else logit(thresholds.astype(np.float64))
        kept = [float(map(np.array(at))) - ROUNDING for (map, _), at in zip(maps, own, strict=True)]
        return [(0.0 if thresholds is None else value, "none") for value in kept]
    if goal == "share":
        columns = (map(scores[:, j]) for j, (map, _) in enumerate(maps))
        return [(choose_threshold_for_share(column, part), "own") for column, part in zip(columns, share, strict=True)]
    wanted = read_goal(goal)
    mapped = [of.mapped(map) for of, (map, _) in zip(each, maps, strict=True)]
    return _own_or_pooled(mapped, lambda of: choose_threshold(of, wanted), FEWEST["threshold"], 0.0)


def _own_or_pooled(
    each: Sequence[CalibrationSample], make: Callable[[CalibrationSample], T | None], fewest: int, otherwise: T
) -> list[tuple[T, From]]:
    """Of each label what `make` finds for it, or for all labels of its kind together, or what is there otherwise."""
    pools = {kind: [of for of in each if of.by_prior == kind] for kind in (False, True)}
    pooled = {kind: _made(pooled_sample(of), make, fewest) for kind, of in pools.items() if of}
    found: list[tuple[T, From]] = []
    for of in each:
        own, common = _made(of, make, fewest), pooled[of.by_prior]
        if own is not None:
            found.append((own, "own"))
        else:
            found.append((otherwise, "none") if common is None else (common, "pooled"))
    return found


def _made(of: CalibrationSample, make: Callable[[CalibrationSample], T | None], fewest: int) -> T | None:
    return make(of) if min(len(of.yes), len(of.rest)) >= fewest else None


def _labels(
    each: Sequence[CalibrationSample],
    maps: Sequence[tuple[Map, From]],
    cuts: Sequence[tuple[float, From]],
    share: Floats,
) -> list[LabelCalibration]:
    return [
        LabelCalibration(
            *map,
            float(expit(at)),
            source,
            len(of.yes),
            len(of.rest),
            share=float(part) if of.by_prior else None,
            reached=at != NEVER,
        )
        for of, map, (at, source), part in zip(each, maps, cuts, share, strict=True)
    ]
