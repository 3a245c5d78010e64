"""Classifier: the scikit-learn face."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from partly import auto, metrics, run, training
from partly.errors import DataError, LabelError, SettingError, listing
from partly.labels import Labels, as_labels
from partly.networks import Network
from partly.progress import watcher


class Classifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A multi-label classifier that learns from partly known labels.

    Parameters
    ----------
    method : name of a method (see `partly.methods()`), or "auto": chosen by what is known, see `partly.auto`.
    head : "linear", "mlp", ...: what comes after the features (or after the convolutional backbone of pictures).
    epochs, batch_size, lr, weight_decay : None takes what `partly.run.default_recipe` says for these items.
    optimizer : "adamw" or "sgd" (momentum 0.9); both with warm-up and a cosine schedule.
    seed : same seed, same data, same settings: same bits.
    settings : the method's own settings, a dictionary.
    device : "auto" (a GPU if there is one), "cpu", "cuda", ...
    run_dir : a folder to save in; fitting again with the same data and parameters goes on where it stopped.
    progress : show a progress bar.

    Attributes after `fit`: `method_` (the name), `reason_` (why, with "auto"), `history_` (a dictionary an epoch),
    `best_epoch_`, `beliefs_` (N x L, or None), `label_names_`, `classes_`.
    """

    _shape: tuple[int, ...]  # of one item

    def __init__(
        self,
        method: str = "auto",
        head: str = "mlp",
        epochs: int | None = None,
        batch_size: int | None = None,
        lr: float | None = None,
        weight_decay: float | None = None,
        optimizer: str = "adamw",
        seed: int = 0,
        settings: dict[str, Any] | None = None,
        device: str = "auto",
        run_dir: str | Path | None = None,
        progress: bool = True,
    ) -> None:
        self.method = method
        self.head = head
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.optimizer = optimizer
        self.seed = seed
        self.settings = settings
        self.device = device
        self.run_dir = run_dir
        self.progress = progress

    def fit(self, X: Any, Y: Any, validation: tuple[Any, Any] | None = None) -> Self:
        """Learn from items X and labels Y.

        X: features [N, D], or pictures [N, H, W, C] of uint8. Y: `Labels`, or an array with 1 yes, 0 no and NaN
        unknown. validation: (X, Y) that choose the best epoch; without it the last epoch is kept.
        """
        x, labels, recipe = self.prepare(X, Y)
        held_out = None if validation is None else self._held_out(validation, labels.names)
        return self.fit_prepared(recipe, x, labels, None if self.run_dir is None else Path(self.run_dir), held_out)

    def prepare(self, X: Any, Y: Any) -> tuple[Tensor, Labels, run.Recipe]:
        """What `fit` would train on, and how: checked items and labels, and a recipe with nothing left open."""
        x = self._items(X, reset=True)
        labels = _paired(x, Y)
        if not labels.known_per_item().any():
            raise LabelError(
                f"Y: of {labels.shape[0]} x {labels.shape[1]} entries none is known: nothing to learn from."
            )
        recipe, self.reason_ = self._recipe(x, labels)
        return x, labels, recipe

    def fit_prepared(
        self,
        recipe: run.Recipe,
        x: Tensor,
        labels: Labels,
        folder: Path | None = None,
        validation: training.Validation | None = None,
        start: dict[str, Tensor] | None = None,
    ) -> Self:
        """The rest of `fit`, for what `prepare` has checked; `start`: a state to begin from, see `run.fit`."""
        kept = run.entry_memory(recipe, labels)
        title = f"{recipe.method}, {recipe.head}" + (f", keeps {kept / 2**20:.1f} MiB" if kept else "")
        with watcher(title, recipe.epochs, self.progress) as watch:
            fitted = run.fit(
                recipe,
                x,
                labels,
                validation=validation,
                features=getattr(self, "feature_names_in_", None),
                folder=folder,
                device=_device(self.device),
                watch=watch,
                start=start,
            )
        return self.take(fitted)

    def take(self, fitted: run.Fitted) -> Self:
        """Become the model that a run has left behind."""
        self.fitted_ = fitted
        self.method_ = fitted.recipe.method
        self.history_ = fitted.progress.history
        self.best_epoch_ = fitted.progress.best_epoch
        self.label_names_ = fitted.names
        self.classes_ = [np.array([0, 1])] * len(fitted.names)
        beliefs = fitted.method.beliefs()
        self.beliefs_ = None if beliefs is None else beliefs.cpu().numpy()
        return self

    def decision_function(self, X: Any, known: Any = None) -> npt.NDArray[np.float32]:
        """Logits [N, L].

        known: what is known of these items, as Y in `fit`, for a head that makes use of it ("c-tran"). It sharpens the
        scores of the other entries. Those of known entries are the network's too, and mean little: it never learned
        to score what it is told.
        """
        check_is_fitted(self, "fitted_")
        x = self._items(X, reset=False)
        return training.logits(self.fitted_.method, x, known=None if known is None else self._known(x, known))

    def predict_proba(self, X: Any, known: Any = None) -> npt.NDArray[np.float32]:
        """Probability of yes [N, L]; for `known` see `decision_function`."""
        probabilities: npt.NDArray[np.float32] = expit(self.decision_function(X, known))
        return probabilities

    def predict(self, X: Any, known: Any = None) -> npt.NDArray[np.int64]:
        """1 where the probability of yes is at least 0.5, else 0: [N, L]; for `known` see `decision_function`."""
        return (self.decision_function(X, known) >= 0).astype(np.int64)

    def score(self, X: Any, y: Any) -> float:
        """mAP on the known entries, NaN where they define none. See `partly.metrics.scorer` for other scores."""
        return metrics.evaluate(self.predict_proba(X), y)["mAP"]

    def save(self, path: str | Path) -> None:
        """Write the model into a new folder: safetensors and JSON, no pickle."""
        check_is_fitted(self, "fitted_")
        run.save(self.fitted_, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Classifier:
        """The model that `save` wrote, or that a finished run left in its folder."""
        fitted = run.load(Path(path))
        self = cls(**vars(fitted.recipe))  # a recipe's fields are parameters of the same names
        self.reason_ = "loaded"
        self._shape = tuple(fitted.description["data"]["shape"][1:])
        self.n_features_in_ = math.prod(self._shape)
        if fitted.description["features"] is not None:
            self.feature_names_in_ = np.array(fitted.description["features"], dtype=object)
        return self.take(fitted)

    def _recipe(self, x: Tensor, labels: Labels) -> tuple[run.Recipe, str]:
        method, reason = auto.choose(labels) if self.method == "auto" else (self.method, "asked for")
        fixed = {k: getattr(self, k) for k in ("head", "optimizer", "seed")}
        asked = {k: getattr(self, k) for k in ("epochs", "batch_size", "lr", "weight_decay", "settings")}
        asked = {k: v for k, v in asked.items() if v is not None}
        recipe = run.Recipe(method, **fixed, **asked)  # refuses what cannot be, before anything is derived from it
        derived = run.default_recipe(x, labels.shape[1], recipe.optimizer, asked.get("batch_size"))
        return replace(recipe, **{k: v for k, v in derived.items() if k not in asked}), reason

    def _held_out(self, validation: tuple[Any, Any], names: tuple[str, ...]) -> training.Validation:
        if not isinstance(validation, tuple | list) or len(validation) != 2:
            raise SettingError(f"validation must be a pair (X, Y); got {type(validation).__name__}.")
        x = self._items(validation[0], reset=False)
        return training.Validation(x, _paired(x, validation[1], names, "validation"))

    def _known(self, x: Tensor, known: Any) -> Labels:
        networks = (part for part in self.fitted_.method.modules() if isinstance(part, Network))
        if not any(network.hears for network in networks):
            raise SettingError(
                f"known: the head {self.fitted_.recipe.head!r} makes no use of known labels. "
                "Train with head='c-tran', or leave `known` out."
            )
        return _paired(x, known, self.label_names_, "known")

    def _items(self, X: Any, reset: bool) -> Tensor:
        """Checked items as a tensor: float32 [N, D], or uint8 pictures [N, C, H, W]."""
        pictures = getattr(X, "ndim", 2) == 4
        if not reset and pictures != (len(self._shape) == 3):
            raise DataError(f"X has {np.ndim(X)} dimensions; the model was trained on items of {list(self._shape)}.")
        x = self._pictures(np.asarray(X)) if pictures else self._features(X, reset)
        if reset:
            self._shape, self.n_features_in_ = tuple(x.shape[1:]), math.prod(x.shape[1:])
        elif tuple(x.shape[1:]) != self._shape:
            raise DataError(f"Pictures [C, H, W] of {list(x.shape[1:])}; the model was trained on {list(self._shape)}.")
        return x

    def _features(self, X: Any, reset: bool) -> Tensor:
        try:
            array = validate_data(self, X, reset=reset, dtype="numeric", ensure_all_finite=False)
        except ValueError as error:
            raise DataError(str(error)) from None
        with np.errstate(over="ignore"):  # what float32 cannot hold is refused like infinity
            x = np.array(array, dtype=np.float32, order="C")
        bad = np.argwhere(~np.isfinite(x))
        if len(bad):
            names = getattr(self, "feature_names_in_", range(x.shape[1]))
            raise DataError(
                f"X: {len(bad)} of {x.size} values are NaN, infinite or too large for float32"
                + listing((f"item {i}, feature {names[j]}: {array[i, j]}" for i, j in bad), len(bad))
                + "\nFill them in (sklearn.impute) or leave these items out."
            )
        return torch.from_numpy(x)

    def _pictures(self, X: npt.NDArray[Any]) -> Tensor:
        if X.dtype != np.uint8 or X.shape[3] not in (1, 3) or min(X.shape[1:3]) < 16 or not len(X):
            raise DataError(
                f"Pictures must be uint8 [N, H, W, 1 or 3], at least 16 x 16; got {X.dtype} {list(X.shape)}."
            )
        self.__dict__.pop("feature_names_in_", None)
        return torch.from_numpy(np.ascontiguousarray(X.transpose(0, 3, 1, 2)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = False
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


def _paired(x: Tensor, y: Any, names: tuple[str, ...] | None = None, what: str = "Y") -> Labels:
    """Labels of the items x; `names`: those of training, where these are for something else (`what`)."""
    if y is None:
        raise LabelError("Classifier requires y to be passed, but the target y is None.")
    labels = as_labels(y)
    if len(labels) != len(x):
        raise LabelError(
            f"X has {len(x)} items and {what} {len(labels)}; both must be of the same items, in the same order."
        )
    if not labels.shape[1]:
        raise LabelError("There are no labels to learn (0 columns).")
    if names is not None and not _agree(names, labels.names):
        raise LabelError(
            f"{what.capitalize()} has other labels than training, or in another order."
            f"\n  training, {len(names)}: {', '.join(names[:9])}"
            f"\n  {what}, {labels.shape[1]}: {', '.join(labels.names[:9])}"
        )
    return labels


def _agree(names: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Names that nobody gave are positions: they agree with any names of that number."""
    return len(names) == len(others) and (names == others or tuple(map(str, range(len(names)))) in (names, others))


def _device(name: str) -> str:
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise SettingError(f"device = {name!r} cannot be used here ({reason}). 'auto' takes what there is.") from None
    return name
