"""A language model as a teacher: yes, no or unsure about entries, from an OpenAI-compatible endpoint.

Replies are cached by the SHA-256 of their request, so no answer is paid for twice. See `partly.teachers.chat`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from partly.atomic_io import PathLike
from partly.errors import DataError, SettingError, did_you_mean, within
from partly.images.progress import track_progress
from partly.items import Items
from partly.labels.guidelines import Guideline
from partly.teachers.chat.annotator import MODES, Annotator, Mode, Opinions
from partly.teachers.chat.client import Client
from partly.teachers.chat.content import contents_of
from partly.teachers.chat.endpoint import ALLOWED_HOSTS, KEY_VARIABLE, is_allowed, parse_url
from partly.teachers.chat.limits import Caps, Meter
from partly.teachers.chat.replies import Replies
from partly.teachers.chat.request import Style
from partly.teachers.contract import Block, Teacher, Vocabulary, names_of

ITEMS_AT_A_TIME = 64
RESERVED = ("model", "messages", "stream", "n")
MIN_DISTANCE = 1e-6  # of a probability from 0 and 1, to have a finite logit
IN_IDENTITY = ("url", "model", "confidence", "samples", "group_size", "direct", "seed", "max_side", "body")


class LanguageModel(Teacher):
    """Score items by a language model behind an OpenAI-compatible endpoint (vLLM, llama.cpp, Ollama, hosted).

    Vocabularies of more than `direct` labels are first asked about in groups; the candidates that the model names are
    then asked about one by one: yes, no or unsure. Labels that it does not name get no opinion.

    Parameters
    ----------
    url : str
        Base URL, such as "http://127.0.0.1:8000/v1". The key, if any, comes from the environment variable `key`.
    model : str
        Name of the model, as the endpoint knows it.
    guidelines : mapping of str to str or Guideline, optional
        Meaning of labels, as on the annotation page.
    confidence : {"auto", "logprobs", "samples", "votes"}
        Source of probabilities: log-probabilities of the answer word, repeated samples, or a single answer. "auto"
        asks the endpoint once whether it gives log-probabilities, and takes samples otherwise.
    samples : int
        Answers per entry with "samples".
    group_size, direct : int
        Labels per question about candidates, and largest vocabulary without such questions.
    seed : int
        Seed of the order of labels and answer words in prompts.
    max_side : int
        Longer side of pictures in pixels.
    body : mapping, optional
        Further fields of each request, such as {"chat_template_kwargs": {"enable_thinking": False}}; None removes one.
    calls, tokens, minutes, money : optional
        Caps on one run. Entries beyond a cap have no opinion.
    input_price, output_price : float, optional
        Prices of a million tokens; a cap on money needs them.
    concurrency, timeout, retries : optional
        Requests at a time, seconds per request, and further tries after a failure.
    key : str
        Environment variable that holds the key.
    cache : str or Path, optional
        File of replies.

    Examples
    --------
    >>> import partly
    >>> teacher = partly.teachers.LanguageModel("http://127.0.0.1:8000/v1", "qwen", calls=1000)
    >>> teacher.describe()
    'language model qwen'
    """

    caches_scores = False  # replies are cached one by one; beyond a cap there are none

    def __init__(
        self,
        url: str,
        model: str,
        guidelines: Mapping[str, str | Guideline] | None = None,
        *,
        confidence: Mode = "auto",
        samples: int = 5,
        group_size: int = 25,
        direct: int = 8,
        seed: int = 0,
        max_side: int = 512,
        body: Mapping[str, Any] | None = None,
        calls: int | None = None,
        tokens: int | None = None,
        minutes: float | None = None,
        money: float | None = None,
        input_price: float | None = None,
        output_price: float | None = None,
        concurrency: int = 4,
        timeout: float = 60.0,
        retries: int = 5,
        key: str = KEY_VARIABLE,
        cache: PathLike | None = None,
    ) -> None:
        parse_url(url, key)
        if confidence not in MODES:
            raise SettingError(f"confidence = {confidence!r}.{did_you_mean(confidence, MODES)}")
        if wrong := [name for name in body or {} if name in RESERVED]:
            raise SettingError(f"body: {', '.join(wrong)} cannot be set there.")
        if not model or not model.isprintable():
            raise SettingError("model: give the name of the model, as the endpoint knows it.")
        within(1, 25, samples=samples)
        within(2, 500, group_size=group_size)
        within(0, 500, direct=direct)
        within(32, 4096, max_side=max_side)
        within(1, 256, concurrency=concurrency)
        within(0.1, 3600, timeout=timeout)
        within(0, 20, retries=retries)
        self.url, self.model, self.confidence, self.samples = url, model, confidence, samples
        self.group_size, self.direct, self.seed, self.max_side = group_size, direct, seed, max_side
        self.body = dict(body or {})
        self.guidelines = {name: _guideline(value) for name, value in (guidelines or {}).items()}
        self.caps = Caps(calls, tokens, minutes, money, input_price, output_price)
        self.concurrency, self.timeout, self.retries = concurrency, timeout, retries
        self.key, self.cache = key, None if cache is None else Path(cache)
        self._saved = False  # read from a file, whose author must not decide which hosts are contacted
        self._annotator: Annotator | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same object, so that copies share its caps."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_annotator": None}

    @property
    def annotator(self) -> Annotator:
        """The annotator, whose client counts calls and tokens."""
        if self._annotator is None:
            endpoint = parse_url(self.url, self.key)
            client = Client(
                endpoint, Replies(self.cache), Meter(self.caps), self.concurrency, self.timeout, self.retries
            )
            if self._saved and not is_allowed(endpoint.host):
                client.endpoint, client.unsent = None, self._refuse
            style = Style(self.model, self.guidelines, self.seed, True, self.body)
            self._annotator = Annotator(client, style, self.confidence, self.samples, self.group_size, self.direct)
        return self._annotator

    def _refuse(self, key: str, body: bytes) -> None:
        host = parse_url(self.url, self.key).host
        raise SettingError(
            f"The saved model asks {self.describe()} at {self.url} about new items, and a file does not decide what "
            f"is contacted. Allow it: export {ALLOWED_HOSTS}={host}. Or leave it out: teacher='none', --teacher none."
        )

    def identity(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in IN_IDENTITY}
        guidelines = {name: guideline.to_dict() for name, guideline in self.guidelines.items()}
        return {"kind": "language-model", **values, "guidelines": guidelines, "prompts": self.prompt_hash}

    @classmethod
    def from_identity(cls, identity: Mapping[str, Any]) -> LanguageModel:
        """Build the teacher that `identity` describes. It contacts only hosts that the environment allows."""
        values = {name: identity[name] for name in IN_IDENTITY if name in identity}
        try:
            guidelines = {
                name: Guideline(value.get("text", ""), tuple(value.get("yes", ())), tuple(value.get("no", ())))
                for name, value in identity.get("guidelines", {}).items()
            }
            teacher = cls(**values, guidelines=guidelines)
        except (TypeError, AttributeError) as error:
            raise DataError(
                f"The saved language model cannot be read ({error}). Leave it out: --teacher none."
            ) from None
        teacher._saved = True
        return teacher

    @property
    def prompt_hash(self) -> str:
        """Version of the prompts: a hash of templates and guidelines."""
        return Style(self.model, self.guidelines).prompt_hash

    def describe(self) -> str:
        return f"language model {self.model}"

    def score_blocks(self, items: Items, labels: Vocabulary) -> Iterator[Block]:
        for opinions in self.opinion_blocks(items, labels):
            chance = np.clip(opinions.chance.astype(np.float64), MIN_DISTANCE, 1 - MIN_DISTANCE)
            yield (np.log(chance) - np.log1p(-chance)).astype(np.float32)

    def opinion_blocks(self, items: Items, labels: Vocabulary) -> Iterator[Opinions]:
        """Yield the opinions in blocks of items."""
        names = names_of(labels)
        blocks = [slice(start, start + ITEMS_AT_A_TIME) for start in range(0, len(items), ITEMS_AT_A_TIME)]
        for rows in track_progress(blocks, len(items), f"Asking {self.model}", weight=lambda _: ITEMS_AT_A_TIME):
            yield self.annotator.opinions(contents_of(items[rows], self.max_side), names)

    def opinions(self, items: Items, labels: Vocabulary) -> Opinions:
        """Return the opinions about all items."""
        blocks = [*self.opinion_blocks(items, labels), Opinions.none(0, len(names_of(labels)))]
        chance, value = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("chance", "value"))
        return Opinions(chance, value)


def _guideline(value: str | Guideline | Any) -> Guideline:
    if isinstance(value, Guideline | str):
        return Guideline(value.strip()) if isinstance(value, str) else value
    raise SettingError(f"guidelines: {value!r} is no text. Give a text per label, or Guideline(text, yes, no).")
