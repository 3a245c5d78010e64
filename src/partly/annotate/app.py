"""The pages and what they call: who comes in by which door, and what is behind it. No question is decided here.

Every route belongs to one of four routers, and the router says who may use it: anybody, who is in, who is in and sends
what only a page of ours knows (all that changes something), and admins. A route cannot forget to ask.
"""

from __future__ import annotations

from importlib import resources
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException

from partly.annotate import calls, pages
from partly.annotate.doors import App, Doors
from partly.annotate.passwords import Refused
from partly.annotate.people import page_token
from partly.annotate.site import Site, cookie_of, site_of
from partly.errors import PartlyError

TOKEN = "x-partly-page"
STATIC = {"page.js": "text/javascript", "page.css": "text/css", "icon.svg": "image/svg+xml"}
KEPT = {"cache-control": "private, max-age=600"}


class LogInFirst(Exception):
    """A page was asked for without a session."""


def is_in(request: Request) -> None:
    """Somebody whose session has not ended."""
    site = site_of(request)
    token = request.cookies.get(cookie_of(site), "")
    person = site.people.person(token) if token else None
    if person is None:
        raise LogInFirst
    request.state.person, request.state.session = person, token


async def acts(request: Request, _: Annotated[None, Depends(is_in)]) -> None:
    """Who is in, from a page of ours."""
    if request.headers.getlist(TOKEN) != [page_token(request.state.session)]:
        raise Refused("This was not sent by a page of ours, or by one of an earlier session. Load the page again.")


async def is_admin(request: Request, _: Annotated[None, Depends(is_in)]) -> None:
    if not request.state.person.admin:
        raise Refused("Only admins may see this.")


def make_app(site: Site) -> App:
    """All of it, behind its doors."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.state.site = site
    app.include_router(_static())
    for router, needs in (
        (pages.open_to_all, []),
        (pages.inside, [Depends(is_in)]),
        (pages.admins, [Depends(is_admin)]),
        (calls.open_to_all, []),
        (calls.inside, [Depends(is_in)]),
        (calls.acting, [Depends(acts)]),
        (calls.admins, [Depends(is_admin), Depends(acts)]),
    ):
        app.include_router(router, dependencies=needs)
    for kind, handler in (
        (LogInFirst, _log_in_first),
        (PartlyError, _refused),
        (RequestValidationError, _invalid),
        (HTTPException, _not_found),
    ):
        app.add_exception_handler(kind, handler)
    return Doors(app, site.address)


def _static() -> APIRouter:
    """Our own script and style, and nothing else: files by name, never by path."""
    router = APIRouter()
    folder = resources.files("partly.annotate") / "templates"
    contents = {name: (folder / name).read_bytes() for name in STATIC}

    @router.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in contents:
            raise HTTPException(404)
        return Response(contents[name], media_type=STATIC[name], headers=KEPT)

    return router


async def _log_in_first(request: Request, _: Exception) -> Response:
    if request.url.path.startswith(("/api/", "/picture/")):
        return JSONResponse({"error": "Log in first."}, 401)
    if site_of(request).accounts:
        return RedirectResponse("/log-in", 303)
    return pages.told(request, "Not in", "Open the address that partly annotate has printed.", 401)


async def _refused(request: Request, error: Exception) -> Response:
    status = error.status if isinstance(error, Refused) else 422
    if request.url.path.startswith(("/api/", "/picture/")):
        return JSONResponse({"error": str(error)}, status)
    return pages.told(request, "Not possible", str(error), status)


async def _invalid(request: Request, error: Exception) -> Response:
    """Where and what kind of fault, and not what was sent: it may be a password."""
    assert isinstance(error, RequestValidationError)
    faults: list[dict[str, Any]] = [{"where": one["loc"], "what": one["msg"]} for one in error.errors()]
    return JSONResponse({"error": "This cannot be read.", "faults": faults}, 422)


async def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if request.url.path.startswith(("/api/", "/picture/")):
        return JSONResponse({"error": str(error.detail)}, error.status_code)
    return pages.told(request, "Not here", "There is no such page.", error.status_code)
