"""Scores of one or several models for the same labels: score files, or the predictions of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from partly.cli.options import DataOptions
from partly.errors import SettingError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from partly.labels import Labels

TRAINED_ON = "{} was trained on these items, so the scores are too optimistic. {} has scores on held-out items."
BY_POSITION = "{}: rows are matched with the labels by position, because the file has no ids."


class Source:
    """Scores of one model for the labels, in blocks that can be read again."""

    def __init__(self, path: Path, truth: Labels, items: Any = None, id_column: str | None = None) -> None:
        self.path, self.truth, self.items, self.id_column = path, truth, items, id_column
        self.notes: list[str] = []

    def gather(self) -> tuple[Any, Any]:
        """Return the scores of the known entries, and the test of how entries are missing."""
        from partly.engine.folder import read_description
        from partly.labels.scored import gather_known
        from partly.model_choice.missingness import EntrySums

        entries = EntrySums(self.truth)
        if self.items is not None:
            if self.items.digest() == read_description(self.path)["data"]["sha256"]:
                self.notes.append(TRAINED_ON.format(self.path, self.path / "report.html"))
            return gather_known(entries.pass_through(self.blocks()), self.truth), entries.missingness
        file = self._open()
        known = gather_known(entries.pass_through(file.blocks(self.truth)), self.truth)
        if file.blank:
            entries.testable = False
            self.notes.append(
                f"{self.path}: {file.blank:,} unknown entries have no score, so how entries are missing is not tested."
            )
        if file.by_position and self.truth.given_ids is not None:
            self.notes.append(BY_POSITION.format(self.path))
        return known, entries.missingness

    def blocks(self) -> Iterator[tuple[Any, Any]]:
        """Yield rows and scores of all entries."""
        if self.items is not None:
            yield from _predict(self.path, self.items, self.truth)
        else:
            yield from self._open().blocks(self.truth, every=True)

    def _open(self) -> Any:
        from partly.data import ScoreFile

        return ScoreFile(self.path, self.id_column)


def open_sources(paths: Sequence[Path], labels: Path | None, reading: DataOptions) -> tuple[list[Source], str, Labels]:
    """Return the models, the path of the labels, and the labels."""
    how = reading.label_format()
    *models, last = paths
    if not any(path.is_dir() for path in models):
        if labels is not None and last.is_dir():
            raise SettingError(f"{last}: give the data that the run predicts, too: partly evaluate {last} DATA.")
        models = list(paths) if labels is not None else models
        if not models:
            raise SettingError(f"{last}: give the labels, too: partly evaluate {last} --labels LABELS.")
        truth = _read_labels(str(labels or last), how)
        return [Source(path, truth, id_column=reading.id_column) for path in models], str(labels or last), truth
    opened = replace(reading, labels=labels).open(str(last))
    part = opened.test or opened
    sources = [Source(path, part.labels, part.items if path.is_dir() else None, reading.id_column) for path in models]
    return sources, str(last), part.labels


def _read_labels(path: str, how: dict[str, Any]) -> Labels:
    """Return the labels of a file, or of the test part of a data set."""
    from partly import data as files

    test = files.read(path, **how).test if files.is_whole(path) else None
    return files.read_labels(path, **how) if test is None else test.labels


def _predict(run: Path, items: Any, labels: Labels) -> Iterator[tuple[Any, Any]]:
    """Yield the predictions of a run, with columns in the order of the labels."""
    import numpy as np

    from partly.data.matching import find_positions
    from partly.engine import load
    from partly.images.progress import track_progress
    from partly.labels.scored import enumerate_rows

    fitted = load(run)
    columns = find_positions(labels.names, fitted.names, run, "label")
    in_same_order = np.array_equal(columns, np.arange(len(fitted.names)))
    blocks: Any = track_progress(fitted.predict_blocks(items), len(items), str(run), weight=len)
    yield from enumerate_rows(blocks if in_same_order else (block[:, columns] for block in blocks))


def read_thresholds(run: Path, names: Sequence[str]) -> npt.NDArray[np.float32]:
    """Return the thresholds that a run has chosen for these labels."""
    from partly.data.matching import find_positions
    from partly.engine import load

    fitted = load(run)
    if not fitted.has_thresholds:
        raise SettingError(
            f"{run}: {fitted.config.method} chooses no thresholds. Give --threshold instead of --run, or train with "
            "--thresholds f1."
        )
    return fitted.thresholds[find_positions(names, fitted.names, run, "label")]
