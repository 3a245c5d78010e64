"""`complete`: fill in missing labels with guarantees for yes and for no."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from partly.binary_relevance.inputs import count_rows
from partly.completion import audit, certificate
from partly.completion.certificate import ZoneDecision
from partly.completion.entry_scores import EntryScores, build_entry_scores, check_model, compute_out_of_fold
from partly.completion.estimates import estimate
from partly.completion.pilot import PILOT_SHARE, Pilot
from partly.completion.result import Certification, Completion, Terms, compute_filling
from partly.doctor.context import CheckContext
from partly.doctor.model_checks import missing_by_features
from partly.errors import DataError, LabelError, SettingError, did_you_mean, listing
from partly.items import as_items
from partly.labels import Hierarchy, Labels
from partly.labels.align import align_columns, align_labels
from partly.labels.hierarchy import as_hierarchy

MISSING = ("auto", "at-random", "not-at-random")


def complete(
    model: Any,
    X: Any,
    labels: Any,
    precision: float = 0.95,
    confidence: float = 0.95,
    *,
    max_missed: float | None = 0.05,
    recall: float | None = None,
    missing: str = "auto",
    answers: Labels | None = None,
    budget: int = 200,
    force: bool = False,
    hierarchy: Any = None,
    folds: int | None = None,
    seed: int = 0,
) -> Completion:
    """Fill in missing labels with guarantees: the precision of yes, and the share of hidden yes that become no.

    Parameters
    ----------
    model : Classifier, PerLabel, or similar
        Estimator; clones of it are fitted.
    X : items
        As for `fit`.
    labels : Labels, or array of [N, L]
        1 yes, 0 no, NaN unknown.
    precision : float
        Guaranteed precision of the entries filled in as yes.
    confidence : float
        Confidence level of all guarantees together.
    max_missed : float, optional
        Largest share of the hidden yes that may be filled in as no; None fills in no no.
    recall : float, optional
        Certify also that at least this share of the hidden yes is filled in.
    missing : "auto", "at-random" or "not-at-random"
        "at-random" assumes that entries are missing at random, so that known entries certify. Otherwise answers to
        random questions certify; "auto" also says whether a test rejects missing at random.
    answers : Labels, optional
        Answers so far, of the same shape. `questions` of the result holds the next questions.
    budget : int
        Maximum number of questions. The tests are planned for it, so keep it from the first answer on.
    force : bool
        Fill in by the model's own probabilities where nothing can be certified.
    hierarchy : Hierarchy or {child: parent}, optional
        Default: the model's.
    folds : int, optional
        Number of folds for out-of-fold scores; default: the method's own scores where it has some, else 5 folds.
    seed : int
        Seed of folds and questions.

    Returns
    -------
    Completion
        `labels`, `filled`, `certified`, `expected_errors`, and `words`, a description in sentences.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> X = np.random.default_rng(0).normal(size=(400, 4))
    >>> truth = partly.Labels.from_full((X[:, :3] > 0).astype(int))
    >>> observed = partly.scenarios.uniform(truth, 0.34, seed=0)
    >>> model = partly.Classifier("bce", head="linear", progress=False)
    >>> done = partly.complete(model, X, observed, precision=0.9, missing="at-random")
    >>> done.labels.shape, done.filled <= observed.summary()["unknown"]
    ((400, 3), True)
    """
    terms = Terms(precision, confidence, max_missed, recall, budget)
    if missing not in MISSING:
        raise SettingError(f"missing = {missing!r}.{did_you_mean(str(missing), MISSING)}")
    check_model(model)
    observed = align_labels(count_rows(X), labels, beside=X)
    tree = _find_hierarchy(model, hierarchy)
    known = observed if tree is None else tree.deduce(observed)
    if not observed.known_per_item().any():
        raise LabelError("labels: no entry is known, so there is nothing to learn from.")
    why, hint = _reason_for_answers(missing, observed, X, seed)
    if why and recall is not None:
        raise SettingError(
            f"recall = {recall}: answers about filled entries do not measure recall. Leave it out, or assume that "
            "entries are missing at random (missing='at-random')."
        )
    fitted, scores = compute_out_of_fold(model, X, known, folds)
    entries = build_entry_scores(scores, observed, known, tree, bool(why), seed)
    if not why:
        return _fill_in(entries, known, tree, fitted, terms, certify_by_known(entries, terms), force)
    answered = known if answers is None else _add_answers(known, answers, tree)
    certification = certify_by_answers(entries, answered, terms, why, seed, calibrated=hint)
    return _fill_in(entries, answered, tree, fitted, terms, certification, force)


def _reason_for_answers(missing: str, observed: Labels, X: Any, seed: int) -> tuple[str, bool]:
    """Return why answers certify and not known entries, and whether known entries may choose the first zone."""
    if missing == "at-random":
        return "", True
    if missing == "not-at-random":
        return "entries are not missing at random, as requested", False
    reason = reason_not_mar(observed, X, seed)
    if reason:
        return f"entries are not missing at random: {reason}", False
    return "no test can show that entries are missing at random", True


def reason_not_mar(observed: Labels, X: Any, seed: int) -> str:
    """Return why entries are not missing at random; '' where nothing shows it. Only features are tested."""
    yes, no = observed.counts()
    if not (yes.any() and no.any()):
        return "only yes is known" if yes.any() else "only no is known"
    try:
        context = CheckContext(observed, as_items(X), seed=seed)
    except DataError:  # items in the format of another library
        return ""
    if context.find_missing_input("features"):
        return ""
    warnings = [finding.words for finding in missing_by_features(context) if finding.level == "warning"]
    return warnings[0].rstrip(".") if warnings else ""


def certify_by_known(entries: EntryScores, terms: Terms) -> Certification:
    """Certify by known entries that are missing at random. The risk is divided among the guarantees."""
    yes, zones = certificate.certify_yes(entries, terms.precision, terms.yes_risk)
    no = ZoneDecision(-1, None)
    if terms.max_missed is not None:
        no = certificate.certify_no(entries, terms.max_missed, terms.other_risk)
    if terms.recall is None:
        return Certification((yes, no))
    limit = certificate.find_recall_limit(entries, zones, terms.recall, terms.other_risk)
    return Certification((yes, no), recall_certified=yes.threshold is not None and yes.threshold <= limit)


def certify_by_answers(
    entries: EntryScores, answered: Labels, terms: Terms, why: str, seed: int, calibrated: bool = False
) -> Certification:
    """Certify by the answers so far. answered: the known labels with these answers.

    calibrated: whether known entries suffice to calibrate, so that no pilot is needed. They may choose the first zone,
    because the answers are drawn independently of them.
    """
    answers = np.where(entries.candidates, answered.rows(slice(None)), 0).astype(np.int8)
    pilot = 0 if calibrated else math.floor(PILOT_SHARE * terms.budget)
    rules = audit.Rules(terms.precision, terms.max_missed, terms.risk, terms.other_risk, terms.budget, pilot)
    state = audit.advance_audit(entries, answers, rules, seed)
    drawn = Pilot.draw(entries, seed, pilot)
    estimated = None
    if pilot and not len(drawn.find_unanswered(answers)):
        estimated = estimate(entries, drawn, answers, state.sides[0])
    return Certification(state.sides, why, (state.rows, state.columns), estimates=estimated)


def _fill_in(
    entries: EntryScores,
    known: Labels,
    tree: Hierarchy | None,
    model: Any,
    terms: Terms,
    certification: Certification,
    force: bool,
) -> Completion:
    sides: tuple[ZoneDecision, ...] = certification.sides
    if force:
        sides = tuple(side if side.threshold is not None else _force(entries, side, terms) for side in sides)
    z = compute_filling(entries, sides, known)
    rows, columns = np.nonzero(z)
    labels = known.with_entries(rows, columns, z[rows, columns])
    if tree is not None:
        tree.check(labels)
    certified = any(side.certified for side in sides) and not any(side.forced for side in sides)
    expected = float(sum(side.expected for side in sides))
    return Completion(labels, certified, len(rows), expected, terms, certification, sides, entries, known, model)


def _force(entries: EntryScores, side: ZoneDecision, terms: Terms) -> ZoneDecision:
    """Fill in without a certificate, by the model's own probabilities."""
    if side.value == -1 and terms.max_missed is None:
        return side
    chance = entries.for_value(side.value)[0]
    zone = (chance >= terms.precision) & entries.candidates & entries.fillable
    expected = float((1 - chance[zone]).sum())
    return ZoneDecision(side.value, terms.precision, int(zone.sum()), expected=expected, asked=side.asked, forced=True)


def _find_hierarchy(model: Any, hierarchy: Any) -> Hierarchy | None:
    hierarchy = hierarchy if hierarchy is not None else getattr(model, "hierarchy", None)
    return None if hierarchy is None else as_hierarchy(hierarchy)


def _add_answers(known: Labels, answers: Labels, tree: Hierarchy | None) -> Labels:
    """Return the known labels with the answers and everything that follows from them."""
    answers = align_columns(answers, known.names, "answers", "labels")
    if len(answers) != len(known):
        raise LabelError(
            f"answers are of {len(answers)} items, labels of {len(known)}; both must have the same items, in order. "
            "Start from labels.with_entries."
        )
    rows, columns, values = answers.entries()
    current = known.rows(rows)[np.arange(len(rows)), columns]
    clash = np.flatnonzero((current != 0) & (current != 2 * values - 1))
    if len(clash):
        places = (f"item {known.id_at(int(rows[i]))!r}, {known.names[columns[i]]!r}" for i in clash)
        raise LabelError("answers contradict known labels" + listing(places, len(clash)) + "\nCorrect one of the two.")
    answered = known.with_entries(rows, columns, 2 * values - 1)
    return answered if tree is None else tree.deduce(answered)
