"""`partly compare`: run methods side by side, say their table and write their page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from partly import methods
from partly.atomic_io import write_file
from partly.cli.opening import Say, words
from partly.comparison import Experiment, active_curves, overview, paper_tables, read_experiment, runner, score_tables
from partly.comparison.groups import gather
from partly.errors import SettingError


def compare(
    data: str,
    out: Path,
    *,
    asked: dict[str, Any],
    tables: Sequence[Path] = (),
    workers: int | None = None,
    on: str = "here",
    address: str | None = None,
    say: Say = print,
) -> dict[str, Any]:
    """Run a comparison, say its table, and write its page and the tables asked for; `data` may be an experiment file.
    What came out: where these are, and who leads."""
    formats = {path: paper_tables.format_of(path) for path in tables}
    if data.endswith(".toml"):
        experiment = read_experiment(Path(data))
    else:
        names = list(methods.discover()) if asked["methods"] == ["all"] else asked["methods"]
        experiment = Experiment(tuple(data.split(",")), **asked | {"methods": names})
    if tables and experiment.queries:
        raise SettingError("--table is for comparisons of methods; this one compares queries. Leave it out.")
    failed = None
    try:
        lines = runner.run(experiment, out, workers, on=on, address=address)
    except runner.Incomplete as error:
        if not error.lines:
            raise
        lines, failed = error.lines, error
    say(active_curves.markdown(lines) if experiment.queries else score_tables.markdown(lines, over=experiment.over))
    for number, group in enumerate(active_curves.groups(lines).values()):
        write_file(out / f"{experiment.name}-{number}.svg", active_curves.picture(group))
    path = out / f"{experiment.name}.html"
    count = runner.unlisted(experiment)
    note = words(count, "only methods that learn from what is unknown learn from them") if count else ""
    if note:
        say(note)
    overview.write(lines, path, title=experiment.title or experiment.name, over=experiment.over, note=note)
    for place, kind in formats.items():
        write_file(place, paper_tables.table(lines, kind).encode())
    if failed is not None:
        raise failed  # after all that can be said
    found = {"report": path, "results": path.with_suffix(".jsonl"), "tables": list(tables)}
    return found | {"leaders": [] if experiment.queries else paper_tables.leaders(gather(lines))}
