"""Verify a run folder: read every file that has a checksum, and load the model.

Checksums detect damage, not tampering: an attacker who can change a file can change its checksum, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from partly import atomic_io
from partly.binary_relevance import LabelModel, UntrustedTypes, unpack
from partly.engine import checkpoint, per_label_store
from partly.engine.checkpoint import IDS
from partly.engine.fitted_model import load
from partly.engine.folder import SCORES, read_beliefs, read_description, read_out_of_fold
from partly.errors import CheckpointError, PartlyError, listing

LOOP_FILES = ("known-*.json", "round-*.json", "questions-*.json", "answers-*.json")  # of an active learning loop
CHECKSUMMED = (IDS, SCORES, *LOOP_FILES)


def verify(folder: Path) -> list[str]:
    """Read everything again and return a line per intact part; refuse a damaged folder and list all problems."""
    intact, problems = [], []

    def check(part: str, read: Callable[[], Any]) -> None:
        try:
            detail = read()
            intact.append(f"{part}: {detail}" if isinstance(detail, str) else part)
        except PartlyError as error:
            problems.append(str(error))

    description = read_description(folder)
    intact.append("run.json")
    if description.get("kind") == per_label_store.KIND:
        check("the estimator", partial(_estimator, folder, description))
        for number, name in enumerate(description["labels"]):
            check(f"label {name!r}", partial(_label, folder, number, description))
    else:
        for path in checkpoint.records(folder):
            check(path.stem, partial(checkpoint.check, path))
        check("model", partial(_model, folder))
        check("beliefs", lambda: "none" if read_beliefs(folder) is None else None)
        check("out-of-fold scores", lambda: "none" if read_out_of_fold(folder) is None else None)
    for path in sorted(path for pattern in CHECKSUMMED for path in folder.glob(pattern)):
        check(path.name, partial(atomic_io.read_checksummed, path))
    if problems:
        raise CheckpointError(f"{folder}: not whole" + listing(problems, len(problems), 20))
    return intact


def _model(folder: Path) -> str:
    fitted = load(folder)
    return f"{fitted.config.method}, {len(fitted.names)} labels"


def _estimator(folder: Path, description: dict[str, Any]) -> str | None:
    path = folder / per_label_store.ESTIMATOR
    content = per_label_store.read_whole(path, description["recipe"]["estimator_sha256"])
    return _open_trusted(lambda: unpack(content, str(path)))


def _label(folder: Path, number: int, description: dict[str, Any]) -> str | None:
    content, path = per_label_store.read_label(folder, number), per_label_store.label_file(folder, number)
    if content is None:
        raise CheckpointError(f"{path}: is not there; fit again to go on.")
    return _open_trusted(lambda: LabelModel.from_bytes(content, str(path), width=per_label_store.width_of(description)))


def _open_trusted(read: Callable[[], Any]) -> str | None:
    """Open what is intact; name types that the caller does not trust yet instead of opening them."""
    try:
        read()
    except UntrustedTypes as error:
        return f"not opened ({error})"
    return None
