"""Checks of the doctor that compare known entries with out-of-fold scores of a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, stdtrit

from partly.doctor.checks import check
from partly.doctor.context import CheckContext, Finding
from partly.engine import TrainConfig, taught_logits
from partly.estimators.classifier import Classifier
from partly.labels import Labels, scored
from partly.model_choice.missingness import missingness
from partly.registry import About

MIN_HIDDEN_RATIO = 0.5  # hidden yes per known yes, from which a method for unknown entries is suggested
MIN_YES = 20  # known yes of a label, below which the estimate of its hidden yes is weak
HIDDEN_REMEDY = "Use a method that does not treat unknown as no, such as `auto`; `partly methods` lists others."
MIN_ENTRIES = 20  # known and unknown entries each that a label needs to be tested
MAX_LABELS = 40  # labels that are tested for missingness by features
JACKKNIFE_GROUPS = 20
STRICTER_INTERVAL = 1.86  # width of a 99.9 % interval / width of a 95 % one (t, 19 degrees of freedom)
MIN_AUC = 0.55  # AUC from which missingness by features matters
WRONG_SHARES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2)  # candidate shares of wrong entries
MIN_EVIDENCE = 15.0  # twice the gain in log likelihood; by chance alone it is above 10.8 once in 2,000 times
MIN_KNOWN = 20  # known yes and no each that a label needs to be searched for wrong entries
TEACHER_CONFIDENCE = 0.95  # probability of the opposite answer, from which an entry is listed
MAX_SHOWN = 100  # wrong entries in a finding
Floats = npt.NDArray[np.float64]


@check(About(needs="features"))
def hidden_yes(context: CheckContext) -> list[Finding]:
    """Number of yes hidden among unknown entries, from the estimated share of yes (docs/choosing.md)."""
    labels = context.labels
    yes, no = labels.counts()
    unknown = len(labels) - yes - no
    if not unknown.any():
        return []
    missing = missingness(context.scores, labels)
    if missing.withheld:
        text = f"The number of yes among {unknown.sum()} unknown entries cannot be estimated: {missing.describe()[0]}"
        return [Finding("note", text, HIDDEN_REMEDY)]
    hidden = np.minimum(np.maximum(context.shares * len(labels) - yes, 0), unknown)
    weak = int(((yes < MIN_YES) & (unknown > 0)).sum())
    text = f"About {hidden.sum():.0f} yes are hidden among {unknown.sum()} unknown entries ({yes.sum()} are known)."
    if weak:
        text += f" The estimate is weak for labels with fewer than {MIN_YES} known yes ({weak} of {len(yes)})."
    if not no.any():
        text += " Only yes is known, so the estimate is too high for labels that are hard to predict."
    numbers = {"hidden": {name: round(float(h), 1) for name, h in zip(labels.names, hidden, strict=True)}}
    if hidden.sum() < MIN_HIDDEN_RATIO * yes.sum():
        return [Finding("fine", text, numbers=numbers)]
    return [Finding("note", text, HIDDEN_REMEDY, numbers=numbers)]


@check(About(needs="features"))
def missing_by_answer(context: CheckContext) -> list[Finding]:
    """Yes and no that are known at different rates, so that scores on known entries do not hold for all entries.

    Based on out-of-fold scores; `model_choice.missingness` describes the test, the estimate and its assumption.
    """
    missing = missingness(context.scores, context.labels)
    if missing.kind in ("complete", "untested"):
        return []
    numbers = {"p": missing.p_value, "yes_known": missing.yes_known, "no_known": missing.no_known}
    if not missing.biased:
        test = f"known and unknown entries have similar scores, p = {missing.p_value:.2g}"
        text = f"No sign that yes and no are known at different rates ({test})."
        return [Finding("fine", text, numbers={"p": missing.p_value})]
    action = "withhold" if missing.withheld else "correct"
    remedy = (
        f"`train` and `evaluate` {action} scores on such entries. Draw some items at random, label them completely, "
        "and test on them."
    )
    return [Finding("warning", missing.describe()[0], remedy, numbers=numbers)]


@check(About(needs="features"))
def missing_by_features(context: CheckContext) -> list[Finding]:
    """Features that predict which entries are known, so that entries are not missing at random.

    Out-of-fold kernel logistic regression predicts "is known" for each label with known yes and no (where only yes is
    known, "known" and "yes" are the same). The interval of the mean AUC over labels is a jackknife over items.
    """
    labels = context.labels
    yes, no = labels.counts()
    testable = (yes > 0) & (no > 0) & (np.minimum(yes + no, len(labels) - yes - no) >= MIN_ENTRIES)
    columns = np.flatnonzero(testable)[:MAX_LABELS]
    if not len(columns):
        return []
    known = np.concatenate([labels.rows(slice(i, i + 4096))[:, columns] != 0 for i in range(0, len(labels), 4096)])
    model = Classifier("bce", head="kernel", progress=False, seed=context.seed)
    scores = model.fit(context.features, Labels.from_full(known.astype(np.int8))).out_of_fold_
    auc, half = _auc_with_interval(scores, known)
    numbers = {"auc": auc, "low": auc - half, "high": auc + half, "labels": len(columns)}
    test = f"AUC {auc:.3f}, 95 % interval {auc - half:.3f} to {auc + half:.3f}, out of fold, {len(columns)} labels"
    if auc - STRICTER_INTERVAL * half <= 0.5 or auc < MIN_AUC:
        return [Finding("fine", f"Features do not predict which entries are known ({test}).", numbers=numbers)]
    text = f"Features predict which entries are known ({test}): entries are not missing at random."
    remedy = (
        "Scores and thresholds on known entries hold only for similar items. Draw some items at random, label them, "
        "and test on them."
    )
    return [Finding("warning", text, remedy, numbers=numbers)]


def _auc_with_interval(scores: npt.NDArray[np.floating], known: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Return the mean AUC over labels, and half of its 95 % interval."""

    def mean(rows: npt.NDArray[np.int64]) -> float:
        pairs = ((s[k], s[~k]) for s, k in zip(scores[rows].T, known[rows].T, strict=True))
        return scored.mean(np.array([scored.auc(*pair) for pair in pairs]))

    every = np.arange(len(scores))
    values = [mean(np.delete(every, slice(group, None, JACKKNIFE_GROUPS))) for group in range(JACKKNIFE_GROUPS)]
    error = np.sqrt((JACKKNIFE_GROUPS - 1) * np.var(values))
    return mean(every), float(stdtrit(JACKKNIFE_GROUPS - 1, 0.975) * error)


@check(About(needs="features"))
def wrong_labels(context: CheckContext) -> list[Finding]:
    """Known entries that are likely wrong, because an out-of-fold model confidently contradicts them.

    Paper: C. Northcutt, L. Jiang, I. Chuang. Confident Learning: Estimating Uncertainty in Dataset Labels. JAIR 2021.

    The paper shows that out-of-fold scores reveal wrong labels. It counts scores above the mean of a class, which also
    finds entries of labels that are merely hard to predict. This check estimates a share e of wrong entries: an entry
    is labeled yes with probability e + (1 - 2 e) sigmoid(slope * score + bias), with a slope and a bias for each label
    and one e for all. It reports entries only where some e above 0 is much more likely than none (likelihood ratio),
    each with its probability of being wrong.
    """
    labels = context.labels
    yes, no = labels.counts()
    columns = np.flatnonzero(np.minimum(yes, no) >= MIN_KNOWN)
    if not len(columns):
        return []
    pairs = list(scored.iter_yes_no(context.scores, labels.ternary()))
    samples = [_standardize(*pairs[j]) for j in columns]
    fits = {share: [_fit_line(s, y, share) for s, y in samples] for share in (0.0, *WRONG_SHARES)}
    gains = {share: 2 * sum(a[0] - b[0] for a, b in zip(fits[0.0], fits[share], strict=True)) for share in WRONG_SHARES}
    best = max(gains, key=lambda share: gains[share])
    if gains[best] < MIN_EVIDENCE:
        return []
    entries = _find_wrong_entries(context, columns, samples, [line for _, line in fits[best]], best)
    known = sum(len(y) for _, y in samples)
    numbers = {"share": best, "evidence": gains[best], "known": known, "doubted": len(entries)}
    first = "; ".join(f"{e['item']} {e['label']} {e['given']}" for e in entries[:3])
    text = (
        f"About {best:.1%} of {known} known entries are likely wrong (likelihood ratio {gains[best]:.0f}). "
        f"{len(entries)} of them contradict an out-of-fold prediction, for example {first}."
    )
    remedy = "Review the listed entries (--json lists them, most confident first); correct or blank wrong ones."
    return [Finding("warning", text, remedy, numbers=numbers, entries=tuple(entries[:MAX_SHOWN]))]


@check(About(needs="features"))
def teacher_contradicts(context: CheckContext) -> list[Finding]:
    """Known entries that contradict a zero-shot prediction from the label names, for images and texts.

    Names are read by a pretrained encoder and calibrated on the known entries of other items, so this check also finds
    errors that a model trained on these labels would learn.
    """
    labels = context.labels
    if not labels.counts()[1].any():
        return []  # without a known no, the model predicts which entries are known
    logits = taught_logits(TrainConfig(seed=context.seed), context.features, labels)
    if logits is None:
        return []
    row, column, value = labels.entries()
    p = expit(logits[row, column].astype(np.float64))
    probability = np.where(value > 0, p, 1 - p)  # of the given answer
    order = np.argsort(probability, kind="stable")
    worst = order[probability[order] < 1 - TEACHER_CONFIDENCE]
    if not len(worst):
        return []
    entries = tuple(
        {"item": labels.id_at(int(row[k])), "label": labels.names[column[k]]}
        | {"given": "yes" if value[k] > 0 else "no", "probability": round(float(1 - probability[k]), 4)}
        for k in worst[:MAX_SHOWN]
    )
    first = "; ".join(f"{e['item']} {e['label']} {e['given']}" for e in entries[:3])
    text = (
        f"Predictions from label names contradict {len(worst)} of {len(row)} known entries, for example {first}. "
        f"By their probabilities, about {probability[worst].sum():.0f} of these entries are nevertheless right."
    )
    remedy = "Review the listed entries (--json lists them, most confident first)."
    return [Finding("note", text, remedy, numbers={"contradicted": len(worst), "known": len(row)}, entries=entries)]


def _standardize(yes: npt.NDArray[Any], no: npt.NDArray[Any]) -> tuple[Floats, Floats]:
    s = np.concatenate([yes, no]).astype(np.float64)
    return (s - s.mean()) / (s.std() or 1.0), np.repeat([1.0, 0.0], [len(yes), len(no)])


def _fit_line(s: Floats, y: Floats, share: float) -> tuple[float, Floats]:
    """Return the minimal negative log likelihood, with the slope and bias that reach it."""

    def loss(line: Floats) -> tuple[float, Floats]:
        p = expit(line[0] * s + line[1])
        q = np.clip(share + (1 - 2 * share) * p, 1e-12, 1 - 1e-12)
        to_logit = (q - y) / (q * (1 - q)) * (1 - 2 * share) * p * (1 - p)
        value = -(y * np.log(q) + (1 - y) * np.log1p(-q)).sum()
        return float(value), np.array([(to_logit * s).sum(), to_logit.sum()])

    result = minimize(loss, np.array([1.0, 0.0]), jac=True, method="BFGS")
    return float(result.fun), np.asarray(result.x)


def _find_wrong_entries(
    context: CheckContext,
    columns: npt.NDArray[Any],
    parts: list[tuple[Floats, Floats]],
    lines: list[Floats],
    share: float,
) -> list[dict[str, Any]]:
    """Return the entries that are more likely wrong than not, most confident first."""
    labels, z, entries = context.labels, context.labels.ternary(), []
    for j, (s, y), line in zip(columns, parts, lines, strict=True):
        p = expit(line[0] * s + line[1])
        likely = np.where(y == 1, p, 1 - p)
        wrong = share * (1 - likely) / (share * (1 - likely) + (1 - share) * likely)
        column = np.asarray(z[:, [j]].toarray() if labels.sparse else z[:, [j]]).ravel()
        rows = np.concatenate([np.flatnonzero(column == 1), np.flatnonzero(column == -1)])  # as the scores lie
        for k in np.flatnonzero(wrong > 0.5):
            answer = "yes" if y[k] == 1 else "no"
            entry = {"item": labels.id_at(int(rows[k])), "label": labels.names[j], "given": answer}
            entries.append(entry | {"chance_to_be_wrong": round(float(wrong[k]), 4)})
    return sorted(entries, key=lambda entry: -entry["chance_to_be_wrong"])
