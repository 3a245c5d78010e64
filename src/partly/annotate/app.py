"""The application: routes with their guards, behind the doors, and what becomes of errors. No question is decided here.

Every route belongs to a router, and the router says who may use it (`guards`): anybody, who is signed in, who is signed
in and sends what only a page of ours knows (all that changes something), and admins.
"""

from __future__ import annotations

import logging
from importlib import resources
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from partly.annotate import api, pages
from partly.annotate.app_context import Site, site_of
from partly.annotate.guards import SignInFirst
from partly.annotate.passwords import Refused
from partly.annotate.security_middleware import App, Doors
from partly.errors import PartlyError

STATIC = {"page.js": "text/javascript", "page.css": "text/css", "icon.svg": "image/svg+xml"}
KEPT = {"cache-control": "private, max-age=600"}
FAULT = "The server cannot do this right now. Nothing was saved; try again in a moment."
log = logging.getLogger("partly.annotate")


def make_app(site: Site) -> App:
    """All of it, behind its doors."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.state.site = site
    app.include_router(_static())
    for module in (pages, api):
        for router in module.ROUTERS:
            app.include_router(router)
    for kind, handler in (
        (SignInFirst, _sign_in_first),
        (Refused, _refused),
        (PartlyError, _failed),
        (RequestValidationError, _invalid),
        (HTTPException, _not_found),
        (ClientDisconnect, _gone),
    ):
        app.add_exception_handler(kind, handler)
    return Doors(app, site.address)


def _static() -> APIRouter:
    """Our own script and style, and nothing else: files by name, never by path."""
    router = APIRouter()
    folder = resources.files("partly.annotate") / "templates"
    contents = {name: (folder / name).read_bytes() for name in STATIC}

    @router.get("/static/{name}")
    async def static(name: str) -> Response:
        if name not in contents:
            raise HTTPException(404)
        return Response(contents[name], media_type=STATIC[name], headers=KEPT)

    return router


async def _sign_in_first(request: Request, _: Exception) -> Response:
    if _is_call(request):
        return JSONResponse({"error": "Sign in first."}, 401)
    if site_of(request).accounts:
        return RedirectResponse("/log-in", 303)
    return pages.told(request, "Not in", "Open the address that partly annotate has printed.", 401)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _told(request, str(error), error.status)


async def _failed(request: Request, error: Exception) -> Response:
    """A fault of the server and not of the request, which may be sent again. The reason is for the console: it may name
    files, hosts and users."""
    log.error("%s: %s", request.url.path, error)
    return _told(request, FAULT, 503)


def _told(request: Request, words: str, status: int) -> Response:
    answer = (
        JSONResponse({"error": words}, status)
        if _is_call(request)
        else pages.told(request, "Not possible", words, status)
    )
    if status == 503:
        answer.headers["retry-after"] = "1"
    return answer


def _is_call(request: Request) -> bool:
    return request.url.path.startswith(("/api/", "/picture/"))


async def _invalid(request: Request, error: Exception) -> Response:
    """Where and what kind of fault, and not what was sent: it may be a password."""
    assert isinstance(error, RequestValidationError)
    faults: list[dict[str, Any]] = [{"where": one["loc"], "what": one["msg"]} for one in error.errors()]
    return JSONResponse({"error": "This cannot be read.", "faults": faults}, 422)


async def _gone(request: Request, _: Exception) -> Response:
    return Response(status_code=400)  # nobody reads it


async def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if _is_call(request) or error.status_code != 404:
        return JSONResponse({"error": str(error.detail)}, error.status_code)
    return pages.told(request, "Not here", "There is no such page.", error.status_code)
