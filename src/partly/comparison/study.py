"""Study of annotation schemes: which one makes the best use of a label budget, at equal numbers of correct labels?

Paper: T. Durand, N. Mehrasa, G. Mori. Learning a Deep ConvNet for Multi-label Classification with Partial Labels.
CVPR 2019. Sections 4.1, A.4 and A.5: plain cross-entropy on the known entries, over shares of correct labels.

A study is a comparison whose scenarios are the schemes at every share. This module plans, runs and renders it;
`label_budget` holds its results and the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

from partly.atomic_io import write_file
from partly.comparison import Experiment, runner
from partly.comparison.charts import robust_limits
from partly.comparison.label_budget import (
    SCHEMES,
    WITHOUT_SHARE,
    Point,
    Study,
    answer,
    gather,
    measure_shares,
    name_scheme,
    scores_of,
    sentences,
)
from partly.comparison.markdown import format_mean, mark
from partly.comparison.statistics import mean, rank
from partly.report import figures, plots
from partly.report.chart import Drawing
from partly.report.layout import escape_markdown, load_template

__all__ = ["Study", "answer", "draw", "render_html", "render_markdown", "render_table", "run", "study"]

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
MIN_SHARE_DIFFERENCE = 0.005  # between requested and measured share, from which the latter is shown
NOTES = (
    "Test mAP of `bce`, mean over seeds ± half of the 95 % confidence interval (Student's t). Share: of all labels, "
    "known and correct; the measured share is in brackets where it differs, because it is a whole number of labels or "
    "items. **Bold**: the leader of a budget, with the highest mAP; ≈: not significantly worse. The best scheme over "
    "all budgets is the one with the best mean rank."
)


def study(
    data: str | Path,
    shares: Sequence[float] = SHARES,
    scenarios: Sequence[str] = tuple(SCHEMES),
    *,
    head: str = "mlp",
    seeds: int = 3,
    labels: str | Path | None = None,
    skip_bad: bool = False,
    size: int | None = None,
    absent: str | None = None,
    uncertain: str | None = None,
    missing: Sequence[str] = (),
    label_columns: Sequence[str] = (),
    id_column: str | None = None,
    tag_separator: str | None = None,
    recipe: dict[str, Any] | None = None,
    name: str = "study",
    out: str | Path = "results",
    workers: int | None = None,
    progress: bool = True,
) -> Study:
    """Run every annotation scheme at every share, and write `<name>.md`, `<name>.html` and a chart to `out`.

    data: as for `partly.compare`. Finished cells are kept. At a share of 1 all schemes are the same: the reference
    with all labels, which is always included.
    """
    below = [share for share in shares if share != 1]
    texts = [
        [scheme] if scheme in WITHOUT_SHARE else [f"{scheme}:{share:g}" for share in below] for scheme in scenarios
    ]
    experiment = Experiment(
        (str(data),),
        ("bce",),
        tuple(dict.fromkeys(chain(*texts))),
        (head,),
        seeds,
        recipe=recipe or {},
        labels=None if labels is None else str(labels),
        skip_bad=skip_bad,
        size=size,
        absent=absent,
        uncertain=uncertain,
        missing=tuple(missing),
        label_columns=tuple(label_columns),
        id_column=id_column,
        tag_separator=tag_separator,
        naive=False,
        name=name,
    )
    (result,) = run(experiment, Path(out), workers, progress)
    return result


def run(experiment: Experiment, out: Path, workers: int | None = None, progress: bool = True) -> list[Study]:
    """Run all cells that are not finished, and write the report."""
    correct, known = measure_shares(experiment)  # before any cell runs, since labels may be refused
    studies = gather(experiment, runner.run(experiment, out, workers, progress), correct, known)
    write(studies, out, experiment.name, experiment.title or "How to spend a label budget")
    return studies


def write(studies: Sequence[Study], out: Path, name: str, title: str) -> None:
    """Write `<name>.md`, its charts, and `<name>.html`."""

    def save(chart: str, svg: bytes) -> str:
        path = out / f"{name}-{chart}.svg"
        write_file(path, svg)
        return path.name

    page = [f"# {escape_markdown(title)}", "", render_markdown(studies, 2, save)]
    write_file(out / f"{name}.md", "\n".join(page).encode())
    write_file(out / f"{name}.html", render_html(studies, title).encode("utf-8", "replace"))


def render_markdown(studies: Sequence[Study], level: int, save: Callable[[str, bytes], str]) -> str:
    """Render answers, charts and tables; `save` stores a chart by its name and returns its address."""
    lines = []
    for study in studies:
        address = save(f"{study.data}-{study.head}", draw(study).svg)
        heading = f"{escape_markdown(study.data)}, {escape_markdown(study.head)}"
        lines += [f"{'#' * level} {heading}", "", answer(study), ""]
        lines += [f"![Test mAP by share]({quote(address)})", "", *render_table(study), ""]
    return "\n".join([*lines, NOTES, ""])


def render_html(studies: Sequence[Study], title: str) -> str:
    """Render a self-contained page."""
    sections = [
        {
            "title": f"{study.data}, {study.head}",
            "answer": sentences(study),
            "drawing": draw(study),
            "schemes": study.schemes(),
            "rows": table_rows(study),
            "without_share": _describe_points_without_share(study),
        }
        for study in studies
    ]
    used = dict.fromkeys(p.scheme for study in studies for p in study.points)
    schemes = {scheme: SCHEMES[scheme] for scheme in used if scheme in SCHEMES}
    return load_template("study.html").render(title=title, studies=sections, schemes=schemes, notes=NOTES)


def render_table(study: Study) -> list[str]:
    """Render Markdown with a row per budget and a column per scheme."""
    schemes = study.schemes()
    lines = [f"| share | {' | '.join(schemes)} |", "|---:" * (1 + len(schemes)) + "|"]
    lines += [f"| {share} | {' | '.join(cells)} |" for share, cells in table_rows(study)]
    return [*lines, "", *(f"{text}\n" for text in _describe_points_without_share(study))]


def table_rows(study: Study) -> list[tuple[str, list[str]]]:
    """Share and scores of each scheme; all labels last."""
    rows = []
    for share, points in study.budgets().items():
        ranking = rank([scores_of(points)])
        leader, tied = (ranking.leader, ranking.tied) if ranking else ("", ())
        cells = [
            _format_point(points[scheme], scheme == leader, scheme in tied) if scheme in points else ""
            for scheme in study.schemes()
        ]
        rows.append((f"{share:.0%}", cells))
    return [*rows, ("100%", [format_mean(mean(study.full.values()))] * len(study.schemes()))]


def _describe_points_without_share(study: Study) -> list[str]:
    texts = []
    for point in study.points_without_share():
        correct = "" if point.correct is None else f", {point.correct:.1%} correct"
        texts.append(f"{name_scheme(point.scheme)}: {format_mean(point.mean)}{correct}.")
    return texts


def _format_point(point: Point, best: bool, tied: bool) -> str:
    text = mark(format_mean(point.mean), best, tied)
    if point.share is None or point.correct is None or abs(point.share - point.correct) < MIN_SHARE_DIFFERENCE:
        return text
    return f"{text} ({point.correct:.1%})"


def draw(study: Study) -> Drawing:
    """Draw test mAP over the share of correct labels, a line per scheme, with intervals; dashed: all labels."""
    with figures.new_figure(6.4, 3.8) as figure:
        axes = figure.subplots()
        full = mean(study.full.values())
        known = [value for p in study.points if (value := p.mean)] + ([full] if full else [])
        low, high = robust_limits([m.value for m in known], [m.margin or 0.0 for m in known])
        tooltips: list[figures.Tooltip] = []
        for place, scheme in enumerate(dict.fromkeys(p.scheme for p in study.points)):
            style = plots.choose_style(place)
            means = [(100 * p.correct, p.mean) for p in study.points if p.scheme == scheme and p.correct is not None]
            means += [(100.0, full)] if scheme in study.schemes() else []
            points = sorted((x, m.value, m.margin or 0.0) for x, m in means if m is not None)
            if points:
                x, y, margin = zip(*points, strict=True)
                axes.errorbar(x, y, margin, color=style.color, marker=style.marker, ms=5, capsize=2, label=scheme)
            for a, b, c in points:
                inside = min(max(b, low), high)
                if inside != b:
                    axes.plot(a, inside, "^" if b > high else "v", color=style.color, ms=8, clip_on=False)
                tooltips.append((axes, a, inside, f"{scheme}, {a:.3g} %: {b:.3f} ± {c:.3f}"))
        if full is not None:
            axes.axhline(full.value, color=plots.UPPER_BOUND_COLOR, linestyle=(0, (5, 3)), lw=1.3, zorder=1)
        axes.set(xlabel="known and correct labels, %", ylabel="test mAP", ylim=(low, high))
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False)
        return figures.to_drawing(figure, tooltips)
