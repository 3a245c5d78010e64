"""The web application: routes, error handlers and security middleware.

Every route belongs to a router (`app_context.make_guarded_router`), which decides who may use it: all clients, people
who are signed in, or admins. Changes also need the CSRF token of the page.
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
from starlette.types import ASGIApp

from partly.annotate import api, pages
from partly.annotate.app_context import AppContext, SignInRequired, context_of
from partly.annotate.errors import ApiError
from partly.annotate.security_middleware import SecurityMiddleware
from partly.errors import PartlyError

STATIC_FILES = {"page.js": "text/javascript", "page.css": "text/css", "icon.svg": "image/svg+xml"}
SERVER_ERROR = "The server cannot do this right now. Nothing was saved. Try again in a moment."
log = logging.getLogger("partly.annotate")


def make_app(context: AppContext) -> ASGIApp:
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.state.context = context
    app.include_router(_static_router())
    for module in (pages, api):
        for router in module.ROUTERS:
            app.include_router(router)
    for kind, handler in (
        (SignInRequired, _on_sign_in_required),
        (ApiError, _on_api_error),
        (PartlyError, _on_server_error),
        (RequestValidationError, _on_invalid_request),
        (HTTPException, _on_http_error),
        (ClientDisconnect, _on_disconnect),
    ):
        app.add_exception_handler(kind, handler)
    return SecurityMiddleware(app, context.address)


def _static_router() -> APIRouter:
    """Serve our script, style and icon by name, and no other file."""
    router = APIRouter()
    folder = resources.files("partly.annotate") / "templates"
    contents = {name: (folder / name).read_bytes() for name in STATIC_FILES}

    @router.get("/static/{name}")
    async def static(name: str) -> Response:
        if name not in contents:
            raise HTTPException(404)
        return Response(contents[name], media_type=STATIC_FILES[name], headers=api.CACHE_HEADERS)

    return router


async def _on_sign_in_required(request: Request, _: Exception) -> Response:
    if not _expects_json(request) and context_of(request).has_accounts:
        return RedirectResponse("/log-in", 303)
    text = "Sign in first." if _expects_json(request) else "Open the link that partly annotate has printed."
    return _error_response(request, "Not signed in", text, 401)


async def _on_api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return _error_response(request, "Not possible", str(error), error.status)


async def _on_server_error(request: Request, error: Exception) -> Response:
    """Answer 503, after which clients retry. The reason goes to the console: it may name files, hosts and users."""
    log.error("%s: %s", request.url.path, error)
    return _error_response(request, "Not possible", SERVER_ERROR, 503)


async def _on_invalid_request(request: Request, error: Exception) -> Response:
    """Name the invalid fields, but do not repeat their values: one may be a password."""
    assert isinstance(error, RequestValidationError)
    faults: list[dict[str, Any]] = [{"where": fault["loc"], "what": fault["msg"]} for fault in error.errors()]
    return JSONResponse({"error": "The request is invalid.", "faults": faults}, 422)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if _expects_json(request) or error.status_code != 404:
        return JSONResponse({"error": str(error.detail)}, error.status_code)
    return pages.render_message(request, "Page not found", "There is no such page.", 404)


async def _on_disconnect(request: Request, _: Exception) -> Response:
    return Response(status_code=400)  # the client is gone


def _error_response(request: Request, title: str, text: str, status: int) -> Response:
    if _expects_json(request):
        response: Response = JSONResponse({"error": text}, status)
    else:
        response = pages.render_message(request, title, text, status)
    if status == 503:
        response.headers["retry-after"] = "1"
    return response


def _expects_json(request: Request) -> bool:
    return request.url.path.startswith(("/api/", "/picture/"))
