"""`partly annotate`: serve the pages until Ctrl-C."""

from __future__ import annotations

import errno
import getpass
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from partly import data
from partly.annotate.accounts import Accounts, normalize_name
from partly.annotate.app import make_app
from partly.annotate.app_context import AppContext
from partly.annotate.connections import LimitedProtocol
from partly.annotate.item_renderer import ItemRenderer, renderer_by_id
from partly.annotate.project import ProjectConfig, open_project
from partly.annotate.security_middleware import ServerAddress, local_address, public_address
from partly.annotate.trainer_supervisor import TrainerSupervisor
from partly.errors import SettingError
from partly.labels.guidelines import read_guidelines
from partly.ledger import place_of

LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")
BACKLOG = 2048  # connections that wait to be accepted
KEEP_ALIVE_SECONDS = 75  # people think about a question; `connections` closes idle connections under load
SHUTDOWN_SECONDS = 3


class ProxiedProtocol(LimitedProtocol):
    """Connections from this machine come from a reverse proxy, which stands for many clients."""

    proxies = frozenset({"127.0.0.1", "::1"})


@dataclass(frozen=True)
class ServerConfig:
    """Address, accounts and presentation of the pages."""

    host: str = "127.0.0.1"
    port: int = 8765
    accounts: bool = False
    public_url: str | None = None
    show: str | None = None  # a dataset to show instead of the one that is trained on
    name: str | None = None  # of the person who works alone
    guidelines: str | None = None  # a TOML file with a text per label
    new_password: str | None = None  # the account whose password is reset

    @property
    def address(self) -> ServerAddress:
        """Return the public address; refuse to be reachable by others without accounts or without a known URL."""
        is_local = self.host in LOOPBACK_HOSTS
        if not is_local and not self.accounts:
            raise SettingError(
                f"--host {self.host}: others can reach the server. Add --accounts, so that people sign in."
            )
        if not is_local and self.public_url is None:
            raise SettingError(
                f"--host {self.host}: say under which URL people open the pages: --public-url https://..."
            )
        if self.new_password is not None and not self.accounts:
            raise SettingError("--new-password: only accounts have passwords. Add --accounts.")
        if self.public_url is not None and not self.accounts:
            raise SettingError("--public-url: others can reach the server. Add --accounts, so that people sign in.")
        return local_address(self.port) if self.public_url is None else public_address(self.public_url)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}" if self.public_url is None else next(iter(self.address.origins))

    @property
    def author(self) -> str:
        return normalize_name(self.name or getpass.getuser())


def make_context(
    project: ProjectConfig, server: ServerConfig, say: Callable[[str], None] = lambda _: None
) -> AppContext:
    """Open the data and the ledger of a project."""
    address = server.address
    if project.votes > 1 and not server.accounts:
        raise SettingError(f"--votes {project.votes}: several people answer. Add --accounts, so that people sign in.")
    dataset, queue = open_project(project, server.author, say)
    renderer = ItemRenderer(dataset.items)
    if server.show is not None:
        display_data = data.read(server.show, skip_bad=project.skip_bad).include_unlabelled()
        renderer = renderer_by_id(display_data.items, display_data.labels.ids, dataset.labels.ids, server.show)
    names = dataset.labels.names
    return AppContext(
        Path(project.data).name or project.data,
        queue,
        Accounts(queue.ledger.store),
        renderer,
        address,
        server.accounts,
        port=server.port,
        seed=project.seed,
        guidelines={} if server.guidelines is None else read_guidelines(server.guidelines, names),
    )


def sign_in_link(context: AppContext, server: ServerConfig) -> str:
    """Return the link to print: a one-time link for the local user or the first admin, else the sign-in page."""
    accounts = context.accounts
    if not server.accounts:
        return f"{server.origin}/start?token={accounts.create_start_token(accounts.local_admin(server.author))}"
    if accounts.has_admin():
        return f"{server.origin}/log-in"
    return f"{server.origin}/join?token={accounts.invite('admin')}"


def password_reset_link(context: AppContext, server: ServerConfig, name: str) -> str:
    person = context.accounts.find_by_name(name)
    return f"{server.origin}/renew?token={context.accounts.create_reset_token(person.id)}"


def is_readable_by_others(ledger: str) -> bool:
    """Tell whether the mode of a ledger file lets other users read it, as those of older versions may."""
    file = place_of(ledger).file
    return file is not None and bool(file.stat().st_mode & 0o077)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. It is opened first, so that a port in use is reported at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = f"{error.strerror}. Choose another --host or --port."
        if error.errno == errno.EADDRINUSE:
            free = port + 1 if port < 65535 else port - 1
            reason = f"the port is in use, perhaps by another partly annotate. Stop it, or choose --port {free}."
        raise SettingError(f"Cannot listen on {host}, port {port}: {reason}") from None


def serve(project: ProjectConfig, server: ServerConfig, say: Callable[[str], None]) -> None:
    """Serve the pages until Ctrl-C, with the trainer in another process."""
    server.address  # noqa: B018, refuse bad options before anything is opened
    with listen(server.host, server.port) as listening:
        context = make_context(project, server, say)
        if server.new_password is not None:
            link = password_reset_link(context, server, server.new_password)
            say(f"Link to reset the password of {server.new_password}: {link}")
        supervisor = TrainerSupervisor(project).start()
        context.trainer_status = supervisor.status
        _announce(project, server, context, say)
        try:
            uvicorn.Server(_uvicorn_config(context, server)).run(sockets=[listening])
        finally:
            supervisor.close()


def _announce(project: ProjectConfig, server: ServerConfig, context: AppContext, say: Callable[[str], None]) -> None:
    ledger = place_of(project.ledger).address
    say(f"Answers are saved in {ledger}. Stop with Ctrl-C; nothing is lost.")
    if server.accounts and is_readable_by_others(project.ledger):
        say(f"Other users of this machine can read {ledger}, with names and password hashes. Run: chmod 600 {ledger}")
    say(f"Open {sign_in_link(context, server)}")
    if server.public_url is not None and not context.address.secure:
        say("Without https, passwords and answers travel unencrypted. Put a reverse proxy with TLS in front.")


def _uvicorn_config(context: AppContext, server: ServerConfig) -> uvicorn.Config:
    return uvicorn.Config(
        make_app(context),
        http=LimitedProtocol if server.public_url is None else ProxiedProtocol,
        access_log=False,  # URLs hold tokens
        log_level="warning",
        server_header=False,
        proxy_headers=server.public_url is not None,  # from this machine only
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        ws="none",
        lifespan="off",
    )
