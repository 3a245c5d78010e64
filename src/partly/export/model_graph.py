"""A model as one graph: from what a network is given to logits and probabilities, and what has to happen before it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from partly.binary_relevance import EstimatorStore
from partly.engine import FittedModel
from partly.errors import SettingError
from partly.export.calibrated_logits import Calibrated
from partly.items import Conditioning, Encoding, Origin
from partly.method import Method
from partly.networks import Standardise
from partly.networks.backbones import Backbone
from partly.networks.backbones.hashed_words import HashedWords
from partly.networks.backbones.text_model import TextModel
from partly.solvers.forest import Forest

TOKENS = 12  # of the texts that a graph is tried on, at most


class Graph(nn.Module):
    """Items -> (logits, probabilities), [B, L] each. `body`, where there is one, makes the features that the method
    takes; `last`, where there is one, calibrates."""

    def __init__(self, method: Method, body: nn.Module | None = None, last: nn.Module | None = None) -> None:
        super().__init__()
        self.body, self.method, self.last = body or nn.Identity(), method, last or nn.Identity()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.method.enforce_hierarchy(self.last(self.method.logits(self.body(x))))
        return logits, torch.sigmoid(logits)


class Conditioned(nn.Module):
    """Features [B, D] in float64, conditioned."""

    def __init__(self, conditioning: Conditioning, width: int) -> None:
        super().__init__()
        largest = torch.finfo(torch.float32).max
        for name, usual in (("shift", 0.0), ("factor", 1.0), ("limit", largest)):
            values = torch.full((width,), usual, dtype=torch.float64)
            own = torch.from_numpy(getattr(conditioning, name))
            values[torch.from_numpy(conditioning.columns)] = torch.where(own.isinf(), largest, own)
            self.register_buffer(name, values)

    def forward(self, x: Tensor) -> Tensor:
        centered = (x - self.get_buffer("shift")) * self.get_buffer("factor")
        limit = self.get_buffer("limit")
        return torch.maximum(torch.minimum(centered, limit), -limit)

    def undone(self, x: Tensor) -> Tensor:
        """Features that would become x, as far as nothing is clipped."""
        return x.double() / self.get_buffer("factor") + self.get_buffer("shift")


class EncodedColumns(nn.Module):
    """Columns of numbers [B, K] in float64, NaN where missing, as features [B, D]: filled in, and where they were."""

    def __init__(self, encoding: Encoding) -> None:
        super().__init__()
        columns = encoding.columns
        order: list[int] = []  # of each feature, its place among all values and then all gaps
        for k, column in enumerate(columns):
            order += [k, len(columns) + k] if column.missing else [k]
        self.register_buffer("fill", torch.tensor([column.fill for column in columns], dtype=torch.float64))
        self.register_buffer("start", torch.tensor([column.start for column in columns], dtype=torch.float64))
        self.register_buffer("order", torch.tensor(order))

    def forward(self, x: Tensor) -> Tensor:
        gaps = x.isnan()
        values = torch.where(gaps, self.get_buffer("fill"), x) - self.get_buffer("start")
        return torch.cat([values, gaps.double()], dim=1).index_select(1, self.get_buffer("order"))

    def undone(self, x: Tensor) -> Tensor:
        """Columns that would become such features; of every other item, those with gaps in training are missing."""
        order, count = self.get_buffer("order"), len(self.get_buffer("start"))
        values = x.double()[:, order < count] + self.get_buffer("start")
        values[::2, order[order >= count] - count] = torch.nan
        return values


class Prepared(nn.Sequential):
    """What is done in float64 before the method takes features in float32: encoding, then conditioning."""

    def forward(self, x: Tensor) -> Tensor:
        for part in self:
            x = part(x)
        return x.float()

    def undone(self, x: Tensor) -> Tensor:
        """Input that would become such features."""
        for part in reversed(list(self)):
            assert isinstance(part, EncodedColumns | Conditioned)
            x = part.undone(x)
        return x


@dataclass(frozen=True)
class Entrance:
    """What a graph takes: `name` is that of its input, `preparation` says what comes before it, in plain values."""

    name: str
    shape: tuple[int, ...]  # of one item; of a text, the most tokens
    preparation: dict[str, Any]
    mean: Tensor | None = None  # of features, and what they are divided by: examples look like them
    scale: Tensor | None = None
    tokens: int = 0  # how many different ones there are, of texts
    body: Prepared | None = None  # takes columns in float64, where they are encoded or conditioned

    @property
    def dynamic(self) -> dict[int, Any]:
        """The sizes that are left open, with their names."""
        sizes: dict[int, Any] = {0: torch.export.Dim.DYNAMIC}
        return sizes | ({1: torch.export.Dim.DYNAMIC} if self.tokens else {})

    def examples(self, count: int, seed: int) -> Tensor:
        """Such items, made up."""
        drawn = torch.Generator().manual_seed(seed)
        if self.tokens:
            words, padding = min(self.shape[0], 2 + seed % TOKENS), int(self.preparation["padding"])
            text = torch.randint(0, self.tokens, (count, words), generator=drawn)
            text = torch.where(text == padding, (padding + 1) % self.tokens, text)
            left = words - torch.arange(count).unsqueeze(1) % words  # of one text all, of the next one less, ...
            return torch.where(torch.arange(words) < left, text, padding)
        if self.name == "pictures":
            return torch.randint(0, 256, (count, *self.shape), dtype=torch.uint8, generator=drawn)
        x = torch.randn(count, *self.shape, generator=drawn)
        x = x if self.mean is None or self.scale is None else self.mean + x * self.scale
        return x if self.body is None else self.body.undone(x)


def graph_of(fitted: FittedModel) -> tuple[Graph, Entrance]:
    """A copy of the model that can be exported, and what goes into it."""
    kept = next((part for part in fitted.method.modules() if isinstance(part, EstimatorStore)), None)
    if kept is not None:
        raise SettingError(
            f"{fitted.config.method} holds a scikit-learn estimator for each label, which is no torch code and has no "
            "graph. Train with another method: 'bce' with head 'linear' is logistic regression too."
        )
    last = None if fitted.calibration is None else Calibrated(fitted.calibration)
    body = _preparation(fitted) or copy.deepcopy(fitted.body)
    graph = Graph(copy.deepcopy(fitted.method), body, last).cpu()
    graph.eval()  # for good: it is a copy
    for part in [part for part in graph.modules() if isinstance(part, Forest)]:
        depth = int(part.depth)
        del part.depth
        part.depth = depth  # type: ignore[assignment]  # a graph has as many steps, whatever the items
    given = fitted.method.task.items
    origin = given.origin
    if origin is not None and origin.fitted:  # no graph splits texts into words
        graph.body = nn.Identity()
        return graph, _of_made_features(graph, fitted, origin)
    first = origin or given  # what features were made of, where a backbone made them
    make = {"features": _of_features, "pictures": _of_pictures, "texts": _of_texts}[first.kind]
    return graph, make(graph, fitted, first.shape)


def _preparation(fitted: FittedModel) -> Prepared | None:
    """What comes before the method in float64; None where it takes features as they are."""
    given = fitted.method.task.items
    encoding, conditioning = given.encoding, (given.conditioning or None)
    if encoding is None and conditioning is None:
        return None
    words = [column.name for column in encoding.columns if column.kind == "category"] if encoding else []
    if words:
        raise SettingError(
            f"Columns of categories have no place in a graph that takes numbers: {', '.join(map(repr, words))}. Encode "
            f"them before training and before the graph: pandas.get_dummies(X, columns={words}, dtype=float)."
        )
    parts: list[nn.Module] = [] if encoding is None else [EncodedColumns(encoding)]
    parts += [] if conditioning is None else [Conditioned(conditioning, given.shape[0])]
    return Prepared(*parts)


def _of_features(graph: Graph, fitted: FittedModel, shape: tuple[int, ...]) -> Entrance:
    first = next((part for part in graph.modules() if isinstance(part, Standardise)), None)
    body = graph.body if isinstance(graph.body, Prepared) else None
    encoding, dtype = fitted.method.task.items.encoding, "float32" if body is None else "float64"
    words = {
        "input": f"{dtype} [items, features], raw: they are standardised inside",
        "features": fitted.description["features"],
    }
    if encoding is not None:
        words["input"] = (
            f"{dtype} [items, columns], NaN where missing; true is 1, dates are days since 1970-01-01, durations days"
        )
        words["features"] = list(encoding.column_names)
    if first is None or first.mean.shape != shape:  # somebody's own network
        return Entrance("features", shape, words, body=body)
    inverse = first.inverse_scale
    return Entrance("features", shape, words, first.mean, torch.where(inverse > 0, 1 / inverse, 0.0), body=body)


def _of_made_features(graph: Graph, fitted: FittedModel, origin: Origin) -> Entrance:
    """The graph begins at the features that the backbone makes."""
    words = {
        "input": f"float32 [{origin.kind}, features]: those of the backbone {origin.backbone}, which "
        f"partly.Classifier.load(run).features({origin.kind}) returns",
        "backbone": origin.backbone,
        "backbone_sha256": origin.weights,
    }
    return replace(_of_features(graph, fitted, fitted.method.task.items.shape), preparation=words)


def _of_pictures(graph: Graph, fitted: FittedModel, shape: tuple[int, ...]) -> Entrance:
    wanted = [part.size for part in graph.modules() if isinstance(part, Backbone) and part.size is not None]
    shape = (shape[0], wanted[0], wanted[0]) if wanted else shape
    words = {
        "input": "uint8 [items, channels, height, width], 0 to 255, in the order R, G, B: they are normalised inside",
        "size": list(shape[1:]),
        "from_files": "turned as EXIF says, on white where transparent, the short side resized to the size (bilinear, "
        "with antialiasing), the centre cut out",
        "from_arrays": "resized to the size (bilinear, with antialiasing) where they have another",
    }
    return Entrance("pictures", shape, words)


def _as_it_is(x: Tensor) -> Tensor:
    return x


def _of_texts(graph: Graph, fitted: FittedModel, shape: tuple[int, ...]) -> Entrance:
    """The graph begins where a backbone has made numbers of texts."""
    reader: Any = None
    for part in [part for part in graph.modules() if isinstance(part, nn.Sequential) and len(part) > 1]:
        if isinstance(part[1], Backbone):
            reader, part[0] = part[1], nn.Identity()  # nothing is standardised
            reader.preprocess = _as_it_is  # numbers come in
    origin = fitted.method.task.items.origin
    name = fitted.config.backbone if origin is None else origin.backbone
    words: dict[str, Any] = {"backbone": name}
    if isinstance(reader, TextModel):
        words |= {
            "input": "int64 [texts, tokens]: numbers of tokens, shorter texts filled up at the end with `padding`",
            "tokenizer": f"that of the backbone {name}, with its special tokens",
            "most_tokens": reader.length,
            "padding": reader.padding,
        }
        config: Any = reader.model.config
        return Entrance("tokens", (reader.length,), words, tokens=int(config.vocab_size))
    if isinstance(reader, HashedWords):
        places = reader.words.num_embeddings - 1
        words |= {
            "input": "int64 [texts, words]: places of words, shorter texts filled up at the end with `padding`",
            "tokenizer": "the words of the casefolded text (the regular expression \\w+); the place of a word is "
            "1 + CRC-32 of its UTF-8 bytes modulo `places`",
            "places": places,
            "padding": 0,
        }
        return Entrance("tokens", shape, words, tokens=places + 1)
    raise SettingError(
        f"backbone = {name!r}: it is not known how it makes numbers of texts, so no graph can begin "
        "there. Texts can be exported with minilm, hf:... or hashed-words."
    )
