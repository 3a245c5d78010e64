"""`partly annotate`: the pages are served until somebody stops them."""

from __future__ import annotations

import errno
import getpass
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from partly import data
from partly.annotate.accounts import People, checked_name
from partly.annotate.app import make_app
from partly.annotate.app_context import Site
from partly.annotate.connections import LimitedProtocol
from partly.annotate.item_renderer import Seen, shown_by
from partly.annotate.project import Plan, open_project
from partly.annotate.security_middleware import Address, here, public
from partly.annotate.trainer_supervisor import Keeper
from partly.errors import SettingError
from partly.labels.guidelines import read_guidelines
from partly.ledger import place_of

LOOPBACK = ("127.0.0.1", "::1", "localhost")
BACKLOG = 2048  # connections that wait to be accepted


class ProxiedProtocol(LimitedProtocol):
    """Connections from this machine are those of a reverse proxy, which stands for many clients."""

    proxies = frozenset({"127.0.0.1", "::1"})


@dataclass(frozen=True)
class Served:
    """Where and for whom."""

    host: str = "127.0.0.1"
    port: int = 8765
    accounts: bool = False
    public_url: str | None = None
    show: str | None = None  # what people see of the items, where it is not what is learned from
    name: str | None = None  # of who works alone
    guidelines: str | None = None  # a TOML file with a text per label
    new_password: str | None = None  # the account that chooses another password

    @property
    def address(self) -> Address:
        """Refused: to be reached by others without knowing who they are, or under a name that nobody has said."""
        if self.host not in LOOPBACK and not self.accounts:
            raise SettingError(
                f"--host {self.host}: others could reach these pages. Say --accounts, so that people log in."
            )
        if self.host not in LOOPBACK and self.public_url is None:
            raise SettingError(
                f"--host {self.host}: say under which address people reach these pages: --public-url https://..."
            )
        if self.new_password is not None and not self.accounts:
            raise SettingError("--new-password: only accounts have passwords. Add --accounts.")
        if self.public_url is not None and not self.accounts:
            raise SettingError("--public-url: others could reach these pages. Say --accounts, so that people log in.")
        return here(self.port) if self.public_url is None else public(self.public_url)

    @property
    def first_origin(self) -> str:
        return f"http://127.0.0.1:{self.port}" if self.public_url is None else next(iter(self.address.origins))


def make_site(plan: Plan, served: Served, say: Callable[[str], None] = lambda _: None) -> Site:
    """The data and the ledger, opened."""
    address = served.address
    if plan.votes > 1 and not served.accounts:
        raise SettingError(
            f"--votes {plan.votes}: several people answer the same. Say --accounts, so that people sign in."
        )
    author = checked_name(served.name or getpass.getuser())
    opened, desk = open_project(plan, author, say)
    seen = Seen(opened.items)
    if served.show is not None:
        shown = data.read(served.show, skip_bad=plan.skip_bad).include_unlabelled()
        seen = shown_by(shown.items, opened.labels.ids, shown.labels.ids, served.show)
    title = Path(plan.data).name or plan.data
    site = Site(
        title, desk, People(desk.ledger.store), seen, address, served.accounts, port=served.port, seed=plan.seed
    )
    if served.guidelines is not None:
        site.guidelines = read_guidelines(served.guidelines, opened.labels.names)
    return site


def link(site: Site, served: Served) -> str:
    """An address that lets one in, once: who works alone, or the first admin."""
    if not served.accounts:
        person = site.people.local(checked_name(served.name or getpass.getuser()))
        return f"{served.first_origin}/start?token={site.people.starting(person)}"
    if site.people.has_admin():
        return f"{served.first_origin}/log-in"
    return f"{served.first_origin}/join?token={site.people.invite('admin')}"


def renewal_link(site: Site, served: Served, name: str) -> str:
    """Return an address where this account chooses another password, once."""
    return f"{served.first_origin}/renew?token={site.people.renewal(site.people.named(name).id)}"


def others_can_read(ledger: str) -> bool:
    """Tell whether the mode of a ledger's file lets others in, as that of files of older versions may."""
    file = place_of(ledger).file
    return file is not None and bool(file.stat().st_mode & 0o077)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens. It is made before anything is read or printed, so that a port in use is an error at
    once, and nobody can take the port meanwhile."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = f"{error.strerror}. Choose another --host or --port."
        if error.errno == errno.EADDRINUSE:
            other = port + 1 if port < 65535 else port - 1
            reason = f"the port is in use, perhaps by another partly annotate. Stop that, or choose --port {other}."
        raise SettingError(f"Cannot listen on {host}, port {port}: {reason}") from None


def serve(plan: Plan, served: Served, say: Callable[[str], None]) -> None:
    """Serve the pages until Ctrl-C. The trainer runs in a process of its own."""
    served.address  # noqa: B018, refused before anything is opened
    with listen(served.host, served.port) as listening:
        _serve(plan, served, listening, say)


def _serve(plan: Plan, served: Served, listening: socket.socket, say: Callable[[str], None]) -> None:
    site = make_site(plan, served, say)
    if served.new_password is not None:
        say(f"New password of {served.new_password}: {renewal_link(site, served, served.new_password)}")
    keeper = Keeper(plan).start()
    site.training = keeper.status
    config = uvicorn.Config(
        make_app(site),
        http=LimitedProtocol if served.public_url is None else ProxiedProtocol,
        access_log=False,  # addresses hold tokens
        log_level="warning",
        server_header=False,
        proxy_headers=served.public_url is not None,  # from this machine only: a reverse proxy says who asks
        timeout_keep_alive=75,  # people look at a question; connections of others make room for them
        timeout_graceful_shutdown=3,
        ws="none",
        lifespan="off",
    )
    say(f"Answers go to {place_of(plan.ledger).shown}. Stop with Ctrl-C; nothing is lost.")
    if served.accounts and others_can_read(plan.ledger):
        shown = place_of(plan.ledger).shown
        say(f"Other users of this machine can read {shown}, with names and password digests. Run: chmod 600 {shown}")
    say(f"Open {link(site, served)}")
    if served.public_url is not None and not site.address.secure:
        say("Without https, passwords and answers can be read on the way: put a reverse proxy with TLS before it.")
    try:
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        keeper.end()
