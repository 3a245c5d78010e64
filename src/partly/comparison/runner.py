"""Run the cells of an experiment in workers, with a record per finished cell; resume after a crash."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

from partly.atomic_io import locked
from partly.comparison import results
from partly.comparison.live_view import LiveView
from partly.comparison.plan import Cell, Experiment
from partly.comparison.protocol import ProtocolError, check_no_leak, open_data, record_failure, run_cell
from partly.data import Dataset, LabelSemantics
from partly.distributed.progress import allow_progress, step
from partly.errors import DataError, PartlyError, Stopped, listing
from partly.executors import Died, Results, get_executor

How = tuple[str | None, bool, LabelSemantics]  # labels, skip_bad and label semantics of an experiment


class Incomplete(PartlyError):
    """Some cells of a comparison failed; finished ones are in `records`."""

    def __init__(self, path: Path, failed: list[results.Record], finished: list[results.Record]) -> None:
        places = (f"{results.describe(line)}: {line['failed']}" for line in failed)
        super().__init__(
            f"{path}: {len(failed)} of {len(failed) + len(finished)} cells failed"
            + listing(places, len(failed), 20)
            + "\nThe others finished. Run the same command to retry these."
        )
        self.records = finished


def run(
    experiment: Experiment,
    out: Path,
    workers: int | None = None,
    progress: bool = True,
    on: str = "here",
    address: str | None = None,
) -> list[results.Record]:
    """Run all cells that are not finished, and return the records of the experiment, from `<out>/<name>.jsonl`.

    A failed cell is recorded with its reason and retried next time; `Incomplete` is raised when all others are
    finished. `executors` decides where cells run, and how many at a time.
    """
    with allow_progress(progress):
        return _run(experiment, out, get_executor(on, address, workers), progress)


def _run(experiment: Experiment, out: Path, execute: Results, progress: bool) -> list[results.Record]:
    path = out / f"{experiment.name}.jsonl"
    with locked(out):
        finished = {results.key_of(record): record for record in results.read(path)}
        failed = {results.key_of(record): record for record in results.read_failed(path)}
        consistency = results.ConsistencyCheck(finished.values())
        results.check_protocol(finished.values())
        opened = partial(_open_cached, how=_how(experiment))
        with step("Reading the data"):
            wanted = {_key(cell, opened(cell.data, size=cell.size)): cell for cell in experiment.cells()}
        todo = [cell for key, cell in wanted.items() if key not in finished]
        try:
            with LiveView(len(wanted), [finished[key] for key in wanted if key in finished], progress) as live:
                for record in _run_cells(todo, experiment, execute):
                    key = results.key_of(record)
                    _refuse_other_data(record, key, wanted)
                    if "failed" in record:
                        failed[key] = record
                    else:
                        consistency.add(record)
                        finished[key] = record
                        failed.pop(key, None)
                        live.add(record)
                    results.append(path, record)
        except KeyboardInterrupt:
            count = sum(key in finished for key in wanted)
            raise Stopped(f"Stopped; {count} of {len(wanted)} cells are in {path}.") from None
        results.write_sorted(path, [*finished.values(), *failed.values()])
    lost = [failed[key] for key in wanted if key in failed]
    if lost:
        raise Incomplete(path, lost, [finished[key] for key in wanted if key in finished])
    return [finished[key] for key in wanted]


def _refuse_other_data(record: results.Record, key: str, wanted: dict[str, Cell]) -> None:
    """Refuse a record of other data or methods, which a worker may have found on another machine or after a change."""
    if key not in wanted:
        raise DataError(
            f"{record['data']}: the worker of {results.describe(record)} read other data, or another file of "
            "the method, than this process. Start again if they changed meanwhile; otherwise copy them to all machines."
        )


def count_unlabeled(experiment: Experiment) -> int:
    """Count the items that are not in the label file."""
    how = _how(experiment)
    return sum(len(_open_cached(name, how=how, size=experiment.size).unlabelled_rows) for name in experiment.data)


def _run_cells(todo: list[Cell], experiment: Experiment, execute: Results) -> Iterator[results.Record]:
    """Yield records as cells finish.

    Workers are always single-threaded processes, so that neither their number nor an interruption changes a bit.
    """
    how = _how(experiment)
    work = partial(_work, how=how)
    for cell, result in execute(todo, work):
        if isinstance(result, Died):
            result = record_failure(cell, _open_cached(cell.data, how=how, size=cell.size), result.words)
        yield result


def _how(experiment: Experiment) -> How:
    return experiment.labels, experiment.skip_bad, experiment.meaning


def _work(cell: Cell, how: How) -> results.Record:
    data = _open_cached(cell.data, how=how, size=cell.size)
    try:
        # Not part of the cell's time.
        _check_no_leak_once(cell.method, json.dumps(cell.settings))
        return run_cell(cell, data)
    except ProtocolError:  # no result could be trusted
        raise
    except Exception as error:
        reason = str(error) if isinstance(error, PartlyError) else f"{type(error).__name__}: {error}"
        return record_failure(cell, data, reason)


@cache
def _check_no_leak_once(method: str, settings: str) -> None:
    check_no_leak(method, json.loads(settings))


@cache
def _open_cached(name: str, *, how: How, size: int | None) -> Dataset:
    labels, skip_bad, meaning = how
    return open_data(name, labels, skip_bad, size, meaning)


def _key(cell: Cell, data: Dataset) -> str:
    return results.key_of(cell.key() | {"data_digest": data.digest})
