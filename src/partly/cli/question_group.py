"""Commands that ask people: parse, call, print. What they do is in a module each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from partly.cli.options import (
    Absent,
    Count,
    Data,
    HierarchyFile,
    IdColumn,
    Json,
    LabelColumns,
    LabelsFile,
    Method,
    Missing,
    Query,
    QuerySetting,
    SafeCsv,
    Seed,
    SkipBad,
    TagSeparator,
    Uncertain,
)
from partly.cli.printing import print_json, say
from partly.registry import parse_settings

commands = typer.Typer()


@commands.command()
def query(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    data: Data,
    out: Annotated[Path, typer.Option(help="The questions: .csv or .parquet, with a column for the answers.")],
    labels: LabelsFile = None,
    absent: Absent = None,
    uncertain: Uncertain = None,
    missing: Missing = None,
    label_columns: LabelColumns = None,
    id_column: IdColumn = None,
    tag_separator: TagSeparator = None,
    hierarchy: HierarchyFile = None,
    query: Query = "look-ahead",
    count: Count = 100,
    query_setting: QuerySetting = None,
    skip_bad: SkipBad = False,
    safe_csv: SafeCsv = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write the unknown entries that are most worth asking people about."""
    from partly.cli.query import query as job
    from partly.data import for_spreadsheets
    from partly.data.label_semantics import meaning_of

    with for_spreadsheets(safe_csv):
        found = job(
            run,
            data,
            out,
            labels=labels,
            meaning=meaning_of(absent, uncertain, missing, label_columns, id_column, tag_separator),
            hierarchy=hierarchy,
            query=query,
            count=count,
            settings=parse_settings(query_setting or []),
            seed=seed,
            skip_bad=skip_bad,
        )
    say(f"{found} questions: {out}")
    print_json({"questions": found, "out": out}, as_json)


@commands.command()
def refine(
    data: Data,
    run: Annotated[Path, typer.Option(help="Run folder; the same command goes on where it stopped.")],
    labels: LabelsFile = None,
    absent: Absent = None,
    uncertain: Uncertain = None,
    missing: Missing = None,
    label_columns: LabelColumns = None,
    id_column: IdColumn = None,
    tag_separator: TagSeparator = None,
    hierarchy: HierarchyFile = None,
    scenario: Annotated[
        str | None, typer.Option(help="Simulate: hide labels (coarse-only:0.01, ...), and let the truth answer.")
    ] = None,
    answers: Annotated[Path | None, typer.Option(help="The questions of this round, with answers.")] = None,
    author: Annotated[str | None, typer.Option(help="Who answered, where --labels is a ledger.")] = None,
    query: Query = "look-ahead",
    query_setting: QuerySetting = None,
    count: Count = 100,
    rounds: Annotated[int | None, typer.Option(help="Number of simulated rounds; 10 if not given.")] = None,
    shadow: Annotated[bool, typer.Option("--shadow", help="Simulate random questions too, to compare with.")] = False,
    restart: Annotated[int, typer.Option(help="The model starts anew every so many rounds; 0: never.")] = 10,
    round_epochs: Annotated[int, typer.Option(help="Passes over the data in a round that trains on.")] = 1,
    method: Method = "auto",
    head: Annotated[str, typer.Option(help="linear, mlp, kernel, ...; auto takes what suits the method.")] = "auto",
    epochs: Annotated[int | None, typer.Option(help="Passes over the data of a new model.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    setting: Annotated[list[str] | None, typer.Option(help="A setting of the method: name=value. Repeatable.")] = None,
    head_setting: Annotated[
        list[str] | None, typer.Option(help="A setting of the head: hidden=256. Repeatable.")
    ] = None,
    skip_bad: SkipBad = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Train, ask about unknown entries, take the answers, train on: simulated, or with people, a call per round."""
    from partly.active import LoopConfig
    from partly.cli.refine import refine as job
    from partly.data.label_semantics import meaning_of

    how = {"method": method, "head": head, "epochs": epochs, "lr": lr, "settings": parse_settings(setting or [])}
    how |= {"head_settings": parse_settings(head_setting or [])}
    found = job(
        data,
        run,
        labels=labels,
        meaning=meaning_of(absent, uncertain, missing, label_columns, id_column, tag_separator),
        scenario=scenario,
        hierarchy=hierarchy,
        answers=answers,
        author=author,
        rounds=rounds,
        shadow=shadow,
        plan=LoopConfig(query, count, round_epochs, restart, settings=parse_settings(query_setting or [])),
        parameters=how | {"device": device, "seed": seed},
        skip_bad=skip_bad,
        say=say,
    )
    print_json(found, as_json)


@commands.command()
def annotate(
    data: Data,
    ledger: Annotated[
        str, typer.Option(help="Where answers go: labels.db, or postgresql://...; made where it is not.")
    ],
    labels: LabelsFile = None,
    hierarchy: HierarchyFile = None,
    absent: Absent = None,
    uncertain: Uncertain = None,
    missing: Missing = None,
    label_columns: LabelColumns = None,
    id_column: IdColumn = None,
    tag_separator: TagSeparator = None,
    skip_bad: SkipBad = False,
    run: Annotated[Path | None, typer.Option(help="A finished run: it asks first, and its recipe trains on.")] = None,
    method: Method = "auto",
    query: Query = "uncertainty",
    query_setting: QuerySetting = None,
    count: Count = 100,
    every: Annotated[int, typer.Option(help="Answers after which a model is trained.")] = 50,
    random: Annotated[float, typer.Option(help="Share of random questions, which say what choosing is worth.")] = 0.1,
    repeat: Annotated[float, typer.Option(help="Share of questions that come again, to measure agreement.")] = 0.05,
    audit: Annotated[float, typer.Option(help="Share of questions about what models have filled in.")] = 0.05,
    votes: Annotated[
        int, typer.Option(help="Different people who answer each entry; admins decide where they disagree.")
    ] = 1,
    guidelines: Annotated[
        str | None, typer.Option(help="A TOML file with a text per label, shown beside its questions.")
    ] = None,
    show: Annotated[
        str | None,
        typer.Option(help="What people see of the items, by id, where it is not DATA: a folder of pictures."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Another one than this machine needs --accounts and --public-url.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8765,
    accounts: Annotated[bool, typer.Option("--accounts", help="Several people: each logs in, by invitation.")] = False,
    public_url: Annotated[str | None, typer.Option(help="Under which address people reach it: https://...")] = None,
    new_password: Annotated[
        str | None, typer.Option(help="Print an address where this account chooses a new password.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Who answers, without accounts; else the name you log in with.")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Ask people the questions that help most, in a browser, and train on with what they say."""
    from partly.cli.annotate import annotate as job

    plan = {
        "data": data,
        "ledger": ledger,
        "labels": None if labels is None else str(labels),
        "hierarchy": None if hierarchy is None else str(hierarchy),
        "absent": absent,
        "uncertain": uncertain,
        "missing": tuple(missing or ()),
        "label_columns": tuple(label_columns or ()),
        "id_column": id_column,
        "tag_separator": tag_separator,
        "skip_bad": skip_bad,
        "run": None if run is None else str(run),
        "method": method,
        "query": query,
        "settings": parse_settings(query_setting or []),
        "count": count,
        "every": every,
        "random": random,
        "repeat": repeat,
        "audit": audit,
        "votes": votes,
        "seed": seed,
    }
    served = {"host": host, "port": port, "accounts": accounts, "public_url": public_url, "show": show, "name": name}
    served |= {"guidelines": guidelines}
    served["new_password"] = new_password
    job(plan, served, say)
