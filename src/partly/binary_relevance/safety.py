"""Safety checks of estimators that strangers may have saved, before and after loading.

`check_archive` inspects the archive: sizes, and types against a list. `disarm` removes settings that would run code or
start processes later. `check_classifier` validates numbers that scikit-learn's C code trusts.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from partly.budget import Budget
from partly.errors import CheckpointError, DataError

# Packages of scikit-learn whose estimators may be loaded. Others are not part of a classifier, or use files.
PACKAGES = frozenset(
    {
        "calibration",
        "compose",
        "decomposition",
        "discriminant_analysis",
        "dummy",
        "ensemble",
        "feature_extraction",
        "feature_selection",
        "gaussian_process",
        "impute",
        "isotonic",
        "kernel_approximation",
        "linear_model",
        "model_selection",
        "multiclass",
        "naive_bayes",
        "neighbors",
        "neural_network",
        "pipeline",
        "preprocessing",
        "random_projection",
        "semi_supervised",
        "svm",
        "tree",
    }
)
# Further types within scikit-learn's classifiers.
INTERNAL_TYPES = (
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
    "sklearn.gaussian_process.kernels.ConstantKernel",
    "sklearn.gaussian_process.kernels.Product",
    "sklearn.gaussian_process.kernels.RBF",
    "sklearn.gaussian_process.kernels.Sum",
    "sklearn.gaussian_process.kernels.WhiteKernel",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.neighbors._ball_tree.BallTree",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
    "sklearn.utils._metadata_requests.MetadataRequest",
    "sklearn.utils._metadata_requests.MethodMetadataRequest",
)
REFUSED_TYPES = ("sklearn.preprocessing._function_transformer.FunctionTransformer",)  # calls arbitrary functions
PLAIN = (
    "builtins.",
    "collections.",
    "numpy.",
    "scipy.sparse.",
    "scipy.special.",
    "sklearn._loss.",
)  # checked by the list of skops
CALLING = frozenset({"MethodNode", "PartialNode", "OperatorFuncNode"})  # loaders of callables in skops
MAX_DEPTH = 200
FINITE = ("coef_", "intercept_", "coefs_", "intercepts_", "theta_", "class_prior_", "dual_coef_")
# Estimators that take other input than numbers, which no trial item fits.
NOT_NUMBERS = ("sklearn.compose.", "sklearn.feature_extraction.", "sklearn.preprocessing._encoders.")


def check_archive(content: bytes, where: str, trusted: Iterable[str] = ()) -> list[str]:
    """Return the types in an archive that are not listed; refuse a damaged or oversized one."""
    budget = Budget(where, len(content))
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            budget.hold(sum(part.file_size for part in archive.infolist()))
            for part in archive.infolist():
                if part.filename.endswith(".npz"):
                    with zipfile.ZipFile(io.BytesIO(archive.read(part))) as inner:
                        budget.hold(sum(one.file_size for one in inner.infolist()))
            schema = json.loads(archive.read("schema.json"))
        allowed, nodes = set(trusted), list(_nodes(schema))
    except DataError as error:
        raise CheckpointError(str(error)) from None
    except Exception as error:  # damaged archives raise anything
        raise CheckpointError(f"{where}: not an estimator that was saved ({error}). Restore it from a copy.") from None
    strange = {name for name, loader in nodes if loader in CALLING or not _is_known(name)}
    return sorted(strange - allowed)


def _nodes(schema: Any) -> Iterator[tuple[str, str]]:
    """Yield type and loader of every part; refuse nesting that would overflow the stack of skops."""
    pending = [(schema, 0)]
    while pending:
        part, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        if isinstance(part, dict):
            if "__loader__" in part:
                yield f"{part['__module__']}.{part['__class__']}", str(part["__loader__"])
            pending += [(one, depth + 1) for one in part.values()]
        elif isinstance(part, list):
            pending += [(one, depth + 1) for one in part]


def _is_known(name: str) -> bool:
    if name in REFUSED_TYPES:
        return False
    root, *modules, kind = name.split(".")
    is_public = root == "sklearn" and modules[:1] and modules[0] in PACKAGES and not kind.startswith("_")
    return bool(is_public) or name in INTERNAL_TYPES or name.startswith(PLAIN)


# ---------------------------------------------------------------- what was built


def disarm(thing: Any, where: str) -> None:
    """Remove caches, which joblib unpickles on the next `fit`, and impossible numbers of processes."""
    for part in parts_of(thing):
        if isinstance(part, dict):
            hidden = [key for key in part if isinstance(key, str) and key.rpartition("__")[2] == "memory"]
            if any(part[key] is not None for key in hidden):
                raise CheckpointError(f"{where}: names a cache folder ({hidden[0]}), whose files can run code.")
            continue
        attributes = vars(part) if hasattr(part, "__dict__") else {}
        if attributes.get("memory") is not None:
            part.memory = None
        jobs = attributes.get("n_jobs")
        if jobs is not None and not (isinstance(jobs, int) and abs(jobs) <= (os.cpu_count() or 1)):
            part.n_jobs = None


def parts_of(thing: Any) -> Iterator[Any]:
    """Yield every dictionary and object within, each once."""
    pending, seen = [thing], set[int]()
    while pending:
        part = pending.pop()
        if id(part) in seen or isinstance(part, str | bytes | int | float | type(None)):
            continue
        seen.add(id(part))
        if isinstance(part, dict):
            yield part
            pending += part.values()
        elif isinstance(part, list | tuple | set | frozenset):
            pending += part
        elif isinstance(part, np.ndarray):
            pending += part.ravel().tolist() if part.dtype == object else []
        else:
            yield part
            pending += vars(part).values() if hasattr(part, "__dict__") else []


def check_classifier(estimator: Any, width: int | None, where: str) -> None:
    """Refuse anything but a fitted classifier of 1 and 0 for items of this width."""
    try:
        problem = next(_problems(estimator, width), None)
    except Exception as error:  # forged attributes raise anything
        problem = f"{type(error).__name__}: {error}"
    if problem:
        raise CheckpointError(f"{where}: not a fitted classifier that can be used ({problem}). Restore it from a copy.")


def _problems(estimator: Any, width: int | None) -> Iterator[str]:
    from sklearn.base import is_classifier

    gives_scores = hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")
    if not is_classifier(estimator) or not gives_scores:
        yield f"{type(estimator).__name__} gives no scores of classes"
    if sorted(np.asarray(estimator.classes_).tolist()) != [0, 1]:
        yield f"its classes are {np.asarray(estimator.classes_).tolist()!r:.60}, and not 0 and 1"
    features = getattr(estimator, "n_features_in_", None)
    if width is not None and features is not None and features != width:
        yield f"{features} features, where {width} are expected"
    kinds = []
    for part in parts_of(estimator):
        kinds.append(f"{type(part).__module__}.{type(part).__name__}")
        yield from _infinite(part)
        yield from _faults(part)
    takes_numbers = not hasattr(estimator, "feature_names_in_") and not any(k.startswith(NOT_NUMBERS) for k in kinds)
    if features is not None and takes_numbers:
        yield from _trial(estimator, int(features))


def _infinite(part: Any) -> Iterator[str]:
    attributes = getattr(part, "__dict__", {})
    for name in FINITE:
        values = attributes.get(name, [])
        arrays = map(np.asarray, values if isinstance(values, list) else [values])
        if not all(one.dtype.kind in "biuf" and np.isfinite(one).all() for one in arrays):
            yield f"{name} holds what is no finite number"


def _trial(estimator: Any, width: int) -> Iterator[str]:
    """Score an item of zeros."""
    import warnings

    Budget("a classifier of so many features", None).hold(64 * width)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ask = estimator.predict_proba if hasattr(estimator, "predict_proba") else estimator.decision_function
        scores = np.asarray(ask(np.zeros((1, width))))
    if scores.shape not in ((1,), (1, 2)) or not np.isfinite(scores).all():
        yield "it gives no finite score"


# ---------------------------------------------------------------- C code that trusts its arrays


def _faults(part: Any) -> Iterator[str]:
    kind = f"{type(part).__module__}.{type(part).__name__}"
    checks = {
        "sklearn.tree._tree.Tree": _tree,
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor": _predictor,
        "sklearn.neighbors._kd_tree.KDTree": _neighbors,
        "sklearn.neighbors._ball_tree.BallTree": _neighbors,
    }
    if kind in checks and not checks[kind](part):
        yield f"the nodes of a {type(part).__name__} point nowhere"
    if hasattr(part, "tree_") and part.tree_.n_features != part.n_features_in_:
        yield "a tree is of other features than it says"
    if hasattr(part, "_predictors"):
        width = part.n_features_in_
        if any(int(one.nodes["feature_idx"].max(initial=0)) >= width for row in part._predictors for one in row):
            yield "a tree asks for features that there are not"
    if hasattr(part, "support_vectors_") and not _support(part):
        yield "its support vectors do not fit together"


def _tree(tree: Any) -> bool:
    left, right, feature = tree.children_left, tree.children_right, tree.feature
    count = tree.node_count
    here = np.arange(count)
    inner = left != -1
    if not count or not (len(left) == len(right) == len(feature) == len(tree.value) == count):
        return False
    forward = (left > here) & (right > here) & (left < count) & (right < count)
    known = (feature >= 0) & (feature < tree.n_features)
    return bool((forward & known)[inner].all() and (right[~inner] == -1).all())


def _predictor(tree: Any) -> bool:
    nodes = tree.nodes
    here, inner = np.arange(len(nodes)), nodes["is_leaf"] == 0
    left, right = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
    forward = (left > here) & (right > here) & (left < len(nodes)) & (right < len(nodes))
    categories = nodes["bitset_idx"][inner & (nodes["is_categorical"] != 0)]
    bits = min(len(tree.binned_left_cat_bitsets), len(tree.raw_left_cat_bitsets))
    return bool(len(nodes) and forward[inner].all() and (categories < bits).all())


def _neighbors(tree: Any) -> bool:
    data, order, nodes, bounds = map(np.asarray, tree.get_arrays())
    state = tree.__getstate__()
    levels, count = state[5], state[6]
    start, end = nodes["idx_start"], nodes["idx_end"]
    inside = ((order >= 0) & (order < len(data))).all() and ((start >= 0) & (start <= end) & (end <= len(data))).all()
    same = len(order) == len(data) and count == len(nodes) == 2**levels - 1
    return bool(inside and same and bounds.shape[1:] == (count, data.shape[1]))


def _support(svm: Any) -> bool:
    vectors, weights = svm.support_vectors_, svm.dual_coef_
    return bool(
        vectors.ndim == weights.ndim == 2
        and weights.shape[1] == vectors.shape[0] == int(np.sum(svm._n_support)) == len(svm.support_)
        and vectors.shape[1] == svm.n_features_in_ == svm.shape_fit_[1]
    )
