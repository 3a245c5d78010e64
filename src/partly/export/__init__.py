"""A trained model for use elsewhere: an ONNX file that needs neither torch nor this package, and a card about it.

A model is given as a fitted `Classifier`, as what `run.fit` leaves behind, or as the folder of a finished run.
"""

from __future__ import annotations

from pathlib import Path

from sklearn.utils.validation import check_is_fitted

from partly.atomic_io import PathLike, write_file
from partly.engine import FittedModel, load
from partly.errors import DataError
from partly.estimators.classifier import Classifier
from partly.export.card import written_card
from partly.export.onnx_file import write_onnx

__all__ = ["check_free", "model_card", "to_onnx"]

Model = Classifier | FittedModel | PathLike


def to_onnx(model: Model, path: PathLike, *, overwrite: bool = False) -> float:
    """Write the model as an ONNX file: any number of items in, `logits` and `probabilities` out; labels, thresholds and
    what comes before the graph are in its metadata.

    Returns how much it differs from torch at most, on made-up items; a file that differs by more than rounding does is
    not written.

    Parameters
    ----------
    model : Classifier, or folder of a run
        A fitted model.
    path : str or Path
        Where to.
    overwrite : bool
        A file that is there may go.

    Returns
    -------
    float
        How much it differs from torch at most.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> Y = np.where(rng.random((60, 2)) < 0.5, X[:, :2] > 0, np.nan)  # NaN: nobody said
    >>> model = partly.Classifier("bce", head="linear", progress=False).fit(X, Y)
    >>> partly.export.to_onnx(model, "model.onnx") < 1e-4  # doctest: +SKIP
    True
    """
    path = check_free(path, overwrite)
    return write_onnx(_fitted(model), path)


def model_card(model: Model, path: PathLike, *, onnx: PathLike = "model.onnx", overwrite: bool = False) -> None:
    """Write what is to be known of the model, in the form of a model card of Hugging Face: what it was trained on, its
    scores and how they were measured, its limits, how to load it. onnx: what the exported file is called.

    Parameters
    ----------
    model : Classifier, or folder of a run
        A fitted model.
    path : str or Path
        Where to.
    onnx : str or Path
        What the exported file is called.
    overwrite : bool
        A file that is there may go.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> Y = np.where(rng.random((60, 2)) < 0.5, X[:, :2] > 0, np.nan)  # NaN: nobody said
    >>> model = partly.Classifier("bce", head="linear", progress=False).fit(X, Y)
    >>> partly.export.model_card(model, "card.md")
    >>> from pathlib import Path
    >>> "bce" in Path("card.md").read_text()
    True
    """
    path = check_free(path, overwrite)
    write_file(path, written_card(_fitted(model), Path(onnx).name).encode("utf-8", "replace"))


def check_free(path: PathLike, overwrite: bool = False) -> Path:
    """The path, where nothing is lost by writing there."""
    path = Path(path)
    if path.exists() and not overwrite:
        raise DataError(f"{path}: is there already. Choose another name, or say that it may go: overwrite.")
    if not path.parent.is_dir():
        raise DataError(f"{path}: there is no folder {path.parent}.")
    return path


def _fitted(model: Model) -> FittedModel:
    if isinstance(model, Classifier):
        check_is_fitted(model, "fitted_")
        fitted: FittedModel = model.fitted_
        return fitted
    return model if isinstance(model, FittedModel) else load(Path(model))
