"""Classifier: the scikit-learn face."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from partly import auto, catalogue, run, training
from partly.errors import DataError, LabelError, SettingError
from partly.labels import Labels, as_labels
from partly.progress import watcher


class Classifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A multi-label classifier that learns from partly known labels.

    Parameters
    ----------
    method : name of a method (see `partly.methods()`), or "auto": chosen by what is known, see `partly.auto`.
    head : "linear", "mlp", ...: what comes after the features (or after the convolutional backbone of pictures).
    epochs, batch_size, lr, weight_decay : None takes the default of `partly.run.Recipe`.
    optimizer : "adamw" or "sgd" (momentum 0.9); both with warm-up and a cosine schedule.
    seed : same seed, same data, same settings: same bits.
    settings : the method's own settings, a dictionary.
    device : "auto" (a GPU if there is one), "cpu", "cuda", ...
    run_dir : a folder to save in; fitting again with the same data and parameters goes on where it stopped.
    progress : show a progress bar.

    Attributes after `fit`: `method_` (the name), `reason_` (why, with "auto"), `history_` (a dictionary an epoch),
    `best_epoch_`, `beliefs_` (N x L, or None), `label_names_`, `classes_`.
    """

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
        x = self._items(X, reset=True)
        labels = _paired(x, Y)
        held_out = None
        if validation is not None:
            x_val = self._items(validation[0], reset=False)
            held_out = training.Validation(x_val, _paired(x_val, validation[1], labels.names))
        recipe, self.reason_ = self._recipe(labels)
        folder = None if self.run_dir is None else Path(self.run_dir)
        with watcher(f"{recipe.method}, {recipe.head}", recipe.epochs, self.progress) as watch:
            fitted = run.fit(
                recipe, x, labels, validation=held_out, folder=folder, device=_device(self.device), watch=watch
            )
        self._description = run.describe(recipe, x, labels, held_out)
        return self._take(fitted)

    def decision_function(self, X: Any) -> npt.NDArray[np.float32]:
        """Logits [N, L]."""
        check_is_fitted(self, "fitted_")
        return training.logits(self.fitted_.method, self._items(X, reset=False))

    def predict_proba(self, X: Any) -> npt.NDArray[np.float32]:
        """Probability of yes [N, L]."""
        probabilities: npt.NDArray[np.float32] = expit(self.decision_function(X))
        return probabilities

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """1 where the probability of yes is at least 0.5, else 0: [N, L]."""
        return (self.decision_function(X) >= 0).astype(np.int64)

    def save(self, path: str | Path) -> None:
        """Write the model into a new folder: safetensors and JSON, no pickle."""
        check_is_fitted(self, "fitted_")
        run.save(self.fitted_, self._description, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Classifier:
        """The model that `save` wrote, or that a finished run left in its folder."""
        fitted = run.load(Path(path))
        self = cls(**vars(fitted.recipe))  # a recipe's fields are parameters of the same names
        self.reason_ = "loaded"
        self._description = run.read_description(Path(path))
        self._shape = tuple(self._description["data"]["shape"][1:])
        self.n_features_in_ = self._shape[0]
        return self._take(fitted)

    def _take(self, fitted: run.Fitted) -> Self:
        self.fitted_ = fitted
        self.method_ = fitted.recipe.method
        self.history_ = fitted.progress.history
        self.best_epoch_ = fitted.progress.best_epoch
        self.label_names_ = fitted.names
        self.classes_ = [np.array([0, 1])] * len(fitted.names)
        beliefs = fitted.method.beliefs()
        self.beliefs_ = None if beliefs is None else beliefs.cpu().numpy()
        return self

    def _recipe(self, labels: Labels) -> tuple[run.Recipe, str]:
        method, reason = auto.choose(labels) if self.method == "auto" else (self.method, "asked for")
        given = {k: getattr(self, k) for k in ("epochs", "batch_size", "lr", "weight_decay")}
        for name, value in given.items():
            if value is not None and not (value > 0 or (name == "weight_decay" and value == 0)):
                raise SettingError(f"{name} = {value!r} must be above 0.")
        settings = catalogue.find(method).checked(self.settings or {})
        chosen = {k: v for k, v in given.items() if v is not None}
        return (
            run.Recipe(method, self.head, **chosen, optimizer=self.optimizer, seed=self.seed, settings=settings),
            reason,
        )

    def _items(self, X: Any, reset: bool) -> Tensor:
        """Checked items as a tensor: float32 [N, D], or uint8 pictures [N, C, H, W]."""
        if getattr(X, "ndim", 2) == 4:
            return self._pictures(np.asarray(X), reset)
        array = validate_data(self, X, reset=reset, dtype=np.float32, accept_sparse=False)
        return torch.from_numpy(np.array(array, dtype=np.float32, order="C"))

    def _pictures(self, X: npt.NDArray[Any], reset: bool) -> Tensor:
        if X.dtype != np.uint8 or X.shape[3] not in (1, 3) or min(X.shape[1:3]) < 16:
            raise DataError(
                f"Pictures must be uint8 [N, H, W, 1 or 3], at least 16 x 16; got {X.dtype} {list(X.shape)}."
            )
        x = torch.from_numpy(np.ascontiguousarray(X.transpose(0, 3, 1, 2)))
        if reset:
            self._shape, self.n_features_in_ = tuple(x.shape[1:]), x.shape[1]
        elif tuple(x.shape[1:]) != self._shape:
            raise DataError(f"Pictures [C, H, W] of {list(x.shape[1:])}; the model was trained on {list(self._shape)}.")
        return x

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = False
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


def _paired(x: Tensor, y: Any, names: tuple[str, ...] | None = None) -> Labels:
    labels = as_labels(y)
    if len(labels) != len(x):
        raise LabelError(f"{len(x)} items but labels of {len(labels)}.")
    if names is not None and labels.shape[1] != len(names):
        raise LabelError(f"Validation has {labels.shape[1]} labels, training {len(names)}.")
    if not labels.shape[1]:
        raise LabelError("There are no labels to learn (0 columns).")
    return labels


def _device(name: str) -> str:
    return ("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name
