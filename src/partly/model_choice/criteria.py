"""Criteria that judge held-out scores by observed entries alone. `partly.criteria()` lists them.

A criterion is a function `name(scores, labels, *, settings...) -> float` decorated with `@criterion()`. Higher is
better; NaN means that the known entries do not define it. scores: [N, L], of models that did not see these labels (held
out, or out of fold). Its docstring has a paragraph `Assumes:`, with the assumption on unknown entries under which it
ranks models as clean labels would.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from partly.errors import DataError, SettingError
from partly.labels import Labels, scored
from partly.labels.scored import Scores
from partly.model_choice import priors
from partly.model_choice.recalibration import Entries, collect_entries, fit_scale, moments, standardize
from partly.registry import Info, Registry


class CriterionInfo(Info):
    """Description of a criterion, with what it assumes."""

    @property
    def assumes(self) -> str:
        """Assumption under which the criterion ranks models correctly."""
        paragraphs = [part for part in self.text.split("\n\n") if part.startswith("Assumes:")]
        return " ".join(" ".join(paragraphs).removeprefix("Assumes:").split())

    def words(self) -> dict[str, Any]:
        return super().words() | {"assumes": self.assumes}


_CRITERIA = Registry("criterion", CriterionInfo)
criterion, discover, find = _CRITERIA.register, _CRITERIA.discover, _CRITERIA.find


def criteria() -> dict[str, dict[str, Any]]:
    """List the criteria: name -> summary, what it assumes, citation and settings with their defaults.

    Returns
    -------
    dict
        From a name to a dictionary.

    Examples
    --------
    >>> import partly
    >>> partly.criteria()["log-loss"]["assumes"].partition(".")[0]
    'known entries are missing at random'
    """
    return {name: info.words() for name, info in discover().items()}


@criterion()
def auc(scores: Scores, labels: Labels) -> float:
    """The AUC of known yes against known no, as a mean over labels.

    Assumes: entries are missing at random within each label, yes and no each: then it estimates the AUC on clean
    labels. The share of yes among the known entries need not be right, since AUC does not depend on it. A label counts
    where a yes and a no of it are known, with few known entries as much as with many, so it is noisy where labels are
    rare.

    NaN where no label has both. Only the order of a label's scores matters.

    Paper: J. A. Hanley, B. J. McNeil. The Meaning and Use of the Area under a Receiver Operating Characteristic (ROC)
    Curve. Radiology 1982.
    """
    values = [scored.auc(yes, no) for yes, no in scored.iter_yes_no(scores, labels.ternary())]
    return scored.mean(np.array(values))


@criterion()
def auc_unknown_as_no(scores: Scores, labels: Labels) -> float:
    """The AUC of known yes against everything else, as a mean over labels: no known no is needed.

    Assumes: within a label, which yes are known is a matter of chance (missing completely at random). Hidden yes among
    the others then draw the AUC of every model towards one half by the same factor, 1 - the share of hidden yes among
    the others: models are ordered as the true AUC orders them, label by label. Where easy yes are named first, models
    that find the easy ones gain. Labels count alike, those with one known yes too: it is noisy where labels are rare.

    NaN where no yes is known. Only the order of a label's scores matters.

    Paper: A. K. Menon, B. van Rooyen, C. S. Ong, R. C. Williamson. Learning from Corrupted Binary Labels via
    Class-Probability Estimation. ICML 2015.
    """
    return scored.mean(np.array([scored.auc(yes, rest) for yes, rest in scored.iter_yes_rest(scores, labels)]))


@criterion()
def auc_unknown_as_no_weighted(scores: Scores, labels: Labels) -> float:
    """The AUC of known yes against everything else, where a label weighs by its known yes.

    Assumes: as `auc-unknown-as-no`, within a label known yes are a matter of chance. In addition, frequently known
    labels speak for the rare ones: it is the mean over all known yes of the share of other items below them, so
    labels with one or two known yes, whose AUC is mostly noise, hardly matter.

    NaN where no yes is known. Only the order of a label's scores matters.

    Paper: A. K. Menon, B. van Rooyen, C. S. Ong, R. C. Williamson. Learning from Corrupted Binary Labels via
    Class-Probability Estimation. ICML 2015, for one label.
    """
    pairs = [(scored.auc(yes, rest), len(yes)) for yes, rest in scored.iter_yes_rest(scores, labels)]
    defined = np.array([pair for pair in pairs if not math.isnan(pair[0])]).reshape(-1, 2)
    return float(np.average(defined[:, 0], weights=defined[:, 1])) if len(defined) else math.nan


@criterion()
def average_precision(scores: Scores, labels: Labels) -> float:
    """The mean average precision (mAP) on known entries.

    Assumes: entries are missing at random within each label, yes and no alike, since precision depends on the share of
    yes among the known entries. Then it estimates the mAP on clean labels. Where few yes of a label are known, as with
    10 % of a rare label, the estimate of that label is little more than noise, and counts as much as any other.

    As `partly.metrics.average_precision`, a mean over labels. NaN where no label has a known yes and a known no.
    """
    values = [scored.average_precision(yes, no) for yes, no in scored.iter_yes_no(scores, labels.ternary())]
    return scored.mean(np.array(values))


@criterion()
def average_precision_unknown_as_no(scores: Scores, labels: Labels) -> float:
    """The mean average precision of known yes among all items, everything else taken for no.

    Assumes: within a label known yes are a matter of chance. Even then hidden yes high up in the list count as errors,
    and more so for a good model: it orders models as clean labels would only where few yes are hidden, or where models
    differ by much. It looks at the top of the list, as mAP does and AUC does not.

    NaN where no yes is known. Only the order of a label's scores matters.
    """
    values = [scored.average_precision(yes, rest) for yes, rest in scored.iter_yes_rest(scores, labels)]
    return scored.mean(np.array(values))


@criterion()
def average_precision_corrected(scores: Scores, labels: Labels, *, prior: str | tuple[float, ...] = "auto") -> float:
    """The mean average precision among all items, with hidden yes added according to an estimate of their number.

    Assumes: within a label known yes are a matter of chance, so that hidden yes lie among the scores as the known ones
    do, and that the share of yes of each label (`partly.priors.estimate`) is about right: a share that is too high
    lifts all models to a precision of 1, where they cannot be told apart. Estimates for rare labels are often far off.
    A bad model's own scores make for a high estimate, which flatters it: to compare models give all of them the same
    shares, such as the lowest of their estimates, each of which errs upwards.

    Differs: at the k-th of n known yes, r items down, precision is not k / r but (k + h (k - 1/2) / n) / r, and at most
    1, where h = share x items - n are hidden. With nothing hidden, it is the average precision with unknown as no.

    prior: the share of yes of each label, or the method that estimates it from these scores. NaN where no yes is known.
    """
    shares = priors.estimate(scores, labels, prior) if isinstance(prior, str) else np.array(prior)
    if shares.shape != labels.shape[1:]:
        raise SettingError(
            f"average-precision-corrected: prior holds {shares.size} shares for {labels.shape[1]} labels."
        )
    pairs = zip(scored.iter_yes_rest(scores, labels), shares, strict=True)
    return scored.mean(np.array([_estimate_precision(yes, rest, share) for (yes, rest), share in pairs]))


def _estimate_precision(yes: Scores, rest: Scores, share: float) -> float:
    """Average precision of one label of which this share of all items is yes; equal scores are one threshold."""
    if not len(yes) or not len(rest):
        return math.nan
    yes, rest = np.sort(yes), np.sort(rest)
    count = len(yes)
    hits, above = (count - np.searchsorted(yes, yes, side=side) for side in ("left", "right"))
    hidden = max(share * (count + len(rest)) - count, 0) * (hits + above) / (2 * count)
    rank = hits + len(rest) - np.searchsorted(rest, yes)
    return float(np.minimum((hits + hidden) / rank, 1).mean())


@criterion()
def log_loss(scores: Scores, labels: Labels) -> float:
    """The share of the log loss of the labels' shares that the scores explain, after recalibration.

    Assumes: known entries are missing at random. How the items of a label are ordered and how clearly they part is what
    a model is worth, not whether its scores are probabilities. Where no no is known, unknown entries are taken for no:
    hidden yes then hide a part of what a model explains, of a good model more, so that close ones may change places.

    Differs: from the plain log loss, in which a model loses because its scores are off by a scale, as those of forests,
    neighbors and kernel machines are. Each label's scores are brought to mean 0 and deviation 1 over all items. Then
    one scale for all labels and a bias for each are fitted to the judged entries (`recalibration`). All entries count
    alike, so that a label weighs by how much there is to explain in it. Give logits rather than probabilities: a
    monotone transformation of the scores changes the result.

    1 - loss / loss of the shares: 0 is no better than these. NaN where all judged entries are equal.
    """
    fit = fit_scale(select_entries(scores, labels))
    return 1 - fit.loss / fit.alone if fit.alone else math.nan


def select_entries(scores: Scores, labels: Labels) -> Entries:
    """Return the known entries, z-scored over all items; all entries, unknown as no, where no no is known."""
    if not np.isfinite(scores).all():
        raise DataError("log-loss takes finite scores, and some are infinite: cut them off, or choose by auc.")
    rows, columns, values = labels.entries()
    items, width = labels.shape
    if values.all():
        targets = np.zeros((width, items), np.int8)
        targets[columns, rows] = 1
        return collect_entries(standardize(scores.T), None, targets, np.full(width, items))
    order = np.argsort(columns, kind="stable")
    rows, columns = rows[order], columns[order]
    mean, factor = moments(scores.T)
    z = (scores[rows, columns] - mean[columns]) * factor[columns]
    return collect_entries(z, None, values[order], np.bincount(columns, minlength=width))


@criterion()
def log_rank(scores: Scores, labels: Labels) -> float:
    """Height of known yes in the list of their label: minus the mean logarithm of their rank / items.

    Assumes: within a label known yes are a matter of chance. Hidden yes above a known one push it down, for every
    model, for a good one more. The logarithm looks at the top of the list: from rank 10 to rank 1 is as far as from
    1000 to 100. All known yes count alike, so that labels weigh by how many are known.

    Rank 1 is the highest score; equal scores share the mean of their ranks. NaN where no yes is known.
    """
    logs = [np.log(_rank_yes(yes, rest) / labels.shape[0]) for yes, rest in scored.iter_yes_rest(scores, labels)]
    values = np.concatenate(logs) if logs else np.empty(0)
    return -float(values.mean()) if len(values) else math.nan


def _rank_yes(yes: Scores, rest: Scores) -> Scores:
    """Rank of each yes among all items of a label."""
    every = np.sort(np.concatenate([yes, rest]))
    below, up_to = (np.searchsorted(every, yes, side=side) for side in ("left", "right"))
    return len(every) - (below + up_to - 1) / 2


@criterion()
def reciprocal_rank(scores: Scores, labels: Labels) -> float:
    """The mean of 1 / rank of known yes among the labels of their own item.

    Assumes: of an item's yes, which ones are known is a matter of chance, as where annotators name one thing each.
    Where frequent labels are named more often, models that name these gain. It compares the scores of different labels,
    which the other criteria do not, so they are recalibrated first (`log-loss`): differences that an AUC or a mAP of
    labels cannot see decide here too.

    Other known yes of the item are passed over; equal scores share the mean of their ranks. NaN where no yes is known.
    """
    fit = fit_scale(select_entries(scores, labels))
    logits = fit.scale * standardize(scores.T).T + fit.biases
    rows, columns, values = labels.entries()
    rows, columns = rows[values == 1], columns[values == 1]
    items, starts, counts = np.unique(rows, return_index=True, return_counts=True)
    runs = zip(items, starts, starts + counts, strict=True)
    reciprocals = [_reciprocals(logits[item], columns[start:stop]) for item, start, stop in runs]
    return float(np.concatenate(reciprocals).mean()) if reciprocals else math.nan


def _reciprocals(scores: Scores, yes: Scores) -> Scores:
    """1 / rank of each yes of one item among its labels that are not known to be yes. scores: [L], yes: positions."""
    rest = np.sort(np.delete(scores, yes))
    below, up_to = (np.searchsorted(rest, scores[yes], side=side) for side in ("left", "right"))
    return 1 / (1 + len(rest) - (below + up_to) / 2)
