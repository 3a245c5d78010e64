"""`partly predict` of a folder of Parquet files: one file of scores for each, here or on Ray, going on after a kill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from partly.atomic_io import locked, read_checksummed, remove_leftovers, sha256_of, write_checksummed
from partly.cli.predict import predict
from partly.engine import checkpoint
from partly.engine.folder import CALIBRATION, finished
from partly.errors import CheckpointError, DataError, PartlyError, Stopped, listing
from partly.executors import Died, Results
from partly.images.progress import track_progress

KEY = "predictions.json"  # says which run the scores in a folder are of


def parquet_files(data: str) -> list[Path]:
    """Those of a folder that holds nothing else, in the order of their names; none where it is anything else."""
    folder = Path(data)
    there = [path for path in folder.iterdir() if not path.name.startswith((".", "_"))] if folder.is_dir() else []
    found = sorted(path for path in there if path.suffix == ".parquet" and path.is_file())
    return found if len(found) == len(there) else []


def predict_files(
    run: Path, files: Sequence[Path], out: Path, results: Results, how: Mapping[str, Any] = MappingProxyType({})
) -> int:
    """Scores of every file into a file of the same name in the folder `out`; how many files were scored now. A file of
    scores is there as a whole or not at all, and where it is newer than what it is of, it is not made again. how: what
    else `predict` is told of each (calls)."""
    with locked(out):
        _claim(out, _model(run) | dict(how))
        jobs = [file for file in files if not _is_new(out / file.name, file)]
        lost = []
        try:
            done = results(jobs, partial(_scored, run=run, out=out, how=dict(how)))
            for file, found in track_progress(done, len(jobs), str(out)):
                if not isinstance(found, int):
                    lost.append(f"{file}: {found.words if isinstance(found, Died) else found}")
        except KeyboardInterrupt:
            raise Stopped(f"Stopped; what is finished is in {out}.") from None
    if lost:
        told = listing(sorted(lost), len(lost), 20)
        raise DataError(f"{out}: {len(lost)} of {len(files)} files could not be scored{told}\nThe others are there.")
    return len(jobs)


def _model(run: Path) -> dict[str, Any]:
    """Which model these scores are of: its run, its weights, and what was fitted to its probabilities."""
    calibrated = run / CALIBRATION
    return {
        "run": checkpoint.run_of(run),
        "weights": finished(run)[2]["tensors_sha256"],
        "calibration": sha256_of(calibrated) if calibrated.exists() else None,
    }


def _scored(file: Path, run: Path, out: Path, how: dict[str, Any]) -> int | str:
    """How many items there are, or what is wrong with them: other files can be scored all the same."""
    try:
        return predict(run, str(file), out / file.name, **how)
    except PartlyError as error:
        return str(error)


def _is_new(made: Path, of: Path) -> bool:
    return made.exists() and made.stat().st_mtime_ns > of.stat().st_mtime_ns


def _claim(out: Path, key: dict[str, Any]) -> None:
    """Say in a new folder what the scores are of; in a used one, make sure that they are the same."""
    remove_leftovers(out)  # after a kill
    if not (out / KEY).exists():
        others = sorted(path.name for path in out.iterdir() if not path.name.startswith("."))
        if others:
            raise CheckpointError(f"{out}: is not empty ({', '.join(others[:3])}). Choose another folder.")
        write_checksummed(out / KEY, key)
    elif read_checksummed(out / KEY) != key:
        raise CheckpointError(f"{out}: holds scores of another run, or of another kind. Choose another folder.")
