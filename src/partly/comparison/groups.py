"""Result records in groups. A group is one comparison: the same data, mask, head and protocol for every method.

A group counts only if its naive baselines are not far below tuned scikit-learn on the same known entries: an
improvement on a weak baseline means nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from partly import methods, scenarios
from partly.active.simulation import PRECISION_METRICS
from partly.comparison import results
from partly.comparison.plan import AUTO, FULL, NAIVE, REFERENCES, SCIKIT
from partly.comparison.protocol import AT_CHOSEN, ProtocolError
from partly.comparison.results import Record
from partly.comparison.statistics import Mean, Scores, gap_closed, mean, rank
from partly.engine.resolution import FEATURE_OPTIONS

GROUP_KEY = ("scenario", "data", "head", "validation", "data_digest", "optimizer", "recipe", "known_only")
DATA_KEY = ("scenario", "data", "validation", "data_digest")  # of methods that choose their own head and training
REFERENCE_METHODS = tuple(text.partition("[")[0] for text in REFERENCES)
ORIGIN = ("protocol", "torch", "machine")  # not the version: all versions of one protocol give the same numbers
SCORES = {"mAP": "mAP", "CF1": "CF1 at 0.5", "OF1": "OF1 at 0.5"}  # score -> column title
CHOSEN_SCORES = {"mAP": "mAP", f"CF1{AT_CHOSEN}": "CF1", f"OF1{AT_CHOSEN}": "OF1"}
MAX_BASELINE_DEFICIT = 0.005  # of mAP, below tuned scikit-learn


@dataclass(frozen=True)
class Row:
    """One method in one group."""

    name: str  # with the settings that are not defaults
    kind: str  # "naive", "full" (trained with all labels), "oracle" (sees the truth) or ""
    records: tuple[Record, ...]  # one per seed
    gap: float | None = None  # share of the gap between the naive and the full row that is closed
    best: bool = False  # leads its group, see `statistics.Ranking`
    tied: bool = False  # not significantly worse than the leader
    unranked: bool = False  # has too few of the group's seeds to be ranked

    def scores(self, name: str = "mAP") -> Scores:
        """Scores by seed, where defined. Older records may lack a score."""
        values = {record["seed"]: record["test"].get(name) for record in self.records}
        return {seed: value for seed, value in values.items() if value is not None}

    def mean(self, name: str = "mAP") -> Mean | None:
        return mean(self.scores(name).values())

    @property
    def seconds(self) -> float:
        return sum(float(record["seconds"]) for record in self.records) / len(self.records)

    @property
    def memory_mb(self) -> float:
        return max(float(record["memory_mb"]) for record in self.records)


@dataclass(frozen=True)
class Group:
    """One comparison. Rows: first the one trained with all labels, then the others, best first."""

    key: dict[str, Any]  # GROUP_KEY and ORIGIN, the same for every record
    rows: tuple[Row, ...]
    title: str = ""  # what distinguishes it from other groups of its scenario and validation

    @property
    def scenario(self) -> str:
        return str(self.key["scenario"])

    @property
    def validation(self) -> str:
        return str(self.key["validation"])

    @property
    def columns(self) -> dict[str, str]:
        """Scores of its table, with column titles.

        F1 is at chosen thresholds, or at 0.5 where some records lack that; with coarse labels, the scores of papers.
        """
        if scenarios.kind(self.scenario) == "coarse-only":
            return {name: name for name in ("mAP", *PRECISION_METRICS)}
        chosen = all(name in record["test"] for row in self.rows for record in row.records for name in CHOSEN_SCORES)
        return CHOSEN_SCORES if chosen else SCORES

    @property
    def full(self) -> Row | None:
        return next((row for row in self.rows if row.kind == "full"), None)

    @property
    def naive(self) -> Row | None:
        return next((row for row in self.rows if row.kind == "naive" and row.name == NAIVE[0]), None)

    @property
    def contestants(self) -> dict[str, Scores]:
        """Methods that may win, with their mAP by seed."""
        scores = {row.name: row.scores() for row in self.rows if row.kind not in ("full", "oracle")}
        return {name: by_seed for name, by_seed in scores.items() if by_seed}

    @property
    def baseline_deficit(self) -> float | None:
        """Mean mAP of tuned scikit-learn minus that of the best naive row, tuned or not, over common seeds."""
        reference = next((row.scores() for row in self.rows if row.name == SCIKIT), {})
        naive = [row.scores() for row in self.rows if row.kind != "full" and row.records[0]["method"] in NAIVE]
        deficits = []
        for scores in naive:
            seeds = reference.keys() & scores.keys()
            if seeds:
                deficits.append(sum(reference[seed] - scores[seed] for seed in seeds) / len(seeds))
        return min(deficits, default=None)

    @property
    def reason_withheld(self) -> str:
        """Reason why its table is not shown; empty where it is."""
        deficit = self.baseline_deficit
        if deficit is None or deficit <= MAX_BASELINE_DEFICIT:
            return ""
        return (
            f"Not shown: the best naive baseline is {100 * deficit:.1f} points of mAP below tuned scikit-learn on the "
            f"same known entries ({100 * MAX_BASELINE_DEFICIT:.1f} are allowed), so improvements on it mean little. "
            "The result records are available."
        )


def gather(records: Sequence[Record]) -> list[Group]:
    """Group result records by scenario and data. Records of different origin never share a row."""
    results.check_consistency(records)
    defaults = {name: info.defaults() for name, info in methods.discover().items()}
    row_lists = [_make_rows(same, defaults) for same in _split(records)]
    full = {_key_of_full(row): row for rows in row_lists for row in rows if _saw_all_labels(row)}
    first = [rows[0].records[0] for rows in row_lists]
    varying = [name for name in (*GROUP_KEY[5:], *ORIGIN) if len({_text(record, [name]) for record in first}) > 1]
    groups = [_make_group(rows, full.get(_key_of_full(rows[0])), varying) for rows in row_lists]
    # Cells trained with all labels are a group of their own only if several methods were.
    return [group for group in groups if group.scenario != FULL or len(group.rows) > 1]


def _split(records: Sequence[Record]) -> list[list[Record]]:
    """Split records into groups.

    Methods that choose their own head and training (`auto`, tuned scikit-learn) join every group on the same known
    entries, after the others.
    """
    groups: dict[str, list[Record]] = {}
    shared: dict[str, list[Record]] = {}
    for record in records:
        has_own_head = record["method"] in REFERENCE_METHODS and record["head"] == AUTO
        if has_own_head and record["recipe"].keys() <= set(FEATURE_OPTIONS):
            shared.setdefault(_text(record, (*DATA_KEY, *ORIGIN)), []).append(record)
        else:
            groups.setdefault(_text(record, (*GROUP_KEY, *ORIGIN)), []).append(record)
    for key, same in shared.items():
        joined = [group for group in groups.values() if _text(group[0], (*DATA_KEY, *ORIGIN)) == key]
        for group in joined or [groups.setdefault(_text(same[0], (*GROUP_KEY, *ORIGIN)), [])]:
            group += same
    return [group for _, group in sorted(groups.items())]


def spell_method(record: Record, defaults: Mapping[str, Mapping[str, Any]]) -> str:
    """Return 'name[setting=value]' with the settings that differ from the defaults, and the search."""
    name = spell(record["method"], record["settings"], defaults.get(record["method"], {}))
    tuned = f", tuned {record['tune']}" if record["tune"] else ""
    asks = record.get("asks")
    questions = f", {asks['query']} {asks['rounds']} x {asks['questions']}" if asks else ""
    return f"{name}{tuned}{questions}"


def spell(name: str, settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """Return 'name[setting=value]' with the settings that differ from the defaults."""
    differing = {key: value for key, value in settings.items() if key not in defaults or value != defaults[key]}
    inside = ",".join(f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in differing.items())
    return f"{name}[{inside}]" if inside else name


def _make_group(rows: list[Row], full: Row | None, varying: Sequence[str]) -> Group:
    key: dict[str, Any] = {name: rows[0].records[0].get(name) for name in (*GROUP_KEY, *ORIGIN)}
    rows = sorted(rows, key=lambda row: (-value.value if (value := row.mean()) else 1.0, row.name))
    if full is not None and key["scenario"] != FULL:
        rows.insert(0, replace(full, name=f"{full.name}, all labels", kind="full"))
    title = ", ".join([key["data"], key["head"], *(_describe(name, key[name]) for name in varying)])
    group = Group(key, tuple(rows), title)
    ranking = rank([group.contestants])
    leader, tied = (
        (ranking.leader, ranking.tied) if ranking and ranking.seeds > 1 else ("", ())
    )  # one seed shows no lead
    ends = [end.scores() for end in (group.naive, group.full) if end]
    unranked = group.contestants.keys() - set(ranking.names) if ranking else set()
    rows = [
        replace(
            row,
            best=row.name == leader,
            tied=row.name in tied,
            unranked=row.name in unranked,
            gap=gap_closed(row.scores(), *ends) if len(ends) == 2 and row.kind != "full" else None,
        )
        for row in rows
    ]
    return replace(group, rows=tuple(rows))


def _make_rows(records: Iterable[Record], defaults: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    by_name: dict[str, list[Record]] = {}
    for record in records:
        by_name.setdefault(spell_method(record, defaults), []).append(record)
    return [_make_row(name, sorted(same, key=lambda record: record["seed"])) for name, same in by_name.items()]


def _make_row(name: str, records: list[Record]) -> Row:
    """Make the row of a method, if its records differ in nothing but the seed."""
    first = records[0]
    origins = {
        _text(record, ("settings", "needs_truth", "method_sha256")) + ("" if record["tune"] else _training(record))
        for record in records
    }
    if len(origins) > 1:
        raise ProtocolError(
            f"{first['data']}, {first['scenario']}, {first['head']}, {name}: records of different origin cannot be "
            "averaged:" + "".join(f"\n  {origin}" for origin in sorted(origins)) + "\nKeep them in different folders."
        )
    kind = "oracle" if first["needs_truth"] else "naive" if name in NAIVE else ""
    return Row(name, kind, tuple(records))


def _saw_all_labels(row: Row) -> bool:
    """Return True for the upper reference of a comparison: plain cross-entropy with nothing hidden."""
    return row.name == "bce" and row.records[0]["scenario"] == FULL


def _key_of_full(row: Row) -> str:
    """Key that the row trained with all labels shares with the groups it is the reference of."""
    names = [name for name in (*GROUP_KEY, *ORIGIN) if name not in ("scenario", "validation")]
    return _text(row.records[0], names)


def _describe(name: str, value: Any) -> str:
    if name == "known_only":
        return "items with labels only" if value else "all items"
    if isinstance(value, dict):
        settings = (_describe(k, v) if isinstance(v, dict) else f"{k} {v}" for k, v in value.items())
        return ", ".join(settings) or f"default {name}"
    return value if name in ("optimizer", "machine") else f"{name} {value}"


def _training(record: Record) -> str:
    """Training configuration without the seed. Absent options count as None: older records lack newer options."""
    options = {name: value for name, value in record["ran"].items() if name != "seed" and value is not None}
    return json.dumps(options, sort_keys=True)


def _text(record: Record, names: Iterable[str]) -> str:
    return json.dumps([record.get(name) for name in names], sort_keys=True)
