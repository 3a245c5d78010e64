"""Classifier: the scikit-learn interface of `partly.engine`."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from partly import calibration, defaults, engine, items, metrics
from partly.atomic_io import write_file
from partly.distributed.progress import allow_progress, step
from partly.errors import DataError, LabelError, SettingError, did_you_mean
from partly.estimators.config_parameters import describe_parameters, make_init
from partly.estimators.sklearn_compat import NO_PARTIAL_FIT, classes_of, multi_label
from partly.items import Items
from partly.labels import Labels
from partly.labels.align import align_labels
from partly.labels.frames import check_output_kind, to_output
from partly.labels.scored import enumerate_rows
from partly.labels.weights import check_weights
from partly.moved import RenamedAttribute
from partly.networks.custom_modules import Part
from partly.teachers import NONE


class Classifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A multi-label classifier that learns from partly known labels.

    Parameters
    ----------
    ** : fields of `partly.config.TrainConfig`
        Every training option is a parameter; `help(partly.Classifier)` lists them.
    random_state : int, optional
        scikit-learn's name for `seed`; give one of them.
    precision : str, optional
        Deprecated name of `dtype`.

    Notes
    -----
    Attributes after `fit`: `method_` (its name), `reason_` (why it was chosen), `history_` (a dictionary per epoch),
    `best_epoch_`, `beliefs_` ([N, L] or None), `out_of_fold_` [N, L], `thresholds_` [L], `calibration_` (or None;
    `calibration_.describe(label_names_)` explains it), `label_names_`, `classes_`; with "auto" also `portfolio_`
    (models, scores and weights) and `criterion_`.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> Y = np.where(rng.random((60, 2)) < 0.5, X[:, :2] > 0, np.nan)  # NaN: unknown
    >>> model = partly.Classifier("bce", head="linear", progress=False).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 2)
    >>> model.predict(X[:3])
    array([[1, 0],
           [0, 1],
           [0, 0]])
    """

    _item_shape: tuple[int, ...]

    if TYPE_CHECKING:

        def __init__(self, method: str = "auto", head: str | Part = "auto", **parameters: Any) -> None: ...

    else:
        __init__ = make_init({"random_state": "int | None", "precision": "str | None"})

    def fit(
        self,
        X: Any,
        Y: Any,
        validation: tuple[Any, Any] | None = None,
        sample_weight: Any = None,
        start_from: str | Path | None = None,
        label_sources: Mapping[str, Sequence[str]] | None = None,
        heirs: Mapping[str, Sequence[str]] | None = None,
    ) -> Self:
        """Learn from items X and labels Y.

        Parameters
        ----------
        X : items
            Features [N, D] (an array, a table or a SciPy sparse matrix), images [N, H, W, C] of uint8, a list or
            column of texts, or `partly.items`.
        Y : Labels, or array of [N, L]
            1 yes, 0 no, NaN unknown. Where X and Y have ids (the index of a table, `Labels.ids`), rows are matched by
            these, otherwise by position.
        validation : (X, Y), optional
            Items that choose the best epoch; without them the last epoch is kept.
        sample_weight : array of [N] or [N, L], optional
            Weight of each item or entry, 0 or more; only ratios matter. Methods that cannot weigh entries refuse it.
        start_from : str or Path, optional
            Folder of a finished run of the same method and head, whose weights this one starts from. Labels may have
            changed: a label takes over the weights of the same name; a new one those of its nearest ancestor.
        label_sources : mapping, optional
            For start_from: the old labels whose mean weights a new label starts from, such as {"cat": ["animal"]}.
        heirs : mapping, optional
            Deprecated name of label_sources.

        Returns
        -------
        Classifier
            Itself.
        """
        if heirs is not None:
            warnings.warn("heirs is now label_sources; the old name goes in 0.4.", DeprecationWarning, stacklevel=2)
            label_sources = heirs if label_sources is None else label_sources
        with allow_progress(self.progress), step("Training"):
            plan = self.resolve(X, Y, validation, sample_weight)
            return self.adopt(engine.fit_calibrated(plan, start_from, label_sources))

    def resolve(self, X: Any, Y: Any, validation: Any = None, sample_weight: Any = None) -> engine.Plan:
        """Return the plan that `fit` would train: a configuration with nothing left open, and the prepared data."""
        x, config = self._items(X, reset=True), self._config()
        labels = align_labels(len(x), Y, beside=X)
        data = engine.prepare(config, (x, labels))
        self._remember(data.items)
        held_out = None if validation is None else self._validation_data(validation, labels.names)
        plan = engine.resolve(config, data, held_out, check_weights(sample_weight, data.labels))
        self.reason_ = plan.reason
        self._remember(plan.items)
        return plan

    def _config(self) -> engine.TrainConfig:
        if self.precision is not None:
            warnings.warn("precision is called dtype now; the old name will be removed.", FutureWarning, stacklevel=4)
        return engine.TrainConfig.from_params(vars(self) | {"seed": self._seed()})

    def _seed(self) -> Any:
        """Return `seed`, or `random_state` if it is given."""
        if self.random_state is None:
            return self.seed
        if self.seed not in (0, self.random_state):
            raise SettingError(
                f"seed = {self.seed!r} and random_state = {self.random_state!r} are two names for one number. Give one."
            )
        if isinstance(self.random_state, bool) or not isinstance(self.random_state, Integral):
            raise SettingError(f"random_state = {self.random_state!r} must be a whole number, or None for `seed`.")
        return int(self.random_state)

    def precompute_features(self, x: Items) -> Items:
        """Return the features that a frozen backbone computes of these items; return other items unchanged."""
        config = self._config()
        return engine.precompute_features(x, config, engine.device_of(config.device))

    def adopt(self, fitted: engine.FittedModel) -> Self:
        """Become this model."""
        self.fitted_ = fitted
        self.method_ = fitted.config.method
        self.history_ = fitted.progress.history
        self.best_epoch_ = fitted.progress.best_epoch
        self.label_names_ = fitted.names
        self.classes_ = classes_of(fitted.names)
        self.reason_ = fitted.reason or fitted.method.notes.get("reason", self.reason_)
        self.thresholds_ = fitted.thresholds
        self.calibration_ = fitted.calibration
        return self

    take = RenamedAttribute("adopt")
    first_stage = RenamedAttribute("precompute_features")

    def prepare(self, X: Any, Y: Any) -> tuple[Items, Labels, engine.ResolvedConfig]:
        """Deprecated: use `resolve`."""
        warnings.warn("Classifier.prepare is now resolve; the old name goes in 0.4.", DeprecationWarning, stacklevel=2)
        plan = self.resolve(X, Y)
        return plan.items, plan.labels, plan.config

    @property
    def portfolio_(self) -> list[dict[str, Any]]:
        """Models that "auto" fitted: name, score (by `criterion_`, higher is better), weight and seconds of each."""
        return list(self._note("portfolio"))

    @property
    def criterion_(self) -> str:
        """Criterion by which "auto" ranks its models: one of `partly.criteria()`."""
        return str(self._note("criterion"))

    def _note(self, what: str) -> Any:
        check_is_fitted(self, "fitted_")
        if what not in self.fitted_.method.notes:
            raise AttributeError(
                f"{what}_: only a portfolio (method='auto' on features) has one; this is {self.method_}."
            )
        return self.fitted_.method.notes[what]

    @property
    def out_of_fold_(self) -> npt.NDArray[np.floating[Any]]:
        """Out-of-fold logits of the training entries, [N, L]."""
        check_is_fitted(self, "fitted_")
        if self.fitted_.out_of_fold is None:
            why = f"{self.method_} trains no such models by itself. Fit with folds=5."
            if self.fitted_.has_out_of_fold:
                why = "they lie in the folder of the run, and are no part of what `save` writes."
            raise AttributeError(f"out_of_fold_: {why}")
        return self.fitted_.out_of_fold

    @property
    def beliefs_(self) -> npt.NDArray[np.floating[Any]] | None:
        """The method's beliefs about the training entries after the last epoch, [N, L]; None if it has none. `save`
        does not write them."""
        check_is_fitted(self, "fitted_")
        return self.fitted_.beliefs

    @property
    def teacher_(self) -> dict[str, Any] | None:
        """Weights of model and teachers, in logits per standard deviation: pooled over labels, and per label.

        A dictionary: `used` (teachers that count), `pooled` and `per_label` (each with `model` and `teachers`), and
        `precision` (of each label's weights around the pooled ones). None without a teacher.
        """
        check_is_fitted(self, "fitted_")
        taught = self.fitted_.teaching
        return None if taught is None else taught.combination.weights()

    def decision_function(self, X: Any, known: Any = None, teacher: Any = None) -> Any:
        """Return logits [N, L].

        Parameters
        ----------
        X : items
            As in `fit`.
        known : Labels, or array of [N, L], optional
            Known labels of these items, for a head that takes them ("c-tran", "label-transformer"). They sharpen the
            scores of other entries; scores of known entries mean little.
        teacher : optional
            Teacher for these items, where that of training holds scores of other items; "none" leaves it out.
        """
        return self._format_output(self._logits(X, known, teacher), X)

    def _logits(self, X: Any, known: Any, teacher: Any = None) -> npt.NDArray[np.float32]:
        x, said = self._scoring_input(X, known)
        return self._taught(X, teacher).logits(x, said)

    def _taught(self, X: Any, teacher: Any) -> engine.FittedModel:
        """The model with the teacher for these items."""
        ids = [str(name) for name in X.index] if hasattr(X, "iloc") and hasattr(X, "index") else None
        return self.fitted_.taught_by(teacher, ids)

    def _scoring_input(self, X: Any, known: Any) -> tuple[Items, Labels | None]:
        """Return checked items and their known labels."""
        check_is_fitted(self, "fitted_")
        x = self._items(X, reset=False)
        return x, None if known is None else engine.apply_hierarchy(
            self._config(), align_labels(len(x), known, self.label_names_, "known", X)
        )

    def features(self, X: Any) -> npt.NDArray[np.float32]:
        """Return the features [N, D] that the model learned from; for images and texts, those of its backbone.
        `predict_proba` and an exported graph accept them too."""
        x, _ = self._scoring_input(X, None)
        prepared = self.fitted_.prepare_items(x)
        if prepared.kind != "features":
            raise SettingError(
                f"The network of this model trains on {prepared.kind} directly, so there are no features to precompute."
            )
        found: npt.NDArray[np.float32] = prepared.take(slice(None)).numpy()
        return found

    def predict_proba(self, X: Any, known: Any = None, teacher: Any = None) -> Any:
        """Return the probability of yes [N, L]; known, teacher: see `decision_function`."""
        x, said = self._scoring_input(X, known)
        return self._format_output(self._taught(X, teacher).predict(x, said), X)

    def predict_proba_blocks(self, X: Any, known: Any = None, teacher: Any = None) -> Iterator[npt.NDArray[np.float32]]:
        """Yield probabilities [B, L] block by block, for more items than fit into memory. `partly.metrics` accepts the
        iterator: metrics.evaluate(model.predict_proba_blocks(X), labels)."""
        x, said = self._scoring_input(X, known)
        return self._taught(X, teacher).predict_blocks(x, said)

    def predict(self, X: Any, known: Any = None, teacher: Any = None) -> Any:
        """Return 1 where the probability of yes reaches the threshold of the label, else 0: [N, L].

        `thresholds_` are 0.5; with "auto", those of the best expected F1; with `thresholds`, the chosen ones. known,
        teacher: see `decision_function`.
        """
        x, said = self._scoring_input(X, known)
        calls, cuts = np.empty((len(x), len(self.label_names_)), np.int64), logit(self.thresholds_)
        for rows, block in enumerate_rows(self._taught(X, teacher).logit_blocks(x, said)):
            calls[rows] = block >= cuts
        return self._format_output(calls, X)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Set the type of predictions: "pandas" for tables with a column per label and the index of X, or "default" for
        arrays.

        scikit-learn's global setting and that of a pipeline apply to `transform`, which a classifier does not have: set
        it here.
        """
        self._sklearn_output_config = {"transform": check_output_kind(transform or "default")}  # clones keep it
        return self

    def _format_output(self, values: Any, X: Any) -> Any:
        kind = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        return to_output(values, kind, self.label_names_, X)

    @property
    def partial_fit(self) -> Any:
        """Not available; the error says what to do instead."""
        raise AttributeError(NO_PARTIAL_FIT)

    def explain(self, X: Any, Y: Any, item: int, label: str, most: int = 5) -> dict[str, Any]:
        """Explain the probability of an entry: the most important features, the nearest items with a known label, and
        the method's own reasons. item: position in X; label: its name; Y: labels of X as in `fit`."""
        check_is_fitted(self, "fitted_")
        x = self._items(X, reset=False)
        known = align_labels(len(x), Y, self.label_names_)
        if label not in self.label_names_:
            raise LabelError(f"There is no label {label!r}.{did_you_mean(label, self.label_names_)}")
        return engine.reasons(self.fitted_, x, known, item, self.label_names_.index(label), most)

    def score(self, X: Any, y: Any) -> float:
        """Return the mAP on known entries, NaN if it is undefined. See `partly.metrics.scorer` for other scores."""
        return metrics.scorer("mAP")(self, X, y)

    def report(self, X: Any, Y: Any, path: str | Path | None = None) -> str:
        """Return the HTML report of this model on labeled items, and write it to `path` if one is given.

        Scores count known entries only. Use items that the model was not trained on.
        """
        from partly.report import page  # templates and plots are needed only here
        from partly.report.model_view import view_model

        check_is_fitted(self, "fitted_")
        x = self._items(X, reset=False)
        labels = engine.apply_hierarchy(self._config(), align_labels(len(x), Y, self.label_names_, beside=X))
        view = view_model(self.method_, self.fitted_, x, labels)
        note = f"Labels and scores are those of the {len(x):,} items given to report()."
        html = page.render(page.Report(f"{self.method_} on {len(x):,} items", labels, (view,), labels, note=note))
        if path is not None:
            write_file(Path(path), html.encode("utf-8", "replace"))
        return html

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the model into a new folder: safetensors and JSON, no pickle, without beliefs. overwrite: replace a
        saved model."""
        check_is_fitted(self, "fitted_")
        engine.save(self.fitted_, Path(path), overwrite)

    @classmethod
    def load(cls, path: str | Path, *, backbone: Part | None = None, head: Part | None = None) -> Classifier:
        """Load the model that `save` wrote, or that a finished run left in its folder. If it was trained with your own
        backbone or head, pass that again, with any weights."""
        modules = {name: part for name, part in (("backbone", backbone), ("head", head)) if part is not None}
        fitted = engine.load(Path(path), **modules)
        parameters = vars(fitted.config) | modules
        penalty = parameters.pop("penalty")
        if len(parameters.pop("lr_factors")) > 1:  # the rate was chosen for the data
            parameters["lr"] = None
        if fitted.method.solves:
            parameters["weight_decay"] = penalty
        origin = fitted.method.task.items.origin
        if origin is not None:
            parameters |= {"backbone": origin.backbone, "backbone_settings": origin.settings}
        if fitted.config.method == defaults.PORTFOLIO:  # it has its own head: the caller left the head open
            parameters |= {"head": "auto", "head_settings": None}
        if fitted.calibration is not None:
            parameters |= {"calibrate": fitted.calibration.method, "thresholds": fitted.calibration.goal}
        parameters["teacher"] = NONE if fitted.teaching is None else fitted.teaching.list_teachers_for_refit()
        self = cls(**parameters)
        self.reason_ = "loaded"
        self._remember(fitted.method.task.items)
        return self.adopt(fitted)

    def _remember(self, x: Items) -> None:
        names, shape = items.input_columns(x)
        self._item_kind, self._item_shape, self.n_features_in_ = x.kind, shape, math.prod(shape)
        self._origin = x.origin
        self._encoded = isinstance(x, items.TableRows) or x.encoding is not None
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _validation_data(self, validation: tuple[Any, Any], names: tuple[str, ...]) -> tuple[Items, Labels]:
        if not isinstance(validation, tuple | list) or len(validation) != 2:
            raise SettingError(f"validation must be a pair (X, Y); got {type(validation).__name__}.")
        x = self._items(validation[0], reset=False)
        return x, align_labels(len(x), validation[1], names, "validation", validation[0])

    def _items(self, X: Any, reset: bool) -> Items:
        """Return checked items: to train on (`reset`), or to score."""
        X = items.to_numpy(X)
        if items.is_items(X):
            x: Items = X
        elif items.are_images(X):
            x = items.image_array(np.asarray(X))
        elif items.are_texts(X):
            x = items.texts(list(X))
        else:
            x = self._features(X, reset)
        if reset and 0 in x.shape:
            raise DataError("X has items without features: there is nothing to learn from.")
        if reset:
            self._remember(x)
        return x

    def _features(self, X: Any, reset: bool) -> Items:
        if not reset and self._item_kind != "features":
            raise DataError(
                f"X has {np.ndim(X)} dimensions; the model was trained on items of {list(self._item_shape)}."
            )
        X = items.as_frame(X)
        try:
            X = X if reset else items.reorder_table(X, self._feature_names())
            if items.is_mixed(X) or (not reset and self._encoded and items.is_frame(X)):
                return self._table(items.frame_rows(X), reset)
            array = validate_data(self, X, reset=reset, dtype="numeric", ensure_all_finite=False, accept_sparse="csr")
        except ValueError as error:
            raise (
                error if isinstance(error, DataError) else DataError(items.describe_text_columns(X) or str(error))
            ) from None
        names = self._feature_names()
        if sp.issparse(array):
            return items.sparse_features(array, "X", names)
        return items.matrix_rows(array, "X", names) if self.encode else items.features(array, "X", names)

    def _table(self, rows: items.TableRows, reset: bool) -> Items:
        """Return rows of a table to be encoded; refuse them if encoding is off or was not used in training."""
        if reset and not self.encode:
            rows.refuse()
        if not reset and not self._encoded:
            rows.refuse(items.NUMBERS_ONLY)
        return rows

    def _feature_names(self) -> tuple[str, ...] | None:
        return tuple(map(str, self.feature_names_in_)) if hasattr(self, "feature_names_in_") else None

    def __sklearn_tags__(self) -> Any:
        return multi_label(super().__sklearn_tags__(), gaps=self.encode)


assert Classifier.__doc__ is not None
_summary, _, _rest = Classifier.__doc__.partition("    ** : fields of")
Classifier.__doc__ = f"{_summary}    {describe_parameters()}\n    random_state{_rest.partition('random_state')[2]}"


def calibrate(
    model: Classifier, X: Any, labels: Any, method: str | None = None, thresholds: str | None = None
) -> Classifier:
    """Return a calibrated copy of a model, with probabilities and thresholds fitted on items that it has not seen.
    Training items would make probabilities overconfident.

    Parameters
    ----------
    model : Classifier
        A fitted model; it stays unchanged.
    X : items
        Items that it has not seen.
    labels : Labels, or array of [N, L]
        Their known labels, as Y in `fit`.
    method : "platt" or "isotonic", optional
        Map from scores to probabilities, as `calibrate` of `Classifier`.
    thresholds : "f1", "precision:0.9", ..., optional
        Goal of the thresholds, as `thresholds` of `Classifier`.

    Returns
    -------
    Classifier
        A calibrated copy.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> Y = np.where(rng.random((60, 2)) < 0.5, X[:, :2] > 0, np.nan)  # NaN: unknown
    >>> model = partly.Classifier("bce", head="linear", progress=False).fit(X[:30], Y[:30])
    >>> better = partly.calibrate(model, X[30:], Y[30:], "platt", thresholds="f1")
    >>> better.thresholds_.shape
    (2,)
    """
    check_is_fitted(model, "fitted_")
    calibration.check_options(method, thresholds)
    if method is None and thresholds is None:
        raise SettingError("calibrate: give a method ('platt', 'isotonic'), thresholds ('f1', ...), or both.")
    fitted = copy.copy(model.fitted_)
    fitted.calibration = None  # found on the method's own logits, whatever was there before
    made: Classifier = copy.copy(model).set_params(calibrate=method, thresholds=thresholds)
    scores = made.adopt(fitted)._logits(X, None)
    known = engine.apply_hierarchy(made._config(), align_labels(len(scores), labels, model.label_names_, "labels", X))
    own_thresholds = fitted.thresholds if fitted.has_thresholds else None
    fitted.calibration = calibration.fit_calibration(scores, known, method, thresholds, own_thresholds)
    return made.adopt(fitted)
