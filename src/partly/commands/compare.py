"""`partly compare`: run methods side by side, say their table and write their page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from partly import methods
from partly.commands.opening import Say, words
from partly.comparison import Experiment, areas, overview, read_experiment, runner, score_tables
from partly.files import write_file


def compare(
    data: str,
    out: Path,
    *,
    asked: dict[str, Any],
    workers: int | None = None,
    on: str = "here",
    address: str | None = None,
    say: Say = print,
) -> Path:
    """Run a comparison, say its table, and write its page; `data` may be an experiment file."""
    if data.endswith(".toml"):
        experiment = read_experiment(Path(data))
    else:
        names = list(methods.discover()) if asked["methods"] == ["all"] else asked["methods"]
        experiment = Experiment(tuple(data.split(",")), **asked | {"methods": names})
    failed = None
    try:
        lines = runner.run(experiment, out, workers, on=on, address=address)
    except runner.Incomplete as error:
        if not error.lines:
            raise
        lines, failed = error.lines, error
    say(areas.markdown(lines) if experiment.queries else score_tables.markdown(lines, over=experiment.over))
    for number, group in enumerate(areas.groups(lines).values()):
        write_file(out / f"{experiment.name}-{number}.svg", areas.picture(group))
    path = out / f"{experiment.name}.html"
    count = runner.unlisted(experiment)
    note = words(count, "only methods that learn from what is unknown learn from them") if count else ""
    if note:
        say(note)
    overview.write(lines, path, title=experiment.title or experiment.name, over=experiment.over, note=note)
    if failed is not None:
        raise failed  # after all that can be said
    return path
