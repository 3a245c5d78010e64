"""`partly export`: a finished run for use elsewhere."""

from __future__ import annotations

from pathlib import Path

from partly.cli.opening import Say
from partly.distributed.progress import step
from partly.engine import load
from partly.errors import SettingError
from partly.export import check_free, model_card, to_onnx


def export(run: Path, onnx: Path | None, card: Path | None, *, overwrite: bool = False, say: Say = print) -> None:
    """Write an ONNX file, a card about the model, or both."""
    wanted = [path for path in (onnx, card) if path is not None]
    if not wanted:
        raise SettingError("Say what to write: --onnx model.onnx, --model-card card.md, or both.")
    for path in wanted:
        check_free(path, overwrite)
    with step(f"Loading {run}"):
        fitted = load(run)
    if onnx is not None:
        apart = to_onnx(fitted, onnx, overwrite=overwrite)
        say(f"{onnx}: {onnx.stat().st_size / 1e6:.1f} MB; differs from torch by at most {apart:.1e}")
    if card is not None:
        model_card(fitted, card, onnx=onnx or "model.onnx", overwrite=overwrite)
        say(f"Model card: {card}")
