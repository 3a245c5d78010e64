"""Fitted scikit-learn estimators as bytes, without pickle: skops, made so that the same estimator has the same bytes.

A skops file is a zip archive: what an object is made of as JSON, and its arrays. What is not on the list of trusted
types is refused when it is opened. skops names the parts by where they lay in memory and stamps them with the time, so
that no two files are the same; here they are numbered, and carry no time.
"""

# skops looks through all of scikit-learn when it is imported, so that is left to who needs it.

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable
from typing import Any

from partly.errors import CheckpointError

LARGE = 1 << 16  # bytes from which on an archive is compressed: forests are mostly JSON and shrink to a fraction
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip archive knows

# What scikit-learn's own classifiers consist of, beyond what skops trusts by itself. None of them runs code that the
# file brings. But scikit-learn does not check what trees point at: one that was forged can crash the process.
TRUSTED = (
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
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
    "sklearn.utils._metadata_requests.MetadataRequest",
    "sklearn.utils._metadata_requests.MethodMetadataRequest",
)


def pack(thing: Any) -> bytes:
    """The thing as a skops archive; the same bytes for the same thing, in any process."""
    import skops.io

    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(thing))) as made:
        parts = {name: made.read(name) for name in made.namelist()}
    names: dict[str, str] = {}
    schema = _numbered(json.loads(parts.pop("schema.json")), {}, names, parts)
    size = sum(map(len, parts.values()))
    text = json.dumps(schema, separators=(",", ":")).encode()
    kind = zipfile.ZIP_DEFLATED if size + len(text) >= LARGE else zipfile.ZIP_STORED
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as archive:
        for old, new in names.items():
            archive.writestr(zipfile.ZipInfo(new, EPOCH), parts[old], kind)
        archive.writestr(zipfile.ZipInfo("schema.json", EPOCH), text, kind)
    return buffer.getvalue()


def unpack(content: bytes, where: str, trusted: Iterable[str] = (), way_out: str = "") -> Any:
    """What `pack` made bytes of. `where` and `way_out` (with {} for the types) are for the
    error where it holds types that nobody trusts."""
    import skops.io
    from skops.io.exceptions import UntrustedTypesFoundException

    try:
        return skops.io.loads(content, trusted=[*TRUSTED, *trusted])
    except UntrustedTypesFoundException:
        strange = untrusted(content, trusted)
        raise CheckpointError(
            f"{where}: holds types that are not trusted: {', '.join(strange)}. Such types can run code when they are "
            f"loaded, so nothing was.{way_out.format(strange)}"
        ) from None
    except Exception as error:  # whatever a damaged archive makes of itself
        raise CheckpointError(f"{where}: not an estimator that was saved ({error}). Restore it from a copy.") from error


def untrusted(content: bytes, trusted: Iterable[str] = ()) -> list[str]:
    """Types in an archive that are neither scikit-learn's own nor named in `trusted`."""
    import skops.io

    allowed = {*TRUSTED, *trusted}
    return [name for name in skops.io.get_untrusted_types(data=content) if name not in allowed]


def _numbered(part: Any, ids: dict[int, int], names: dict[str, str], there: dict[str, bytes]) -> Any:
    """The schema with its parts numbered in the order in which they come. Equal ids stay equal: they say what is one
    object."""
    if isinstance(part, list):
        return [_numbered(one, ids, names, there) for one in part]
    if not isinstance(part, dict):
        return part
    new: dict[str, Any] = {}
    for key, value in part.items():
        if key == "__id__":
            new[key] = ids.setdefault(value, len(ids))
        elif key == "file" and isinstance(value, str) and value in there:
            new[key] = names.setdefault(value, f"{len(names)}.{value.rpartition('.')[2]}")
        else:
            new[key] = _numbered(value, ids, names, there)
    return new
