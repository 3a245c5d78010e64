"""Export a trained model: an ONNX file that needs neither torch nor this package, and a model card.

A model is a fitted `Classifier`, a `FittedModel` of `engine.fit`, or the folder of a finished run.
"""

from __future__ import annotations

from pathlib import Path

from sklearn.utils.validation import check_is_fitted

from partly.atomic_io import PathLike, write_file
from partly.engine import FittedModel, load
from partly.errors import DataError
from partly.estimators.classifier import Classifier
from partly.export.card import render_card
from partly.export.onnx_file import write_onnx

__all__ = ["check_free", "model_card", "to_onnx"]

Model = Classifier | FittedModel | PathLike


def to_onnx(model: Model, path: PathLike, *, overwrite: bool = False) -> float:
    """Write the model as an ONNX file with the outputs `logits` and `probabilities`.

    Its metadata contain labels, thresholds and the required preprocessing. The file is compared with torch on random
    items, and not written if they differ by more than rounding.

    Parameters
    ----------
    model : Classifier, or folder of a run
        A fitted model.
    path : str or Path
        File to write.
    overwrite : bool
        Replace an existing file.

    Returns
    -------
    float
        Largest difference from torch.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> Y = np.where(rng.random((60, 2)) < 0.5, X[:, :2] > 0, np.nan)  # NaN: unknown
    >>> model = partly.Classifier("bce", head="linear", progress=False).fit(X, Y)
    >>> partly.export.to_onnx(model, "model.onnx") < 1e-4  # doctest: +SKIP
    True
    """
    path = check_free(path, overwrite)
    return write_onnx(_resolve_model(model), path)


def model_card(model: Model, path: PathLike, *, onnx: PathLike = "model.onnx", overwrite: bool = False) -> None:
    """Write a model card in the format of Hugging Face: training data, scores, limitations, and how to load the model.

    Parameters
    ----------
    model : Classifier, or folder of a run
        A fitted model.
    path : str or Path
        File to write.
    onnx : str or Path
        Name of the exported file.
    overwrite : bool
        Replace an existing file.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> Y = np.where(rng.random((60, 2)) < 0.5, X[:, :2] > 0, np.nan)  # NaN: unknown
    >>> model = partly.Classifier("bce", head="linear", progress=False).fit(X, Y)
    >>> partly.export.model_card(model, "card.md")
    >>> from pathlib import Path
    >>> "bce" in Path("card.md").read_text()
    True
    """
    path = check_free(path, overwrite)
    write_file(path, render_card(_resolve_model(model), Path(onnx).name).encode("utf-8", "replace"))


def check_free(path: PathLike, overwrite: bool = False) -> Path:
    """Return the path, or refuse to overwrite an existing file."""
    path = Path(path)
    if path.exists() and not overwrite:
        raise DataError(f"{path}: exists already. Choose another name, or set overwrite.")
    if not path.parent.is_dir():
        raise DataError(f"{path}: there is no folder {path.parent}.")
    return path


def _resolve_model(model: Model) -> FittedModel:
    if isinstance(model, Classifier):
        check_is_fitted(model, "fitted_")
        fitted: FittedModel = model.fitted_
        return fitted
    return model if isinstance(model, FittedModel) else load(Path(model))
