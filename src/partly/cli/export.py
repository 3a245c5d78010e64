"""`partly export`: write a finished model for use elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from partly.cli.app import command
from partly.cli.options import Json, RunFolder, output_option
from partly.cli.printing import print_json, say
from partly.errors import SettingError


@command("Models")
def export(
    run: RunFolder,
    onnx: Annotated[Path | None, output_option("ONNX file: takes items, returns logits and probabilities.")] = None,
    model_card: Annotated[Path | None, output_option("Markdown file that describes data, scores and limits.")] = None,
    overwrite: Annotated[bool, output_option("Replace existing files.", "--overwrite")] = False,
    as_json: Json = False,
) -> None:
    """Export a finished model to ONNX, with a model card."""
    from partly import export as exports
    from partly.distributed.progress import step
    from partly.engine import load

    targets = [path for path in (onnx, model_card) if path is not None]
    if not targets:
        raise SettingError("Nothing to write: give --onnx model.onnx, --model-card card.md, or both.")
    for path in targets:
        exports.check_free(path, overwrite)
    with step(f"Loading {run}"):
        fitted = load(run)
    if onnx is not None:
        difference = exports.to_onnx(fitted, onnx, overwrite=overwrite)
        size = onnx.stat().st_size / 1e6
        say(f"ONNX model: {onnx} ({size:.1f} MB, differs from torch by at most {difference:.1e})")
    if model_card is not None:
        exports.model_card(fitted, model_card, onnx=onnx or "model.onnx", overwrite=overwrite)
        say(f"Model card: {model_card}")
    print_json({"onnx": onnx, "model_card": model_card}, as_json)
