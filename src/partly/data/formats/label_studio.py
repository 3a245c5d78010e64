"""Label Studio: a JSON list of tasks with `data`, `annotations` and, in written files, `predictions`.

Two controls, `yes` and `no`, hold lists of choices; this is what is written. Any other control (choices, a taxonomy,
boxes) lists positives, and the caller chooses the value of the rest. Cancelled annotations are ignored, and tasks
without annotations are unknown. Entries on which annotators disagree are uncertain (`uncertain=`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.data.compression import open_compressed
from partly.data.json_stream import elements, top_keys
from partly.data.label_semantics import LabelSemantics, describe_option, labels_of, warn_of_dropped
from partly.data.matching import find_positions
from partly.data.paths import format_suffix
from partly.data.protocols import LabelFormat
from partly.data.scores import Scores
from partly.data.tables import UNCERTAIN
from partly.errors import DataError, listing
from partly.labels import Labels

SUFFIXES = (".json",)
YES, NO = "yes", "no"  # the two controls
IDS = ("item", "id", "image", "text")  # keys of a task's data; the first that exists is the id
BLOCK_ITEMS = 1 << 10  # written at a time


def recognizes(path: Path) -> bool:
    """Return whether the document is a list whose first task has `data`."""
    if format_suffix(path) not in SUFFIXES or not path.is_file():
        return False
    keys = top_keys(path)
    return next(keys, "") is None and "data" in keys


@dataclass(frozen=True)
class _Answer:
    """Labels of one annotation. complete: it lists all positives, so that the rest is absent."""

    yes: frozenset[str]
    no: frozenset[str]
    complete: bool


def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    ids: list[str] = []
    labels: dict[str, int] = {}
    entries: list[tuple[int, int, int]] = []
    unseen, disagreements = [], []
    for number, task in enumerate(elements(path, "")):
        place = f"{path}: task {number + 1}"
        answers = [_answer(answer, place) for answer in _annotations(task, place)]
        if any(answer.complete for answer in answers):
            semantics.need_absent(path, "choices list positives: labels that were not chosen may be absent or unknown.")
        for label, z in _combine(answers, semantics.absent == NO).items():
            entries.append((len(ids), labels.setdefault(label, len(labels)), z))
            disagreements += [f"{place}: {label!r}"] if z == UNCERTAIN else []
        if not any(answer.complete for answer in answers):
            unseen.append(len(ids))  # no annotation is complete
        ids.append(_id(task, number))
    if disagreements and semantics.uncertain is None:
        listed = listing(disagreements, len(disagreements))
        raise DataError(
            f"{path}: entries on which people disagree: {len(disagreements)}{listed}\n{describe_option('uncertain')}"
        )
    codes = np.array(entries, np.int64).reshape(-1, 3)
    return labels_of(
        codes[:, 0],
        codes[:, 1],
        codes[:, 2],
        ids,
        list(labels),
        semantics=semantics,
        path=path,
        wanted=names,
        unseen=unseen,
    )


def write(labels: Labels, path: Path) -> None:
    write_tasks(labels, path)


def write_tasks(labels: Labels, path: Path, scores: Scores | None = None) -> None:
    """Write tasks with known entries as an annotation and, with scores, a model's prediction."""
    without_entries = [name for name, *known in zip(labels.names, *labels.counts(), strict=True) if not any(known)]
    if scores is None:
        warn_of_dropped((), without_entries, path)
    values = None if scores is None else _align_scores(scores, labels, path)
    with open_compressed(path) as file:
        file.write(b"[")
        for start in range(0, len(labels), BLOCK_ITEMS):
            for i, z in enumerate(labels.rows(slice(start, start + BLOCK_ITEMS)), start):
                task: dict[str, Any] = {"id": i + 1, "data": {IDS[0]: labels.id_at(i)}}
                task["annotations"] = [{"result": _results(labels.names, z), "was_cancelled": False}] if z.any() else []
                if values is not None:
                    task["predictions"] = [_prediction(labels.names, values[i])]
                file.write((("," if i else "") + "\n" + json.dumps(task, ensure_ascii=False)).encode())
        file.write(b"]\n")


def _align_scores(scores: Scores, labels: Labels, path: Path) -> npt.NDArray[np.float32]:
    rows = find_positions(labels.ids, scores.ids, "the scores", "item")
    return scores.values[np.ix_(rows, find_positions(labels.names, scores.names, "the scores", "label"))]


def _prediction(names: Sequence[str], p: npt.NDArray[np.float32]) -> dict[str, Any]:
    """Build a prediction; `score` is the confidence of the least certain label, for sorting tasks in Label Studio."""
    z = np.where(p >= 0.5, 1, -1)
    confidence = float(np.maximum(p, 1 - p).min()) if len(p) else 1.0
    return {"model_version": "partly", "score": round(confidence, 6), "result": _results(names, z)}


def _results(names: Sequence[str], z: npt.NDArray[Any]) -> list[dict[str, Any]]:
    choices = ((control, [names[j] for j in (z == code).nonzero()[0]]) for control, code in ((YES, 1), (NO, -1)))
    return [
        {"from_name": control, "to_name": IDS[0], "type": "choices", "value": {"choices": chosen}}
        for control, chosen in choices
        if chosen
    ]


def _annotations(task: Any, place: str) -> list[dict[str, Any]]:
    """Return the annotations of a task that were not cancelled; early versions called them completions."""
    if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
        raise DataError(f"{place}: has no 'data'. Export as JSON, not as JSON-MIN: {task!r:.80}.")
    annotations = task.get("annotations", task.get("completions")) or []
    if not isinstance(annotations, list):
        raise DataError(f"{place}: its annotations are not a list: {annotations!r:.80}.")
    return [
        annotation for annotation in annotations if isinstance(annotation, dict) and not annotation.get("was_cancelled")
    ]


def _answer(annotation: dict[str, Any], place: str) -> _Answer:
    chosen: dict[str, set[str]] = {YES: set(), NO: set()}
    controls = set()
    results = annotation.get("result") or []
    if not isinstance(results, list) or not all(isinstance(result, dict) for result in results):
        raise DataError(f"{place}: the result of an annotation is not a list of answers: {results!r:.80}.")
    for result in results:
        kind, value = result.get("type"), result.get("value")
        choices = value.get(kind) if isinstance(value, dict) else None
        if not isinstance(choices, list):
            continue  # a rating, a text or a relation: not about labels
        controls.add(result.get("from_name"))
        chosen[NO if result.get("from_name") == NO else YES] |= set(_labels_in(choices, place))
    complete = not controls <= {YES, NO} or not controls
    return _Answer(frozenset(chosen[YES]), frozenset(chosen[NO]), complete)


def _labels_in(choices: Iterable[Any], place: str) -> Iterator[str]:
    """Yield the labels of choices; in a taxonomy a choice is a path, and every step of it is a label."""
    for choice in choices:
        steps = choice if isinstance(choice, list) else [choice]
        if not all(isinstance(step, str) for step in steps):
            raise DataError(f"{place}: {choice!r:.60} is not a label.")
        yield from steps


def _combine(answers: Sequence[_Answer], closed: bool) -> dict[str, int]:
    """Combine answers to label -> yes, no or UNCERTAIN. closed: labels that a complete answer omits are no."""
    combined: dict[str, int] = {}
    for label in dict.fromkeys(label for answer in answers for label in (*sorted(answer.yes), *sorted(answer.no))):
        values = {
            1 if label in answer.yes else -1
            for answer in answers
            if label in answer.yes | answer.no or (closed and answer.complete)
        }
        both = any(label in answer.yes and label in answer.no for answer in answers)
        combined[label] = UNCERTAIN if both or len(values) > 1 else values.pop()
    return combined


def _id(task: dict[str, Any], number: int) -> str:
    ids = (task["data"][key] for key in IDS if isinstance(task["data"].get(key), str | int))
    return str(next(ids, task.get("id", number)))


FORMAT = LabelFormat(recognizes, read, write, suffixes=SUFFIXES)
