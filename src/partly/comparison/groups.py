"""Result lines gathered into blocks. A block is one race: the same data, mask, head and protocol for every method."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from partly import methods, scenarios
from partly.active.simulation import RANKS
from partly.comparison import results as result_lines
from partly.comparison.plan import AUTO, FULL, NAIVE, REFERENCES
from partly.comparison.protocol import AT_CHOSEN, ProtocolError
from partly.comparison.results import Line
from partly.comparison.statistics import Mean, Scores, gap_closed, mean, rank
from partly.engine.resolution import FEATURE_OPTIONS

RACE = ("scenario", "data", "head", "validation", "data_digest", "optimizer", "recipe", "known_only")
SHARED = ("scenario", "data", "validation", "data_digest")  # what a race has in common with who is told no more
OWN_HEAD = tuple(text.partition("[")[0] for text in REFERENCES)
ORIGIN = ("protocol", "torch", "machine")  # not the version: of one protocol all give the same numbers
SCORES = {"mAP": "mAP", "CF1": "CF1 at 0.5", "OF1": "OF1 at 0.5"}  # with the words of their columns
CHOSEN = {"mAP": "mAP", f"CF1{AT_CHOSEN}": "CF1", f"OF1{AT_CHOSEN}": "OF1"}


@dataclass(frozen=True)
class Row:
    """One method in one block."""

    name: str  # with the settings that are not its defaults
    kind: str  # "naive", "full" (it saw all labels), "oracle" (it says that it looks at the truth) or ""
    lines: tuple[Line, ...]  # one a seed
    gap: float | None = None  # share of the way from the naive row to the full one
    best: bool = False  # leads its block, see `statistics.Ranking`
    level: bool = False  # not shown to be worse than the leader
    unranked: bool = False  # has too few of the block's seeds to lead or to be level

    def scores(self, name: str = "mAP") -> Scores:
        """By seed, where the score is defined. Lines written before there was a score do not have it."""
        found = {line["seed"]: line["test"].get(name) for line in self.lines}
        return {seed: score for seed, score in found.items() if score is not None}

    def mean(self, name: str = "mAP") -> Mean | None:
        return mean(self.scores(name).values())

    @property
    def seconds(self) -> float:
        return sum(float(line["seconds"]) for line in self.lines) / len(self.lines)

    @property
    def memory_mb(self) -> float:
        return max(float(line["memory_mb"]) for line in self.lines)


@dataclass(frozen=True)
class Block:
    """One race. Rows: the best first, the one that saw all labels before them."""

    what: dict[str, Any]  # RACE and ORIGIN, the same for every line
    rows: tuple[Row, ...]
    title: str = ""  # what tells it from the other blocks of its scenario and validation

    @property
    def scenario(self) -> str:
        return str(self.what["scenario"])

    @property
    def validation(self) -> str:
        return str(self.what["validation"])

    @property
    def shown(self) -> dict[str, str]:
        """The scores of its table, with the words of their columns: F1 at thresholds that were chosen in the same way
        for every method, or, where not every line has that, at 0.5; with coarse labels what papers report there."""
        if scenarios.kind(self.scenario) == "coarse-only":
            return {name: name for name in ("mAP", *RANKS)}
        chosen = all(name in line["test"] for row in self.rows for line in row.lines for name in CHOSEN)
        return CHOSEN if chosen else SCORES

    @property
    def full(self) -> Row | None:
        return next((row for row in self.rows if row.kind == "full"), None)

    @property
    def naive(self) -> Row | None:
        return next((row for row in self.rows if row.kind == "naive" and row.name == NAIVE[0]), None)

    @property
    def race(self) -> dict[str, Scores]:
        """The methods that may win, with their mAP by seed."""
        able = {row.name: row.scores() for row in self.rows if row.kind not in ("full", "oracle")}
        return {name: scores for name, scores in able.items() if scores}


def gather(lines: Sequence[Line]) -> list[Block]:
    """The blocks of some result lines, by scenario and data. Lines of different origin never meet in a row."""
    result_lines.check(list(lines))
    defaults = {name: info.defaults() for name, info in methods.discover().items()}
    races = [_rows(group, defaults) for group in _groups(lines)]
    full = {_elsewhere(row): row for rows in races for row in rows if _saw_all(row)}
    told = [rows[0].lines[0] for rows in races]
    varying = [name for name in (*RACE[5:], *ORIGIN) if len({_text(line, [name]) for line in told}) > 1]
    blocks = [_block(rows, full.get(_elsewhere(rows[0])), varying) for rows in races]
    # Of the cells that saw all labels only the full row is a part of the race, unless they were a race of their own.
    return [block for block in blocks if block.scenario != FULL or len(block.rows) > 1]


def _groups(lines: Sequence[Line]) -> list[list[Line]]:
    """The lines of each race. Who is told neither head nor optimiser nor recipe (`auto`, tuned scikit-learn), but for
    what makes features of pictures, runs in every race on the same known entries, after those that were told."""
    found: dict[str, list[Line]] = {}
    alone: dict[str, list[Line]] = {}
    for line in lines:
        own = line["method"] in OWN_HEAD and line["head"] == AUTO and line["recipe"].keys() <= set(FEATURE_OPTIONS)
        where = alone.setdefault(_text(line, (*SHARED, *ORIGIN)), []) if own else _race(found, line)
        where.append(line)
    for key, same in alone.items():
        races = [group for group in found.values() if _text(group[0], (*SHARED, *ORIGIN)) == key]
        for group in races or [_race(found, same[0])]:
            group += same
    return [group for _, group in sorted(found.items())]


def _race(found: dict[str, list[Line]], line: Line) -> list[Line]:
    return found.setdefault(_text(line, (*RACE, *ORIGIN)), [])


def spelled(line: Line, defaults: Mapping[str, Mapping[str, Any]]) -> str:
    """The method as one asks for it: 'name[setting=value]' with what differs from its defaults; and the search."""
    name = named(line["method"], line["settings"], defaults.get(line["method"], {}))
    tuned = f", tuned {line['tune']}" if line["tune"] else ""
    asks = line.get("asks")
    asked = f", {asks['query']} {asks['rounds']} x {asks['questions']}" if asks else ""
    return f"{name}{tuned}{asked}"


def named(name: str, settings: Mapping[str, Any], usual: Mapping[str, Any]) -> str:
    """'name[setting=value]', with the settings that differ from the usual ones."""
    differ = {k: v for k, v in settings.items() if k not in usual or v != usual[k]}
    inside = ",".join(f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in differ.items())
    return f"{name}[{inside}]" if inside else name


def _block(rows: list[Row], full: Row | None, varying: Sequence[str]) -> Block:
    what: dict[str, Any] = {name: rows[0].lines[0].get(name) for name in (*RACE, *ORIGIN)}
    rows = sorted(rows, key=lambda row: (-found.value if (found := row.mean()) else 1.0, row.name))
    if full is not None and what["scenario"] != FULL:
        rows.insert(0, replace(full, name=f"{full.name}, all labels", kind="full"))
    title = ", ".join([what["data"], what["head"], *(_words(name, what[name]) for name in varying)])
    block = Block(what, tuple(rows), title)
    ranking = rank([block.race])
    best, level = (ranking.leader, ranking.level) if ranking else ("", ())
    ends = [end.scores() for end in (block.naive, block.full) if end]
    rows = [
        replace(
            row,
            best=row.name == best,
            level=row.name in level,
            unranked=ranking is not None and row.name in block.race.keys() - set(ranking.names),
            gap=gap_closed(row.scores(), *ends) if len(ends) == 2 and row.kind != "full" else None,
        )
        for row in rows
    ]
    return replace(block, rows=tuple(rows))


def _rows(lines: Iterable[Line], defaults: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    named: dict[str, list[Line]] = {}
    for line in lines:
        named.setdefault(spelled(line, defaults), []).append(line)
    return [_row(name, sorted(group, key=lambda line: line["seed"])) for name, group in named.items()]


def _row(name: str, lines: list[Line]) -> Row:
    """The lines of one method in one block, if nothing but the seed tells them apart."""
    first = lines[0]
    origins = {
        _text(line, ("settings", "needs_truth", "method_sha256")) + ("" if line["tune"] else _recipe(line))
        for line in lines
    }
    if len(origins) > 1:
        raise ProtocolError(
            f"{first['data']}, {first['scenario']}, {first['head']}, {name}: lines of different origin, never averaged:"
            + "".join(f"\n  {origin}" for origin in sorted(origins))
            + "\nKeep them in different folders."
        )
    kind = "oracle" if first["needs_truth"] else "naive" if name in NAIVE else ""
    return Row(name, kind, tuple(lines))


def _saw_all(row: Row) -> bool:
    """Whether this is the row that every comparison runs along: plain cross-entropy with nothing hidden."""
    return row.name == "bce" and row.lines[0]["scenario"] == FULL


def _elsewhere(row: Row) -> str:
    """What the row that saw all labels has in common with the races it is the reference of."""
    return _text(row.lines[0], [name for name in (*RACE, *ORIGIN) if name not in ("scenario", "validation")])


def _words(name: str, value: Any) -> str:
    if name == "known_only":
        return "items with labels only" if value else "all items"
    if isinstance(value, dict):
        told = (_words(k, v) if isinstance(v, dict) else f"{k} {v}" for k, v in value.items())
        return ", ".join(told) or f"usual {name}"
    return value if name in ("optimizer", "machine") else f"{name} {value}"


def _recipe(line: Line) -> str:
    """What ran, but for the seed and what was not there: lines of before a recipe could say a thing stand beside later
    ones that do not say it."""
    told = {name: value for name, value in line["ran"].items() if name != "seed" and value is not None}
    return json.dumps(told, sort_keys=True)


def _text(line: Line, names: Iterable[str]) -> str:
    return json.dumps([line.get(name) for name in names], sort_keys=True)
