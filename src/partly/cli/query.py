"""`partly query`: choose the unknown entries to ask people about, with a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from partly.cli.app import command
from partly.cli.options import (
    Count,
    Data,
    DataOptionsWithoutSize,
    Json,
    Query,
    QuerySetting,
    RunFolder,
    SafeCsv,
    Seed,
    output_option,
)
from partly.cli.printing import print_json, say
from partly.errors import SettingError, listing
from partly.registry import parse_settings


@command("Annotation")
def query(
    run: RunFolder,
    data: Data,
    out: Annotated[Path, output_option("File for the questions: .csv or .parquet, with a column for answers.")],
    *,
    reading: DataOptionsWithoutSize,
    query: Query = "look-ahead",
    count: Count = 100,
    query_setting: QuerySetting = None,
    safe_csv: SafeCsv = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> int:
    """Write the unknown entries that are most worth labeling."""
    from partly.active.selection import select_questions
    from partly.clock import Clock
    from partly.data import for_spreadsheets
    from partly.data.answers import write_questions
    from partly.engine import load
    from partly.engine.feature_cache import cached_features

    fitted = load(run)
    opened = reading.open(data).include_unlabelled()  # items without any label may be the most informative ones
    new = [name for name in opened.labels.names if name not in fitted.names]
    if new and set(fitted.names) < set(opened.labels.names):
        raise SettingError(
            f"{run} was trained before these labels were added"
            + listing(map(repr, new), len(new))
            + f"\nTrain again, which scores new labels of images and texts from their names: partly train {data} "
            f"--labels {reading.labels or data} --run NEW_RUN."
        )
    if opened.labels.names != fitted.names:
        raise SettingError(
            f"{run} was trained on other labels than those of {reading.labels or data}, or in another order. "
            "Give labels of its own, in this order:" + listing(fitted.names, len(fitted.names))
        )
    items = cached_features(fitted.prepare_items(opened.items))
    labels = opened.labels if opened.hierarchy is None else opened.hierarchy.deduce(opened.labels)
    combine = fitted.taught_by(ids=labels.given_ids).combiner(items)
    if query == "look-ahead" and combine is not None and not labels.known_per_item().any():
        query = "uncertainty"
        say("No label is known: the questions are those that the teacher is least sure of.")
    questions = select_questions(
        query,
        fitted.method,
        items,
        labels,
        count,
        Clock(seed),
        hierarchy=opened.hierarchy,
        settings=parse_settings(query_setting or []),
        combine=combine,
    )
    with for_spreadsheets(safe_csv):
        write_questions(out, opened.labels, questions.rows, questions.columns, questions.scores)
    say(f"{len(questions)} questions: {out}")
    say(f"Fill in the column `answer` (1 yes, 0 no). To add the answers to a ledger: partly ledger import LEDGER {out}")
    print_json({"questions": len(questions), "out": out}, as_json)
    return len(questions)
