"""Write a model as an ONNX file, after comparing it with torch."""

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
from partly.export.model_graph import Graph, GraphInput, build_graph
from partly.export.replacements import ReplaceFunctions

LIBRARIES = ("onnx", "onnxscript", "onnxruntime")  # torch.onnx needs the second
OUTPUTS = ("logits", "probabilities")
MAX_FILE_BYTES = 2**31 - 1
TRACED_ITEMS = 3  # not 0 or 1, which torch treats as constants
BATCH_SIZES = (1, 2, 17)  # for the comparison with torch
TOLERANCE = 1e-4  # absolute for probabilities, relative for logits above 1


def write_onnx(fitted: FittedModel, path: Path) -> float:
    """Write the model, and return the largest difference from torch; refuse more than rounding errors."""
    with step("Converting the model to ONNX"):
        onnx, _, onnxruntime = map(_import_library, LIBRARIES)
        graph, graph_input = build_graph(fitted)
        proto = _trace(graph, graph_input, fitted.config.method)
    onnx.helper.set_model_props(proto, metadata(fitted, graph_input))
    if proto.ByteSize() > MAX_FILE_BYTES:
        raise DataError(
            f"{path}: the model takes {proto.ByteSize()} bytes, and an ONNX file holds {MAX_FILE_BYTES} at most."
        )
    with step("Comparing the graph with the model"), atomic_io.atomic_output(path) as file:
        file.write(proto.SerializeToString())
        file.flush()
        session = onnxruntime.InferenceSession(file.name, providers=["CPUExecutionProvider"])
        return _compare(session, graph, graph_input, path)


def metadata(fitted: FittedModel, graph_input: GraphInput) -> dict[str, str]:
    """Return the metadata needed to use the file; all values but names are JSON."""
    recipe, data = fitted.config, fitted.description["data"]
    values = {
        "labels": list(fitted.names),
        "thresholds": [round(float(value), 7) for value in fitted.thresholds],
        "preparation": graph_input.preparation,
        "trained_on": {key: data[key] for key in ("kind", "shape", "sha256", "labels_sha256")},
    }
    backbone = data["made_of"]["backbone"] if "made_of" in data else recipe.backbone
    names = {"method": recipe.method, "head": recipe.head, "backbone": backbone or "none"}
    encoded = {name: json.dumps(value, ensure_ascii=False) for name, value in values.items()}
    return {"producer": f"partly {partly.__version__}", **names, **encoded}


def _trace(graph: Graph, graph_input: GraphInput, method: str) -> Any:
    """Convert the graph to ONNX by torch.export with dynamic sizes; TorchScript would silently freeze them."""
    names: dict[str, Any] = {"input_names": [graph_input.name], "output_names": list(OUTPUTS)}
    try:
        with _quiet(), torch.no_grad(), ReplaceFunctions():
            x = graph_input.draw_examples(TRACED_ITEMS, seed=3)
            program = torch.export.export(graph, (x,), dynamic_shapes={"x": graph_input.dynamic})
        with _quiet():
            exported = torch.onnx.export(program, dynamo=True, verbose=False, **names)
    except Exception as error:  # torch raises many types for code it cannot trace
        reason = str(error).strip().splitlines()[0]
        raise SettingError(
            f"{method}: torch cannot trace this model ({type(error).__name__}: {reason}). "
            "In a custom method, head or backbone, make sure that the control flow of `forward` does not depend on "
            "values, and depends on the number of items through x.shape[0] only."
        ) from error
    assert exported is not None
    return exported.model_proto


def _compare(session: Any, graph: Graph, graph_input: GraphInput, path: Path) -> float:
    """Run the file and torch on a few batches, and return the largest difference."""
    worst = 0.0
    for seed, count in enumerate(BATCH_SIZES):
        x = graph_input.draw_examples(count, seed)
        with torch.inference_mode():
            expected = [part.numpy() for part in graph(x)]
        outputs = session.run(list(OUTPUTS), {graph_input.name: x.numpy()})
        for name, actual, wanted in zip(OUTPUTS, outputs, expected, strict=True):
            difference = float((np.abs(actual - wanted) / np.maximum(1, np.abs(wanted))).max())
            if not difference <= TOLERANCE:  # NaN too
                raise DataError(
                    f"{path}: not written, because onnxruntime and torch differ: {name} of {count} items by "
                    f"{difference:.1e}, and {TOLERANCE:g} is allowed."
                )
            worst = max(worst, difference)
    return worst


def _import_library(name: str) -> Any:
    try:
        with _quiet():
            return importlib.import_module(name)
    except ImportError as error:
        raise SettingError(
            f"Export to ONNX needs {name}, which cannot be imported ({error}). pip install 'partly[onnx]'."
        ) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress output and warnings of torch."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    discarded = io.StringIO()
    try:
        with warnings.catch_warnings(), redirect_stdout(discarded), redirect_stderr(discarded):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
