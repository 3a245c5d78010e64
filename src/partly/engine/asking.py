"""What a caller asks for, much of it left open, and what is done for it: a recipe is completed, a model trained by it,
and, where asked for, further models for held-out scores, on which probabilities and thresholds are found."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from partly import calibration
from partly.distributed.devices import device_of
from partly.distributed.launched import launched
from partly.distributed.threads import limiting, size_of
from partly.engine.cross_fitting import check_folds, cross_fit
from partly.engine.feature_cache import made_once
from partly.engine.fitting import Fitted, calibrate, fit, load
from partly.engine.progress_bar import watcher
from partly.engine.recipe import OPEN, Recipe, complete, within_budget
from partly.engine.training import Validation
from partly.engine.training_check import MAX_CHECKED_ITEMS, warn_if_all_called_yes, warn_if_nothing_learned
from partly.engine.warm_start import sources_of, warm_start
from partly.errors import LabelError, SettingError
from partly.items import Items, TableRows, condition_like, prepare_for_training
from partly.labels import Hierarchy, Labels
from partly.labels.hierarchy import as_hierarchy
from partly.labels.weights import Weights

LEFT_OPEN: dict[str, Any] = {**dict.fromkeys(OPEN), "method": "auto", "head": "auto", "hierarchy": None}
FOLDS = 5  # where held-out scores are needed, and nobody says how many


def _with_dtype(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters with `dtype` under the name that a recipe, and so run.json, has for it; `precision` is its old
    name."""
    old = given.get("precision")
    if "dtype" not in given:
        return given
    if old is not None:
        warnings.warn("precision is called dtype now; the old name will be removed.", FutureWarning, stacklevel=4)
    return {**given, "precision": given["dtype"] if old is None else old}


@dataclass(frozen=True)
class Asked:
    """What `Classifier` takes, which says what each of them means; commands take the same."""

    recipe: Mapping[str, Any]  # fields of a `Recipe`; None where left open
    budget: float | str | None = None
    folds: int | None = None
    calibrate: str | None = None
    thresholds: str | None = None
    device: str = "auto"
    run_dir: str | Path | None = None
    progress: bool = True
    encode: bool = True

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """By the names of the parameters; others are no matter of this."""
        given = _with_dtype(given)
        recipe = LEFT_OPEN | {name: given[name] for name in Recipe.__dataclass_fields__ if name in given}
        return cls(
            recipe, **{name: given[name] for name in cls.__dataclass_fields__ if name in given and name != "recipe"}
        )

    @cached_property
    def hierarchy(self) -> Hierarchy | None:
        given = self.recipe["hierarchy"]
        return None if given is None else as_hierarchy(given)

    def deduced(self, labels: Labels) -> Labels:
        """With all that follows from the hierarchy; contradictions are named."""
        return labels if self.hierarchy is None else self.hierarchy.deduce(labels)

    def first_stage(self, x: Items, beside: Items | None = None) -> Items:
        """What is learned from: these items, or the features that a backbone makes of them once, where it is frozen.
        beside: the training items, where these are others, of which the same backbone makes features."""
        return made_once(x, self.recipe, device_of(self.device), beside)

    def encoded(self, x: Items) -> Items:
        """Features, encoded where they are rows of a table and that is wanted; see `items.encoding`."""
        if isinstance(x, TableRows) and not self.encode:
            x.refuse()
        return prepare_for_training(x)

    @limiting(lambda self, x, labels: size_of(x, labels))
    def complete(self, x: Items, labels: Labels) -> tuple[Items, Labels, Recipe, str]:
        """What would be trained on, and how: a recipe with nothing left open, and why it is that method."""
        x, labels = self.encoded(self.first_stage(x)), self.deduced(labels)
        if not labels.known_per_item().any():
            raise LabelError(
                f"Y: of {labels.shape[0]} x {labels.shape[1]} entries none is known: nothing to learn from."
            )
        recipe, reason = complete(self.recipe, x, labels)
        if self.budget is not None:
            recipe = within_budget(recipe, self.budget)
        calibration.check_options(self.calibrate, self.thresholds)
        if self._parts is not None:
            check_folds(self._parts, *labels.shape)
        return recipe.shown(x), labels, recipe, reason

    @limiting(lambda self, x, labels, *_, **__: size_of(x, labels))
    def train(
        self,
        x: Items,
        labels: Labels,
        recipe: Recipe,
        reason: str,
        validation: Validation | None = None,
        weights: Weights | None = None,
        start_from: str | Path | None = None,
        heirs: Mapping[str, Sequence[str]] | None = None,
    ) -> Fitted:
        """Train on what `complete` has given. start_from, heirs: see `Classifier.fit`."""
        folder = None if self.run_dir is None else Path(self.run_dir)
        with watcher(recipe.method, recipe.head, recipe.epochs, self.progress) as watch:
            how: dict[str, Any] = {"folder": folder, "device": device_of(self.device), "watch": watch}
            how |= {"weights": weights}
            start = None
            if start_from is not None:
                before = load(Path(start_from))
                if x.encoding != before.method.task.items.encoding:
                    raise SettingError(
                        f"start_from: {start_from} encodes the columns of its table otherwise than these items. "
                        "Encode them before (pandas.get_dummies), in both cases alike, or train anew."
                    )
                x = condition_like(x, before.method.task.items)  # its first layer comes along
                sources = sources_of(labels.names, before.names, heirs, self.hierarchy)
                start = warm_start(before, recipe, x, labels, sources)
            fitted = fit(recipe, x, labels, validation=validation, start=start, **how)
            if self._parts is not None and not fitted.crosses:
                fitted.out_of_fold = cross_fit(recipe, x, labels, self._parts, **how)
        found = None
        if self._calls:
            own = fitted.thresholds if fitted.chooses else None
            found = calibration.fit_calibration(fitted.out_of_fold, labels, self.calibrate, self.thresholds, own)
        calibrate(fitted, found)
        fitted.reason, cuts = fitted.method.notes.get("reason", reason), fitted.thresholds
        if launched().first:
            most = MAX_CHECKED_ITEMS[x.kind]
            if not warn_if_all_called_yes(recipe.method, labels, lambda rows: fitted.predict(x[rows]), cuts, most):
                warn_if_nothing_learned(recipe.method, labels, lambda rows: fitted.predict(x[rows]), most)
        return fitted

    @property
    def _calls(self) -> bool:
        """Whether probabilities or thresholds are to be found on held-out entries."""
        return self.calibrate is not None or self.thresholds is not None

    @property
    def _parts(self) -> int | None:
        """Into how many parts the items are cut, for further models."""
        return FOLDS if self.folds is None and self._calls else self.folds
