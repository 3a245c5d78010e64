"""Who comes in and who does not: invitations, passwords, sessions, and what is kept of them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from annotate.making import Project, pose, project
from partly.annotate import accounts, passwords
from partly.annotate.accounts import (
    ATTEMPTS_BY_ACCOUNT,
    ATTEMPTS_BY_ADDRESS,
    ATTEMPTS_BY_ADDRESS_AND_ACCOUNT,
    SESSION,
    People,
    Person,
    page_token,
)
from partly.annotate.limits import WINDOW_SECONDS
from partly.annotate.links import INVITATION_SECONDS, RENEWAL_SECONDS
from partly.annotate.passwords import Refused, hashed, matches
from partly.ledger import Ledger

PASSWORD = "correct horse battery"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr(passwords, "N", 1 << 4)  # the strength is tested by itself
    monkeypatch.setattr(accounts, "NOBODY", f"scrypt$16$8$3${'00' * 16}${'00' * 32}")
    return project(tmp_path)


def test_a_password_is_scrypt_of_the_stated_strength() -> None:
    secret = hashed(PASSWORD)
    kind, n, r, p, salt, key = secret.split("$")
    assert (kind, int(n), int(r), int(p), len(salt)) == ("scrypt", 2**15, 8, 3, 32)
    slow = hashlib.scrypt(PASSWORD.encode(), salt=bytes.fromhex(salt), n=2**15, r=8, p=3, maxmem=1 << 27, dklen=32)
    assert key == slow.hex()
    assert matches(PASSWORD, secret)
    assert not matches(PASSWORD + " ", secret)


def test_an_invitation_makes_one_account(made: Project) -> None:
    token = made.people.invite("annotator")
    session = made.people.join(token, "  Bela   B. ", PASSWORD)
    person = made.people.person(session)
    assert person is not None
    assert (person.name, person.role, person.admin) == ("Bela B.", "annotator", False)
    with pytest.raises(Refused, match="used already"):
        made.people.join(token, "Carl", PASSWORD)


def test_an_invitation_is_spent_only_where_the_account_is_made(made: Project) -> None:
    made.people.join(made.people.invite("admin"), "Anna", PASSWORD)
    token = made.people.invite("annotator")
    for name, password, words in (
        ("Dora", "short", "10 to 200"),
        ("", PASSWORD, "1 to 64"),
        ("ＡＮＮＡ", PASSWORD, "taken"),
    ):
        with pytest.raises(Refused, match=words):
            made.people.join(token, name, password)
    made.people.join(token, "Dora", PASSWORD)


def test_an_old_invitation_and_an_old_session_are_refused(made: Project) -> None:
    token = made.people.invite("annotator")
    made.time.at += INVITATION_SECONDS + 1
    with pytest.raises(Refused, match="too old"):
        made.people.join(token, "Anna", PASSWORD)
    session = made.people.join(made.people.invite("annotator"), "Anna", PASSWORD)
    made.time.at += SESSION + 1
    assert made.people.person(session) is None


def test_the_address_of_the_start_is_no_invitation_and_lets_in_once(made: Project) -> None:
    token = made.people.starting(made.people.local("anna"))
    with pytest.raises(Refused):
        made.people.join(token, "Mallory", PASSWORD)
    session = made.people.start(token)
    assert made.people.person(session).name == "anna"
    with pytest.raises(Refused, match="used already"):
        made.people.start(token)
    with pytest.raises(Refused, match="invitation"):
        made.people.start(made.people.invite("admin"))


def test_logging_in_and_out(made: Project) -> None:
    made.people.join(made.people.invite("annotator"), "Anna", PASSWORD)
    session = made.people.log_in("anna", PASSWORD, "::1")  # a name is the same in any case
    assert made.people.person(session).name == "Anna"
    made.people.log_out(session)
    assert made.people.person(session) is None


def test_wrong_name_and_wrong_password_are_told_alike(made: Project) -> None:
    made.people.join(made.people.invite("annotator"), "Anna", PASSWORD)
    made.people.local("root")  # without a password nobody logs in
    told = set()
    for name, password in (("Anna", "wrong password"), ("Nobody", PASSWORD), ("root", ""), ("Anna", "x" * 201)):
        with pytest.raises(Refused) as refused:
            made.people.log_in(name, password, "::1")
        told.add((str(refused.value), refused.value.status))
    assert len(told) == 1


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Passwords that were hashed."""
    found: list[str] = []
    slow, hash_new = accounts.matches, accounts.hashed
    monkeypatch.setattr(accounts, "matches", lambda password, secret: found.append(password) or slow(password, secret))
    monkeypatch.setattr(accounts, "hashed", lambda password: found.append(password) or hash_new(password))
    return found


def test_a_thousand_attempts(made: Project, looked: list[str]) -> None:
    """At one account from many addresses, and at many from one: few are looked at, and no right password among the
    rest."""
    made.people.join(made.people.invite("annotator"), "Anna", PASSWORD)
    looked.clear()
    for i in range(1000):
        with pytest.raises(Refused):
            made.people.log_in("Anna", f"guess {i} guess", f"10.0.{i // 250}.{i % 250}")
    assert len(looked) == ATTEMPTS_BY_ACCOUNT
    with pytest.raises(Refused, match="Too many"):
        made.people.log_in("Anna", PASSWORD, "::1")
    for i in range(1000):
        with pytest.raises(Refused):
            made.people.log_in(f"name {i}", PASSWORD, "192.168.0.1")
    assert len(looked) == ATTEMPTS_BY_ACCOUNT + ATTEMPTS_BY_ADDRESS
    made.time.at += WINDOW_SECONDS + 10
    assert made.people.person(made.people.log_in("Anna", PASSWORD, "::1")) is not None


def test_guesses_from_elsewhere_lock_nobody_out(made: Project) -> None:
    made.people.join(made.people.invite("admin"), "root", PASSWORD)
    for i in range(ATTEMPTS_BY_ADDRESS_AND_ACCOUNT + 2):
        with pytest.raises(Refused, match="wrong" if i < ATTEMPTS_BY_ADDRESS_AND_ACCOUNT else "Too many"):
            made.people.log_in("root", f"guess {i} guess", "10.0.0.1")
    made.people.log_in("root", PASSWORD, "10.0.0.2")
    for i in range(2 * ATTEMPTS_BY_ACCOUNT):  # by a thousand machines: addresses of the owner stay open
        with pytest.raises(Refused):
            made.people.log_in("root", f"guess {i} guess", f"10.1.0.{i}")
    made.people.log_in("root", PASSWORD, "10.0.0.2")


def test_a_network_of_version_6_counts_as_one_address(made: Project, looked: list[str]) -> None:
    for i in range(100):
        with pytest.raises(Refused):
            made.people.log_in(f"name {i}", PASSWORD, f"2001:db8::{i:x}")
    assert len(looked) == ATTEMPTS_BY_ADDRESS


def test_signing_in_is_no_failed_attempt(made: Project) -> None:
    """Many people may share an address."""
    made.people.join(made.people.invite("annotator"), "Anna", PASSWORD)
    for _ in range(2 * ATTEMPTS_BY_ADDRESS):
        made.people.log_in("Anna", PASSWORD, "10.0.0.1")


def test_a_bad_token_is_refused_before_a_password_is_hashed(made: Project, looked: list[str]) -> None:
    for i in range(2 * ATTEMPTS_BY_ADDRESS):
        for way in (
            lambda i=i: made.people.join(f"junk {i}", "Eve", PASSWORD, "10.0.0.1"),
            lambda i=i: made.people.renew(f"junk {i}", PASSWORD, "10.0.0.1"),
            lambda i=i: made.people.start(f"junk {i}", "10.0.0.1"),
        ):
            with pytest.raises(Refused, match="used already" if 3 * i + 2 < ATTEMPTS_BY_ADDRESS else "used|Too many"):
                way()
    assert looked == []
    token = made.people.invite("annotator")
    with pytest.raises(Refused, match="Too many"):
        made.people.join(token, "Carl", PASSWORD, "10.0.0.1")
    made.people.join(token, "Carl", PASSWORD, "10.0.0.2")


def test_the_database_holds_no_token_and_no_password(made: Project, tmp_path: Path) -> None:
    token = made.people.invite("annotator")
    session = made.people.join(token, "Anna", PASSWORD)
    content = (tmp_path / "labels.db").read_bytes()
    for secret in (token, session, PASSWORD, page_token(session)):
        assert secret.encode() not in content
    assert hashlib.sha256(session.encode()).hexdigest().encode() in content


def test_an_unknown_role_is_refused(made: Project) -> None:
    with pytest.raises(Refused, match="role"):
        made.people.invite("root")  # type: ignore[arg-type]


def admin_and_bela(made: Project) -> tuple[Person, Person, str]:
    admin = made.people.person(made.people.join(made.people.invite("admin"), "Anna", PASSWORD))
    session = made.people.join(made.people.invite("annotator"), "Bela", PASSWORD)
    bela = made.people.person(session)
    assert admin is not None
    assert bela is not None
    return admin, bela, session


def test_who_is_blocked_is_out_at_once_and_stays_out(made: Project) -> None:
    admin, bela, session = admin_and_bela(made)
    pose(made, [(0, 0)])
    (question,) = made.desk.lease(bela, "label", 1)
    for _ in range(2):  # twice is once
        made.people.block(bela.id, admin)
    assert made.people.person(session) is None
    assert [one.blocked for one in made.people.everybody()] == [False, True]
    assert made.desk.lease(admin, "label", 1) == [question]  # nobody waits for who is out
    token = made.people.renewal(bela.id, admin)
    for comes in (
        lambda: made.people.log_in("Bela", PASSWORD, "here"),
        lambda: made.people.renew(token, PASSWORD),
    ):
        with pytest.raises(Refused, match="blocked"):
            comes()
    made.people.unblock(bela.id)
    assert made.people.person(made.people.log_in("Bela", PASSWORD, "here")) is not None


def test_nobody_blocks_himself_or_nobody(made: Project) -> None:
    admin, _, _ = admin_and_bela(made)
    for person, words in ((admin.id, "your own"), (999, "no such person")):
        with pytest.raises(Refused, match=words):
            made.people.block(person, admin)
    with pytest.raises(Refused, match="no such person"):
        made.people.renewal(999, admin)


def test_with_another_password_every_session_ends(made: Project) -> None:
    _, bela, session = admin_and_bela(made)
    other = made.people.log_in("Bela", PASSWORD, "here")
    with pytest.raises(Refused, match="wrong") as refused:
        made.people.change_password(bela, "not this one", "another password")
    assert refused.value.status == 403  # who asks is in, and stays in
    with pytest.raises(Refused, match="10 to 200"):
        made.people.change_password(bela, PASSWORD, "short")
    assert made.people.person(other) == bela
    new = made.people.change_password(bela, PASSWORD, "another password")
    assert [made.people.person(one) for one in (session, other, new)] == [None, None, bela]
    with pytest.raises(Refused, match="wrong"):
        made.people.log_in("Bela", PASSWORD, "here")
    made.people.log_in("Bela", "another password", "here")


def test_an_admin_gives_an_address_for_another_password(made: Project) -> None:
    admin, bela, session = admin_and_bela(made)
    token = made.people.renewal(bela.id, admin)
    with pytest.raises(Refused, match="10 to 200"):
        made.people.renew(token, "short")
    with pytest.raises(Refused, match="not an invitation"):
        made.people.join(token, "Carl", PASSWORD)
    with pytest.raises(Refused, match="no way in"):
        made.people.start(token)
    new = made.people.renew(token, "another password")
    assert [made.people.person(one) for one in (session, new)] == [None, bela]
    with pytest.raises(Refused, match="used already"):
        made.people.renew(token, "a third password")
    invitation = made.people.invite("annotator")
    with pytest.raises(Refused, match="where people join"):
        made.people.renew(invitation, "another password")
    made.people.join(invitation, "Carl", PASSWORD)  # it is not spent by that


def test_a_block_holds_at_once_on_every_server(made: Project) -> None:
    """Two servers, one database: what one has looked up just now says nothing after the other has blocked."""
    admin, bela, session = admin_and_bela(made)
    other = People(Ledger(made.ledger.store.place).store, now=made.time)
    assert other.person(session) == made.people.person(session) == bela
    other.block(bela.id, admin)
    assert made.people.person(session) is None


def two_admins(made: Project) -> tuple[Person, Person]:
    admin, _, _ = admin_and_bela(made)
    mallory = made.people.person(made.people.join(made.people.invite("admin", admin), "Mallory", PASSWORD))
    assert mallory is not None
    return admin, mallory


def test_a_blocked_admin_does_not_come_back(made: Project) -> None:
    """Not by an invitation or an address for a new password that was made before, nor by one that is for the admin."""
    admin, mallory = two_admins(made)
    bela = made.people.named("Bela")
    invitation, renewal = made.people.invite("admin", mallory), made.people.renewal(bela.id, mallory)
    mine, kept = made.people.renewal(mallory.id), made.people.invite("annotator", admin)
    made.people.block(mallory.id, admin)
    for way in (
        lambda: made.people.join(invitation, "Mallory 2", PASSWORD),
        lambda: made.people.renew(renewal, PASSWORD),
        lambda: made.people.renew(mine, PASSWORD),
    ):
        with pytest.raises(Refused, match="revoked"):
            way()
    for make in (lambda: made.people.invite("admin", mallory), lambda: made.people.renewal(bela.id, mallory)):
        with pytest.raises(Refused, match="blocked"):  # by a request that was under way
            make()
    made.people.unblock(mallory.id)
    with pytest.raises(Refused, match="revoked"):
        made.people.join(invitation, "Mallory 2", PASSWORD)
    made.people.join(kept, "Carl", PASSWORD)  # what others have made stays


def test_no_admin_sets_the_password_of_another(made: Project) -> None:
    admin, mallory = two_admins(made)
    for target in (admin.id, mallory.id):
        with pytest.raises(Refused, match="No admin gives an admin a new password"):
            made.people.renewal(target, mallory)
    session = made.people.renew(made.people.renewal(admin.id), "another password")  # who runs the server
    assert made.people.person(session) == admin


def test_links_are_listed_revoked_and_end_within_hours(made: Project) -> None:
    admin, _ = two_admins(made)
    bela = made.people.named("Bela")
    invitation, renewal = made.people.invite("annotator", admin), made.people.renewal(bela.id, admin)
    first = made.people.invite("admin")
    told = [(one.role, one.person, one.maker) for one in made.people.links()]
    assert told == [("admin", None, None), ("annotator", "Bela", "Anna"), ("annotator", None, "Anna")]
    assert invitation not in repr(made.people.links())  # what is listed lets nobody in
    made.people.revoke(made.people.links()[0].id)
    with pytest.raises(Refused, match="revoked"):
        made.people.join(first, "Dora", PASSWORD)
    with pytest.raises(Refused, match="any more"):
        made.people.revoke("nothing")
    made.time.at += RENEWAL_SECONDS
    with pytest.raises(Refused, match="too old"):
        made.people.renew(renewal, PASSWORD)
    assert [one.person for one in made.people.links()] == [None]
    made.time.at += INVITATION_SECONDS
    assert made.people.links() == []
    assert INVITATION_SECONDS <= 48 * 3600
