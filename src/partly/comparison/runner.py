"""Runs the cells of an experiment where workers are placed, a line per finished cell; after a kill it goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

from partly.atomic_io import locked
from partly.comparison import results
from partly.comparison.live_view import LiveView
from partly.comparison.plan import Cell, Experiment
from partly.comparison.protocol import ProtocolError, check_no_leak, failed_cell, open_data, run_cell
from partly.data import Dataset, LabelSemantics
from partly.distributed.progress import allow_progress, step
from partly.errors import DataError, PartlyError, Stopped, listing
from partly.executors import Died, Results, get_executor

How = tuple[str | None, bool, LabelSemantics]  # labels, skip_bad and what files leave open, of an experiment


class Incomplete(PartlyError):
    """Some cells of a comparison failed; finished ones are in `records`."""

    def __init__(self, path: Path, failed: list[results.Record], finished: list[results.Record]) -> None:
        places = (f"{results.describe(line)}: {line['failed']}" for line in failed)
        super().__init__(
            f"{path}: {len(failed)} of {len(failed) + len(finished)} cells failed"
            + listing(places, len(failed), 20)
            + "\nThe others are there. Run again to try these once more."
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
    """Run what is not there yet; returns every line of the experiment. The file is `<out>/<name>.jsonl`. A cell that
    fails is a line with its reason, and is tried again next time; when all others are through, `Incomplete` is
    raised. Where cells run, and how many at a time: `executors.get_executor`."""
    with allow_progress(progress):
        return _run(experiment, out, get_executor(on, address, workers), progress)


def _run(experiment: Experiment, out: Path, execute: Results, progress: bool) -> list[results.Record]:
    path = out / f"{experiment.name}.jsonl"
    with locked(out):
        there = {results.key_of(line): line for line in results.read(path)}
        failed = {results.key_of(line): line for line in results.read_failed(path)}
        consistency = results.ConsistencyCheck(there.values())
        results.check_protocol(there.values())
        opened = partial(_opened, how=_how(experiment))
        with step("Reading the data"):
            wanted = {_key(cell, opened(cell.data, size=cell.size)): cell for cell in experiment.cells()}
        todo = [cell for key, cell in wanted.items() if key not in there]
        try:
            with LiveView(len(wanted), [there[key] for key in wanted if key in there], progress) as live:
                for line in _finished(todo, experiment, execute):
                    key = results.key_of(line)
                    _refuse_other_data(line, key, wanted)
                    if "failed" in line:
                        failed[key] = line
                    else:
                        consistency.add(line)
                        there[key] = line
                        failed.pop(key, None)
                        live.add(line)
                    results.append(path, line)
        except KeyboardInterrupt:
            count = sum(key in there for key in wanted)
            raise Stopped(f"Stopped; {count} of {len(wanted)} cells are in {path}.") from None
        results.write_sorted(path, [*there.values(), *failed.values()])
    lost = [failed[key] for key in wanted if key in failed]
    if lost:
        raise Incomplete(path, lost, [there[key] for key in wanted if key in there])
    return [there[key] for key in wanted]


def _refuse_other_data(line: results.Record, key: str, wanted: dict[str, Cell]) -> None:
    """A worker opens data and methods by itself: on another machine, or after a file has changed, they may differ."""
    if key not in wanted:
        raise DataError(
            f"{line['data']}: where {results.describe(line)} was run, the data or the file of the method are not what "
            "they are here. Start again where they have changed meanwhile; else copy them to all machines."
        )


def unlisted(experiment: Experiment) -> int:
    """How many items there are of which a file of labels says nothing at all."""
    how = _how(experiment)
    return sum(len(_opened(name, how=how, size=experiment.size).unlabelled_rows) for name in experiment.data)


def _finished(todo: list[Cell], experiment: Experiment, execute: Results) -> Iterator[results.Record]:
    """The lines of these cells as they come. Always in processes of one thread each, wherever and however many they
    are, so that neither the number of workers nor an interruption changes a bit."""
    how = _how(experiment)
    work = partial(_work, how=how)
    for cell, found in execute(todo, work):
        if isinstance(found, Died):
            found = failed_cell(cell, _opened(cell.data, how=how, size=cell.size), found.words)
        yield found


def _how(experiment: Experiment) -> How:
    return experiment.labels, experiment.skip_bad, experiment.meaning


def _work(cell: Cell, how: How) -> results.Record:
    data = _opened(cell.data, how=how, size=cell.size)
    try:
        # Outside of the cell's time, as is all that is loaded on first use.
        _blind(cell.method, json.dumps(cell.settings))
        return run_cell(cell, data)
    except ProtocolError:  # nothing of it could be believed
        raise
    except Exception as error:
        told = str(error) if isinstance(error, PartlyError) else f"{type(error).__name__}: {error}"
        return failed_cell(cell, data, told)


@cache
def _blind(method: str, settings: str) -> None:
    check_no_leak(method, json.loads(settings))


@cache
def _opened(name: str, *, how: How, size: int | None) -> Dataset:
    labels, skip_bad, meaning = how
    return open_data(name, labels, skip_bad, size, meaning)


def _key(cell: Cell, data: Dataset) -> str:
    return results.key_of(cell.key() | {"data_digest": data.digest})
