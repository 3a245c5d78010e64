"""`partly annotate`: serve a web page on which people answer questions, and train on the answers."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from partly.cli.app import command
from partly.cli.options import (
    Count,
    Data,
    DataOptionsWithoutSize,
    Method,
    Query,
    QuerySetting,
    Seed,
    model_option,
    option,
    question_option,
)
from partly.cli.printing import say
from partly.errors import SettingError
from partly.registry import parse_settings

people_option, server_option = partial(option, panel="People"), partial(option, panel="Server")


@command("Annotation")
def annotate(
    data: Data,
    *,
    ledger: Annotated[str, option("Ledger for the answers: a file or postgresql://...; created if missing.")],
    reading: DataOptionsWithoutSize,
    run: Annotated[
        Path | None, model_option("Finished run that asks first and whose configuration is trained on.")
    ] = None,
    method: Method = "auto",
    query: Query = "uncertainty",
    query_setting: QuerySetting = None,
    count: Count = 100,
    every: Annotated[int, question_option("Number of answers after which a model is trained.")] = 50,
    random: Annotated[
        float, question_option("Share of random questions: the control group that shows the gain.")
    ] = 0.1,
    repeat: Annotated[float, question_option("Share of questions asked twice, to measure agreement.")] = 0.05,
    audit: Annotated[float, question_option("Share of questions about entries that models filled in.")] = 0.05,
    votes: Annotated[int, people_option("Number of people who answer each entry; admins resolve disagreements.")] = 1,
    guidelines: Annotated[
        str | None, people_option("TOML file with a text per label, shown next to its questions.")
    ] = None,
    show: Annotated[
        str | None, people_option("Image folder to show for the items, matched by id.  [default: DATA]")
    ] = None,
    accounts: Annotated[bool, people_option("Require people to sign in; admins invite them.", "--accounts")] = False,
    new_password: Annotated[
        str | None, people_option("Print a link with which this account sets a new password.")
    ] = None,
    name: Annotated[
        str | None, people_option("Your name in the ledger, without --accounts.  [default: user name]")
    ] = None,
    host: Annotated[
        str, server_option("Address to listen on; any but this machine needs --accounts and --public-url.")
    ] = "127.0.0.1",
    port: Annotated[int, server_option("Port to listen on.", min=1, max=65535)] = 8765,
    public_url: Annotated[str | None, server_option("URL under which people reach the server: https://...")] = None,
    seed: Seed = 0,
) -> None:
    """Ask people in a browser and train on their answers.

    Questions are single (item, label) pairs, chosen to improve the model fastest. Answers go to the ledger.
    """
    from partly.ledger import without_password

    without_password(ledger)
    try:
        from partly.annotate.project import ProjectConfig
        from partly.annotate.server import ServerConfig, serve
    except ModuleNotFoundError as error:
        raise SettingError(f"The annotation server needs {error.name}: pip install 'partly[annotate]'.") from error
    project = ProjectConfig(
        data=data,
        ledger=ledger,
        labels=None if reading.labels is None else str(reading.labels),
        hierarchy=None if reading.hierarchy is None else str(reading.hierarchy),
        skip_bad=reading.skip_bad,
        **reading.label_format(),
        run=None if run is None else str(run),
        method=method,
        query=query,
        settings=parse_settings(query_setting or []),
        count=count,
        every=every,
        random=random,
        repeat=repeat,
        audit=audit,
        votes=votes,
        seed=seed,
    )
    serve(project, ServerConfig(host, port, accounts, public_url, show, name, guidelines, new_password), say)
