"""Verdict of a comparison in sentences: which method wins, and how certain that is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from partly.comparison.groups import Group
from partly.comparison.plan import FULL
from partly.comparison.statistics import CONFIDENCE, Ranking, rank

Bold = Callable[[str], str]
MAX_NAMED = 3  # methods in one sentence; the table names all


@dataclass(frozen=True)
class Verdict:
    """Ranking over the groups of one scenario, or of all scenarios."""

    validation: str
    scenario: str  # "" for all
    ranking: Ranking
    data: int  # number of data sets
    unranked: tuple[str, ...] = ()  # methods that too few groups have

    @property
    def certainty(self) -> str:
        """'alone', 'clear', 'shared' or 'open': no other method; all, some or none are significantly worse."""
        others, tied = self.ranking.names[1:], self.ranking.tied
        if not others:
            return "alone"
        return "clear" if not tied else "shared" if len(tied) < len(others) else "open"

    @property
    def leaders(self) -> tuple[str, ...]:
        return (self.ranking.leader, *self.ranking.tied)


def judge(groups: Sequence[Group]) -> list[list[Verdict]]:
    """For each kind of validation: the verdict over all groups, then one for each scenario if there are several."""
    results = []
    for validation in sorted({group.validation for group in groups}):
        same = [group for group in groups if group.validation == validation]
        scenarios = sorted({group.scenario for group in same})
        scopes = ["", *scenarios] if len(scenarios) > 1 else scenarios
        verdicts = [_judge_scenario(same, validation, part) for part in scopes]
        if verdicts and verdicts[0]:
            results.append([verdict for verdict in verdicts if verdict])
    return results


def _judge_scenario(groups: Sequence[Group], validation: str, scenario: str) -> Verdict | None:
    groups = [group for group in groups if scenario in ("", group.scenario)]
    ranking = rank([group.contestants for group in groups])
    if ranking is None:
        return None
    unranked = dict.fromkeys(name for group in groups for name in group.contestants if name not in ranking.names)
    return Verdict(validation, scenario, ranking, len({group.key["data"] for group in groups}), tuple(unranked))


# ---------------------------------------------------------------- sentences; text is `str` or `Markup`, which escapes


def format_scenario(scenario: str) -> str:
    """Return a scenario as a heading."""
    return {"": "all scenarios", FULL: f"{FULL}: all known labels"}.get(scenario, scenario)


def headline(verdict: Verdict, text: type[str], bold: Bold, scenarios: Sequence[Verdict] = ()) -> str:
    """Name the winner. scenarios: the verdicts of each scenario, if this is the overall one."""
    ranking = verdict.ranking
    first = bold(ranking.names[0])
    if verdict.certainty == "alone":
        return text("{} is the only method: there is nothing to compare it with.").format(first)
    decided = [part for part in scenarios if part.certainty in ("clear", "shared")]
    if decided and not set.intersection(*(set(part.leaders) for part in decided)):
        return text("It depends on the scenario: {}.").format(_name_leaders(decided, text, bold))
    where = {"": "", FULL: " with all known labels"}.get(verdict.scenario, f" at {verdict.scenario}")
    if verdict.certainty == "clear":
        return text("{} wins{}.").format(first, where)
    if verdict.certainty == "shared":
        leaders = _join_names(verdict.leaders, text, bold)
        return text("{} share the lead{}: they do not differ significantly.").format(leaders, where)
    best = "best mean rank" if ranking.groups > 1 else "highest mAP"
    return text("No winner{}: {} has the {}, but no difference is significant.").format(where, first, best)


def _name_leaders(verdicts: Sequence[Verdict], text: type[str], bold: Bold) -> str:
    """Name the leaders of each scenario."""
    by_leaders: dict[frozenset[str], list[Verdict]] = {}
    for verdict in verdicts:
        by_leaders.setdefault(frozenset(verdict.leaders), []).append(verdict)
    return text("; ").join(
        text("{} {} at {}").format(
            _join_names(same[0].leaders, text, bold),
            "lead" if len(leaders) > 1 else "leads",
            " and ".join(verdict.scenario for verdict in same),
        )
        for leaders, same in by_leaders.items()
    )


def _join_names(names: Sequence[str], text: type[str], bold: Bold) -> str:
    """Join the first few names, and count the others."""
    listed = names if len(names) <= MAX_NAMED + 1 else names[:MAX_NAMED]  # "and 1 other" would be longer than its name
    others = [f"{len(names) - len(listed)} others"] if len(listed) < len(names) else []
    *head, last = [*map(bold, listed), *others]
    return text("{} and {}").format(text(", ").join(head), last) if head else last


def evidence(verdict: Verdict, text: type[str], bold: Bold) -> str:
    """Give the size of the lead and its significance."""
    ranking = verdict.ranking
    if verdict.certainty == "alone":
        return text("")
    first, second = map(bold, ranking.names[:2])
    best = f" is best in {ranking.wins[0]} of {ranking.groups} comparisons," if ranking.groups > 1 else " is"
    side = "above" if ranking.lead[1] >= 0 else "below"
    return text("{}{} on average {:.3f} mAP {} {} ({}).").format(
        first, best, abs(ranking.lead[1]), side, second, _describe_significance(verdict)
    )


def _describe_significance(verdict: Verdict) -> str:
    """p-values of the leader against the second and against the others."""
    ranking = verdict.ranking
    if ranking.friedman is not None and ranking.friedman > 1 - CONFIDENCE:
        return f"Friedman test over all methods: {format_p(ranking.friedman)}"
    if ranking.over == "seeds" and ranking.seeds < 2:
        return "one seed: not tested"
    largest = max((p for name, p in ranking.p.items() if name not in ranking.tied), default=1.0)
    if verdict.certainty == "clear":
        return f"{format_p(largest)}{' or less against each other method' if len(ranking.p) > 1 else ''}"
    between = f"{format_p(ranking.p[ranking.names[1]])} between these two"
    return between + (f", {format_p(largest)} or less against the rest" if verdict.certainty == "shared" else "")


def format_p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def describe_test(verdict: Verdict) -> str:
    """Name the statistical test and its limits."""
    ranking = verdict.ranking
    if ranking.over == "groups":
        description = (
            f"Methods are ranked in each of {ranking.groups} comparisons by their mean over seeds. Tests at the 5 % "
            "level: Friedman test over all methods, then Wilcoxon signed-rank tests of the leader against each other "
            "method with Holm correction."
        )
        if verdict.data < ranking.groups:
            sets = f"{verdict.data} data set{'s' * (verdict.data != 1)}"
            description += f" Comparisons on the same data ({sets}) are not independent, so p-values are too small."
    elif ranking.seeds > 1:
        description = (
            f"Tests at the 5 % level: paired t-tests of the leader against each other method over {ranking.seeds} "
            f"seeds, with Holm correction. With {ranking.groups} comparisons they cover seeds, not other data."
        )
    else:
        description = "With one seed and few comparisons, nothing can be tested. Run more seeds (--seeds 5)."
    unranked = ", ".join(verdict.unranked)
    return description + (f" Not ranked, because of too few comparisons or seeds: {unranked}." if unranked else "")
