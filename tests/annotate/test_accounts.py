"""Who comes in and who does not: invitations, passwords, sessions, and what is kept of them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from annotate.making import Project, pose, project
from partly.annotate import passwords
from partly.annotate.accounts import (
    ATTEMPTS_BY_ACCOUNT,
    ATTEMPTS_BY_ADDRESS,
    ATTEMPTS_BY_ADDRESS_AND_ACCOUNT,
    SESSION_SECONDS,
    Accounts,
    Person,
    csrf_token,
)
from partly.annotate.errors import ApiError
from partly.annotate.limits import WINDOW_SECONDS
from partly.annotate.links import INVITATION_SECONDS, PASSWORD_RESET_SECONDS
from partly.annotate.passwords import hash_password, verify_password
from partly.ledger import Ledger

PASSWORD = "correct horse battery"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr(passwords, "N", 1 << 4)  # the strength is tested by itself
    monkeypatch.setattr(passwords, "DUMMY_HASH", f"scrypt$16$8$3${'00' * 16}${'00' * 32}")
    return project(tmp_path)


def test_a_password_is_scrypt_of_the_stated_strength() -> None:
    secret = hash_password(PASSWORD)
    kind, n, r, p, salt, key = secret.split("$")
    assert (kind, int(n), int(r), int(p), len(salt)) == ("scrypt", 2**15, 8, 3, 32)
    slow = hashlib.scrypt(PASSWORD.encode(), salt=bytes.fromhex(salt), n=2**15, r=8, p=3, maxmem=1 << 27, dklen=32)
    assert key == slow.hex()
    assert verify_password(PASSWORD, secret)
    assert not verify_password(PASSWORD + " ", secret)


def test_an_invitation_makes_one_account(made: Project) -> None:
    token = made.people.invite("annotator")
    session = made.people.join(token, "  Bela   B. ", PASSWORD)
    person = made.people.find_session(session)
    assert person is not None
    assert (person.name, person.role, person.admin) == ("Bela B.", "annotator", False)
    with pytest.raises(ApiError, match="used already"):
        made.people.join(token, "Carl", PASSWORD)


def test_an_invitation_is_spent_only_where_the_account_is_made(made: Project) -> None:
    made.people.join(made.people.invite("admin"), "Anna", PASSWORD)
    token = made.people.invite("annotator")
    for name, password, words in (
        ("Dora", "short", "10 to 200"),
        ("", PASSWORD, "1 to 64"),
        ("ＡＮＮＡ", PASSWORD, "taken"),
    ):
        with pytest.raises(ApiError, match=words):
            made.people.join(token, name, password)
    made.people.join(token, "Dora", PASSWORD)


def test_an_old_invitation_and_an_old_session_are_refused(made: Project) -> None:
    token = made.people.invite("annotator")
    made.time.at += INVITATION_SECONDS + 1
    with pytest.raises(ApiError, match="has expired"):
        made.people.join(token, "Anna", PASSWORD)
    session = made.people.join(made.people.invite("annotator"), "Anna", PASSWORD)
    made.time.at += SESSION_SECONDS + 1
    assert made.people.find_session(session) is None


def test_the_address_of_the_start_is_no_invitation_and_lets_in_once(made: Project) -> None:
    token = made.people.create_start_token(made.people.local_admin("anna"))
    with pytest.raises(ApiError):
        made.people.join(token, "Mallory", PASSWORD)
    session = made.people.sign_in_by_link(token)
    assert made.people.find_session(session).name == "anna"
    with pytest.raises(ApiError, match="used already"):
        made.people.sign_in_by_link(token)
    with pytest.raises(ApiError, match="invitation"):
        made.people.sign_in_by_link(made.people.invite("admin"))


def test_logging_in_and_out(made: Project) -> None:
    made.people.join(made.people.invite("annotator"), "Anna", PASSWORD)
    session = made.people.sign_in("anna", PASSWORD, "::1")  # a name is the same in any case
    assert made.people.find_session(session).name == "Anna"
    made.people.sign_out(session)
    assert made.people.find_session(session) is None


def test_wrong_name_and_wrong_password_are_told_alike(made: Project) -> None:
    made.people.join(made.people.invite("annotator"), "Anna", PASSWORD)
    made.people.local_admin("root")  # without a password nobody logs in
    told = set()
    for name, password in (("Anna", "wrong password"), ("Nobody", PASSWORD), ("root", ""), ("Anna", "x" * 201)):
        with pytest.raises(ApiError) as refused:
            made.people.sign_in(name, password, "::1")
        told.add((str(refused.value), refused.value.status))
    assert len(told) == 1


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Passwords that were hashed."""
    found: list[str] = []
    slow, hash_new = passwords.verify_password, passwords.hash_password
    monkeypatch.setattr(
        passwords, "verify_password", lambda password, secret: found.append(password) or slow(password, secret)
    )
    monkeypatch.setattr(passwords, "hash_password", lambda password: found.append(password) or hash_new(password))
    return found


def test_a_thousand_attempts(made: Project, looked: list[str]) -> None:
    """At one account from many addresses, and at many from one: few are looked at, and no right password among the
    rest."""
    made.people.join(made.people.invite("annotator"), "Anna", PASSWORD)
    looked.clear()
    for i in range(1000):
        with pytest.raises(ApiError):
            made.people.sign_in("Anna", f"guess {i} guess", f"10.0.{i // 250}.{i % 250}")
    assert len(looked) == ATTEMPTS_BY_ACCOUNT
    with pytest.raises(ApiError, match="Too many"):
        made.people.sign_in("Anna", PASSWORD, "::1")
    for i in range(1000):
        with pytest.raises(ApiError):
            made.people.sign_in(f"name {i}", PASSWORD, "192.168.0.1")
    assert len(looked) == ATTEMPTS_BY_ACCOUNT + ATTEMPTS_BY_ADDRESS
    made.time.at += WINDOW_SECONDS + 10
    assert made.people.find_session(made.people.sign_in("Anna", PASSWORD, "::1")) is not None


def test_guesses_from_elsewhere_lock_nobody_out(made: Project) -> None:
    made.people.join(made.people.invite("admin"), "root", PASSWORD)
    for i in range(ATTEMPTS_BY_ADDRESS_AND_ACCOUNT + 2):
        with pytest.raises(ApiError, match="wrong" if i < ATTEMPTS_BY_ADDRESS_AND_ACCOUNT else "Too many"):
            made.people.sign_in("root", f"guess {i} guess", "10.0.0.1")
    made.people.sign_in("root", PASSWORD, "10.0.0.2")
    for i in range(2 * ATTEMPTS_BY_ACCOUNT):  # by a thousand machines: addresses of the owner stay open
        with pytest.raises(ApiError):
            made.people.sign_in("root", f"guess {i} guess", f"10.1.0.{i}")
    made.people.sign_in("root", PASSWORD, "10.0.0.2")


def test_a_network_of_version_6_counts_as_one_address(made: Project, looked: list[str]) -> None:
    for i in range(100):
        with pytest.raises(ApiError):
            made.people.sign_in(f"name {i}", PASSWORD, f"2001:db8::{i:x}")
    assert len(looked) == ATTEMPTS_BY_ADDRESS


def test_signing_in_is_no_failed_attempt(made: Project) -> None:
    """Many people may share an address."""
    made.people.join(made.people.invite("annotator"), "Anna", PASSWORD)
    for _ in range(2 * ATTEMPTS_BY_ADDRESS):
        made.people.sign_in("Anna", PASSWORD, "10.0.0.1")


def test_a_bad_token_is_refused_before_a_password_is_hashed(made: Project, looked: list[str]) -> None:
    for i in range(2 * ATTEMPTS_BY_ADDRESS):
        for way in (
            lambda i=i: made.people.join(f"junk {i}", "Eve", PASSWORD, "10.0.0.1"),
            lambda i=i: made.people.reset_password(f"junk {i}", PASSWORD, "10.0.0.1"),
            lambda i=i: made.people.sign_in_by_link(f"junk {i}", "10.0.0.1"),
        ):
            with pytest.raises(ApiError, match="used already" if 3 * i + 2 < ATTEMPTS_BY_ADDRESS else "used|Too many"):
                way()
    assert looked == []
    token = made.people.invite("annotator")
    with pytest.raises(ApiError, match="Too many"):
        made.people.join(token, "Carl", PASSWORD, "10.0.0.1")
    made.people.join(token, "Carl", PASSWORD, "10.0.0.2")


def test_the_database_holds_no_token_and_no_password(made: Project, tmp_path: Path) -> None:
    token = made.people.invite("annotator")
    session = made.people.join(token, "Anna", PASSWORD)
    content = (tmp_path / "labels.db").read_bytes()
    for secret in (token, session, PASSWORD, csrf_token(session)):
        assert secret.encode() not in content
    assert hashlib.sha256(session.encode()).hexdigest().encode() in content


def admin_and_bela(made: Project) -> tuple[Person, Person, str]:
    admin = made.people.find_session(made.people.join(made.people.invite("admin"), "Anna", PASSWORD))
    session = made.people.join(made.people.invite("annotator"), "Bela", PASSWORD)
    bela = made.people.find_session(session)
    assert admin is not None
    assert bela is not None
    return admin, bela, session


def test_who_is_blocked_is_out_at_once_and_stays_out(made: Project) -> None:
    admin, bela, session = admin_and_bela(made)
    pose(made, [(0, 0)])
    (question,) = made.queue.lease(bela, "label", 1)
    for _ in range(2):  # twice is once
        made.people.block(bela.id, admin)
    assert made.people.find_session(session) is None
    assert [one.blocked for one in made.people.list_people()] == [False, True]
    assert made.queue.lease(admin, "label", 1) == [question]  # nobody waits for who is out
    token = made.people.create_reset_token(bela.id, admin)
    for comes in (
        lambda: made.people.sign_in("Bela", PASSWORD, "here"),
        lambda: made.people.reset_password(token, PASSWORD),
    ):
        with pytest.raises(ApiError, match="blocked"):
            comes()
    made.people.unblock(bela.id)
    assert made.people.find_session(made.people.sign_in("Bela", PASSWORD, "here")) is not None


def test_nobody_blocks_himself_or_nobody(made: Project) -> None:
    admin, _, _ = admin_and_bela(made)
    for person, words in ((admin.id, "your own"), (999, "no such person")):
        with pytest.raises(ApiError, match=words):
            made.people.block(person, admin)
    with pytest.raises(ApiError, match="no such person"):
        made.people.create_reset_token(999, admin)


def test_with_another_password_every_session_ends(made: Project) -> None:
    _, bela, session = admin_and_bela(made)
    other = made.people.sign_in("Bela", PASSWORD, "here")
    with pytest.raises(ApiError, match="wrong") as refused:
        made.people.change_password(bela, "not this one", "another password")
    assert refused.value.status == 403  # who asks is in, and stays in
    with pytest.raises(ApiError, match="10 to 200"):
        made.people.change_password(bela, PASSWORD, "short")
    assert made.people.find_session(other) == bela
    new = made.people.change_password(bela, PASSWORD, "another password")
    assert [made.people.find_session(one) for one in (session, other, new)] == [None, None, bela]
    with pytest.raises(ApiError, match="wrong"):
        made.people.sign_in("Bela", PASSWORD, "here")
    made.people.sign_in("Bela", "another password", "here")


def test_an_admin_gives_an_address_for_another_password(made: Project) -> None:
    admin, bela, session = admin_and_bela(made)
    token = made.people.create_reset_token(bela.id, admin)
    with pytest.raises(ApiError, match="10 to 200"):
        made.people.reset_password(token, "short")
    with pytest.raises(ApiError, match="not an invitation"):
        made.people.join(token, "Carl", PASSWORD)
    with pytest.raises(ApiError, match="does not sign you in"):
        made.people.sign_in_by_link(token)
    new = made.people.reset_password(token, "another password")
    assert [made.people.find_session(one) for one in (session, new)] == [None, bela]
    with pytest.raises(ApiError, match="used already"):
        made.people.reset_password(token, "a third password")
    invitation = made.people.invite("annotator")
    with pytest.raises(ApiError, match="link to join"):
        made.people.reset_password(invitation, "another password")
    made.people.join(invitation, "Carl", PASSWORD)  # it is not spent by that


def test_a_block_holds_at_once_on_every_server(made: Project) -> None:
    """Two servers, one database: what one has looked up just now says nothing after the other has blocked."""
    admin, bela, session = admin_and_bela(made)
    other = Accounts(Ledger(made.ledger.store.place).store, now=made.time)
    assert other.find_session(session) == made.people.find_session(session) == bela
    other.block(bela.id, admin)
    assert made.people.find_session(session) is None


def two_admins(made: Project) -> tuple[Person, Person]:
    admin, _, _ = admin_and_bela(made)
    mallory = made.people.find_session(made.people.join(made.people.invite("admin", admin), "Mallory", PASSWORD))
    assert mallory is not None
    return admin, mallory


def test_a_blocked_admin_does_not_come_back(made: Project) -> None:
    """Not by an invitation or an address for a new password that was made before, nor by one that is for the admin."""
    admin, mallory = two_admins(made)
    bela = made.people.find_by_name("Bela")
    invitation, renewal = made.people.invite("admin", mallory), made.people.create_reset_token(bela.id, mallory)
    mine, kept = made.people.create_reset_token(mallory.id), made.people.invite("annotator", admin)
    made.people.block(mallory.id, admin)
    for way in (
        lambda: made.people.join(invitation, "Mallory 2", PASSWORD),
        lambda: made.people.reset_password(renewal, PASSWORD),
        lambda: made.people.reset_password(mine, PASSWORD),
    ):
        with pytest.raises(ApiError, match="revoked"):
            way()
    for make in (
        lambda: made.people.invite("admin", mallory),
        lambda: made.people.create_reset_token(bela.id, mallory),
    ):
        with pytest.raises(ApiError, match="blocked"):  # by a request that was under way
            make()
    made.people.unblock(mallory.id)
    with pytest.raises(ApiError, match="revoked"):
        made.people.join(invitation, "Mallory 2", PASSWORD)
    made.people.join(kept, "Carl", PASSWORD)  # what others have made stays


def test_no_admin_sets_the_password_of_another(made: Project) -> None:
    admin, mallory = two_admins(made)
    for target in (admin.id, mallory.id):
        with pytest.raises(ApiError, match="An admin cannot reset another admin's password"):
            made.people.create_reset_token(target, mallory)
    session = made.people.reset_password(
        made.people.create_reset_token(admin.id), "another password"
    )  # who runs the server
    assert made.people.find_session(session) == admin


def test_links_are_listed_revoked_and_end_within_hours(made: Project) -> None:
    admin, _ = two_admins(made)
    bela = made.people.find_by_name("Bela")
    invitation, renewal = made.people.invite("annotator", admin), made.people.create_reset_token(bela.id, admin)
    first = made.people.invite("admin")
    told = [(one.role, one.person, one.maker) for one in made.people.list_links()]
    assert told == [("admin", None, None), ("annotator", "Bela", "Anna"), ("annotator", None, "Anna")]
    assert invitation not in repr(made.people.list_links())  # what is listed lets nobody in
    made.people.revoke_link(made.people.list_links()[0].id)
    with pytest.raises(ApiError, match="revoked"):
        made.people.join(first, "Dora", PASSWORD)
    with pytest.raises(ApiError, match="ended already"):
        made.people.revoke_link("nothing")
    made.time.at += PASSWORD_RESET_SECONDS
    with pytest.raises(ApiError, match="has expired"):
        made.people.reset_password(renewal, PASSWORD)
    assert [one.person for one in made.people.list_links()] == [None]
    made.time.at += INVITATION_SECONDS
    assert made.people.list_links() == []
    assert INVITATION_SECONDS <= 48 * 3600
