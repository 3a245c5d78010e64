"""Which method wins and how sure that is, in plain words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from partly.comparison.groups import Block
from partly.comparison.plan import FULL
from partly.comparison.statistics import LEVEL, Ranking, rank

Bold = Callable[[str], str]
NAMED = 3  # methods in one sentence; the table names them all


@dataclass(frozen=True)
class Verdict:
    """What some races say: those of one scenario, or of all."""

    validation: str
    scenario: str  # "" for all
    ranking: Ranking
    data: int  # data sets behind the races
    unranked: tuple[str, ...] = ()  # methods that too few of the races have

    @property
    def sure(self) -> str:
        """'alone', 'clear', 'shared' or 'open': nothing to compare with, every other method is shown to be worse, some
        are, none is."""
        others, level = self.ranking.names[1:], self.ranking.level
        if not others:
            return "alone"
        return "clear" if not level else "shared" if len(level) < len(others) else "open"

    @property
    def leaders(self) -> tuple[str, ...]:
        return (self.ranking.leader, *self.ranking.level)


def verdicts(blocks: Sequence[Block]) -> list[list[Verdict]]:
    """For each kind of validation: the verdict of all races, then that of each scenario where there are several."""
    found = []
    for validation in sorted({block.validation for block in blocks}):
        races = [block for block in blocks if block.validation == validation]
        scenarios = sorted({block.scenario for block in races})
        parts = ["", *scenarios] if len(scenarios) > 1 else scenarios
        ours = [_verdict(races, validation, part) for part in parts]
        if ours and ours[0]:
            found.append([one for one in ours if one])
    return found


def _verdict(races: Sequence[Block], validation: str, scenario: str) -> Verdict | None:
    ours = [block for block in races if scenario in ("", block.scenario)]
    ranking = rank([block.race for block in ours])
    if ranking is None:
        return None
    names = dict.fromkeys(name for block in ours for name in block.race if name not in ranking.names)
    return Verdict(validation, scenario, ranking, len({block.what["data"] for block in ours}), tuple(names))


# ---------------------------------------------------------------- words; text is `str` or `Markup`, which escapes


def titled(scenario: str) -> str:
    """A scenario as a heading."""
    return {"": "all scenarios", FULL: f"{FULL}: the labels as they are"}.get(scenario, scenario)


def headline(verdict: Verdict, text: type[str], bold: Bold, scenarios: Sequence[Verdict] = ()) -> str:
    """Who wins. `scenarios`: the verdicts of the parts, where this is the one of all."""
    ranking = verdict.ranking
    first = bold(ranking.names[0])
    if verdict.sure == "alone":
        return text("{} ran alone: there is nothing to compare it with.").format(first)
    told = [one for one in scenarios if one.sure in ("clear", "shared")]
    if told and not set.intersection(*(set(one.leaders) for one in told)):
        return text("It depends on the scenario: {}.").format(_parts(told, text, bold))
    where = {"": "", FULL: " with the labels as they are"}.get(verdict.scenario, f" at {verdict.scenario}")
    if verdict.sure == "clear":
        return text("{} wins{}.").format(first, where)
    if verdict.sure == "shared":
        leaders = _listed(verdict.leaders, text, bold)
        return text("{} share the lead{}: the data cannot tell them apart.").format(leaders, where)
    best = "best mean rank" if ranking.blocks > 1 else "highest mAP"
    return text("No winner{}: {} has the {}, but it may be chance.").format(where, first, best)


def _parts(told: Sequence[Verdict], text: type[str], bold: Bold) -> str:
    """Who leads where."""
    where: dict[frozenset[str], list[Verdict]] = {}
    for one in told:
        where.setdefault(frozenset(one.leaders), []).append(one)
    return text("; ").join(
        text("{} {} at {}").format(
            _listed(same[0].leaders, text, bold),
            "lead" if len(leaders) > 1 else "leads",
            " and ".join(one.scenario for one in same),
        )
        for leaders, same in where.items()
    )


def _listed(names: Sequence[str], text: type[str], bold: Bold) -> str:
    """The first few by name, and how many there are beside them."""
    shown = names if len(names) <= NAMED + 1 else names[:NAMED]  # "and 1 other" would be longer than its name
    others = [f"{len(names) - len(shown)} others"] if len(shown) < len(names) else []
    *most, last = [*map(bold, shown), *others]
    return text("{} and {}").format(text(", ").join(most), last) if most else last


def evidence(verdict: Verdict, text: type[str], bold: Bold) -> str:
    """How sure that is, and how much it is about."""
    ranking = verdict.ranking
    if verdict.sure == "alone":
        return text("")
    first, second = map(bold, ranking.names[:2])
    best = f" is best in {ranking.wins[0]} of {ranking.blocks} races," if ranking.blocks > 1 else " is"
    side = "above" if ranking.lead[1] >= 0 else "below"
    return text("{}{} on average {:.3f} mAP {} {} ({}).").format(
        first, best, abs(ranking.lead[1]), side, second, _chance(verdict)
    )


def _chance(verdict: Verdict) -> str:
    """What the tests give for the first against the second and against the others."""
    ranking = verdict.ranking
    if ranking.friedman is not None and ranking.friedman > 1 - LEVEL:
        return f"Friedman's test over all methods: {probability(ranking.friedman)}"
    if ranking.over == "seeds" and ranking.seeds < 2:
        return "one seed: not tested"
    behind = max((p for name, p in ranking.p.items() if name not in ranking.level), default=1.0)
    if verdict.sure == "clear":
        return f"{probability(behind)}{' at most, against each other method' if len(ranking.p) > 1 else ''}"
    between = f"{probability(ranking.p[ranking.names[1]])} between these two"
    return between + (f", {probability(behind)} at most against the rest" if verdict.sure == "shared" else "")


def probability(p: float) -> str:
    """p in the digits that it is worth."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def method(verdict: Verdict) -> str:
    """How it was tested, and what that does not say."""
    ranking = verdict.ranking
    if ranking.over == "blocks":
        words = (
            f"Methods are ranked in each of {ranking.blocks} races by their mean over seeds. Tests at 5 %: "
            "Friedman's over all methods, then Wilcoxon's signed ranks of the leader against each other method, with "
            "Holm's correction."
        )
        if verdict.data < ranking.blocks:
            sets = f"{verdict.data} set{'s' * (verdict.data != 1)}"
            words += f" Races on the same data ({sets}) are not independent: the true p is larger."
    elif ranking.seeds > 1:
        words = (
            f"Too few races ({ranking.blocks}) for tests that speak of other data too. Test at 5 %: Student's t of the "
            f"leader against each other method, paired over {ranking.seeds} seeds, with Holm's correction."
        )
    else:
        words = "One seed and few races: nothing can be said about chance. More seeds (--seeds 5) would tell."
    return words + (
        f" Not ranked, for want of races or seeds: {', '.join(verdict.unranked)}." if verdict.unranked else ""
    )
