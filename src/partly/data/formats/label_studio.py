"""Label Studio: a JSON list of tasks, each with its `data` and the `annotations` of people; written ones may carry
`predictions` too.

Two controls hold what is known, `yes` and `no`, each a list of choices: that is what is written, and read as it is. Any
other control (choices, a taxonomy, boxes) lists what is there; what it does not list may be absent or unknown, so the
caller says. An annotation that was cancelled is no answer, and a task that nobody has answered is unknown. Where people
disagree, an entry is uncertain, and the caller says what that means (`uncertain=`).
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
from partly.data.label_semantics import LabelSemantics, how_to_say, labels_of, tell_lost
from partly.data.matching import find_positions
from partly.data.paths import format_suffix
from partly.data.protocols import LabelFormat
from partly.data.scores import Scores
from partly.data.tables import UNCERTAIN
from partly.errors import DataError, listing
from partly.labels import Labels

SUFFIXES = (".json",)
YES, NO = "yes", "no"  # the two controls
IDS = ("item", "id", "image", "text")  # of a task's data, what says which item it is: the first that is there
BLOCK = 1 << 10  # items written at a time


def recognizes(path: Path) -> bool:
    """A list, and its first task has `data`."""
    if format_suffix(path) not in SUFFIXES or not path.is_file():
        return False
    keys = top_keys(path)
    return next(keys, "") is None and "data" in keys


@dataclass(frozen=True)
class _Answer:
    """What one annotation says. whole: it lists what is there, so that the rest is absent."""

    yes: frozenset[str]
    no: frozenset[str]
    whole: bool


def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    ids: list[str] = []
    labels: dict[str, int] = {}
    entries: list[tuple[int, int, int]] = []
    unseen, unsure = [], []
    for number, task in enumerate(elements(path, "")):
        place = f"{path}: task {number + 1}"
        answers = [_answer(one, place) for one in _given(task, place)]
        if any(one.whole for one in answers):
            semantics.need_absent(path, "choices list what is there: what nobody chose may be absent or unknown.")
        for word, z in _agreed(answers, semantics.absent == NO).items():
            entries.append((len(ids), labels.setdefault(word, len(labels)), z))
            unsure += [f"{place}: {word!r}"] if z == UNCERTAIN else []
        if not any(one.whole for one in answers):
            unseen.append(len(ids))  # nobody said that the rest is absent
        ids.append(_id(task, number))
    if unsure and semantics.uncertain is None:
        told = listing(unsure, len(unsure))
        raise DataError(f"{path}: entries on which people disagree: {len(unsure)}{told}\n{how_to_say('uncertain')}")
    said = np.array(entries, np.int64).reshape(-1, 3)
    return labels_of(
        said[:, 0],
        said[:, 1],
        said[:, 2],
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
    """Tasks with what is known as an annotation and, where there are scores, what a model thinks as a prediction."""
    lost = [name for name, *known in zip(labels.names, *labels.counts(), strict=True) if not any(known)]
    if scores is None:
        tell_lost((), lost, path)
    values = None if scores is None else _matched(scores, labels, path)
    with open_compressed(path) as file:
        file.write(b"[")
        for start in range(0, len(labels), BLOCK):
            for i, z in enumerate(labels.rows(slice(start, start + BLOCK)), start):
                task: dict[str, Any] = {"id": i + 1, "data": {IDS[0]: labels.id_at(i)}}
                task["annotations"] = [{"result": _results(labels.names, z), "was_cancelled": False}] if z.any() else []
                if values is not None:
                    task["predictions"] = [_prediction(labels.names, values[i])]
                file.write((("," if i else "") + "\n" + json.dumps(task, ensure_ascii=False)).encode())
        file.write(b"]\n")


def _matched(scores: Scores, labels: Labels, path: Path) -> npt.NDArray[np.float32]:
    rows = find_positions(labels.ids, scores.ids, "the scores", "item")
    return scores.values[np.ix_(rows, find_positions(labels.names, scores.names, "the scores", "label"))]


def _prediction(names: Sequence[str], p: npt.NDArray[np.float32]) -> dict[str, Any]:
    """score: how sure the least sure label is, by which Label Studio can order tasks."""
    z = np.where(p >= 0.5, 1, -1)
    sure = float(np.maximum(p, 1 - p).min()) if len(p) else 1.0
    return {"model_version": "partly", "score": round(sure, 6), "result": _results(names, z)}


def _results(names: Sequence[str], z: npt.NDArray[Any]) -> list[dict[str, Any]]:
    said = ((control, [names[j] for j in (z == code).nonzero()[0]]) for control, code in ((YES, 1), (NO, -1)))
    return [
        {"from_name": control, "to_name": IDS[0], "type": "choices", "value": {"choices": words}}
        for control, words in said
        if words
    ]


def _given(task: Any, place: str) -> list[dict[str, Any]]:
    """The annotations of a task that are answers. An early Label Studio called them completions."""
    if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
        raise DataError(f"{place}: has no 'data'. Export as JSON, not as JSON-MIN: {task!r:.80}.")
    there = task.get("annotations", task.get("completions")) or []
    if not isinstance(there, list):
        raise DataError(f"{place}: its annotations are no list: {there!r:.80}.")
    return [one for one in there if isinstance(one, dict) and not one.get("was_cancelled")]


def _answer(annotation: dict[str, Any], place: str) -> _Answer:
    said: dict[str, set[str]] = {YES: set(), NO: set()}
    controls = set()
    results = annotation.get("result") or []
    if not isinstance(results, list) or not all(isinstance(one, dict) for one in results):
        raise DataError(f"{place}: the result of an annotation is no list of answers: {results!r:.80}.")
    for one in results:
        kind, value = one.get("type"), one.get("value")
        words = value.get(kind) if isinstance(value, dict) else None
        if not isinstance(words, list):
            continue  # a rating, a text, a relation: not about labels
        controls.add(one.get("from_name"))
        said[NO if one.get("from_name") == NO else YES] |= set(_words(words, place))
    whole = not controls <= {YES, NO} or not controls
    return _Answer(frozenset(said[YES]), frozenset(said[NO]), whole)


def _words(words: Iterable[Any], place: str) -> Iterator[str]:
    """Of a taxonomy each is a path, of which every step is there."""
    for word in words:
        steps = word if isinstance(word, list) else [word]
        if not all(isinstance(step, str) for step in steps):
            raise DataError(f"{place}: {word!r:.60} is no label.")
        yield from steps


def _agreed(answers: Sequence[_Answer], closed: bool) -> dict[str, int]:
    """Label -> yes, no or UNSURE. closed: what an answer does not list it says to be absent."""
    found: dict[str, int] = {}
    for word in dict.fromkeys(word for one in answers for word in (*sorted(one.yes), *sorted(one.no))):
        said = {1 if word in one.yes else -1 for one in answers if word in one.yes | one.no or (closed and one.whole)}
        both = any(word in one.yes and word in one.no for one in answers)
        found[word] = UNCERTAIN if both or len(said) > 1 else said.pop()
    return found


def _id(task: dict[str, Any], number: int) -> str:
    found = (task["data"][key] for key in IDS if isinstance(task["data"].get(key), str | int))
    return str(next(found, task.get("id", number)))


FORMAT = LabelFormat(recognizes, read, write, suffixes=SUFFIXES)
