"""`partly study`: find out how to spend a budget of labels, and say the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from partly.cli.opening import Say
from partly.comparison import read_experiment
from partly.comparison import study as studies


def study(
    data: str, out: Path, *, asked: dict[str, Any], workers: int | None = None, say: Say = print
) -> dict[str, Any]:
    """Run a study of ways to annotate, and say its answer; `data` may be an experiment file. What came out: where the
    page and the result lines are, and who leads."""
    if data.endswith(".toml"):
        experiment = read_experiment(Path(data))
        name, found = experiment.name, studies.run(experiment, out, workers)
    else:
        name, found = "study", [studies.study(data, **asked, out=out, workers=workers)]
    for one in found:
        say(f"{one.data}, {one.head}: {studies.answer(one)}\n\n" + "\n".join(studies.table(one)))
    rankings = [(one, one.ranking()) for one in found]
    leaders = [
        {"data": one.data, "head": one.head, "leader": ranking.leader, "level": list(ranking.level)}
        for one, ranking in rankings
        if ranking is not None
    ]
    return {"report": out / f"{name}.html", "results": out / f"{name}.jsonl", "leaders": leaders}
