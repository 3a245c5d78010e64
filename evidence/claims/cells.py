"""Result lines by the cells that claims name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from evidence.claims.specs import Where
from partly import methods
from partly.comparison import results as result_lines
from partly.comparison.groups import spell_method
from partly.comparison.plan import NAIVE, SCIKIT, method_and_settings
from partly.comparison.protocol import PROTOCOL, ProtocolError
from partly.comparison.results import Record
from partly.comparison.statistics import Scores
from partly.errors import DataError

Key = tuple[str, ...]
OWN_RATES = "equal-"  # experiments that `own_rates.py` runs


def read(folder: Path) -> dict[str, list[Record]]:
    """Experiment -> its lines, of this protocol alone: the same cell of another one would give other numbers today."""
    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        raise DataError(
            f"{folder}: there are no result lines (*.jsonl) here. Name the folder that `partly compare` wrote to, "
            "such as `evidence/results`; `make evidence` runs all that the claims need."
        )
    found = {path.stem: [line for line in read_lines(path) if line["protocol"] == PROTOCOL] for path in paths}
    return {name: lines for name, lines in found.items() if lines}


def read_lines(path: Path) -> list[Record]:
    """Read the lines of an experiment. Where every method has a rate of its own, rates do not tell cells apart."""
    lines = result_lines.read(path)
    if not has_own_rates(path.stem):
        return lines
    return [line | {"recipe": {k: v for k, v in line["recipe"].items() if k != "lr"}} for line in lines]


def has_own_rates(experiment: str) -> bool:
    """Tell whether validation chose the learning rate of each method of an experiment."""
    return experiment.startswith(OWN_RATES)


class Cells:
    """The lines of some experiments, found by what a claim says of a cell."""

    def __init__(self, experiments: Mapping[str, Sequence[Record]]) -> None:
        self.records = [record for records in experiments.values() for record in records]
        self._found: dict[Key, list[Record]] = {}
        for name, lines in experiments.items():
            for line in lines:
                where = (
                    name,
                    line["data"],
                    line["scenario"],
                    line["head"],
                    line["optimizer"],
                    json.dumps(line["recipe"]),
                )
                self._found.setdefault((*where, _row_of(line)), []).append(line)

    def scores(self, where: Where) -> Scores:
        """By seed, where there is a line with such a score."""
        place, _, name = where.metric.rpartition(": ")
        found = {line["seed"]: line.get(place or "test", {}).get(name) for line in self.runs(where)}
        return {seed: score for seed, score in found.items() if score is not None}

    def validation(self, where: Where) -> float:
        """The mean validation score: what may choose between rows without a look at the test part."""
        scores = [line["validation_score"] for line in self.runs(where)]
        known = [score for score in scores if score is not None]
        return sum(known) / len(known) if known else -1.0

    def reference(self, data: str, scenario: str, validation: str = "complete") -> Scores:
        """Test mAP by seed of tuned scikit-learn on the same known entries, in any experiment."""
        name = SCIKIT.partition("[")[0]
        defaults = {name: methods.find(name).defaults()}
        return {
            record["seed"]: record["test"]["mAP"]
            for record in self.records
            if (record["data"], record["scenario"], record["validation"]) == (data, scenario, validation)
            and record["method"] == name
            and spell_method(record, defaults) == SCIKIT
            and record["test"]["mAP"] is not None
        }

    def naive(self, where: Where) -> list[Scores]:
        """Test mAP of the naive rows of the same race, tuned or not."""
        race = _race(where)
        rows = [lines for key, lines in self._found.items() if key[:-1] == race and lines[0]["method"] in NAIVE]
        return [{line["seed"]: line["test"]["mAP"] for line in lines} for lines in rows]

    def runs(self, where: Where) -> list[Record]:
        """Records of a row, one per seed."""
        lines = self._found.get((*_race(where), _row(where.row)), [])
        if len({line["seed"] for line in lines}) < len(lines):
            raise ProtocolError(f"{where}: several result lines of the same seed; they are not to be told apart.")
        return lines


def _race(where: Where) -> Key:
    return where.experiment, where.data, where.scenario, where.head, where.optimizer, where.recipe


def identify(where: Where) -> dict[str, Any]:
    """Return what finds the lines of a cell in the files of results, and the score in them."""
    place, _, metric = where.metric.rpartition(": ")
    method, settings, (tune,), (query,) = json.loads(_row(where.row))
    return {
        "experiment": where.experiment,
        "place": place or "test",
        "metric": metric,
        "query": query,
        "match": {
            "data": where.data,
            "scenario": where.scenario,
            "head": where.head,
            "optimizer": where.optimizer,
            "recipe": json.loads(where.recipe),
            "method": method,
            "settings": settings,
            "tune": tune,
        },
    }


@cache
def _row(text: str) -> str:
    """What tells the lines of a row from others, from the row as it is written in tables."""
    name, *more = text.split(", ")
    method, settings = method_and_settings(name)
    tune = [int(word.removeprefix("tuned ")) for word in more if word.startswith("tuned ")]
    query = [word for word in more if not word.startswith("tuned ")]
    return _text(method, methods.find(method).complete(settings), tune or [0], query or [""])


def _row_of(line: Record) -> str:
    return _text(line["method"], line["settings"], [line["tune"]], [line.get("asks", {}).get("query", "")])


def _text(*what: Any) -> str:
    return json.dumps(what, sort_keys=True)
