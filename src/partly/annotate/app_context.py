"""The context that routes share, and the guards that protect them.

A guarded router runs its guards before every route and before the body of a request is read, so no route can forget a
check, and a client without a session cannot upload anything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Request, Response
from fastapi.routing import APIRoute

from partly.annotate.accounts import Accounts, Person, csrf_token
from partly.annotate.errors import ApiError
from partly.annotate.item_renderer import ItemRenderer
from partly.annotate.label_state import align, exclude_answers, find_hidden_labels
from partly.annotate.limits import WorkerPool
from partly.annotate.question_queue import QuestionQueue
from partly.annotate.security_middleware import ServerAddress
from partly.annotate.stats import Snapshot, read_snapshot
from partly.annotate.trainer_supervisor import TrainerStatus
from partly.labels import Labels
from partly.labels.guidelines import Guideline

CSRF_HEADER = "x-partly-page"
MAX_COOKIE_LENGTH = 200
Guard = Callable[[Request], Awaitable[None]]


@dataclass
class AppContext:
    """One dataset, its ledger, and the people who annotate it."""

    title: str
    queue: QuestionQueue
    accounts: Accounts
    renderer: ItemRenderer
    address: ServerAddress
    has_accounts: bool = False
    trainer_status: Callable[[], TrainerStatus] = field(default=TrainerStatus)
    port: int = 8765
    seed: int = 0  # of the project
    guidelines: Mapping[str, Guideline] = field(default_factory=dict)  # by label
    password_pool: WorkerPool = field(default_factory=lambda: WorkerPool("passwords", 2, 30, 30, low_priority=True))
    session_pool: WorkerPool = field(default_factory=lambda: WorkerPool("sessions", 8, 500, 5))
    import_pool: WorkerPool = field(default_factory=lambda: WorkerPool("imports", 1, 2, 120))
    _last_round: int = 0  # at the last call of `refresh_labels`

    def guideline(self, label: str) -> dict[str, Any] | None:
        guideline = self.guidelines.get(label)
        return None if guideline is None else guideline.to_dict()

    def refresh_labels(self, snapshot: Snapshot | None = None) -> Labels:
        """Return the current labels of the ledger; update the labels that the queue takes as given."""
        queue = self.queue
        queue.add_new_labels()
        snapshot = snapshot or read_snapshot(queue)
        labels = align(queue.labels(), queue.given, self.title, find_hidden_labels(queue.ledger))
        queue.given = exclude_answers(labels, snapshot.entries, queue.hierarchy)
        return labels

    def refresh_after_round(self, round: int) -> None:
        """Read the ledger again once per round: other programs may have written to it."""
        if round != self._last_round:
            self._last_round = round
            self.refresh_labels()

    def require_accounts(self) -> None:
        if not self.has_accounts:
            raise ApiError("This server has no accounts. Start it with --accounts.", 404)

    @property
    def cookie_name(self) -> str:
        """Return the name of the session cookie. Ports share cookies, so servers on one machine need several names."""
        return "__Host-partly" if self.address.secure else f"partly-{self.port}"

    def set_session(self, response: Response, token: str, seconds: float) -> None:
        response.set_cookie(
            self.cookie_name,
            token,
            max_age=int(seconds),
            httponly=True,
            samesite="strict",
            secure=self.address.secure,
            path="/",
        )


def context_of(request: Request) -> AppContext:
    return cast(AppContext, request.app.state.context)


async def _get_context(request: Request) -> AppContext:
    return context_of(request)


async def _get_person(request: Request) -> Person:
    return cast(Person, request.state.person)


Context = Annotated[AppContext, Depends(_get_context)]  # parameters of routes
SignedIn = Annotated[Person, Depends(_get_person)]  # only behind `require_session`


def address_of(request: Request) -> str:
    """Return the address of the client; behind a proxy, the one that the proxy names."""
    return request.client.host if request.client else ""


# ---------------------------------------------------------------- guards


class SignInRequired(Exception):
    """Raised when a request has no valid session."""


async def require_session(request: Request) -> None:
    context = context_of(request)
    token = request.cookies.get(context.cookie_name, "")
    if not 0 < len(token) <= MAX_COOKIE_LENGTH:
        raise SignInRequired
    person = await context.session_pool.run(context.accounts.find_session, token)
    if person is None:
        raise SignInRequired
    request.state.person, request.state.session = person, token


async def require_csrf(request: Request) -> None:
    """Require the token of our own pages; after `require_session`, for every change."""
    if request.headers.getlist(CSRF_HEADER) != [csrf_token(request.state.session)]:
        raise ApiError("This request does not come from a page of your current session. Reload the page.")


async def require_admin(request: Request) -> None:
    if not request.state.person.admin:
        raise ApiError("Only admins may do this.")


def make_guarded_router(*guards: Guard) -> APIRouter:
    """Return a router that runs these guards before each of its routes."""

    class GuardedRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def handle_guarded(request: Request) -> Response:
                for guard in guards:
                    await guard(request)
                return await handle(request)

            return handle_guarded

    return APIRouter(route_class=GuardedRoute)
