"""Checks of the doctor on labels and items; those that need a model are in `model_checks`.

A check is a function `name(context) -> list[Finding]` decorated with `@check()`. `About(needs=...)` declares its input:
"labels", "items", "features" (from which scores can be computed) or "test". On data without the fault, it returns
nothing or a finding of level "fine".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from partly.doctor.context import CheckContext, Finding, Level, compute_fingerprints
from partly.errors import list_names
from partly.registry import About, Info, Registry

_CHECKS = Registry("check", Info)
check, discover = _CHECKS.register, _CHECKS.discover

DISPERSION_RISK = 0.001  # significance level of the dispersion test
DISPERSION_REMEDIES = {
    ("item", True): "Some items were annotated more thoroughly than others. Split train and test by item, and check "
    "how these items differ: scores on known entries hold for items like them.",
    ("item", False): "Each item has about the same number of known entries (for example one yes), so the unknown "
    "entries of an item are not independent of the known ones. Use a method for this case (`partly methods`), or auto.",
    ("label", True): "Some labels were annotated more often. Compare AP by label, and collect answers for the others.",
    ("label", False): "Each label was annotated equally often: nothing to do.",
}
MIN_YES = 10  # known yes of a label, below which little can be learned
SPARSE_SHARE = 0.02  # share of yes below which complete labels are suspicious
BARE_SHARE = 0.5  # share of items without any yes, above which complete labels are suspicious
MIN_LABELS = 5  # number of labels from which exactly one yes for each item is suspicious


@check(About(needs="items"))
def contradictions(context: CheckContext) -> list[Finding]:
    """Identical items with contradicting known labels."""
    labels = context.labels
    entries: list[dict[str, Any]] = []
    for group in context.groups:
        z = labels.rows(np.array(group))
        for j in np.flatnonzero((z == 1).any(axis=0) & (z == -1).any(axis=0)):
            answers = {
                labels.id_at(i): "yes" if value == 1 else "no" for i, value in zip(group, z[:, j], strict=True) if value
            }
            entries.append({"label": labels.names[j], "said": answers})
    if not entries:
        return []
    first = "; ".join(f"{e['label']}: {', '.join(f'{i} {v}' for i, v in e['said'].items())}" for e in entries[:3])
    text = f"Identical items contradict each other in {len(entries)} entries: {first}."
    return [Finding("problem", text, "Decide which answer is right and use it for all.", entries=tuple(entries[:100]))]


@check(About(needs="items"))
def duplicates(context: CheckContext) -> list[Finding]:
    """Identical items, compared number by number."""
    if not context.groups:
        return []
    ids = tuple(" = ".join(context.labels.id_at(i) for i in group[:4]) for group in context.groups)
    count = sum(len(group) - 1 for group in context.groups)
    text = f"{count} items duplicate another one: {list_names(ids, 3)}."
    remedy = "Merge duplicates into one item. If one of them is held out, scores are too optimistic."
    return [Finding("warning", text, remedy, items=ids[:100], numbers={"items": count, "groups": len(ids)})]


@check(About(needs="test"))
def leaks(context: CheckContext) -> list[Finding]:
    """Test items that are identical to a training item."""
    training = set(context.fingerprints)
    tested = compute_fingerprints(context.test_items)
    count = sum(fingerprint in training for fingerprint in tested)
    if not count:
        return []
    text = f"{count} of {len(tested)} test items are also training items: test scores are too optimistic."
    remedy = "Remove them from the training set or the test set."
    return [Finding("problem", text, remedy, numbers={"items": count, "share": count / len(tested)})]


@check()
def missing(context: CheckContext) -> list[Finding]:
    """Dispersion of known entries over items and labels.

    If entries were known independently at random, the number of known entries per item would vary like a sum of
    independent draws with the labels' known shares, and likewise per label. A chi-square test of dispersion compares
    the variance with that. It is corrected for the kurtosis of such sums, and two-sided: equal numbers of known entries
    in all items are not random either.
    """
    labels = context.labels
    yes, no = labels.counts()
    size = labels.shape[0] * labels.shape[1]
    if not 0 < yes.sum() + no.sum() < size:
        return []
    known = {"item": labels.known_per_item(), "label": yes + no}
    findings = []
    for axis, other in (("item", "label"), ("label", "item")):
        result = measure_dispersion(known[axis], known[other] / len(known[axis]))
        if result is not None:
            findings.append(_report_dispersion(axis, *result, only_yes=not no.any()))
    return findings


def measure_dispersion(counts: npt.NDArray[np.int64], chances: npt.NDArray[np.float64]) -> tuple[float, float] | None:
    """Test whether counts [K] are sums of independent draws with these chances: (p-value, variance ratio).

    Return None if all chances are 0 or 1, or if there is only one count.
    """
    spread = chances * (1 - chances)
    variance, df = float(spread.sum()), len(counts) - 1
    if variance < 1e-9 or df < 1:
        return None
    kurtosis = float((spread * (1 - 6 * spread)).sum()) / variance**2
    ratio = float(((counts - counts.mean()) ** 2).sum()) / variance / df
    shrunk = max((ratio * df - df) * np.sqrt(2 / max(2 + kurtosis, 0.1)) + df, 0.0)
    return float(min(1.0, 2 * min(chi2.cdf(shrunk, df), chi2.sf(shrunk, df)))), ratio


def _report_dispersion(axis: str, p: float, ratio: float, only_yes: bool) -> Finding:
    numbers: dict[str, Any] = {"by": axis, "p": p, "variance_ratio": ratio}
    test = f"dispersion test: variance ratio {ratio:.2f}, p = {p:.2g}"
    if p >= DISPERSION_RISK:
        return Finding("fine", f"Known entries per {axis} vary as if drawn at random ({test}).", numbers=numbers)
    direction = "more" if ratio > 1 else "less"
    text = f"Known entries are not a random sample: their number per {axis} varies {direction} than in one ({test})."
    if only_yes and axis == "label":
        text += " Only yes is known, so this also reflects how frequent labels are."
    return Finding("note", text, DISPERSION_REMEDIES[axis, ratio > 1], numbers=numbers)


@check()
def one_sided(context: CheckContext) -> list[Finding]:
    """Labels without a known yes, without a known no, or with very few."""
    labels = context.labels
    yes, no = labels.counts()
    unknown = len(labels) - yes - no
    findings = []
    if yes.any() and not no.any() and unknown.any():
        text = "Only yes is known: no entry of any label is known to be no."
        remedy = (
            "Methods then treat unknown as no or down-weight it, and scores are optimistic. Even a few known no's per "
            "label help."
        )
        findings.append(Finding("warning", text, remedy))
    kinds: tuple[tuple[Level, npt.NDArray[np.bool_], str, str], ...] = (
        ("problem", (yes == 0) & (no == 0), "no known entry", "They cannot be learned: collect answers or drop them."),
        ("problem", (yes == 0) & (no > 0), "no known yes", "They cannot be learned: collect some yes."),
        ("warning", (yes > 0) & (no == 0) & no.any(), "no known no", "Collect some no's for these labels."),
        (
            "note",
            (yes > 0) & (yes < MIN_YES),
            f"fewer than {MIN_YES} known yes",
            "Their scores will be unreliable; collect more yes.",
        ),
    )
    for level, affected, lacking, remedy in kinds:
        names = tuple(labels.names[j] for j in np.flatnonzero(affected))
        if names:
            text = f"{len(names)} label{'s' * (len(names) > 1)} with {lacking}: {list_names(names)}."
            findings.append(Finding(level, text, remedy, names))
    return findings


@check()
def zeros_for_unknown(context: CheckContext) -> list[Finding]:
    """Complete labels with so few yes that 0 may mean unknown rather than no."""
    labels = context.labels
    yes, no = labels.counts()
    size = labels.shape[0] * labels.shape[1]
    if not size or yes.sum() + no.sum() < size or not yes.any():
        return []
    per_item = np.concatenate([(labels.rows(slice(i, i + 4096)) == 1).sum(axis=1) for i in range(0, len(labels), 4096)])
    share, bare = float(yes.sum() / size), float((per_item == 0).mean())
    signs = [f"only {share:.2%} of the entries are yes"] if share < SPARSE_SHARE else []
    signs += [f"{bare:.0%} of the items have no yes at all"] if bare > BARE_SHARE else []
    if labels.shape[1] >= MIN_LABELS and len(labels) > 1 and (per_item == 1).all():
        signs.append("every item has exactly one yes")
    if not signs:
        return []
    text = f"Nothing is unknown, yet {' and '.join(signs)}: 0 may mean unknown rather than no."
    remedy = (
        "If so, blank the zeros (in Python: Labels.from_positives). If every 0 was checked by a person, or exactly one "
        "label applies to each item, nothing is wrong."
    )
    return [Finding("warning", text, remedy, numbers={"share_of_yes": share, "items_without_yes": bare})]
