"""What a cell shows beside its scores, now that all is learned and the truth may be looked at: how good its
pseudo-labels are, how far apart it holds hidden yes and hidden no, and what is left out as likely yes.

Papers: T. Durand, N. Mehrasa, G. Mori, CVPR 2019, tables 2 and 8 (TP, TN, label proportion). C.-Y. Hsieh and others,
arXiv 2109.14676, "recover rate". D. Zhou and others, ECCV 2022, "distinguishability" (Wasserstein distance). G. Lyu
and others, AAAI 2025, figure 3 (false negatives that are found).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.stats import wasserstein_distance

from partly.clock import Clock
from partly.engine import FittedModel, Plan, prediction, training
from partly.items import Items
from partly.labels import Labels
from partly.methods.cls import LEFT_OUT
from partly.methods.curriculum import label_rates
from partly.pool import Pool

MOST = 1 << 18  # hidden entries of a kind whose scores are looked at


def hidden_label_metrics(fitted: FittedModel, items: Items, observed: Labels, truth: Labels) -> dict[str, float]:
    """Of the training items; nothing where nothing was hidden. Scores are looked at where items are features: to show
    pictures once more would take as long as an epoch."""
    z, right = observed.rows(slice(None)), truth.rows(slice(None))
    hidden = np.where(z == 0, right, 0)
    if not hidden.any():
        return {}
    line: dict[str, float] = {}
    if fitted.beliefs is not None:
        line |= pseudo_labels(np.asarray(fitted.beliefs), z, hidden)
    if items.kind == "features":
        scores = fitted.predict(items)
        line["wasserstein"] = distinguished(scores, hidden)
        end = Clock(fitted.config.seed, fitted.config.epochs, epoch=fitted.config.epochs)
        line |= left_out(scores, hidden, fitted.method.plan(end).get(LEFT_OUT, 0.0))
    return line


def over_epochs(plan: Plan, truth: Labels) -> list[dict[str, float]]:
    """The same after every epoch of a run, with how many of the hidden yes are found: the share of them among as many
    unknown entries with the highest scores ("found": false negatives, where unknown is taken for no). The run knows
    nothing of the truth, nor of being looked at."""
    z, right = plan.labels.rows(slice(None)), truth.rows(slice(None))
    hidden = np.where(z == 0, right, 0)
    config, items, method = plan.config, plan.items, plan.build()
    pool, lines = Pool(items, plan.labels, config.batch_size), []

    def callback(clock: Clock, _: dict[str, float]) -> None:
        if clock.step == clock.steps:
            scores = prediction.predict(method, items)
            line = {"found": found(scores, hidden), "wasserstein": distinguished(scores, hidden)}
            believed = list(training.belief_blocks(method))
            lines.append(line | (pseudo_labels(np.concatenate(believed), z, hidden) if believed else {}))

    clock = Clock(config.seed, config.epochs, method.steps(pool), last=pool.last)
    training.train(method, pool, clock, callback=callback)
    return lines


def found(scores: npt.NDArray[np.float32], hidden: npt.NDArray[np.int8]) -> float:
    """Of the unknown entries with the highest scores [N, L], as many as there are hidden yes, the share that are; NaN
    where there are none."""
    right = _ranked(scores, hidden)
    count = int(np.sum(right == 1))
    return float(np.mean(right[:count] == 1)) if count else float("nan")


def left_out(scores: npt.NDArray[np.float32], hidden: npt.NDArray[np.int8], share: float) -> dict[str, float]:
    """Of the share of unknown entries with the highest scores [N, L], whose losses are the largest where unknown is
    taken for no: how many are yes and how many no; nothing where none are left out."""
    right = _ranked(scores, hidden)
    likely = right[: int(np.ceil(share * len(right)))]
    if not len(likely):
        return {}
    yes = float(np.mean(likely == 1))
    return {"yes left out": yes, "no left out": 1 - yes}


def pseudo_labels(beliefs: npt.NDArray[Any], z: npt.NDArray[np.int8], hidden: npt.NDArray[np.int8]) -> dict[str, float]:
    """How many entries have a label at the end, known ones included ("labelled"), and how good those are that were
    guessed. Believed are yes above one half and no below. hidden: the truth of unknown entries, 0 elsewhere; all are
    [N, L]. F1 is that of yes among all hidden entries; beside it that of calling all of them yes, which is more than
    that of tossing a coin (2 y / (n + y) of y yes among n entries, and 2 y / (n + 2 y))."""
    weak = np.where(z == 0, np.sign(beliefs - 0.5), 0).astype(np.int8)
    rates = label_rates(torch.from_numpy(weak), torch.from_numpy(hidden))
    right = np.sum((weak == 1) & (hidden == 1))
    said = np.sum((weak == 1) & (hidden != 0)) + np.sum(hidden == 1)
    share = float(np.mean((z != 0) | (weak != 0)))
    yes, entries = np.sum(hidden == 1), np.sum(hidden != 0)
    f1 = {"F1": _ratio(2 * right, said), "F1 of all yes": _ratio(2 * yes, entries + yes)}
    return {"labelled": share, **rates, **f1}


def distinguished(scores: npt.NDArray[np.float32], hidden: npt.NDArray[np.int8]) -> float:
    """The Wasserstein distance between the scores [N, L] of hidden yes and of hidden no; NaN where one kind is
    missing."""
    yes, no = (_some(scores[hidden == kind]) for kind in (1, -1))
    return float(wasserstein_distance(yes, no)) if len(yes) and len(no) else float("nan")


def _ranked(scores: npt.NDArray[np.float32], hidden: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """What is under the unknown entries, from the highest score to the lowest."""
    right: npt.NDArray[np.int8] = hidden[hidden != 0][np.argsort(-scores[hidden != 0], kind="stable")]
    return right


def _ratio(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else float("nan")


def _some(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Evenly spaced ones in the order of the entries, where there are too many."""
    return scores[:: -(-len(scores) // MOST)] if len(scores) else scores
