"""What is the best way to spend a budget of labels? Ways to annotate side by side, at equal numbers of right labels.

Paper: T. Durand, N. Mehrasa, G. Mori. Learning a Deep ConvNet for Multi-label Classification with Partial Labels.
CVPR 2019. Sections 4.1, A.4 and A.5: plain cross-entropy on the known entries, over shares of right labels.

A study is a comparison whose scenarios are the ways at every share; this module plans it and reads its result lines.
"""

# Long because the answer, the table, the pages and the picture say the same of the same points.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

from partly.atomic_io import write_file
from partly.comparison import Experiment, charts, protocol, runner
from partly.comparison.plan import FULL, Cell, name_of
from partly.comparison.results import Line
from partly.comparison.score_tables import number
from partly.comparison.statistics import Mean, Ranking, Scores, mean, rank
from partly.data import Dataset
from partly.report import figures, plots
from partly.report.chart import Drawing
from partly.report.layout import escape_markdown, load_template

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
WAYS = {
    "uniform": "some labels of every item",
    "dense": "all labels of some items",
    "noisy": "all labels of all items, some of them wrong",
    "noisy-plus": "one yes of every item, and all else called no",
}
SINGLE = ("noisy-plus", "single-positive")  # they take no share
NOTES = (
    "Test mAP of `bce`, mean over seeds ± half of the 95 % interval (Student's t). Share: of the labels, known and "
    "right; in brackets where it is another one, since it is a whole number of labels or items. "
    "**Bold**: the leader of a budget, with the highest mAP; ≈: not shown to be worse than it. The best way over all "
    "budgets is the one with the best mean rank."
)


PARTLY = (
    "These labels are themselves partly known ({:.0%} of the entries), so this is no study of a truth: shares are of "
    "what is known, 100% is all that is known, and scores are on the known entries of the test part."
)


@dataclass(frozen=True)
class Point:
    """One way to annotate, at one share."""

    way: str
    share: float | None  # as asked for; None for a way that takes none
    clean: float | None  # share of the entries that are known and right, as far as it was worked out
    scores: Scores  # test mAP by seed

    @property
    def mean(self) -> Mean | None:
        return mean(self.scores.values())


@dataclass(frozen=True)
class Study:
    """The points of one data set and head."""

    data: str
    head: str
    points: tuple[Point, ...]
    full: Scores  # all labels known and right
    known: float = 1.0  # share of the entries whose truth is known at all

    @property
    def seeds(self) -> int:
        return max((len(point.scores) for point in self.points), default=0)

    def budgets(self) -> dict[float, dict[str, Point]]:
        """Share -> way -> point, from the smallest share to the largest below all labels; points with scores only."""
        shares = sorted({p.share for p in self.points if p.share is not None})
        return {s: {p.way: p for p in self.points if p.share == s and p.scores} for s in shares}

    def ranking(self) -> Ranking | None:
        """Who leads over all budgets, by the rule of all comparisons: a budget is a race of the ways."""
        return rank([race(ways) for ways in self.budgets().values()])

    def ways(self) -> list[str]:
        """Those that take a share, as asked for."""
        return list(dict.fromkeys(p.way for p in self.points if p.share is not None))

    def singles(self) -> list[Point]:
        """The points of ways that take no share."""
        return [p for p in self.points if p.share is None and p.scores]


def race(ways: Mapping[str, Point]) -> dict[str, Scores]:
    """One budget, for `statistics.rank`."""
    return {way: point.scores for way, point in ways.items()}


def study(
    data: str | Path,
    shares: Sequence[float] = SHARES,
    scenarios: Sequence[str] = tuple(WAYS),
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
    """Run every way to annotate at every share; writes `<name>.md` and a picture beside the result lines in `out`.

    data: as for `partly.compare`. What is there already is not run again. At a share of 1 all ways are one: the
    full-label row, which always runs along.
    """
    below = [share for share in shares if share != 1]
    texts = [[way] if way in SINGLE else [f"{way}:{share:g}" for share in below] for way in scenarios]
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
    (found,) = run(experiment, Path(out), workers, progress)
    return found


def run(experiment: Experiment, out: Path, workers: int | None = None, progress: bool = True) -> list[Study]:
    """Run what is not there yet, and write the page and the pictures."""
    clean, known = right_shares(experiment), known_shares(experiment)  # first: labels may be refused
    lines = runner.run(experiment, out, workers, progress)
    studies = gather(experiment, lines, clean, known)

    def save(name: str, svg: bytes) -> str:
        picture = out / f"{experiment.name}-{name}.svg"
        write_file(picture, svg)
        return picture.name

    title = experiment.title or "How to spend a budget of labels"
    page = [f"# {escape_markdown(title)}", "", markdown(studies, 2, save)]
    write_file(out / f"{experiment.name}.md", "\n".join(page).encode())
    write_file(out / f"{experiment.name}.html", html(studies, title).encode("utf-8", "replace"))
    return studies


def asked_by(experiment: Experiment) -> bool:
    """Whether an experiment is a study: `bce` alone, and ways to annotate, all of which learn from all items."""
    ways = {text.partition(":")[0] for text in experiment.scenarios}
    alone = experiment.methods == ("bce",) and not experiment.naive and not experiment.known_only
    return alone and ways <= {*WAYS, *SINGLE}


def gather(
    experiment: Experiment,
    lines: Iterable[Line],
    clean: Mapping[tuple[str, str], float] | None = None,
    known: Mapping[str, float] | None = None,
) -> list[Study]:
    """The studies in the result lines of an experiment; only cells with plain cross-entropy count.

    clean: (data, scenario) -> the share that is really known and right; as asked for, where it is not given. known:
    data -> the share of entries whose truth is known; all, where it is not given.
    """
    scores: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
    for line in lines:
        if line["method"] == "bce":
            found = scores.setdefault((line["data"], line["head"]), {}).setdefault(line["scenario"], {})
            if line["test"]["mAP"] is not None:
                found[line["seed"]] = line["test"]["mAP"]
    clean = clean or {}
    studies = []
    for (data, head), ways in scores.items():
        there = [text for text in experiment.scenarios if ways.get(text)]
        points = tuple(_point(text, clean.get((data, text)), ways[text]) for text in there)
        studies.append(Study(data, head, points, ways.get(FULL, {}), (known or {}).get(data, 1.0)))
    return studies


def _point(text: str, clean: float | None, scores: Scores) -> Point:
    way, colon, number = text.partition(":")
    share = float(number) if colon else None
    return Point(way, share, share if clean is None else clean, scores)


def right_shares(experiment: Experiment) -> dict[tuple[str, str], float]:
    """(data, scenario) -> share of the truth that is known and right, with the first seed."""
    found = {}
    for name, data in _opened(experiment):
        truth = data.labels.rows(slice(None))
        for text in experiment.scenarios:
            cell = Cell(name, text, "bce", "linear", "adamw", seed=0)
            right = (protocol.mask(cell, data).rows(slice(None)) == truth) & (truth != 0)
            found[name_of(name), text] = float(right.sum() / max(1, (truth != 0).sum()))
    return found


def known_shares(experiment: Experiment) -> dict[str, float]:
    """Data -> share of its entries that are known before anything is hidden: 1, where there is a truth."""
    return {name_of(name): float(data.labels.summary()["known_share"]) for name, data in _opened(experiment)}


def _opened(experiment: Experiment) -> Iterator[tuple[str, Dataset]]:
    """Every data set, read as its cells read it."""
    how = (experiment.labels, experiment.skip_bad, experiment.size, experiment.meaning)
    return ((name, protocol.open_data(name, *how)) for name in experiment.data)


# ---------------------------------------------------------------- what comes out


def markdown(studies: Sequence[Study], level: int, save: Callable[[str, bytes], str]) -> str:
    """Answers, pictures and tables; `save` keeps a picture by its name and returns its address."""
    parts = []
    for one in studies:
        picture = save(f"{one.data}-{one.head}", draw(one).svg)
        parts += [f"{'#' * level} {escape_markdown(one.data)}, {escape_markdown(one.head)}", "", answer(one), ""]
        parts += [f"![Test mAP by share]({quote(picture)})", "", *table(one), ""]
    return "\n".join([*parts, NOTES, ""])


def html(studies: Sequence[Study], title: str) -> str:
    """The same as a page that stands by itself."""
    parts = [
        {
            "title": f"{one.data}, {one.head}",
            "answer": sentences(one),
            "drawing": draw(one),
            "ways": one.ways(),
            "rows": _rows(one),
            "singles": _singles(one),
        }
        for one in studies
    ]
    ways = {way: WAYS[way] for way in dict.fromkeys(p.way for one in studies for p in one.points) if way in WAYS}
    return load_template("study.html").render(title=title, studies=parts, ways=ways, notes=NOTES)


def answer(one: Study) -> str:
    """What is the best way to spend a label budget, in a few sentences."""
    return " ".join(sentences(one))


def sentences(one: Study) -> list[str]:
    """The answer, its main sentence first."""
    ranking = one.ranking()
    if ranking is None or len(one.ways()) < 2:
        return ["There is nothing to choose from."]
    best, level = ranking.leader, ranking.level
    times = f"the highest test mAP at {ranking.wins[0]} of {ranking.blocks} budgets"
    if one.seeds == 1:
        parts = [
            f"One seed shows nothing: {_named(best)} has {times}, and how much of that is chance cannot be "
            "told. More seeds (--seeds 5) would tell."
        ]
    elif len(level) == len(ranking.names) - 1:
        parts = [f"No way to spend a label budget is shown to be best; {_named(best)} has {times}."]
    elif level:
        others = " and ".join(map(_named, level))
        parts = [f"{_named(best)} and {others} share the lead: seeds and budgets do not tell them apart."]
    else:
        clearly = sum(_leads_alone(best, ways) for ways in one.budgets().values())
        how = "every time" if clearly == ranking.wins[0] else f"{clearly} times"
        parts = [f"The best way to spend a label budget is {_named(best)}: it has {times}, {how} beyond chance."]
    parts += [_lead(one, best, other) for other in one.ways() if other != best]
    parts += [_beside(one, best, point) for point in one.singles()]
    parts += [PARTLY.format(one.known)] if one.known < 1 else []
    return list(filter(None, parts))


def _leads_alone(way: str, ways: Mapping[str, Point]) -> bool:
    """Whether a way leads a budget, and all others are shown to be worse."""
    found = rank([race(ways)])
    return found is not None and found.leader == way and not found.level


def _named(way: str) -> str:
    return f"**{way}** ({WAYS[way]})" if way in WAYS else f"**{way}**"


def _lead(one: Study, best: str, other: str) -> str:
    """How far the best is ahead of another way, at the smallest and at the largest budget."""
    both = {
        share: a.value - b.value
        for share, ways in one.budgets().items()
        if best in ways and other in ways and (a := ways[best].mean) and (b := ways[other].mean)
    }
    if not both:
        return ""
    ends = list(dict.fromkeys((min(both), max(both))))
    return f"Ahead of {other}: " + ", ".join(f"{both[share]:+.3f} at {share:.0%}" for share in ends) + "."


def _beside(one: Study, best: str, point: Point) -> str:
    """With how small a budget the best way is as good as a way that takes no share."""
    assert point.mean is not None
    enough = [
        share
        for share, ways in one.budgets().items()
        if best in ways and (found := ways[best].mean) and found.value >= point.mean.value
    ]
    than = f"{best} is as good from {min(enough):.0%} on" if enough else f"{best} is nowhere as good"
    return f"{_named(point.way)}{_right(point, ' of the labels')} has {point.mean.value:.3f}: {than}."


def _right(point: Point, words: str = "") -> str:
    return "" if point.clean is None else f", {point.clean:.1%}{words} right{',' * bool(words)}"


def table(one: Study) -> list[str]:
    """Markdown: a row a budget, a column per way."""
    lines = [f"| share | {' | '.join(one.ways())} |", "|---:" * (1 + len(one.ways())) + "|"]
    lines += [f"| {share} | {' | '.join(cells)} |" for share, cells in _rows(one)]
    return [*lines, "", *(f"{words}\n" for words in _singles(one))]


def _rows(one: Study) -> list[tuple[str, list[str]]]:
    """A share, and what each way comes to at it; all labels last."""
    rows = []
    for share, found in one.budgets().items():
        ranking = rank([race(found)])
        best, level = (ranking.leader, ranking.level) if ranking else ("", ())
        cells = [_cell(found[way], way == best, way in level) if way in found else "" for way in one.ways()]
        rows.append((f"{share:.0%}", cells))
    return [*rows, ("100%", [number(mean(one.full.values()))] * len(one.ways()))]


def _singles(one: Study) -> list[str]:
    """What the ways that take no share come to."""
    return [f"{_named(point.way)}: {_cell(point)}{_right(point)}." for point in one.singles()]


def _cell(point: Point, best: bool = False, level: bool = False) -> str:
    text = number(point.mean)
    text = f"**{text}**" if best else f"{text} ≈" if level else text
    other = point.share is not None and point.clean is not None and abs(point.share - point.clean) >= 0.005
    return f"{text} ({point.clean:.1%})" if other else text


def draw(one: Study) -> Drawing:
    """Test mAP over the share of right labels, a line per way, with intervals; dashed: all labels."""
    with figures.new_figure(6.4, 3.8) as figure:
        axes = figure.subplots()
        full = mean(one.full.values())
        known = [found for p in one.points if (found := p.mean)] + ([full] if full else [])
        low, high = charts.robust_ends([m.value for m in known], [m.margin or 0.0 for m in known])
        marks: list[figures.Tooltip] = []
        for place, way in enumerate(dict.fromkeys(p.way for p in one.points)):
            points = [(100 * p.clean, p.mean) for p in one.points if p.way == way and p.clean is not None]
            points += [(100.0, full)] if way in one.ways() else []
            shown = sorted((x, m.value, m.margin or 0.0) for x, m in points if m is not None)
            if shown:
                look = plots.choose_style(place)
                x, y, margin = zip(*shown, strict=True)
                axes.errorbar(x, y, margin, color=look.color, marker=look.marker, ms=5, capsize=2, label=way)
                for at, value, _ in shown:
                    if not low <= value <= high:
                        end, sign = (high, "^") if value > high else (low, "v")
                        axes.plot(at, end, sign, color=look.color, ms=8, clip_on=False)
                marks += [
                    (axes, a, min(max(b, low), high), f"{way}, {a:.3g} %: {b:.3f} ± {c:.3f}") for a, b, c in shown
                ]
        if full is not None:
            axes.axhline(full.value, color=plots.PRIVILEGED, linestyle=(0, (5, 3)), lw=1.3, zorder=1)
        axes.set(xlabel="labels that are known and right, %", ylabel="test mAP", ylim=(low, high))
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False)
        return figures.to_drawing(figure, marks)
