"""An evaluation as text tables, Markdown, LaTeX, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from partly.errors import SettingError
from partly.metrics import label_intervals
from partly.metrics.whole_matrix import ASSUMPTIONS
from partly.report.evaluation import Evaluation, ModelScores, format_p, heading_of
from partly.report.layout import escape_latex, escape_markdown

LABEL_METRICS = ("AP", "AUROC", "precision", "recall", "F1", "log_loss", "brier", "ECE", "yes", "no")
PART_METRICS = ("mAP", "AUROC", "OF1")
COLUMNS = ("model", "section", "part", "metric", "value", "low", "high", "lowest", "highest", "assumption", "p")


@dataclass(frozen=True)
class TextTable:
    """A table of text cells."""

    title: str
    header: list[str]
    rows: list[list[str]]


def format_interval(value: float, low: float, high: float) -> str:
    """Return a value with its interval; a dash where it is undefined."""
    if math.isnan(value):
        return "–"
    return f"{value:.3f}" if math.isnan(low) else f"{value:.3f} [{low:.3f}, {high:.3f}]"


def main_table(evaluation: Evaluation) -> TextTable:
    """Return the main metrics of each model, one row per metric."""
    rows = []
    for name, heading in evaluation.headline.items():
        cells = [format_interval(m.values[name], *m.intervals[name]) for m in evaluation.models]
        rows.append([heading, *cells])
    return TextTable(_title(evaluation), ["metric", *(m.name for m in evaluation.models)], rows)


def _title(evaluation: Evaluation) -> str:
    values = evaluation.models[0].values
    counts = f"{values['entries_known']:,} known entries, {values['labels_counted']:,} labels with an AP"
    return f"Metrics on known entries, with {100 * evaluation.confidence:g} % intervals ({counts})"


def part_tables(evaluation: Evaluation) -> list[TextTable]:
    """Return mAP and OF1 of each part of the labels or items, one row per part and model."""
    tables, several = [], len(evaluation.models) > 1
    names = PART_METRICS[::2]  # as many as fit a line
    for by in dict.fromkeys(part.by for part in evaluation.models[0].parts):
        rows = []
        for position, part in enumerate(evaluation.models[0].parts):
            for model in evaluation.models if part.by == by else ():
                same = model.parts[position]
                cells = [format_interval(same.values[name], *same.intervals[name]) for name in names]
                named = [part.title, *([model.name] if several else [])]
                rows.append([*named, *cells, f"{part.values['entries_known']:,}"])
        header = ["part", *(["model"] if several else []), *names, "entries"]
        tables.append(TextTable(f"By {by}", header, rows))
    return tables


def whole_tables(evaluation: Evaluation) -> list[TextTable]:
    """Return the estimates for all entries, one table per model."""
    tables = []
    for model in evaluation.models:
        if model.whole is None:
            continue
        rows = [
            [name, format_interval(e.value, e.low, e.high), _bounds(e.lowest, e.highest)]
            for name, e in model.whole.estimates.items()
            if not (math.isnan(e.value) and math.isnan(e.lowest))
        ]
        basis = ASSUMPTIONS[model.whole.mechanism] if model.whole.mechanism else "No assumption holds: bounds only."
        title = f"{model.name}: estimates for all entries, known or not. {basis}"
        tables.append(TextTable(title, ["metric", "estimate", "without assumption"], rows))
    return tables


def hierarchy_tables(evaluation: Evaluation) -> list[TextTable]:
    """Return a table of the metrics that respect a hierarchy; none without one."""
    names = [name for name in evaluation.models[0].hierarchical if name not in ("items", "intervals")]
    rows = [[name, *(_hierarchical_cell(model, name) for model in evaluation.models)] for name in names]
    header = ["metric", *(model.name for model in evaluation.models)]
    return (
        [TextTable("With the hierarchy: known labels and all labels that follow from them", header, rows)]
        if rows
        else []
    )


def _hierarchical_cell(model: ModelScores, name: str) -> str:
    if name.endswith("_threshold"):
        return f"{model.hierarchical[name]:.2f}"
    return format_interval(model.hierarchical[name], *model.hierarchical["intervals"][name])


def _bounds(low: float, high: float) -> str:
    return "–" if math.isnan(low) else f"{low:.3f} to {high:.3f}"


def comparison_table(evaluation: Evaluation) -> TextTable | None:
    """Return the paired differences; None for one model."""
    rows = []
    for row in evaluation.comparisons:
        gap = format_interval(row["difference"], row["low"], row["high"])
        rows.append([f"{row['a']} − {row['b']}", heading_of(row["metric"]), gap, format_p(row["p"]).removeprefix("= ")])
    title = "Paired differences (the same items), p Holm-adjusted over all rows"
    return TextTable(title, ["models", "metric", "difference", "p"], rows) if rows else None


def all_tables(evaluation: Evaluation) -> list[TextTable]:
    """Return all tables, in the order of a page."""
    compared = comparison_table(evaluation)
    tables = [main_table(evaluation), *([] if compared is None else [compared])]
    return [*tables, *hierarchy_tables(evaluation), *part_tables(evaluation), *whole_tables(evaluation)]


# ---------------------------------------------------------------- formats


def to_markdown(evaluation: Evaluation) -> str:
    """Return all tables as Markdown."""
    lines = []
    for table in all_tables(evaluation):
        lines += [f"**{escape_markdown(table.title)}**", ""]
        for cells in (table.header, ["---"] * len(table.header), *table.rows):
            escaped = cells if cells[0] == "---" else map(escape_markdown, cells)
            lines.append("| " + " | ".join(escaped) + " |")
        lines.append("")
    return "\n".join(lines + [f"{escape_markdown(sentence)}\n" for sentence in evaluation.remarks()])


def to_latex(evaluation: Evaluation) -> str:
    """Return all tables as LaTeX; they need the package booktabs."""
    lines = ["% Needs \\usepackage{booktabs}."]
    for table in all_tables(evaluation):
        lines += ["", f"% {' '.join(table.title.split())}", f"\\begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}"]
        rule = [" & ".join(map(escape_latex, table.header)) + r" \\", "\\midrule"]
        rows = [" & ".join(map(escape_latex, row)) + r" \\" for row in table.rows]
        lines += ["\\toprule", *rule, *rows, "\\bottomrule", "\\end{tabular}"]
    lines += ["", *(f"% {' '.join(sentence.split())}" for sentence in evaluation.remarks())]
    return "\n".join(lines).replace("−", "$-$").replace("–", "--") + "\n"


def to_rows(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return every number as a row of its own."""
    rows: list[dict[str, Any]] = []
    for model in evaluation.models:
        rows += _metric_rows(model.name, "known entries", "", model.values, model.intervals)
        rows += _label_rows(model, evaluation)
        values = {name: value for name, value in model.hierarchical.items() if name != "intervals"}
        rows += _metric_rows(model.name, "hierarchy", "", values, model.hierarchical.get("intervals", {}))
        for part in model.parts:
            rows += _metric_rows(model.name, f"by {part.by}", part.title, part.values, part.intervals)
        if model.whole is not None:
            for name, found in model.whole.estimates.items():
                rows.append({"model": model.name, "section": "all entries", "metric": name} | asdict(found))
    for row in evaluation.comparisons:
        names = {"model": row["a"], "section": "difference", "part": f"minus {row['b']}", "metric": row["metric"]}
        rows.append(names | {"value": row["difference"], "low": row["low"], "high": row["high"], "p": row["p"]})
    return rows


def _metric_rows(
    model: str, section: str, part: str, values: dict[str, float], intervals: dict[str, tuple[float, float]]
) -> list[dict[str, Any]]:
    rows = []
    for name, value in values.items():
        low, high = intervals.get(name, (math.nan, math.nan))
        named = {"model": model, "section": section, "part": part, "metric": name}
        rows.append(named | {"value": value, "low": low, "high": high})
    return rows


def _label_rows(model: ModelScores, evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the metrics of each label, with intervals where there are any."""
    columns, ends = model.measured.by_label, _label_intervals(model, evaluation)
    return [
        {"model": model.name, "section": "label", "part": label, "metric": name, "value": columns[name][j].item()}
        | ({"low": float(ends[name][j, 0]), "high": float(ends[name][j, 1])} if name in ends else {})
        for name in LABEL_METRICS
        for j, label in enumerate(evaluation.labels.names)
    ]


def _label_intervals(model: ModelScores, evaluation: Evaluation) -> dict[str, Any]:
    """Return the intervals of each label; none for weighted entries, whose errors are others."""
    return {} if model.missing.biased else label_intervals(model.measured, evaluation.confidence)


def _labels_to_dict(model: ModelScores, evaluation: Evaluation) -> dict[str, Any]:
    columns, ends = model.measured.by_label, _label_intervals(model, evaluation)
    return {
        label: {name: columns[name][j].item() for name in LABEL_METRICS}
        | {"intervals": {name: pairs[j].tolist() for name, pairs in ends.items()}}
        for j, label in enumerate(evaluation.labels.names)
    }


def to_csv(evaluation: Evaluation) -> str:
    """Return every number as CSV; undefined values are blank."""
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for row in to_rows(evaluation):
        writer.writerow({key: "" if isinstance(v, float) and math.isnan(v) else v for key, v in row.items()})
    return file.getvalue()


def to_dict(evaluation: Evaluation) -> dict[str, Any]:
    """Return everything for JSON. One model is flat; several are under `models`."""
    models = {model.name: _model_to_dict(model, evaluation) for model in evaluation.models}
    shared = {"confidence": evaluation.confidence, "warnings": evaluation.warnings}
    if len(models) == 1:
        return next(iter(models.values())) | shared
    return {"models": models, "comparisons": evaluation.comparisons} | shared


def _model_to_dict(model: ModelScores, evaluation: Evaluation) -> dict[str, Any]:
    result: dict[str, Any] = {**model.values, "intervals": model.intervals}
    result["by_label"] = _labels_to_dict(model, evaluation)
    for part in model.parts:
        scores = {"values": part.values, "intervals": part.intervals}
        result.setdefault("by", {}).setdefault(part.by, {})[part.title] = scores
    if model.hierarchical:
        result["hierarchical"] = model.hierarchical
    if model.whole is not None:
        whole = {name: asdict(scores) for name, scores in model.whole.estimates.items()}
        notes = {"assumption": ASSUMPTIONS.get(model.whole.mechanism, ""), "notes": model.whole.notes}
        result["all_entries"] = {"mechanism": model.whole.mechanism, **notes, "estimates": whole}
    return result


def to_json(evaluation: Evaluation) -> str:
    """Return everything as JSON; undefined values are null."""
    return json.dumps(_plain(to_dict(evaluation)), indent=1, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


WRITERS: dict[str, Callable[[Evaluation], str]] = {
    ".json": to_json,
    ".md": to_markdown,
    ".tex": to_latex,
    ".csv": to_csv,
}


def writer_for(path: Path, others: Sequence[str] = ()) -> Callable[[Evaluation], str] | None:
    """Return the writer for the suffix of a path; None for the suffixes of `others`."""
    if path.suffix not in (*WRITERS, *others):
        allowed = ", ".join((*WRITERS, *others))
        raise SettingError(f"{path}: an evaluation is written as {allowed}. Give the file one of these endings.")
    return WRITERS.get(path.suffix)
