"""A model as an ONNX file, which is compared with torch before it takes its name."""

from __future__ import annotations

import importlib
import io
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import torch

import partly
from partly import atomic_io
from partly.distributed.progress import step
from partly.engine import FittedModel
from partly.errors import DataError, SettingError
from partly.export.model_graph import Entrance, Graph, graph_of
from partly.export.replacements import Replacing

LIBRARIES = ("onnx", "onnxscript", "onnxruntime")  # torch.onnx needs the second
OUTPUTS = ("logits", "probabilities")
LARGEST = 2**31 - 1  # bytes of a file
TRACED = 3  # items that a graph is traced with: neither 0 nor 1, which torch takes for sizes of their own
BATCHES = (1, 2, 17)  # numbers of items that a file is tried on
CLOSE = 1e-4  # the most that a probability may differ, or a logit, as a share of itself where it is above 1


def write_onnx(fitted: FittedModel, path: Path) -> float:
    """Write the model; how much its outputs differ from those of torch, at most. A file that differs more than by
    rounding is not left behind."""
    with step("Making an ONNX graph of the model"):
        onnx, _, onnxruntime = map(_imported, LIBRARIES)
        graph, entrance = graph_of(fitted)
        proto = _traced(graph, entrance, fitted.config.method)
    onnx.helper.set_model_props(proto, metadata(fitted, entrance))
    if proto.ByteSize() > LARGEST:
        raise DataError(f"{path}: the model takes {proto.ByteSize()} bytes, and an ONNX file holds {LARGEST} at most.")
    with step("Comparing the graph with the model"), atomic_io.atomic_output(path) as file:
        file.write(proto.SerializeToString())
        file.flush()
        session = onnxruntime.InferenceSession(file.name, providers=["CPUExecutionProvider"])
        return _compared(session, graph, entrance, path)


def metadata(fitted: FittedModel, entrance: Entrance) -> dict[str, str]:
    """What somebody needs who has the file alone; all but names are JSON."""
    recipe, data = fitted.config, fitted.description["data"]
    values = {
        "labels": list(fitted.names),
        "thresholds": [round(float(value), 7) for value in fitted.thresholds],
        "preparation": entrance.preparation,
        "trained_on": {key: data[key] for key in ("kind", "shape", "sha256", "labels_sha256")},
    }
    names = {"method": recipe.method, "head": recipe.head, "backbone": recipe.backbone or "none"}
    said = {name: json.dumps(value, ensure_ascii=False) for name, value in values.items()}
    return {"producer": f"partly {partly.__version__}", **names, **said}


def _traced(graph: Graph, entrance: Entrance, method: str) -> Any:
    """The graph as ONNX has it. torch.export follows the code with sizes left open, where a trace by TorchScript would
    freeze what depends on them without a word."""
    names: dict[str, Any] = {"input_names": [entrance.name], "output_names": list(OUTPUTS)}
    try:
        with _quiet(), torch.no_grad(), Replacing():
            x = entrance.examples(TRACED, seed=3)
            program = torch.export.export(graph, (x,), dynamic_shapes={"x": entrance.dynamic})
        with _quiet():
            made = torch.onnx.export(program, dynamo=True, verbose=False, **names)
    except Exception as error:  # whatever torch makes of code that it cannot follow
        reason = str(error).strip().splitlines()[0]
        raise SettingError(
            f"{method}: torch cannot make a graph of this model ({type(error).__name__}: {reason}). "
            "Of a method, head or backbone of your own, see that `forward` is torch code whose steps do not depend on "
            "values, nor on the number of items but through x.shape[0]."
        ) from error
    assert made is not None
    return made.model_proto


def _compared(session: Any, graph: Graph, entrance: Entrance, path: Path) -> float:
    """Run the file and torch side by side on a few batches; the largest difference."""
    worst = 0.0
    for seed, count in enumerate(BATCHES):
        x = entrance.examples(count, seed)
        with torch.inference_mode():
            wanted = [part.numpy() for part in graph(x)]
        found = session.run(list(OUTPUTS), {entrance.name: x.numpy()})
        for name, here, there in zip(OUTPUTS, found, wanted, strict=True):
            apart = float((np.abs(here - there) / np.maximum(1, np.abs(there))).max())
            if not apart <= CLOSE:  # NaN too
                raise DataError(
                    f"{path}: not written, since onnxruntime and torch differ: {name} of {count} items by {apart:.1e}, "
                    f"and {CLOSE:g} is allowed."
                )
            worst = max(worst, apart)
    return worst


def _imported(name: str) -> Any:
    try:
        with _quiet():
            return importlib.import_module(name)
    except ImportError as error:
        raise SettingError(
            f"Export to ONNX needs {name}, which cannot be imported ({error}). pip install 'partly[onnx]'."
        ) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """What torch tells of its own insides helps nobody here."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    nowhere = io.StringIO()
    try:
        with warnings.catch_warnings(), redirect_stdout(nowhere), redirect_stderr(nowhere):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
