"""Checks of the doctor on labels and items; those that need a model are in `model_checks`.

A check is a function `name(context) -> list[Finding]` decorated with `@check()`; `About(needs=...)` says what it looks
at: "labels", "items", "features" (from which scores can be made) or "test". On data without the fault, it returns
nothing or a finding of level "fine".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from partly.diagnosis.context import CheckContext, fingerprints
from partly.diagnosis.finding import Finding, Level, some
from partly.registry import About, Info, Registry

_CHECKS = Registry("check", Info)
check, discover = _CHECKS.register, _CHECKS.discover

DISPERSION_RISK = 0.001  # significance level of the dispersion test
DISPERSION_REMEDIES = {
    ("item", True): "Some items were looked at more than others. Split train and test by item, and look at what sets "
    "the well known items apart: scores on known entries speak for items like these.",
    ("item", False): "Each item was given about as many answers (one yes each, say): unknown entries of an item are "
    "not free to be anything. Take a method that knows it (partly methods), or let `auto`.",
    ("label", True): "Some labels were asked about more often. Look at AP label by label, and ask about the others.",
    ("label", False): "Each label was asked about equally often: nothing to do.",
}
MIN_YES = 10  # known yes of a label, below which little can be learned
SPARSE_SHARE = 0.02  # share of yes below which wholly known labels are strange
BARE_SHARE = 0.5  # share of items without any yes
MIN_LABELS = 5  # labels, from which on one yes for each item is strange


@check(About(needs="items"))
def contradictions(context: CheckContext) -> list[Finding]:
    """Items that are the same, of which a label is known to be yes for one and no for another."""
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
    words = f"Items that are the same contradict each other in {len(entries)} labels: {first}."
    return [
        Finding("problem", words, "Ask somebody, and give all of them the same answer.", entries=tuple(entries[:100]))
    ]


@check(About(needs="items"))
def duplicates(context: CheckContext) -> list[Finding]:
    """Items that are the same, number by number."""
    if not context.groups:
        return []
    ids = tuple(" = ".join(context.labels.id_at(i) for i in group[:4]) for group in context.groups)
    count = sum(len(group) - 1 for group in context.groups)
    words = f"{count} items are the same as another one: {some(ids, 3)}."
    remedy = "Join what is known of them into one item. Held out by chance, they make scores too good."
    return [Finding("warning", words, remedy, items=ids[:100], numbers={"items": count, "groups": len(ids)})]


@check(About(needs="test"))
def leaks(context: CheckContext) -> list[Finding]:
    """Items of the test part that are the same as one to learn from."""
    training = set(context.fingerprints)
    tested = fingerprints(context.test_items)
    count = sum(fingerprint in training for fingerprint in tested)
    if not count:
        return []
    words = f"{count} of {len(tested)} test items are also among the items to learn from: scores on them are too good."
    remedy = "Take them out of one of the two parts."
    return [Finding("problem", words, remedy, numbers={"items": count, "share": count / len(tested)})]


@check()
def missing(context: CheckContext) -> list[Finding]:
    """Dispersion of known entries: by chance, by item, or by label.

    If every entry were known by chance, known entries per item would vary as sums of independent draws with the labels'
    shares do, and known entries per label as those with the items' shares do. A chi-square test of dispersion compares
    their variance with that. It is corrected for the kurtosis of such sums, and two-sided: the same number of known
    entries in every item is no chance either.
    """
    labels = context.labels
    yes, no = labels.counts()
    size = labels.shape[0] * labels.shape[1]
    if not 0 < yes.sum() + no.sum() < size:
        return []
    known = {"item": labels.known_per_item(), "label": yes + no}
    findings = []
    for what, other in (("item", "label"), ("label", "item")):
        p = dispersion(known[what], known[other] / len(known[what]))
        if p is not None:
            findings.append(_dispersion_finding(what, *p, only_yes=not no.any()))
    return findings


def dispersion(counts: npt.NDArray[np.int64], chances: npt.NDArray[np.float64]) -> tuple[float, float] | None:
    """Test counts [K] for being sums of draws with these chances: (p-value, variance / that of chance).

    None where all chances are 0 or 1, or where there is one count.
    """
    spread = chances * (1 - chances)
    variance, df = float(spread.sum()), len(counts) - 1
    if variance < 1e-9 or df < 1:
        return None
    kurtosis = float((spread * (1 - 6 * spread)).sum()) / variance**2
    ratio = float(((counts - counts.mean()) ** 2).sum()) / variance / df
    shrunk = max((ratio * df - df) * np.sqrt(2 / max(2 + kurtosis, 0.1)) + df, 0.0)
    return float(min(1.0, 2 * min(chi2.cdf(shrunk, df), chi2.sf(shrunk, df)))), ratio


def _dispersion_finding(what: str, p: float, ratio: float, only_yes: bool) -> Finding:
    numbers: dict[str, Any] = {"by": what, "p": p, "variance_ratio": ratio}
    test = f"dispersion test, variance {ratio:.2f} times that of chance, p = {p:.2g}"
    if p >= DISPERSION_RISK:
        return Finding("fine", f"Known entries per {what} vary as by chance ({test}).", numbers=numbers)
    words = (
        f"Entries are not known by chance: known entries per {what} vary {'more' if ratio > 1 else 'less'} ({test})."
    )
    if only_yes and what == "label":
        words += " Only yes is known, so this also shows how frequent labels are."
    return Finding("note", words, DISPERSION_REMEDIES[what, ratio > 1], numbers=numbers)


@check()
def one_sided(context: CheckContext) -> list[Finding]:
    """Labels of which no yes, no no, or next to nothing is known."""
    labels = context.labels
    yes, no = labels.counts()
    unknown = len(labels) - yes - no
    findings = []
    if yes.any() and not no.any() and unknown.any():
        words = "Only yes is known: no entry of any label is known to be no."
        remedy = "Methods then take unknown for no, or weigh it; scores flatter. A few known no's per label help much."
        findings.append(Finding("warning", words, remedy))
    kinds: tuple[tuple[Level, npt.NDArray[np.bool_], str, str], ...] = (
        ("problem", (yes == 0) & (no == 0), "nothing is known", "They cannot be learned: ask for some, or drop them."),
        ("problem", (yes == 0) & (no > 0), "no yes is known", "They cannot be learned: ask for some yes."),
        ("warning", (yes > 0) & (no == 0) & no.any(), "no no is known", "Ask for some no's of these labels."),
        (
            "note",
            (yes > 0) & (yes < MIN_YES),
            f"fewer than {MIN_YES} yes are known",
            "Expect little of them; ask for more yes.",
        ),
    )
    for level, where, what, remedy in kinds:
        names = tuple(labels.names[j] for j in np.flatnonzero(where))
        if names:
            findings.append(Finding(level, f"Of {len(names)} labels {what}: {some(names)}.", remedy, names))
    return findings


@check()
def zeros_for_unknown(context: CheckContext) -> list[Finding]:
    """Labels in which nothing is unknown, and no is so frequent that 0 may have meant that nobody said."""
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
    words = f"Nothing is unknown, yet {' and '.join(signs)}: a 0 may mean that nobody said, and not no."
    remedy = (
        "If so, blank the zeros (in Python: Labels.from_positives). If each 0 was looked at, or exactly one label "
        "applies, all is well."
    )
    return [Finding("warning", words, remedy, numbers={"share_of_yes": share, "items_without_yes": bare})]
