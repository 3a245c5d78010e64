"""Where the pages are served, for whom, and what is seen of items."""

from __future__ import annotations

import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from annotate.making import FOUND, Browser, project
from partly.annotate.item_renderer import Seen, shown_by
from partly.annotate.passwords import Refused
from partly.annotate.project import Plan
from partly.annotate.question_selection import Wanted
from partly.annotate.server import Served, link, listen, make_site, others_can_read, renewal_link
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
        Served(**how).address  # type: ignore[arg-type]  # noqa: B018


def test_addresses() -> None:
    assert Served().address.hosts == {"127.0.0.1:8765", "localhost:8765", "[::1]:8765"}
    found = Served("0.0.0.0", accounts=True, public_url="https://labels.example.org").address
    assert (found.hosts, found.secure) == ({"labels.example.org"}, True)


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
    plan = Plan(str(tmp_path / "x.csv"), str(tmp_path / "labels.db"), str(tmp_path / "y.csv"))
    alone = Served(name="anna")
    site = make_site(plan, alone)
    token = link(site, alone).partition("/start?token=")[2]
    assert site.people.person(site.people.start(token)).name == "anna"
    assert site.desk.given.ids == ("p", "q")
    other = Plan(plan.data, str(tmp_path / "other.db"), plan.labels)
    several = Served(accounts=True, public_url="https://labels.example.org")
    site = make_site(other, several)
    path, _, token = link(site, several).partition("?token=")
    assert path == "https://labels.example.org/join"
    site.people.join(token, "Anna", "a long password")
    assert link(site, several) == "https://labels.example.org/log-in"
    path, _, token = renewal_link(site, several, "anna").partition("?token=")
    assert path == "https://labels.example.org/renew"
    assert site.people.person(site.people.renew(token, "another password")).name == "Anna"
    with pytest.raises(Refused, match="no account 'Bela'"):
        renewal_link(site, several, "Bela")


def test_a_file_that_others_can_read_is_told(tmp_path: Path) -> None:
    book = tmp_path / "labels.db"
    Ledger.create(book)
    assert not others_can_read(str(book))
    book.chmod(0o644)
    assert others_can_read(str(book))


def test_who_worked_alone_can_go_on_with_accounts(tmp_path: Path) -> None:
    """An admin without a password cannot sign in, so somebody must be able to join."""
    made = project(tmp_path)
    made.people.local("anna")
    assert "/join?token=" in link(made.site(accounts=True), Served(accounts=True))


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
    plan, said = Plan(str(tmp_path / "x.csv"), str(book), str(tmp_path / "y.csv")), []
    make_site(plan, Served(name="anna"), said.append)
    assert said == [f"{book}: there was no ledger yet; one begins, of what is known in {plan.labels} (entries: 1)."]
    make_site(plan, Served(name="anna"), said.append)
    assert len(said) == 1


def test_the_same_ledger_with_fewer_items_and_labels(tmp_path: Path) -> None:
    """Questions of an earlier start that these data cannot show are withdrawn, and the others are asked."""
    (tmp_path / "x.csv").write_text("item,a\np,1\nq,2\nr,3\n")
    (tmp_path / "y.csv").write_text("item,cat,dog\np,1,\nq,,\nr,,\n")
    plan = Plan(str(tmp_path / "x.csv"), str(tmp_path / "labels.db"), str(tmp_path / "y.csv"))
    alone = Served(name="anna")
    site = make_site(plan, alone)
    site.desk.pose(FOUND, [Wanted(2, 0, True), Wanted(1, 0, True), Wanted(1, 1, True)])  # r cat, q cat, q dog
    (tmp_path / "x.csv").write_text("item,a\np,1\nq,2\n")
    (tmp_path / "y.csv").write_text("item,cat,dog\np,1,\nq,,\n")
    site.desk.ledger.retire(["dog"])
    site = make_site(plan, alone)
    assert site.desk.given.names == ("cat",)
    one = Browser(site, site.people.start(link(site, alone).partition("=")[2]))
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
    found = Seen(features(x, names=[f"f{j}" for j in range(20)])).of(3)
    assert found["kind"] == "row"
    assert len(found["numbers"]) == 12
    assert ["f2", "-500"] in found["numbers"]
    assert ["f17", "500"] in found["numbers"]
    assert Seen(texts(["one", "two"])).of(1) == {"kind": "text", "text": "two"}


def test_other_things_are_shown_by_id() -> None:
    shown = image_array(np.stack([np.full((16, 16, 3), 10 * i, np.uint8) for i in range(3)]))
    seen = shown_by(shown, ["c", "a"], ["a", "b", "c"], "pictures")
    assert seen.of(0) == {"kind": "picture", "source": "/picture/0"}
    assert seen._pixels(seen._at(0))[0, 0, 0] == 20
    with pytest.raises(DataError, match="'z'"):
        shown_by(shown, ["z"], ["a", "b", "c"], "pictures")


def test_an_unnamed_person_is_refused(tmp_path: Path) -> None:
    made = project(tmp_path)
    with pytest.raises(Refused):
        make_site(Plan("digits", str(tmp_path / "labels.db")), Served(name="\u202e"))
    assert made.people.everybody() == []
