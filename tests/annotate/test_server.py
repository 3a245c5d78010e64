"""Where the pages are served, for whom, and what is seen of items."""

from __future__ import annotations

import io
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from annotate.making import FOUND, Browser, project
from partly.annotate.errors import ApiError
from partly.annotate.item_renderer import ItemRenderer, renderer_by_id
from partly.annotate.project import ProjectConfig
from partly.annotate.question_selection import QuestionDraft
from partly.annotate.server import (
    ServerConfig,
    is_readable_by_others,
    listen,
    make_context,
    password_reset_link,
    sign_in_link,
)
from partly.cli.main import app
from partly.errors import DataError, SettingError
from partly.items import features, image_array, texts
from partly.ledger import Ledger


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"host": "0.0.0.0"}, "--accounts"),
        ({"host": "192.168.0.7"}, "--accounts"),
        ({"host": "0.0.0.0", "accounts": True}, "--public-url"),
        ({"public_url": "https://labels.example.org"}, "--accounts"),
        ({"accounts": True, "public_url": "labels.example.org"}, "without a path"),
        ({"new_password": "anna"}, "--accounts"),
    ],
)
def test_others_reach_the_pages_only_where_they_log_in(how: dict[str, object], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        ServerConfig(**how).address  # type: ignore[arg-type]  # noqa: B018


def test_addresses() -> None:
    assert ServerConfig().address.origins == {f"http://{host}:8765" for host in ("127.0.0.1", "localhost", "[::1]")}
    found = ServerConfig("0.0.0.0", accounts=True, public_url="https://labels.example.org").address
    assert (found.hosts, found.secure) == (["labels.example.org"], True)


def test_the_command_refuses_before_anything_is_made(tmp_path: Path) -> None:
    ledger = tmp_path / "labels.db"
    found = CliRunner().invoke(app, ["annotate", "digits", "--ledger", str(ledger), "--host", "0.0.0.0"])
    assert "--accounts" in str(found.exception)
    assert not ledger.exists()


def test_a_port_in_use_is_said_before_anything_is_made(tmp_path: Path) -> None:
    """And no address is printed at which others answer."""
    ledger = tmp_path / "labels.db"
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        found = CliRunner().invoke(app, ["annotate", "digits", "--ledger", str(ledger), "--port", str(port)])
    assert isinstance(found.exception, SettingError)
    assert f"port {port}: the port is in use" in str(found.exception)
    assert f"--port {port + 1 if port < 65535 else port - 1}" in str(found.exception)
    assert "Open http" not in found.output
    assert not ledger.exists()
    with listen("127.0.0.1", port):  # free again
        pass
    with pytest.raises(SettingError, match="Choose another --host"):
        listen("192.0.2.1", port)  # an address of nobody


def test_the_address_that_is_printed(tmp_path: Path) -> None:
    """Without accounts it lets in who has started the program; with them the first admin joins, others log in."""
    (tmp_path / "x.csv").write_text("item,a\np,1\nq,2\n")
    (tmp_path / "y.csv").write_text("item,cat\np,1\nq,\n")
    plan = ProjectConfig(str(tmp_path / "x.csv"), str(tmp_path / "labels.db"), str(tmp_path / "y.csv"))
    alone = ServerConfig(name="anna")
    context = make_context(plan, alone)
    token = sign_in_link(context, alone).partition("/start?token=")[2]
    assert context.accounts.find_session(context.accounts.sign_in_by_link(token)).name == "anna"
    assert context.queue.given.ids == ("p", "q")
    other = ProjectConfig(plan.data, str(tmp_path / "other.db"), plan.labels)
    several = ServerConfig(accounts=True, public_url="https://labels.example.org")
    context = make_context(other, several)
    path, _, token = sign_in_link(context, several).partition("?token=")
    assert path == "https://labels.example.org/join"
    context.accounts.join(token, "Anna", "a long password")
    assert sign_in_link(context, several) == "https://labels.example.org/log-in"
    path, _, token = password_reset_link(context, several, "anna").partition("?token=")
    assert path == "https://labels.example.org/renew"
    assert context.accounts.find_session(context.accounts.reset_password(token, "another password")).name == "Anna"
    with pytest.raises(ApiError, match="no account 'Bela'"):
        password_reset_link(context, several, "Bela")


def test_a_file_that_others_can_read_is_told(tmp_path: Path) -> None:
    book = tmp_path / "labels.db"
    Ledger.create(book)
    assert not is_readable_by_others(str(book))
    book.chmod(0o644)
    assert is_readable_by_others(str(book))


def test_who_worked_alone_can_go_on_with_accounts(tmp_path: Path) -> None:
    """An admin without a password cannot sign in, so somebody must be able to join."""
    made = project(tmp_path)
    made.people.local_admin("anna")
    assert "/join?token=" in sign_in_link(made.context(has_accounts=True), ServerConfig(accounts=True))


@pytest.mark.parametrize("there", ["nothing", "an empty file", "a database without tables"])
def test_a_ledger_that_begins_is_told(tmp_path: Path, there: str) -> None:
    """A file given by mistake that holds nothing would else look like the ledger of which all answers are lost."""
    (tmp_path / "x.csv").write_text("item,a\np,1\nq,2\n")
    (tmp_path / "y.csv").write_text("item,cat\np,1\nq,\n")
    book = tmp_path / "labels.db"
    if there == "an empty file":
        book.touch()
    elif there == "a database without tables":
        with closing(sqlite3.connect(book)) as connection:
            connection.execute("VACUUM")
        assert book.stat().st_size
    plan, said = ProjectConfig(str(tmp_path / "x.csv"), str(book), str(tmp_path / "y.csv")), []
    make_context(plan, ServerConfig(name="anna"), said.append)
    assert said == [f"Created the ledger {book} from {plan.labels} (1 known entries)."]
    make_context(plan, ServerConfig(name="anna"), said.append)
    assert len(said) == 1


def test_the_same_ledger_with_fewer_items_and_labels(tmp_path: Path) -> None:
    """Questions of an earlier start that these data cannot show are withdrawn, and the others are asked."""
    (tmp_path / "x.csv").write_text("item,a\np,1\nq,2\nr,3\n")
    (tmp_path / "y.csv").write_text("item,cat,dog\np,1,\nq,,\nr,,\n")
    plan = ProjectConfig(str(tmp_path / "x.csv"), str(tmp_path / "labels.db"), str(tmp_path / "y.csv"))
    alone = ServerConfig(name="anna")
    context = make_context(plan, alone)
    context.queue.pose(
        FOUND, [QuestionDraft(2, 0, True), QuestionDraft(1, 0, True), QuestionDraft(1, 1, True)]
    )  # r cat, q cat, q dog
    (tmp_path / "x.csv").write_text("item,a\np,1\nq,2\n")
    (tmp_path / "y.csv").write_text("item,cat,dog\np,1,\nq,,\n")
    context.queue.ledger.retire(["dog"])
    context = make_context(plan, alone)
    assert context.queue.given.names == ("cat",)
    one = Browser(context, context.accounts.sign_in_by_link(sign_in_link(context, alone).partition("=")[2]))
    told = one.call("/api/questions", {"view": "label", "count": 5})
    assert [(question["name"], question["label"]) for question in told.json()["questions"]] == [("q", "cat")]
    assert told.json()["open"] == 1
    for path in ("/label", "/overview"):
        assert one.get(path).status_code == 200


def test_what_is_seen_of_a_row() -> None:
    """The numbers that are farthest from usual, in their order."""
    x = np.zeros((10, 20), np.float32)
    x[:, :] = np.arange(10)[:, None]
    x[3, 17], x[3, 2] = 500, -500
    found = ItemRenderer(features(x, names=[f"f{j}" for j in range(20)])).describe(3)
    assert found["kind"] == "row"
    assert len(found["numbers"]) == 12
    assert ["f2", "-500"] in found["numbers"]
    assert ["f17", "500"] in found["numbers"]
    assert ItemRenderer(texts(["one", "two"])).describe(1) == {"kind": "text", "text": "two"}


def test_other_things_are_shown_by_id() -> None:
    shown = image_array(np.stack([np.full((16, 16, 3), 10 * i, np.uint8) for i in range(3)]))
    seen = renderer_by_id(shown, ["a", "b", "c"], ["c", "a"], "pictures")
    assert seen.describe(0) == {"kind": "picture", "source": "/picture/0"}
    assert np.asarray(Image.open(io.BytesIO(seen.image(0)[0])))[0, 0, 0] == 20
    with pytest.raises(DataError, match="'z'"):
        renderer_by_id(shown, ["z"], ["a", "b", "c"], "pictures")


def test_an_unnamed_person_is_refused(tmp_path: Path) -> None:
    made = project(tmp_path)
    with pytest.raises(ApiError):
        make_context(ProjectConfig("digits", str(tmp_path / "labels.db")), ServerConfig(name="\u202e"))
    assert made.people.list_people() == []
