"""PerLabel: one clone of a scikit-learn classifier per label. It checks its input and calls `binary_relevance`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from partly import atomic_io, binary_relevance, items, metrics
from partly.binary_relevance import LabelModel, SideInputs, check_parameters, count_rows, expects_numbers
from partly.clock import Clock, seed_for
from partly.distributed.threads import thread_limit
from partly.engine import claim, overwrite_guard, per_label_store, read_description
from partly.engine.checkpoint import FolderGuard
from partly.engine.progress_bar import progress_callback
from partly.engine.training_check import warn_if_nothing_learned
from partly.errors import CheckpointError, DataError, PartlyError, SettingError, Stopped
from partly.estimators.classifier import Classifier
from partly.estimators.sklearn_compat import NO_PARTIAL_FIT, classes_of, multi_label
from partly.executors import run_parts
from partly.labels import Labels
from partly.labels.align import align_labels
from partly.labels.frames import check_output_kind, to_output
from partly.labels.weights import check_weights

Floats = npt.NDArray[np.float64]


def load(path: str | Path) -> Classifier | PerLabel:
    """Load a saved model, or the model of a finished run folder.

    Parameters
    ----------
    path : str or Path
        A folder that `Classifier.save`, `PerLabel.save` or `partly train` wrote.

    Returns
    -------
    Classifier or PerLabel
        Whichever was saved there.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import partly
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> model = partly.Classifier("bce", head="linear", progress=False).fit(X, (X[:, :2] > 0).astype(float))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model")
    ...     type(partly.load(f"{folder}/model")).__name__
    'Classifier'
    """
    folder = Path(path)
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: is not a folder. Give the folder of a saved model or of a finished run.")
    kind = PerLabel if read_description(folder).get("kind") == per_label_store.KIND else Classifier
    return kind.load(folder)


class PerLabel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A clone of a scikit-learn classifier for each label, fitted to the entries of that label.

    Parameters
    ----------
    estimator : scikit-learn classifier
        A classifier, a pipeline or a search. X may be whatever it takes: numbers, a table, texts.
    unknown : "ignore", "no" or "auto"
        "ignore" leaves unknown entries out, "no" treats them as no, and "auto" does so for labels without a known no.
    weight_unknown : float or array of [N, L]
        Weight of an unknown entry, where it counts; known entries count 1.
    bags : int
        Number of estimators per label. Each learns from the known entries and as many random unknown entries as there
        are yes, treated as no (PU bagging); their scores are averaged. 0: one estimator on everything.
    seed : int
        Random seed of the bags, and of an estimator whose `random_state` is None.
    run_dir : str or Path, optional
        Folder to save in, label by label; fitting again with the same data resumes after the last finished label.
    progress : bool
        Show a progress bar.
    trusted : sequence of str
        Types beyond scikit-learn's own that may be loaded from `run_dir`.

    Notes
    -----
    A label with a single known value gets its smoothed share. For an estimator without `predict_proba`, its
    `decision_function` is squeezed into 0 to 1, which ranks items and is not a probability.

    Attributes after `fit`: `fitted_` (an estimator per label), `label_names_`, `classes_`.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> Y = np.where(rng.random((60, 2)) < 0.5, X[:, :2] > 0, np.nan)  # NaN: unknown
    >>> from sklearn.linear_model import LogisticRegression
    >>> model = partly.PerLabel(LogisticRegression(), progress=False).fit(X, Y)
    >>> model.predict(X[:3])
    array([[1, 0],
           [0, 1],
           [0, 0]])
    """

    def __init__(
        self,
        estimator: Any,
        unknown: str = "ignore",
        weight_unknown: float | npt.ArrayLike = 1.0,
        bags: int = 0,
        seed: int = 0,
        run_dir: str | Path | None = None,
        progress: bool = True,
        trusted: Sequence[str] = (),
    ) -> None:
        self.estimator = estimator
        self.unknown = unknown
        self.weight_unknown = weight_unknown
        self.bags = bags
        self.seed = seed
        self.run_dir = run_dir
        self.progress = progress
        self.trusted = trusted

    def fit(self, X: Any, Y: Any, pseudo_labels: Any = None, scores: Any = None, sample_weight: Any = None) -> Self:
        """Learn from items X and labels Y.

        Parameters
        ----------
        X : items
            Whatever the estimator takes: numbers, a table, texts.
        Y : Labels, or array of [N, L]
            1 yes, 0 no, NaN unknown. Where X and Y have ids, rows are matched by these, otherwise by position.
        pseudo_labels : array of [N, L], optional
            Another model's probabilities of unknown entries, NaN without an opinion: 0.7 is a yes of weight 0.7 and a
            no of weight 0.3. Known entries are unaffected.
        scores : array of [N, L], optional
            Scores of another model. Each label gets those of the other labels as features, and `predict_proba` needs
            them too. Use out-of-fold scores; others are overconfident.
        sample_weight : array, optional
            As in `Classifier.fit`, for an estimator that takes weights.
        """
        check_parameters(self.estimator, self.unknown, self.weight_unknown, self.bags, self.seed)
        x = self._items(X, reset=True, numbers=scores is not None)
        labels = align_labels(count_rows(x), Y, beside=X)
        sample = check_weights(sample_weight, labels)
        side_inputs = SideInputs.validate(self.weight_unknown, pseudo_labels, scores, len(labels), labels.names, sample)
        side_inputs.refuse_single_class(labels, self.unknown)
        folder = None if self.run_dir is None else Path(self.run_dir)
        packed = binary_relevance.pack(self.estimator)
        options = {"unknown": self.unknown, "bags": int(self.bags), "seed": int(self.seed)}
        options |= {"features_in": getattr(self, "n_features_in_", None)}
        names = list(map(str, self.feature_names_in_)) if hasattr(self, "feature_names_in_") else None
        recipe = per_label_store.recipe_of(self.estimator, packed, side_inputs, options)
        self._description = per_label_store.describe_labels(recipe, x, labels, names)
        with atomic_io.locked(folder) if folder else nullcontext():
            home = None
            if folder:
                claim(folder, self._description)
                home = FolderGuard.of(folder)
                per_label_store.write_whole(folder / per_label_store.ESTIMATOR, packed)
            with thread_limit(len(labels) * (getattr(self, "n_features_in_", None) or math.inf) * labels.shape[1]):
                fitted = self._fit_labels(x, labels, side_inputs, home)

        def predict(rows: npt.NDArray[np.int64]) -> Floats:
            takes = (side_inputs.take(x, label) for label in range(len(fitted)))
            scores = (model.probabilities(take(rows), len(rows)) for model, take in zip(fitted, takes, strict=True))
            return np.column_stack(list(scores))

        warn_if_nothing_learned(type(self.estimator).__name__, labels, predict)
        return self._take(tuple(fitted), labels.names)

    def _fit_labels(self, x: Any, labels: Labels, told: SideInputs, home: FolderGuard | None) -> list[LabelModel]:
        fitted: dict[int, LabelModel] = {}
        for label in range(labels.shape[1]):
            stored = None if home is None else self._read_label(label, home)
            if stored is not None:
                fitted[label] = stored
        missing = [label for label in range(labels.shape[1]) if label not in fitted]
        how: dict[str, Any] = {"unknown": self.unknown, "bags": self.bags, "seed": self.seed}
        work = partial(_fit_label, self.estimator, x, labels, binary_relevance.label_columns(labels), told, **how)
        clock = Clock(self.seed, steps=labels.shape[1])
        with progress_callback("per-label", type(self.estimator).__name__, 1, self.progress) as watch:
            for _ in fitted:
                clock.tick()
            try:
                for label, model in run_parts(missing, work):
                    fitted[label] = model
                    if home:
                        self._write_label(label, labels.names[label], model, home)
                    clock.tick()
                    if watch:
                        watch(clock, {})
            except KeyboardInterrupt:
                suffix = f"; saved in {home.folder}" if home else ""
                raise Stopped(f"Stopped after {len(fitted)} of {labels.shape[1]} labels{suffix}.") from None
        return [fitted[label] for label in range(labels.shape[1])]

    def _read_label(self, label: int, home: FolderGuard) -> LabelModel | None:
        """Return a finished label of the folder."""
        stored = per_label_store.read_label(home.folder, label)
        if stored is None:
            return None
        where, width = str(per_label_store.label_file(home.folder, label)), per_label_store.width_of(self._description)
        way_out = " If you know who wrote it: PerLabel(..., trusted={})."
        return LabelModel.from_bytes(stored, where, self.trusted, way_out, width)

    def _write_label(self, label: int, name: str, model: LabelModel, home: FolderGuard) -> None:
        home.check()
        content = model.to_bytes()
        strange = binary_relevance.find_untrusted_types(content, self.trusted)
        if strange:  # said now, and not when hours of work are to be read again
            raise SettingError(
                f"{type(self.estimator).__name__} consists of types that are not scikit-learn's own: "
                f"{', '.join(strange)}. To go on from {home.folder} they have to be loaded: say that you trust them, "
                f"PerLabel(..., trusted={strange}), or leave out run_dir."
            )
        per_label_store.write_label(home.folder, label, name, content)

    # ---------------------------------------------------------------- asking

    def predict_proba(self, X: Any, scores: Any = None) -> Any:
        """Return the probability of yes [N, L]; scores: of these items, if `fit` had some."""
        return self._format_output(self._probabilities(X, scores), X)

    def _probabilities(self, X: Any, scores: Any) -> Floats:
        check_is_fitted(self, "fitted_")
        with_scores = self._description["recipe"]["scores_sha256"] is not None
        if with_scores != (scores is not None):
            there, here = ("with", "none are given") if with_scores else ("without", "some are given")
            raise DataError(f"scores: the model was fitted {there} scores of another model, and here {here}.")
        x = self._items(X, reset=False, numbers=with_scores)
        count = count_rows(x)
        p = np.empty((count, len(self.fitted_)))
        side_inputs = SideInputs.validate(1.0, None, scores, count, self.label_names_)
        for label, fitted in enumerate(self.fitted_):
            inputs = x if scores is None else side_inputs.take(x, label)(np.arange(count))
            p[:, label] = fitted.probabilities(inputs, count)
        return p

    def decision_function(self, X: Any, scores: Any = None) -> Any:
        """Return the log-odds of yes [N, L]."""
        return self._format_output(binary_relevance.log_odds(self._probabilities(X, scores)), X)

    def predict(self, X: Any, scores: Any = None) -> Any:
        """Return 1 where the probability of yes is at least 0.5, else 0: [N, L]."""
        return self._format_output((self._probabilities(X, scores) >= 0.5).astype(np.int64), X)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Set the type of predictions: "pandas" for tables with a column per label; see `Classifier.set_output`."""
        self._sklearn_output_config = {"transform": check_output_kind(transform or "default")}  # clones keep it
        return self

    def _format_output(self, values: Any, X: Any) -> Any:
        kind = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        return to_output(values, kind, self.label_names_, X)

    @property
    def partial_fit(self) -> Any:
        """Not available; the error says what to do instead."""
        raise AttributeError(NO_PARTIAL_FIT)

    def score(self, X: Any, y: Any) -> float:
        """Return the mAP on known entries, NaN if it is undefined."""
        return metrics.scorer("mAP")(self, X, y)

    # ---------------------------------------------------------------- saving

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the model into a new folder: a skops archive per label and JSON, no pickle. overwrite: replace a saved
        model."""
        check_is_fitted(self, "fitted_")
        folder = Path(path)
        with overwrite_guard(folder, overwrite, per_label_store.SAVED), atomic_io.locked(folder):
            atomic_io.write_checksummed(
                folder / "run.json", self._description
            )  # first: what follows says that it belongs to it
            per_label_store.write_whole(folder / per_label_store.ESTIMATOR, binary_relevance.pack(self.estimator))
            for label, (name, fitted) in enumerate(zip(self.label_names_, self.fitted_, strict=True)):
                per_label_store.write_label(folder, label, name, fitted.to_bytes())

    @classmethod
    def load(cls, path: str | Path, trusted: Sequence[str] = ()) -> PerLabel:
        """Load the model that `save` wrote, or that `fit` left in its `run_dir`.

        trusted: types beyond scikit-learn's own that may be loaded. They can run code: name none that you do not know.
        """
        folder = Path(path)
        description = per_label_store.read_labels_description(folder)
        recipe, names = description["recipe"], tuple(description["labels"])
        way_out = f" If you know who wrote it: PerLabel.load({str(path)!r}, trusted={{}})."
        content = per_label_store.read_whole(folder / per_label_store.ESTIMATOR, recipe["estimator_sha256"])
        estimator = binary_relevance.unpack(content, str(folder / per_label_store.ESTIMATOR), trusted, way_out)
        options = {name: recipe[name] for name in ("unknown", "weight_unknown", "bags", "seed")}
        try:
            check_parameters(
                estimator, options["unknown"], options["weight_unknown"] or 1.0, options["bags"], options["seed"]
            )
        except PartlyError as error:
            raise CheckpointError(f"{folder}: cannot be ({error}). Restore it from a copy.") from None
        self = cls(estimator, **options, trusted=trusted)
        models = [per_label_store.read_label(folder, label) for label in range(len(names))]
        done = [content for content in models if content is not None]
        if len(done) < len(models):
            raise CheckpointError(
                f"{folder}: {len(done)} of {len(models)} labels are fitted. Fit again with the same data to go on."
            )
        where = [str(per_label_store.label_file(folder, label)) for label in range(len(names))]
        self._description = description
        self._remember(recipe["features_in"], description["features"])
        width = per_label_store.width_of(description)
        fitted = (LabelModel.from_bytes(*pair, trusted, way_out, width) for pair in zip(done, where, strict=True))
        return self._take(tuple(fitted), names)

    # ---------------------------------------------------------------- what it is given

    def _take(self, fitted: tuple[LabelModel, ...], names: tuple[str, ...]) -> Self:
        self.fitted_, self.label_names_ = fitted, names
        self.classes_ = classes_of(names)
        return self

    def _items(self, X: Any, reset: bool, numbers: bool) -> Any:
        """Return items as estimators take them, checked; numbers: only a matrix is accepted."""
        if reset:
            self._remember(None, None)
        names = getattr(self, "feature_names_in_", None)
        X = items.as_frame(X)
        if isinstance(X, items.TableRows):
            X.refuse(
                "Give a pandas frame, and an estimator that reads it: a pipeline of OneHotEncoder and SimpleImputer."
            )
        if items.is_items(X):
            return self._matrix(items.reorder_features(X, None if names is None else tuple(names)), reset)
        X = items.reorder_table(X, names)
        try:
            if numbers or expects_numbers(X):
                how = {"dtype": "numeric", "ensure_all_finite": False, "accept_sparse": "csr"}
                return validate_data(self, X, reset=reset, **how)
            validate_data(self, X, reset=reset, skip_check_array=True)
        except ValueError as error:
            raise DataError(str(error)) from None
        return X

    def _matrix(self, X: items.Items, reset: bool) -> Any:
        """Return all items as a matrix; estimators do not see the names of features."""
        width = math.prod(X.shape)
        if reset:
            self._remember(width, None if X.names is None else list(X.names))
        elif width != self.n_features_in_:
            raise DataError(f"X has {width} features, but PerLabel is expecting {self.n_features_in_}.")
        x = items.as_matrix(X)
        return x.reshape(len(x), -1) if x.ndim > 2 else x

    def _remember(self, width: int | None, names: list[str] | None) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        if width is not None:
            self.n_features_in_ = width
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        return multi_label(super().__sklearn_tags__())


def _fit_label(
    estimator: Any,
    x: Any,
    labels: Labels,
    column: Callable[[int], npt.NDArray[np.int8]],
    told: SideInputs,
    label: int,
    *,
    unknown: str,
    bags: int,
    seed: int,
) -> LabelModel:
    take, entries = told.take(x, label), told.entries(column(label), label, unknown)
    where = f"label {labels.names[label]!r}"
    return binary_relevance.fit_label(estimator, take, entries, bags, seed_for(seed, "per-label", label), where)
