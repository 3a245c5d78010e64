"""Results of a study of annotation schemes: scores by scheme and share of correct labels, and the answer in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from partly.comparison import protocol
from partly.comparison.plan import FULL, Cell, Experiment, name_of
from partly.comparison.results import Record
from partly.comparison.statistics import Mean, Ranking, Scores, mean, rank

SCHEMES = {
    "uniform": "some labels of every item",
    "dense": "all labels of some items",
    "noisy": "all labels of all items, some of them wrong",
    "noisy-plus": "one yes of every item, everything else labeled no",
}
WITHOUT_SHARE = ("noisy-plus", "single-positive")  # schemes that take no share
PARTLY_KNOWN = (
    "These labels are themselves partly known ({:.0%} of the entries), so the study has no complete truth: shares are "
    "of the known entries, 100% are all known entries, and scores are on the known entries of the test set."
)


@dataclass(frozen=True)
class Point:
    """One scheme at one share."""

    scheme: str
    share: float | None  # as requested; None for a scheme that takes none
    correct: float | None  # measured share of entries that are known and correct
    scores: Scores  # test mAP by seed

    @property
    def mean(self) -> Mean | None:
        return mean(self.scores.values())


@dataclass(frozen=True)
class Study:
    """Points of one data set and head."""

    data: str
    head: str
    points: tuple[Point, ...]
    full: Scores  # with all labels known and correct
    known: float = 1.0  # share of entries whose truth is known

    @property
    def seeds(self) -> int:
        return max((len(point.scores) for point in self.points), default=0)

    def budgets(self) -> dict[float, dict[str, Point]]:
        """Share -> scheme -> point with scores, from the smallest share to the largest below 1."""
        shares = sorted({p.share for p in self.points if p.share is not None})
        return {s: {p.scheme: p for p in self.points if p.share == s and p.scores} for s in shares}

    def ranking(self) -> Ranking | None:
        """Rank the schemes over all budgets; a budget is a group."""
        return rank([scores_of(points) for points in self.budgets().values()])

    def schemes(self) -> list[str]:
        """Schemes that take a share, in the requested order."""
        return list(dict.fromkeys(p.scheme for p in self.points if p.share is not None))

    def points_without_share(self) -> list[Point]:
        return [p for p in self.points if p.share is None and p.scores]


def scores_of(points: Mapping[str, Point]) -> dict[str, Scores]:
    """Scores of one budget, for `statistics.rank`."""
    return {scheme: point.scores for scheme, point in points.items()}


def gather(
    experiment: Experiment,
    records: Iterable[Record],
    correct: Mapping[tuple[str, str], float] | None = None,
    known: Mapping[str, float] | None = None,
) -> list[Study]:
    """Return the studies in the result records of an experiment; only plain cross-entropy counts.

    correct: (data, scenario) -> measured share of correct labels, default: as requested. known: data -> share of
    entries whose truth is known, default: all.
    """
    scores: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
    for record in records:
        if record["method"] == "bce":
            by_scenario = scores.setdefault((record["data"], record["head"]), {})
            by_seed = by_scenario.setdefault(record["scenario"], {})
            if record["test"]["mAP"] is not None:
                by_seed[record["seed"]] = record["test"]["mAP"]
    studies = []
    for (data, head), by_scenario in scores.items():
        finished = [text for text in experiment.scenarios if by_scenario.get(text)]
        points = tuple(_make_point(text, (correct or {}).get((data, text)), by_scenario[text]) for text in finished)
        studies.append(Study(data, head, points, by_scenario.get(FULL, {}), (known or {}).get(data, 1.0)))
    return studies


def _make_point(text: str, correct: float | None, scores: Scores) -> Point:
    scheme, colon, number = text.partition(":")
    share = float(number) if colon else None
    return Point(scheme, share, share if correct is None else correct, scores)


def measure_shares(experiment: Experiment) -> tuple[dict[tuple[str, str], float], dict[str, float]]:
    """Read the data as the cells do, and measure shares.

    Return (data, scenario) -> share of the truth that is known and correct with the first seed, and data -> share of
    entries that are known before anything is hidden.
    """
    correct, known = {}, {}
    for name in experiment.data:
        data = protocol.open_data(name, experiment.labels, experiment.skip_bad, experiment.size, experiment.meaning)
        known[name_of(name)] = float(data.labels.summary()["known_share"])
        truth = data.labels.rows(slice(None))
        for text in experiment.scenarios:
            cell = Cell(name, text, "bce", "linear", "adamw", seed=0)
            right = (protocol.mask(cell, data).rows(slice(None)) == truth) & (truth != 0)
            correct[name_of(name), text] = float(right.sum() / max(1, (truth != 0).sum()))
    return correct, known


# ---------------------------------------------------------------- the answer


def answer(study: Study) -> str:
    """Name the best scheme, in a few sentences."""
    return " ".join(sentences(study))


def sentences(study: Study) -> list[str]:
    """Return the answer, its main sentence first."""
    ranking = study.ranking()
    if ranking is None or len(study.schemes()) < 2:
        return ["There is nothing to compare: fewer than two schemes have scores."]
    best, tied = ranking.leader, ranking.tied
    wins = f"the highest test mAP at {ranking.wins[0]} of {ranking.groups} budgets"
    if study.seeds == 1:
        sentences = [
            f"One seed is not enough to decide: {name_scheme(best)} has {wins}, which may be chance. Run more seeds "
            "(--seeds 5)."
        ]
    elif len(tied) == len(ranking.names) - 1:
        sentences = [f"No scheme is significantly best; {name_scheme(best)} has {wins}."]
    elif tied:
        others = " and ".join(map(name_scheme, tied))
        sentences = [f"{name_scheme(best)} and {others} share the lead: they do not differ significantly."]
    else:
        significant = sum(_leads_alone(best, points) for points in study.budgets().values())
        times = "each time significantly" if significant == ranking.wins[0] else f"significantly at {significant}"
        sentences = [f"The best way to spend a label budget is {name_scheme(best)}: it has {wins}, {times}."]
    sentences += [_describe_lead(study, best, other) for other in study.schemes() if other != best]
    sentences += [_find_equal_budget(study, best, point) for point in study.points_without_share()]
    sentences += [PARTLY_KNOWN.format(study.known)] if study.known < 1 else []
    return list(filter(None, sentences))


def _leads_alone(scheme: str, points: Mapping[str, Point]) -> bool:
    """Return True if a scheme leads a budget and all others are significantly worse."""
    ranking = rank([scores_of(points)])
    return ranking is not None and ranking.leader == scheme and not ranking.tied


def name_scheme(scheme: str) -> str:
    return f"**{scheme}** ({SCHEMES[scheme]})" if scheme in SCHEMES else f"**{scheme}**"


def _describe_lead(study: Study, best: str, other: str) -> str:
    """Lead of the best scheme over another one, at the smallest and at the largest budget."""
    leads = {
        share: a.value - b.value
        for share, points in study.budgets().items()
        if best in points and other in points and (a := points[best].mean) and (b := points[other].mean)
    }
    if not leads:
        return ""
    ends = list(dict.fromkeys((min(leads), max(leads))))
    return f"Lead of {best} over {other}: " + ", ".join(f"{leads[share]:+.3f} at {share:.0%}" for share in ends) + "."


def _find_equal_budget(study: Study, best: str, point: Point) -> str:
    """Smallest budget at which the best scheme is as good as a scheme without a share."""
    assert point.mean is not None
    budgets = [
        share
        for share, points in study.budgets().items()
        if best in points and (value := points[best].mean) and value.value >= point.mean.value
    ]
    equal = f"{best} reaches that with {min(budgets):.0%}" if budgets else f"{best} does not reach that"
    correct = "" if point.correct is None else f", with {point.correct:.1%} correct labels,"
    return f"{name_scheme(point.scheme)}{correct} has {point.mean.value:.3f}; {equal}."
