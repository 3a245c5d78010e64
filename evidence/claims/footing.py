"""Equal footing: whether both sides of a comparison were trained alike, read from their result records.

Two sides are comparable where start, head, features, optimizer, epochs and batch size are equal, unless the claim is
about just that, and where the best epoch is interior: after the first and not among the last tenth, unless the curve is
flat there. A solved model is at its optimum, so it has no budget; it counts as the start that a warm head begins from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from partly.comparison.plan import NAIVE, SCIKIT
from partly.comparison.results import Record

SOLVED, RANDOM = "solved", "random"
LAST_TENTH = 0.9
FLAT = 0.001  # of the validation score: what the last tenth of the epochs may add
WARM = "warm-linear"
REFERENCES = (SCIKIT.partition("[")[0], "auto")
# What the papers train: a whole network for so many epochs, or (None) a head on fixed features.
NETWORK_EPOCHS = {"Durand et al. 2019": 20, "Zhou et al. 2022": 10, "Lyu et al. 2025": 100}
# The settings in the brackets of a row that are those of the method's paper.
OWN_SETTING = {"em": "alpha=", "em-apl": "alpha=", "asymmetric": "gamma_no=4", "cls": "preset=", "imcl": "solver=clip"}


@dataclass(frozen=True)
class Footing:
    """How the runs of one side were trained."""

    start: str
    head: str
    features: str  # "fixed", or the backbone that is trained
    optimizer: str
    epochs: int | None  # None: solved, or not chosen by validation
    batch_size: int | None  # None: solved
    best_epoch: float | None  # median position of the best epoch, as a share of the epochs
    learning_rate: float | None = None
    budget: str = ""  # what is wrong with it in half of the runs or more; "" where nothing is

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def read(records: Sequence[Record]) -> Footing | None:
    """Return how these runs, one per seed, were trained; None without runs."""
    if not records:
        return None
    first = records[0]
    ran = first.get("ran", {})
    solved = is_solved(first)
    shares = sorted(r["best_epoch"] / r["ran"]["epochs"] for r in records if r.get("best_epoch") is not None)
    faults = Counter(filter(None, map(_budget, records)))
    return Footing(
        start=SOLVED if solved else _start(first),
        head=first["head"],
        features=_features(ran),
        optimizer=first["optimizer"],
        epochs=None if solved else ran.get("epochs"),
        batch_size=None if solved else ran.get("batch_size"),
        best_epoch=None if solved or not shares else shares[len(shares) // 2],
        learning_rate=None if solved else ran.get("lr"),
        budget="" if solved or 2 * faults.total() < len(records) else faults.most_common(1)[0][0],
    )


def compare(a: Footing | None, b: Footing | None, subject: Mapping[str, Any]) -> list[str]:
    """Return why two sides are not on an equal footing. What the claim itself varies (`subject`) may differ."""
    reasons = [f"{name}: {side.budget}" for name, side in (("method", a), ("other side", b)) if side and side.budget]
    if a is None or b is None:
        return reasons
    recipe = set(subject.get("recipe", ()))
    allowed = {"start", "head"} if "head" in subject else set()
    allowed |= recipe | ({"epochs"} if {"experiment", "scenarios"} & set(subject) else set())
    for name in ("start", "head", "features", "optimizer", "epochs", "batch_size"):
        first, second = getattr(a, name), getattr(b, name)
        if first != second and name not in allowed and not _is_solved_steps(name, a, b):
            reasons.append(f"{name.replace('_', ' ')}: {first} against {second}")
    return reasons


def find_regime_gap(paper: str, side: Footing | None) -> str:
    """Return why a paper that trains whole networks is not decided by these runs."""
    epochs = NETWORK_EPOCHS.get(paper)
    if epochs is None or side is None:
        return ""
    if side.features == "fixed":
        return "the paper trains whole networks; here a head is trained on fixed features"
    if side.epochs is not None and side.epochs < epochs:
        return f"the paper trains for {epochs} epochs; here {side.epochs}"
    return ""


def find_missing_setting(rows: Sequence[str]) -> str:
    """Return why the rows of one method, of which one has to be at its paper's setting, are not enough."""
    name = rows[0].partition("[")[0].partition(",")[0]
    own = OWN_SETTING.get(name)
    return f"{name} was not run at its paper's setting" if own and not any(own in row for row in rows) else ""


def is_solved(record: Record) -> bool:
    """Whether a model was solved to its optimum, and not trained by steps."""
    ran = record.get("ran", {})
    if record["method"] in REFERENCES:
        return True
    solves = record["head"] == WARM or ran.get("head_settings", {}).get("solve", False)
    at_once = ran.get("epochs") == 1 or len(set(record.get("validation_curve", ()))) == 1  # no epoch changed it
    return bool(record["method"] in NAIVE and solves and at_once)


def _start(record: Record) -> str:
    ran = record.get("ran", {})
    if record["head"] == WARM:
        return SOLVED
    if record["method"] in NAIVE and ran.get("head_settings", {}).get("solve", False):
        return "solved linear path"  # beside the network; only losses that can be solved have it
    return str(ran.get("start", RANDOM))


def _features(ran: Mapping[str, Any]) -> str:
    backbone = ran.get("backbone")
    return "fixed" if not backbone or ran.get("backbone_settings", {}).get("freeze") == "all" else str(backbone)


def _budget(record: Record) -> str:
    best, epochs = record.get("best_epoch"), record.get("ran", {}).get("epochs")
    if best is None or not epochs:
        return ""
    if best <= 1:
        return "best at its start or after the first epoch"
    return "best epoch among the last tenth" if best > LAST_TENTH * epochs and not _is_flat(record, epochs) else ""


def _is_flat(record: Record, epochs: int) -> bool:
    """Whether the last tenth of the epochs adds next to nothing to the validation score."""
    before = [score for score in record.get("validation_curve", ())[: int(LAST_TENTH * epochs)] if score is not None]
    return bool(before) and record["validation_score"] - max(before) <= FLAT


def _is_solved_steps(name: str, a: Footing, b: Footing) -> bool:
    """A solved model has no epochs and no batches to compare."""
    return name in ("epochs", "batch_size") and SOLVED in (a.start, b.start) and None in (a.epochs, b.epochs)
