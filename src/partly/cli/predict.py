"""`partly predict`: write the probabilities of a finished run, or its beliefs about the training items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partly.cli.app import command
from partly.cli.dataclass_options import Omit
from partly.cli.options import Address, DataOptions, Json, On, RunFolder, SafeCsv, data_option, output_option
from partly.cli.printing import print_json, say
from partly.errors import CheckpointError, DataError, PartlyError, SettingError, Stopped, listing, within

if TYPE_CHECKING:
    from partly.engine import FittedModel
    from partly.executors import Results
    from partly.labels import Labels

RUN_THRESHOLDS = "own"  # value of --above
MODEL_FILE = "predictions.json"  # in a folder of predictions: which model they are of


@command("Models")
def predict(
    run: RunFolder,
    data: Annotated[
        str | None, typer.Argument(help="Items, as for `partly train`. Only the test part is used if there is one.")
    ] = None,
    *,
    out: Annotated[Path, output_option("File for the probabilities: .csv or .parquet, one row per item.")],
    known: Annotated[
        Path | None,
        data_option("Known labels of these items, for the heads c-tran and label-transformer."),
    ] = None,
    reading: Annotated[DataOptions, Omit("labels", "hierarchy", "size")],
    beliefs: Annotated[
        bool, output_option("Write the method's beliefs about its training entries instead.", "--beliefs")
    ] = False,
    binary: Annotated[
        bool, output_option("Write 1 (yes) and 0 (no) by the run's thresholds instead.", "--binary", "--calls")
    ] = False,
    teacher: Annotated[
        str | None,
        data_option("Score file of these items, for a run trained with a score file; none leaves it out."),
    ] = None,
    teacher_only: Annotated[
        bool, output_option("Write the scores of the run's teachers alone, as probabilities.", "--teacher-only")
    ] = False,
    top: Annotated[
        int | None, output_option("Write only the N most probable labels of each item, one per row.")
    ] = None,
    above: Annotated[
        str | None,
        output_option("Write only probabilities of at least this value, or at least the run's thresholds (own)."),
    ] = None,
    safe_csv: SafeCsv = False,
    on: On = "here",
    address: Address = None,
    as_json: Json = False,
) -> None:
    """Write the probability of every label for every item."""
    from partly.data import for_spreadsheets
    from partly.executors import get_executor

    if (data is None) != beliefs:
        raise SettingError("Give DATA to predict, or --beliefs for the items that the run was trained on.")
    if beliefs and binary:
        raise SettingError("Give either --beliefs or --binary: beliefs have no thresholds.")
    if (top is not None or above is not None) and (beliefs or binary):
        raise SettingError("--top and --above select probabilities: leave out --beliefs and --binary.")
    selection: dict[str, Any] = {"calls": binary, "top": top, "above": above}
    selection |= {"teacher": teacher, "teacher_only": teacher_only}
    files = parquet_files(data) if data is not None and known is None else []
    if files:
        count = predict_files(run, files, out, get_executor(on, address), selection)
        say(f"Predicted {count} of {len(files)} files; the others were up to date. Folder: {out}")
        print_json({"files": len(files), "scored": count, "out": out}, as_json)
        return
    if on != "here":
        raise SettingError(f"--on {on} works for a folder of Parquet files as DATA, without --known.")
    with for_spreadsheets(safe_csv):
        if data is None:
            count = write_beliefs(run, out)
        else:
            count = predict_items(run, data, out, reading, known=known, **selection)
    say(f"{count} items predicted: {out}")
    print_json({"items": count, "out": out}, as_json)


def predict_items(
    run: Path,
    data: str,
    out: Path,
    reading: DataOptions = DataOptions(),  # noqa: B008 (frozen)
    *,
    known: Path | None = None,
    calls: bool = False,
    top: int | None = None,
    above: str | None = None,
    teacher: str | None = None,
    teacher_only: bool = False,
) -> int:
    """Predict a data set (its test part, if any) batch by batch into a file, and return the number of items.

    Parameters
    ----------
    known : Path, optional
        Labels of some of the items, matched by id and name, for a head that uses them.
    calls : bool
        Write yes and no by the thresholds of the run.
    top, above : int, str, optional
        Write one row for each selected entry: the most probable ones, or those from a probability on ("own": from the
        thresholds of the run on).
    teacher : str, optional
        Teacher of these items instead of the run's teacher; "none" leaves teachers out.
    teacher_only : bool
        Scores of the teachers alone.
    """
    import numpy as np

    from partly import data as files
    from partly.engine import load
    from partly.images.progress import track_progress

    cut: Any = _parse_above(above)
    fitted = load(run)
    if above == RUN_THRESHOLDS:
        cut = fitted.thresholds
    # Labels in the data are not used, so their open questions need no answer.
    ignored = replace(reading.meaning, absent=reading.absent or "unknown", uncertain="unknown")
    opened = files.read_items(data, _label_columns(fitted), reading.skip_bad, ignored)
    part = opened.test or opened
    count, labels = len(part.items), part.labels
    known_labels = None if known is None else _read_known(known, data, labels.ids, run, fitted.names, reading)
    taught = fitted.taught_by(teacher, labels.given_ids)
    predictions = taught.teacher_blocks(part.items) if teacher_only else taught.predict_blocks(part.items, known_labels)
    if calls:
        predictions = ((block >= fitted.thresholds).astype(np.float32) for block in predictions)
    blocks, ids = track_progress(predictions, count, data, weight=len), map(labels.id_at, range(count))
    if top is None and above is None:
        files.write_scores(out, blocks, ids, fitted.names)
    else:
        files.write_strongest(
            out, blocks, ids, fitted.names, top, fitted.thresholds if above == RUN_THRESHOLDS else cut
        )
    return count


def _label_columns(fitted: FittedModel) -> list[str]:
    """Return the labels that are not features of the model: a table of items may hold their columns as well.

    Labels without names are called by their positions, "0", "1", ..., as features without names often are.
    """
    if fitted.names == tuple(map(str, range(len(fitted.names)))):
        return []
    items = fitted.method.task.items
    encoding = items.encoding
    features = {*(items.names or ()), *(() if encoding is None else encoding.column_names)}
    return [name for name in fitted.names if name not in features]


def _parse_above(above: str | None) -> float | None:
    if above in (None, RUN_THRESHOLDS):
        return None
    try:
        cut = float(str(above))
    except ValueError:
        raise SettingError(
            f"--above {above}: give a probability, or {RUN_THRESHOLDS!r} for the run's thresholds."
        ) from None
    within(0, 1, above=cut)
    return cut


def _read_known(
    known: Path, data: str, ids: Sequence[str], run: Path, names: Sequence[str], reading: DataOptions
) -> Labels:
    """Read labels of items of `data`, in the order of the run's labels."""
    from partly.data import read_labels
    from partly.data.matching import find_positions
    from partly.labels import Labels

    labels = read_labels(known, **reading.label_format())
    rows, columns = (
        find_positions(labels.ids, ids, data, "known item"),
        find_positions(labels.names, names, run, "known label"),
    )
    row, column, values = labels.entries()
    return Labels.from_codes(rows[row], columns[column], values, names, ids)


def write_beliefs(run: Path, out: Path) -> int:
    """Write the beliefs of a run about its training entries, and return the number of items."""
    from partly.data.formats.feature_table import BLOCK, write_numbers
    from partly.data.paths import check_suffix
    from partly.data.tables import SUFFIXES
    from partly.engine import load, read_ids

    fitted = load(run)
    if fitted.beliefs is None:
        raise SettingError(f"{run}: {fitted.config.method} has no beliefs about its training entries.")
    blocks = (fitted.beliefs[i : i + BLOCK] for i in range(0, len(fitted.beliefs), BLOCK))
    check_suffix(out, SUFFIXES)
    write_numbers(out, read_ids(run), fitted.names, blocks)
    return len(fitted.beliefs)


# ---------------------------------------------------------------- a folder of Parquet files


def parquet_files(data: str) -> list[Path]:
    """Return the files of a folder that holds only Parquet files, by name; an empty list for anything else."""
    folder = Path(data)
    present = [path for path in folder.iterdir() if not path.name.startswith((".", "_"))] if folder.is_dir() else []
    files = sorted(path for path in present if path.suffix == ".parquet" and path.is_file())
    return files if len(files) == len(present) else []


def predict_files(
    run: Path, files: Sequence[Path], out: Path, results: Results, how: Mapping[str, Any] = MappingProxyType({})
) -> int:
    """Predict every file into one of the same name in the folder `out`, and return how many were predicted.

    Files are written as a whole, and one that is newer than its input is kept, so that the same call resumes. `how`
    holds the keyword arguments of `predict_items`.
    """
    from partly.atomic_io import locked
    from partly.executors import Died
    from partly.images.progress import track_progress

    with locked(out):
        _claim_folder(out, _model_identity(run) | dict(how))
        jobs = [file for file in files if not _is_newer(out / file.name, file)]
        failures = []
        try:
            finished = results(jobs, partial(_predict_file, run=run, out=out, how=dict(how)))
            for file, result in track_progress(finished, len(jobs), str(out)):
                if not isinstance(result, int):
                    failures.append(f"{file}: {result.words if isinstance(result, Died) else result}")
        except KeyboardInterrupt:
            raise Stopped(f"Stopped; finished files are in {out}.") from None
    if failures:
        places = listing(sorted(failures), len(failures), 20)
        raise DataError(f"{out}: {len(failures)} of {len(files)} files could not be predicted{places}\nThe others are.")
    return len(jobs)


def _model_identity(run: Path) -> dict[str, Any]:
    """Return digests of the run, of its weights and of its calibration."""
    from partly.atomic_io import sha256_of
    from partly.engine import checkpoint
    from partly.engine.folder import CALIBRATION, read_finished

    calibration = run / CALIBRATION
    return {
        "run": checkpoint.run_of(run),
        "weights": read_finished(run)[2]["tensors_sha256"],
        "calibration": sha256_of(calibration) if calibration.exists() else None,
    }


def _predict_file(file: Path, run: Path, out: Path, how: dict[str, Any]) -> int | str:
    """Return the number of items, or the error: the other files can be predicted all the same."""
    try:
        return predict_items(run, str(file), out / file.name, **how)
    except PartlyError as error:
        return str(error)


def _is_newer(output: Path, source: Path) -> bool:
    return output.exists() and output.stat().st_mtime_ns > source.stat().st_mtime_ns


def _claim_folder(out: Path, identity: dict[str, Any]) -> None:
    """Record in a new folder which model its predictions are of; in a used one, check that it is the same."""
    from partly.atomic_io import read_checksummed, remove_leftovers, write_checksummed

    remove_leftovers(out)
    if not (out / MODEL_FILE).exists():
        others = sorted(path.name for path in out.iterdir() if not path.name.startswith("."))
        if others:
            raise CheckpointError(f"{out}: is not empty ({', '.join(others[:3])}). Choose another folder.")
        write_checksummed(out / MODEL_FILE, identity)
    elif read_checksummed(out / MODEL_FILE) != identity:
        raise CheckpointError(f"{out}: holds predictions of another run, or of another kind. Choose another folder.")
