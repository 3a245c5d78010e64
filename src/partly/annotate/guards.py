"""Who may use a route. A router gives its guards to every route in it, so that no route can forget to ask.

Guards run before the body of a request is read: whoever has no session sends nothing that is kept.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from partly.annotate.accounts import page_token
from partly.annotate.app_context import cookie_of, site_of
from partly.annotate.passwords import Refused

TOKEN = "x-partly-page"
MAX_COOKIE = 200  # characters; a session of ours has fewer
Guard = Callable[[Request], Awaitable[None]]


class SignInFirst(Exception):
    """Raised when a page is asked for without a session."""


async def is_in(request: Request) -> None:
    """Somebody whose session has not ended."""
    site = site_of(request)
    token = request.cookies.get(cookie_of(site), "")
    if not 0 < len(token) <= MAX_COOKIE:
        raise SignInFirst
    person = await site.sessions.run(site.people.person, token)
    if person is None:
        raise SignInFirst
    request.state.person, request.state.session = person, token


async def acts(request: Request) -> None:
    """Somebody who is in and sends what only a page of ours knows: needed for all that changes something."""
    if request.headers.getlist(TOKEN) != [page_token(request.state.session)]:
        raise Refused("This was not sent by a page of ours, or by one of an earlier session. Load the page again.")


async def is_admin(request: Request) -> None:
    if not request.state.person.admin:
        raise Refused("Only admins may see this.")


def guarded(*guards: Guard) -> APIRouter:
    """Return a router whose routes ask these guards first."""

    class GuardedRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def checked(request: Request) -> Response:
                for guard in guards:
                    await guard(request)
                return await handle(request)

            return checked

    return APIRouter(route_class=GuardedRoute)
