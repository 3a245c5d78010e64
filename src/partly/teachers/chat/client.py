"""Send requests in parallel, with cache, retries and caps. Messages never quote items, prompts or keys."""

from __future__ import annotations

import json
import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from partly.errors import DataError
from partly.teachers.chat.endpoint import Endpoint
from partly.teachers.chat.limits import Meter, most_tokens
from partly.teachers.chat.parse import Reply, parse_reply
from partly.teachers.chat.replies import Kept, Replies
from partly.teachers.chat.request import identify
from partly.teachers.chat.send import MAX_WAIT_SECONDS, Response, send

OK = 200
UNREACHABLE = 0  # status where nothing was sent
TRY_AGAIN = (UNREACHABLE, 408, 409, 425, 429, 500, 502, 503, 504, 529)
REFUSED_STATUSES = (400, 413, 422)  # of this request alone, for example a text that is too long; kept and counted
FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0  # seconds between tries
MAX_FAILURES = 10  # requests in a row without a reply before the run ends
MAX_REFUSALS = 5  # before the first answer; then the run ends
MIN_SECONDS = 1.0  # smallest timeout of a request, also close to the cap on minutes


@dataclass
class Counts:
    """Numbers of requests by their outcome."""

    asked: int = 0  # answered by the endpoint in this run
    cached: int = 0
    malformed: int = 0  # replies outside of the protocol or the answer grammar
    refused: int = 0
    failed: int = 0  # no reply after all tries
    retried: int = 0
    repeated: int = 0  # sent again, since an interruption left their outcome unknown
    models: Counter[str] = field(default_factory=Counter)  # by the name in the reply


@dataclass(eq=False)
class Client:
    """An endpoint with its cache and limits.

    Without an endpoint, cached replies are returned and all other bodies are passed to `unsent`.
    """

    endpoint: Endpoint | None
    replies: Replies
    meter: Meter
    concurrency: int = 4
    timeout: float = 60.0
    retries: int = 5
    unsent: Callable[[str, bytes], None] | None = None
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        self._gate, self._lock = threading.Event(), threading.Lock()  # once the gate is set, no request is sent
        self._failures = self._refusals = 0  # in a row; before the first answer

    def ask(self, bodies: Sequence[bytes], salt: str = "") -> list[Reply | None]:
        """Return the reply to each body; None if it is malformed or refused, or if a cap is reached.

        `salt` changes the ids, so that answered bodies are asked again.
        """
        keys = [identify(body) + salt for body in bodies]
        replies_by_id = self.replies.find(keys)
        self.counts.cached += sum(key in replies_by_id for key in keys)
        missing = {key: body for key, body in zip(keys, bodies, strict=True) if key not in replies_by_id}
        if self.endpoint is None and self.unsent is not None:
            for key, body in missing.items():
                self.unsent(key, body)
        elif missing and self.endpoint is not None:
            self.counts.repeated += len(self.replies.find_unanswered(list(missing)))
            replies_by_id |= self._ask_missing(missing)
        return [self._parse(replies_by_id.get(key)) for key in keys]

    def _ask_missing(self, missing: dict[str, bytes]) -> dict[str, Kept]:
        """Ask at most `concurrency` requests at a time; replies that arrive after an error or Ctrl-C are still kept."""
        self._gate.clear()
        found: dict[str, Kept] = {}
        errors: list[BaseException] = []

        def work(pair: tuple[str, bytes]) -> None:
            try:
                reply = None if self._gate.is_set() else self._ask_one(*pair)
                if reply is not None:
                    found[pair[0]] = reply
            except BaseException as error:  # the first one is raised below
                errors.append(error)
                self._gate.set()

        pool = ThreadPoolExecutor(self.concurrency, thread_name_prefix="partly-chat")
        try:
            for future in [pool.submit(work, pair) for pair in missing.items()]:
                future.result()
        except BaseException:
            self._gate.set()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        if errors:
            raise errors[0]
        return found

    def _ask_one(self, key: str, body: bytes) -> Kept | None:
        """Send a request until it is answered; None if a cap is reached or every try fails."""
        most = most_tokens(body)
        for attempt in range(self.retries + 1):
            if self._gate.is_set() or not self.meter.reserve(most):
                return None
            self.replies.note_sent([key])
            response, settled = None, False
            try:
                response = self._send(body, key)
                if response is not None and response.status == OK:
                    self.replies.keep(key, OK, response.body)
                    reply = parse_reply(response.body)
                    self.meter.settle(most, None if reply is None else reply.tokens)
                    settled = True
                    return self._note_answer(Kept(OK, response.body))
            finally:
                if not settled:
                    self._settle_failure(key, most, response)
            if response is not None and response.status not in TRY_AGAIN:
                return self._note_refusal(key, response)
            if attempt < self.retries:
                self.counts.retried += 1
                self._pause(attempt, None if response is None else response.retry_after)
        self._note_failure()
        return None

    def _send(self, body: bytes, key: str) -> Response | None:
        """Send a request once. Return the response; None if the connection broke or timed out."""
        assert self.endpoint is not None
        try:
            return send(self.endpoint, body, key, max(MIN_SECONDS, min(self.timeout, self.meter.seconds_left)))
        except ConnectionRefusedError:
            return Response(UNREACHABLE, "")
        except OSError:
            return None

    def _settle_failure(self, key: str, most: tuple[int, int], response: Response | None) -> None:
        """Release the reservation of a refused call; count a call without a reply in full, since it may be charged."""
        if response is None:
            self.meter.settle(most, None)
        else:
            self.meter.release(most)
            self.replies.forget_sent(key)

    def _note_answer(self, kept: Kept) -> Kept:
        with self._lock:
            self.counts.asked += 1
            self._failures = 0
        return kept

    def _note_refusal(self, key: str, response: Response) -> Kept:
        """Keep the refusal of this request; raise an error if the endpoint refuses every request."""
        with self._lock:
            self._refusals += 1
            hopeless = not self.counts.asked and self._refusals >= MAX_REFUSALS
        if response.status not in REFUSED_STATUSES or hopeless:
            raise DataError(_describe_refusal(self.endpoint, response))
        self.replies.keep(key, response.status, "")
        return Kept(response.status, "")

    def _note_failure(self) -> None:
        with self._lock:
            self.counts.failed += 1
            self._failures += 1
            gone = self._failures >= MAX_FAILURES
        if gone and self.endpoint is not None:
            raise DataError(
                f"{self.endpoint.url}: no reply to {MAX_FAILURES} requests in a row, {self.retries + 1} tries each. "
                "Check that the server runs, then repeat the command: what was answered is kept."
            )

    def _pause(self, attempt: int, retry_after: float | None) -> None:
        """Wait before the next try: for Retry-After seconds, or by exponential backoff with jitter."""
        backoff = min(LONGEST_WAIT, FIRST_WAIT * 2**attempt) * random.uniform(0.5, 1.0)
        seconds = min(
            backoff if retry_after is None else retry_after, MAX_WAIT_SECONDS, max(self.meter.seconds_left, 0)
        )
        self._gate.wait(seconds)

    def _parse(self, kept: Kept | None) -> Reply | None:
        if kept is None:
            return None
        if kept.status != OK:
            self.counts.refused += 1
            return None
        reply = parse_reply(kept.body)
        if reply is None:
            self.counts.malformed += 1
        else:
            self.counts.models[reply.model] += 1
        return reply


def _describe_refusal(endpoint: Endpoint | None, response: Response) -> str:
    """Describe a refusal by its status and code. The message is left out, since it may quote an item."""
    code = ""
    try:
        error = json.loads(response.body)["error"]
        code = str(error.get("code") or error.get("type") or "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    known = f" ({code})" if re.fullmatch(r"[A-Za-z0-9_.-]{1,60}", code) else ""
    remedies = {
        401: "Set the key: export PARTLY_LANGUAGE_MODEL_KEY=...",
        403: "The key may not use this model.",
        404: "Check the URL, which ends in /v1 on most servers, and the name of the model.",
        400: "Check the name of the model, and whether it takes these settings (body=).",
    }
    remedy = remedies.get(response.status, "Check the URL and the model.")
    return (
        f"{'' if endpoint is None else endpoint.url}: refused requests with status {response.status}{known}. {remedy}"
    )
