"""Run folders as a stranger may send them: changed, and with every checksum put right again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from partly import atomic_io
from partly.engine import checkpoint


def change_description(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change what run.json says; the checkpoints say that they belong to it."""
    path = folder / "run.json"
    description = atomic_io.read_checksummed(path)
    change(description)
    atomic_io.write_checksummed(path, description)
    change_records(folder, lambda record: record.update(run=checkpoint.run_of(folder)))


def change_records(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change what the records of the checkpoints say."""
    for path in folder.glob("checkpoint-*.json"):
        *body, _ = path.read_text("utf-8").splitlines()
        record = json.loads("\n".join(body))
        change(record)
        body = json.dumps(record).encode()
        path.write_bytes(body + b"\n" + atomic_io.sha256(body).encode() + b"\n")


def change_tensors(folder: Path, change: Callable[[bytes], bytes]) -> None:
    """Change the bytes of the tensor files."""
    for path in folder.glob("checkpoint-*.safetensors"):
        path.write_bytes(change(path.read_bytes()))
        digest = atomic_io.sha256_of(path)
    change_records(folder, lambda record: record.update(tensors_sha256=digest))
