"""`complete`: labels with what can be filled in to a stated precision, and what is promised of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from partly.binary_relevance.given import count_of
from partly.completion import audit, certificate
from partly.completion.certificate import ZoneDecision
from partly.completion.entry_scores import EntryScores, board_of, check_model, held_out_scores
from partly.completion.missing_by_chance import reason_not_mar
from partly.completion.result import Completion, Found, Terms, filling
from partly.errors import LabelError, SettingError, did_you_mean, listing
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
    recall: float | None = None,
    missing: str = "auto",
    answers: Labels | None = None,
    budget: int = 200,
    force: bool = False,
    hierarchy: Any = None,
    folds: int | None = None,
    seed: int = 0,
) -> Completion:
    """Fill in what can be filled in with at least this precision of yes and of no, with this confidence for both.

    Parameters
    ----------
    model : Classifier, PerLabel, or the like
        A clone is fitted.
    X : items
        As for `fit`.
    labels : Labels, or array of [N, L]
        1 yes, 0 no, NaN unknown.
    precision, confidence : float
        What is promised, and how surely.
    recall : float, optional
        Certify too that so large a share of the hidden yes is filled in.
    missing : "auto", "at-random" or "not-at-random"
        Whether known entries are known by chance; "auto" tests it. If not, people are asked.
    answers : Labels, optional
        Of the same shape: what people have answered so far. `questions` of what comes back has the next ones.
    budget : int
        At most so many questions.
    force : bool
        Fill in by the model's own chances what cannot be certified.
    hierarchy : Hierarchy or {child: parent}, optional
        Without it, the model's.
    folds : int, optional
        So many clones make scores of items they have not seen; without it the method's own, where it has such.
    seed : int
        Of folds and questions.

    Returns
    -------
    Completion
        `labels`, `filled`, `certified`, `expected_errors`, and `words` that say it.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> X = np.random.default_rng(0).normal(size=(400, 4))
    >>> truth = partly.Labels.from_full((X[:, :3] > 0).astype(int))
    >>> observed = partly.scenarios.uniform(truth, 0.34, seed=0)
    >>> model = partly.Classifier("bce", head="linear", progress=False)
    >>> done = partly.complete(model, X, observed, precision=0.9)
    >>> done.labels.shape, done.filled <= observed.summary()["unknown"]
    ((400, 3), True)
    """
    terms = Terms(precision, confidence, recall, budget)
    if missing not in MISSING:
        raise SettingError(f"missing = {missing!r}.{did_you_mean(str(missing), MISSING)}")
    check_model(model)
    said = align_labels(count_of(X), labels, beside=X)
    tree = _tree(model, hierarchy)
    known = said if tree is None else tree.deduce(said)
    if not said.known_per_item().any():
        raise LabelError("labels: no entry is known: there is nothing to complete them from.")
    why = {"at-random": "", "not-at-random": "as the caller says"}.get(missing)
    why = reason_not_mar(said, X, seed) if why is None else why
    if why and recall is not None:
        raise SettingError(
            f"recall = {recall}: cannot be certified here, since known entries do not speak for unknown ones ({why}), "
            "and questions about what is filled in say nothing of what is not. Leave it out."
        )
    fitted, scores = held_out_scores(model, X, known, folds)
    board = board_of(scores, said, known, tree, bool(why), seed)
    if not why:
        return _completed(board, known, tree, fitted, terms, by_known(board, terms), force)
    told = known if answers is None else _answered(known, answers, tree)
    found = by_answers(board, told, terms, why, seed)
    return _completed(board, told, tree, fitted, terms, found, force)


def by_known(board: EntryScores, terms: Terms) -> Found:
    """From known entries that are known by chance. The risk is shared out among the promises."""
    risk = terms.risk / (2 if terms.recall is None else 3)
    (yes, zones), (no, _) = (certificate.certify(board, value, terms.precision, risk) for value in (1, -1))
    if terms.recall is None:
        return Found((yes, no))
    limit = certificate.recall_limit(board, zones, terms.recall, risk)
    return Found((yes, no), recall_certified=yes.threshold is not None and yes.threshold <= limit)


def by_answers(board: EntryScores, told: Labels, terms: Terms, why: str, seed: int) -> Found:
    """From what people answered so far, which `told` knows."""
    answers = np.where(board.open, told.rows(slice(None)), 0).astype(np.int8)
    rules = audit.Rules(1 - terms.precision, terms.risk / 2, terms.budget)
    found = audit.look(audit.ladders_of(board, seed), answers, rules)
    return Found(found.sides, why, (found.rows, found.columns))


def _completed(
    board: EntryScores, known: Labels, tree: Hierarchy | None, model: Any, terms: Terms, found: Found, force: bool
) -> Completion:
    """Labels with what may be filled in."""
    sides: tuple[ZoneDecision, ...] = found.sides
    if force:
        sides = tuple(side if side.threshold is not None else _by_chance(board, side, terms) for side in sides)
    z = filling(board, sides, known)
    rows, columns = np.nonzero(z)
    labels = known.with_entries(rows, columns, z[rows, columns])
    if tree is not None:
        tree.check(labels)
    certified = any(side.certified for side in sides) and not any(side.forced for side in sides)
    expected = float(sum(side.expected for side in sides))
    return Completion(labels, certified, len(rows), expected, terms, found, sides, board, known, model)


def _by_chance(board: EntryScores, side: ZoneDecision, terms: Terms) -> ZoneDecision:
    """Forced, not certified: whatever has such a chance by the model's own estimate."""
    chance = board.of(side.value)[0]
    zone = (chance >= terms.precision) & board.open & board.fills
    expected = float((1 - chance[zone]).sum())
    return ZoneDecision(side.value, terms.precision, int(zone.sum()), expected=expected, asked=side.asked, forced=True)


def _tree(model: Any, hierarchy: Any) -> Hierarchy | None:
    given = hierarchy if hierarchy is not None else getattr(model, "hierarchy", None)
    return None if given is None else as_hierarchy(given)


def _answered(known: Labels, answers: Labels, tree: Hierarchy | None) -> Labels:
    """What is known with the answers, and with all that follows from them."""
    answers = align_columns(answers, known.names, "answers", "labels")
    if len(answers) != len(known):
        raise LabelError(
            f"answers are of {len(answers)} items, labels of {len(known)}; both must have the same items, in order. "
            "Start from labels.with_entries."
        )
    rows, columns, said = answers.entries()
    now = known.rows(rows)[np.arange(len(rows)), columns]
    clash = np.flatnonzero((now != 0) & (now != 2 * said - 1))
    if len(clash):
        places = (f"item {known.id_at(int(rows[i]))!r}, {known.names[columns[i]]!r}" for i in clash)
        raise LabelError("answers contradict what is known" + listing(places, len(clash)) + "\nCorrect one of the two.")
    told = known.with_entries(rows, columns, 2 * said - 1)
    return told if tree is None else tree.deduce(told)
