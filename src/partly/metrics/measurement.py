"""All metrics of one model, with the influence of each item on each of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from partly.errors import DataError
from partly.labels import Labels, scored
from partly.labels.scored import KnownScores
from partly.metrics.curves import auroc_influence, average_precision_influence
from partly.metrics.probabilities import brier_losses, calibration_errors, log_losses
from partly.metrics.propensity import propensities
from partly.metrics.ranking import MEANS, RATIOS, ranking_table
from partly.metrics.units import units_of_labels, units_of_mean
from partly.metrics.validation import Floats

MACRO = {"AP": "mAP", "precision": "CP", "recall": "CR", "F1": "macro_f1", "AUROC": "AUROC"} | {
    name: f"macro_{name}" for name in ("log_loss", "brier", "ECE")
}  # column of a label -> mean over labels
MAX_POOLED = 1 << 27  # known entries up to which they are ranked all together
ENTRY_LOSSES = {"log_loss": log_losses, "brier": brier_losses, "ECE": calibration_errors}


@dataclass
class Measurement:
    """Metrics by name, columns [L] of each label, and influences [N] of the items, where asked for."""

    values: dict[str, float]
    by_label: dict[str, npt.NDArray[Any]]
    influences: dict[str, Floats] = field(default_factory=dict)
    errors_by_label: dict[str, Floats] = field(default_factory=dict)  # standard errors, [L] each
    freedom_by_label: dict[str, Floats] = field(default_factory=dict)  # their degrees of freedom, [L] each
    inflation: dict[str, float] = field(default_factory=dict)  # of standard errors, for labels with few yes or no
    units: dict[str, float] = field(default_factory=dict)  # independent units, where fewer than the items


class LabelPass:
    """One pass over the labels: AUROC, log loss, Brier and ECE of each, and the influences of their known entries."""

    def __init__(self, labels: Labels, thresholds: Floats, probabilities: bool, influence: bool) -> None:
        items, count = labels.shape
        self.thresholds, self.influence = thresholds, influence
        self.losses = ENTRY_LOSSES if probabilities else {}
        self.columns = {name: np.full(count, np.nan) for name in ("AUROC", *ENTRY_LOSSES)}
        self.by_item = {name: np.zeros(items) for name in MACRO} if influence else {}
        self.pooled = {name: np.zeros(items) for name in ("yes", "known", "hits", "predicted", "log_loss", "brier")}
        self.errors = {name: np.full(count, np.nan) for name in ("AP", "AUROC", "F1")} if influence else {}
        self.freedom = {name: np.ones(count) for name in self.errors}
        self.variances = {"AP": np.zeros(2), "AUROC": np.zeros(2)}  # over labels: as they are, and for small samples
        self.weighted = np.zeros((2, items))  # of the weighted AUROC: of labels' values, of their weights

    def add(self, j: int, rows: npt.NDArray[np.int64], s: Any, values: Any, table: dict[str, Any]) -> None:
        """Add the known entries of one label."""
        yes = values == 1
        of_yes = of_no = np.zeros(0)
        if self.influence:
            self.columns["AUROC"][j], of_yes, of_no = auroc_influence(s[yes], s[~yes])
        else:
            self.columns["AUROC"][j] = scored.auc(s[yes], s[~yes])
        for name, loss in self.losses.items():
            losses = loss(s, yes)
            if len(losses):
                self.columns[name][j] = mean = float(np.sort(losses).sum()) / len(losses)
                if self.influence:
                    self.by_item[name][rows] += (losses - mean) / len(losses)
            if self.influence and name in self.pooled:
                self.pooled[name][rows] += losses
        if self.influence:
            self._add_influences(j, rows, s, yes, (of_yes, of_no), table)

    def _add_influences(
        self, j: int, rows: Any, s: Any, yes: Any, auroc: tuple[Floats, Floats], table: dict[str, Any]
    ) -> None:
        predicted = s >= self.thresholds[j]
        for name, values in (("yes", yes), ("known", 1), ("hits", yes & predicted), ("predicted", predicted)):
            self.pooled[name][rows] += values
        value, *influences = average_precision_influence(s[yes], s[~yes])
        if not math.isnan(value):
            self._spread("AP", j, rows, yes, influences)
            share = self._spread("AUROC", j, rows, yes, list(auroc))
            self.weighted[0][rows] += yes.sum() * share + yes * self.columns["AUROC"][j]
            self.weighted[1][rows] += yes
        hits = yes & predicted
        for name, above, below in (
            ("precision", hits, predicted),
            ("recall", hits, yes),
            ("F1", 2 * hits, predicted.astype(int) + yes),
        ):
            if not math.isnan(table[name][j]) and below.sum():
                change = (above - table[name][j] * below) / below.sum()
                self.by_item[name][rows] += change
                if name in self.errors:
                    self.errors[name][j] = math.sqrt(float((change**2).sum()))
                    self.freedom[name][j] = max(int(np.count_nonzero(change)) - 1, 1)

    def _spread(self, name: str, j: int, rows: Any, yes: Any, influences: list[Floats]) -> Floats:
        """Add the influences of a label's yes and no to their items."""
        change = np.empty(len(rows))
        change[yes], change[~yes] = influences
        self.by_item[name][rows] += change
        counts = [len(part) for part in influences]
        squares = [float((part**2).sum()) for part in influences]
        unbiased = [square * count / max(count - 1, 1) for square, count in zip(squares, counts, strict=True)]
        variance = sum(unbiased)
        self.variances[name] += [sum(squares), variance]
        self.errors[name][j] = math.sqrt(variance)
        if variance > 0 and min(counts) > 1:  # Welch and Satterthwaite: one variance of the yes, one of the no
            spread = sum(part**2 / (count - 1) for part, count in zip(unbiased, counts, strict=True))
            self.freedom[name][j] = max(variance**2 / spread, 1.0)
        return change


def measure_further(
    scores: KnownScores,
    labels: Labels,
    thresholds: Floats,
    core: dict[str, float],
    table: dict[str, npt.NDArray[Any]],
    items: Floats,
    propensity: npt.ArrayLike | None = None,
    influence: bool = False,
) -> Measurement:
    """Return the metrics beside `core`, and the influences of items on all of them."""
    z = labels.ternary()
    probabilities = bool(((thresholds > 0) & (thresholds < 1)).all()) and labels.shape[1] > 0
    label_pass = LabelPass(labels, thresholds, probabilities, influence)
    for j, (rows, s, known_z) in enumerate(scored.iter_known(scores, z)):
        label_pass.add(j, rows, s.astype(np.result_type(s.dtype, np.float32), copy=False), known_z, table)
    columns = table | label_pass.columns
    known = table["yes"] + table["no"]
    auroc, yes = columns["AUROC"], np.where(np.isnan(columns["AUROC"]), 0, table["yes"])
    values: dict[str, float] = {
        "AUROC": scored.mean(auroc),
        "weighted_AUROC": math.fsum((np.nan_to_num(auroc) * yes).tolist()) / yes.sum() if yes.any() else math.nan,
    }
    for name in ("log_loss", "brier"):
        sums = np.where(known > 0, columns[name], 0.0) * known
        values[name] = math.fsum(sums.tolist()) / known.sum() if known.any() and probabilities else math.nan
    values |= {f"macro_{name}": scored.mean(columns[name]) for name in ENTRY_LOSSES}
    result = Measurement(values, columns)
    _add_pooled(result, scores, z, probabilities, influence)
    _add_rankings(result, scores, labels, _inverse_propensity(labels, table, propensity), influence)
    values["one_error"] = 1 - core["P@1"]
    if influence:
        _add_units(result)
        result.errors_by_label, result.freedom_by_label = label_pass.errors, label_pass.freedom
        for name, (plain, unbiased) in label_pass.variances.items():
            result.inflation[MACRO[name]] = math.sqrt(unbiased / plain) if plain > 0 else 1.0
        _add_influences(result, label_pass, core, items)
    return result


def _inverse_propensity(labels: Labels, table: dict[str, Any], propensity: npt.ArrayLike | None) -> Floats:
    """Return 1 / propensity of each label; by default from the known yes of these labels."""
    if propensity is None:
        propensity = propensities(table["yes"], max(1, len(labels)))
    p = np.asarray(propensity, np.float64)
    if p.shape != labels.shape[1:] or not ((p > 0) & (p <= 1)).all():
        raise DataError(f"propensity needs one number in (0, 1] for each of the {labels.shape[1]} labels.")
    return np.asarray(1 / p)


def _add_pooled(result: Measurement, scores: KnownScores, z: Any, probabilities: bool, influence: bool) -> None:
    """Add AP, AUROC and ECE of all known entries as one label."""
    result.values |= dict.fromkeys(("ECE", "pooled_AP", "pooled_AUROC"), math.nan)
    if int(result.by_label["yes"].sum() + result.by_label["no"].sum()) > MAX_POOLED:
        return
    rows, s, values = _select_known(scores, z)
    s, yes = s.astype(np.result_type(s.dtype, np.float32), copy=False), values == 1
    of_yes, of_no = s[yes], s[~yes]
    if not influence:
        result.values["pooled_AP"] = scored.average_precision(of_yes, of_no)
        result.values["pooled_AUROC"] = scored.auc(of_yes, of_no)
    for name, rule in (("pooled_AP", average_precision_influence), ("pooled_AUROC", auroc_influence)):
        if influence:
            result.values[name], *shares = rule(of_yes, of_no)
            influence_of_sides = (
                np.bincount(rows[side], share, z.shape[0]) for side, share in zip((yes, ~yes), shares, strict=True)
            )
            result.influences[name] = np.add(*influence_of_sides)
    if probabilities and len(s):
        errors = calibration_errors(s, yes)
        result.values["ECE"] = value = float(np.sort(errors).sum()) / len(errors)
        if influence:
            result.influences["ECE"] = np.bincount(rows, errors - value, minlength=z.shape[0]) / len(errors)


def _select_known(scores: KnownScores, z: Any) -> tuple[npt.NDArray[np.int64], Any, Any]:
    """Return rows, scores and values of all known entries."""
    if sp.issparse(z):
        packed: Any = z
        rows = np.repeat(np.arange(packed.shape[0]), np.diff(packed.indptr))
        return rows, scores.data if scored.is_sparse(scores) else scores[rows, packed.indices], packed.data
    known = z != 0
    return np.nonzero(known)[0], scores[known], z[known]


def _add_rankings(
    result: Measurement, scores: KnownScores, labels: Labels, inverse_propensity: Floats, influence: bool
) -> None:
    """Add the metrics of the ranking of each item's entries; undefined where no no is known."""
    yes, no = (int(counts.sum()) for counts in labels.counts())
    one_sided = not no and yes < labels.shape[0] * labels.shape[1]
    ranked = ranking_table(scores, labels.ternary(), inverse_propensity)
    for name in MEANS:
        column = ranked[name]
        result.values[name] = math.nan if one_sided else scored.mean(column)
        if influence:
            result.influences[name] = mean_influence(column)
            result.units[name] = float(np.count_nonzero(~np.isnan(column)))
    for name in RATIOS:
        above, below = np.nan_to_num(ranked[name]), np.nan_to_num(ranked[f"{name} max"])
        total = math.fsum(below.tolist())
        value = math.nan if one_sided or not total else math.fsum(above.tolist()) / total
        result.values[name] = value
        if influence:
            result.influences[name] = (above - value * below) / total if total else np.zeros(len(above))
            result.units[name] = float(np.count_nonzero(below))


def _add_units(result: Measurement) -> None:
    """Add the number of independent units behind means over labels and pooled ratios."""
    table, of_labels = result.by_label, units_of_labels(result.by_label)
    yes, no, predicted = (float(table[name].sum()) for name in ("yes", "no", "predicted"))
    units = {MACRO[name]: units_of_mean(count, table[name]) for name, count in of_labels.items()}
    units["CF1"] = min(units["CP"], units["CR"])
    units["weighted_AUROC"] = units_of_mean(of_labels["AUROC"], table["AUROC"], table["yes"])
    units |= dict.fromkeys(("OR", "OF1", "micro_f1"), yes) | dict.fromkeys(("pooled_AP", "pooled_AUROC"), min(yes, no))
    units["OP"] = predicted or yes
    result.units |= units


def mean_influence(column: Floats) -> Floats:
    """Return the influence of each item on the mean of the defined values of a column [N]."""
    defined = ~np.isnan(column)
    return np.where(defined, column - scored.mean(column), 0.0) / max(1, int(defined.sum()))


def _add_influences(result: Measurement, label_pass: LabelPass, core: dict[str, float], items: Floats) -> None:
    """Add the influences on means over labels, on pooled ratios and on means over items."""
    influences, pooled = result.influences, label_pass.pooled
    for column, name in MACRO.items():
        defined = int(np.count_nonzero(~np.isnan(result.by_label[column])))
        influences[name] = label_pass.by_item[column] / max(1, defined)
    cp, cr = core["CP"], core["CR"]
    if cp + cr > 0:
        influences["CF1"] = 2 * (cr**2 * influences["CP"] + cp**2 * influences["CR"]) / (cp + cr) ** 2
    else:
        influences["CF1"] = np.zeros(len(items))
    weights = label_pass.weighted[1]
    influences["weighted_AUROC"] = (label_pass.weighted[0] - result.values["weighted_AUROC"] * weights) / max(
        1.0, float(weights.sum())
    )
    ratios = {
        "OP": (core["OP"], pooled["hits"], pooled["predicted"]),
        "OR": (core["OR"], pooled["hits"], pooled["yes"]),
        "OF1": (core["OF1"], 2 * pooled["hits"], pooled["predicted"] + pooled["yes"]),
        "log_loss": (result.values["log_loss"], pooled["log_loss"], pooled["known"]),
        "brier": (result.values["brier"], pooled["brier"], pooled["known"]),
    }
    for name, (value, above, below) in ratios.items():
        influences[name] = (above - value * below) / max(1.0, float(below.sum()))
    influences["micro_f1"] = influences["OF1"]
    for name, column in zip(("exact_match", "P@1", "P@3", "P@5"), items.T, strict=True):
        influences[name] = mean_influence(column)
    influences["one_error"] = -influences["P@1"]
