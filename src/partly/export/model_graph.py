"""A model as one graph, from network input to logits and probabilities, and the preprocessing before it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from partly.binary_relevance import EstimatorStore
from partly.calibration import Calibration, IsotonicMap, PlattMap
from partly.engine import FittedModel
from partly.errors import SettingError
from partly.export.taught_logits import TaughtLogits, taught_logits
from partly.items import Conditioning, Encoding, Origin
from partly.method import Method
from partly.networks import Standardize
from partly.networks.backbones import Backbone
from partly.networks.backbones.hashed_words import HashedWords
from partly.networks.backbones.text_model import TextModel
from partly.solvers.forest import Forest

MAX_EXAMPLE_TOKENS = 12  # of the texts that a graph is tested on


class Graph(nn.Module):
    """Items -> (logits, probabilities), [B, L] each. `body` computes features, `taught` adds a teacher's scores, and
    `last` calibrates, if given."""

    def __init__(
        self,
        method: Method,
        body: nn.Module | None = None,
        last: nn.Module | None = None,
        taught: TaughtLogits | None = None,
    ) -> None:
        super().__init__()
        self.body, self.method, self.last = body or nn.Identity(), method, last or nn.Identity()
        self.taught = taught

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.body(x)
        logits = self.method.logits(features)
        if self.taught is not None:
            logits = self.method.enforce_hierarchy(self.taught(logits, features))
        logits = self.method.enforce_hierarchy(self.last(logits))
        return logits, torch.sigmoid(logits)


class Conditioned(nn.Module):
    """Condition features [B, D] in float64."""

    def __init__(self, conditioning: Conditioning, width: int) -> None:
        super().__init__()
        largest = torch.finfo(torch.float32).max
        for name, usual in (("shift", 0.0), ("factor", 1.0), ("limit", largest)):
            values = torch.full((width,), usual, dtype=torch.float64)
            tensor = torch.from_numpy(getattr(conditioning, name))
            values[torch.from_numpy(conditioning.columns)] = torch.where(tensor.isinf(), largest, tensor)
            self.register_buffer(name, values)

    def forward(self, x: Tensor) -> Tensor:
        centered = (x - self.get_buffer("shift")) * self.get_buffer("factor")
        limit = self.get_buffer("limit")
        return torch.maximum(torch.minimum(centered, limit), -limit)

    def invert(self, x: Tensor) -> Tensor:
        """Return features that would become x, if nothing is clipped."""
        return x.double() / self.get_buffer("factor") + self.get_buffer("shift")


class EncodedColumns(nn.Module):
    """Encode columns of numbers [B, K] in float64, NaN where missing, as features [B, D] with missing indicators."""

    def __init__(self, encoding: Encoding) -> None:
        super().__init__()
        columns = encoding.columns
        order: list[int] = []  # position of each feature among all values, then all missing indicators
        for k, column in enumerate(columns):
            order += [k, len(columns) + k] if column.missing else [k]
        self.register_buffer("fill", torch.tensor([column.fill for column in columns], dtype=torch.float64))
        self.register_buffer("start", torch.tensor([column.start for column in columns], dtype=torch.float64))
        self.register_buffer("order", torch.tensor(order))

    def forward(self, x: Tensor) -> Tensor:
        gaps = x.isnan()
        values = torch.where(gaps, self.get_buffer("fill"), x) - self.get_buffer("start")
        return torch.cat([values, gaps.double()], dim=1).index_select(1, self.get_buffer("order"))

    def invert(self, x: Tensor) -> Tensor:
        """Return columns that would become such features; half of the items have missing values."""
        order, count = self.get_buffer("order"), len(self.get_buffer("start"))
        values = x.double()[:, order < count] + self.get_buffer("start")
        values[::2, order[order >= count] - count] = torch.nan
        return values


class Prepared(nn.Sequential):
    """Preprocess in float64, by encoding and conditioning, before the method takes float32."""

    def forward(self, x: Tensor) -> Tensor:
        for part in self:
            x = part(x)
        return x.float()

    def invert(self, x: Tensor) -> Tensor:
        """Return input that would become such features."""
        for part in reversed(list(self)):
            assert isinstance(part, EncodedColumns | Conditioned)
            x = part.invert(x)
        return x


class CalibrationLayer(nn.Module):
    """Logits [B, L] -> calibrated logits, as `calibration.maps` computes them."""

    slope: Tensor  # [L]
    bias: Tensor  # [L]
    x: Tensor  # [L, K], rising
    y: Tensor  # [L, K]
    isotonic: Tensor  # [L], whether a label has an isotonic map

    def __init__(self, calibration: Calibration) -> None:
        super().__init__()
        self.has_isotonic = any(isinstance(label.map, IsotonicMap) for label in calibration.labels)
        maps = [label.map for label in calibration.labels]
        lines = [map if isinstance(map, PlattMap) else PlattMap() for map in maps]
        self.register_buffer("slope", torch.tensor([line.slope for line in lines]))
        self.register_buffer("bias", torch.tensor([line.bias for line in lines]))
        steps = [map if isinstance(map, IsotonicMap) else IsotonicMap((0.0, 1.0), (0.5, 0.5)) for map in maps]
        length = max((len(step.x) for step in steps), default=2)
        # Shorter maps are padded with flat steps beyond the scores.
        self.register_buffer("x", torch.tensor([_pad(step.x, length, 1.0) for step in steps]).reshape(-1, length))
        self.register_buffer("y", torch.tensor([_pad(step.y, length, 0.0) for step in steps]).reshape(-1, length))
        self.register_buffer("isotonic", torch.tensor([isinstance(map, IsotonicMap) for map in maps], dtype=torch.bool))

    def forward(self, logits: Tensor) -> Tensor:
        linear = self.slope * logits + self.bias
        if not self.has_isotonic:
            return linear
        s = torch.maximum(torch.minimum(logits, self.x[:, -1]), self.x[:, 0])
        # Each step contributes the part of its rise below the score, because ONNX has no search.
        width = self.x[:, 1:] - self.x[:, :-1]
        progress = ((s.unsqueeze(2) - self.x[:, :-1]) / width).clamp(0, 1)
        p = self.y[:, 0] + (progress * (self.y[:, 1:] - self.y[:, :-1])).sum(dim=2)
        return torch.where(self.isotonic, torch.log(p) - torch.log1p(-p), linear)


def _pad(values: tuple[float, ...], length: int, step: float) -> list[float]:
    return [*values, *(values[-1] + step * (i + 1) for i in range(length - len(values)))]


@dataclass(frozen=True)
class GraphInput:
    """Input of a graph: its name and shape, and a description of the required preprocessing (`preparation`)."""

    name: str
    shape: tuple[int, ...]  # of one item; for texts, the maximum number of tokens
    preparation: dict[str, Any]
    mean: Tensor | None = None  # of features, with their scale, to draw similar examples
    scale: Tensor | None = None
    tokens: int = 0  # size of the vocabulary, for texts
    body: Prepared | None = None  # preprocessing of columns in float64

    @property
    def dynamic(self) -> dict[int, Any]:
        """Return the dynamic dimensions."""
        sizes: dict[int, Any] = {0: torch.export.Dim.DYNAMIC}
        return sizes | ({1: torch.export.Dim.DYNAMIC} if self.tokens else {})

    def draw_examples(self, count: int, seed: int) -> Tensor:
        """Draw random items."""
        generator = torch.Generator().manual_seed(seed)
        if self.tokens:
            length, padding = min(self.shape[0], 2 + seed % MAX_EXAMPLE_TOKENS), int(self.preparation["padding"])
            text = torch.randint(0, self.tokens, (count, length), generator=generator)
            text = torch.where(text == padding, (padding + 1) % self.tokens, text)
            lengths = length - torch.arange(count).unsqueeze(1) % length  # the full length, one less, ...
            return torch.where(torch.arange(length) < lengths, text, padding)
        if self.name == "pictures":
            return torch.randint(0, 256, (count, *self.shape), dtype=torch.uint8, generator=generator)
        x = torch.randn(count, *self.shape, generator=generator)
        x = x if self.mean is None or self.scale is None else self.mean + x * self.scale
        return x if self.body is None else self.body.invert(x)


def build_graph(fitted: FittedModel) -> tuple[Graph, GraphInput]:
    """Return a copy of the model that can be exported, and its input."""
    if any(isinstance(part, EstimatorStore) for part in fitted.method.modules()):
        raise SettingError(
            f"{fitted.config.method} consists of scikit-learn estimators, which cannot be exported as a "
            "torch graph. Train with another method: 'bce' with head 'linear' is logistic regression too."
        )
    last = None if fitted.calibration is None else CalibrationLayer(fitted.calibration)
    body = _build_preprocessing(fitted) or copy.deepcopy(fitted.body)
    graph = Graph(copy.deepcopy(fitted.method), body, last, taught_logits(fitted)).cpu()
    graph.eval()  # permanently, since it is a copy
    for part in [part for part in graph.modules() if isinstance(part, Forest)]:
        depth = int(part.depth)
        del part.depth
        part.depth = depth  # type: ignore[assignment]  # a graph has as many steps, whatever the items
    task_items = fitted.method.task.items
    origin = task_items.origin
    if origin is not None and origin.fitted:  # a graph cannot split texts into words
        graph.body = nn.Identity()
        return graph, _input_of_backbone_features(graph, fitted, origin)
    first = origin or task_items  # input of the backbone, if there is one
    make = {"features": _input_of_features, "pictures": _input_of_images, "texts": _input_of_texts}[first.kind]
    return graph, make(graph, fitted, first.shape)


def _build_preprocessing(fitted: FittedModel) -> Prepared | None:
    """Return the preprocessing in float64; None where features need none."""
    task_items = fitted.method.task.items
    encoding, conditioning = task_items.encoding, (task_items.conditioning or None)
    if encoding is None and conditioning is None:
        return None
    categories = [column.name for column in encoding.columns if column.kind == "category"] if encoding else []
    if categories:
        raise SettingError(
            f"The graph takes numbers, but these columns hold categories: {', '.join(map(repr, categories))}. Encode "
            f"them before training and before the graph: pandas.get_dummies(X, columns={categories}, dtype=float)."
        )
    parts: list[nn.Module] = [] if encoding is None else [EncodedColumns(encoding)]
    parts += [] if conditioning is None else [Conditioned(conditioning, task_items.shape[0])]
    return Prepared(*parts)


def _input_of_features(graph: Graph, fitted: FittedModel, shape: tuple[int, ...]) -> GraphInput:
    first = next((part for part in graph.modules() if isinstance(part, Standardize)), None)
    body = graph.body if isinstance(graph.body, Prepared) else None
    encoding, dtype = fitted.method.task.items.encoding, "float32" if body is None else "float64"
    preparation = {
        "input": f"{dtype} [items, features], raw: they are standardized inside",
        "features": fitted.description["features"],
    }
    if encoding is not None:
        preparation["input"] = (
            f"{dtype} [items, columns], NaN where missing; true is 1, dates are days since 1970-01-01, durations days"
        )
        preparation["features"] = list(encoding.column_names)
    if first is None or first.mean.shape != shape:  # a custom network
        return GraphInput("features", shape, preparation, body=body)
    inverse = first.inverse_scale
    return GraphInput("features", shape, preparation, first.mean, torch.where(inverse > 0, 1 / inverse, 0.0), body=body)


def _input_of_backbone_features(graph: Graph, fitted: FittedModel, origin: Origin) -> GraphInput:
    """Start the graph at the features of the backbone."""
    preparation = {
        "input": f"float32 [{origin.kind}, features]: those of the backbone {origin.backbone}, which "
        f"partly.Classifier.load(run).features({origin.kind}) returns",
        "backbone": origin.backbone,
        "backbone_sha256": origin.weights,
    }
    return replace(_input_of_features(graph, fitted, fitted.method.task.items.shape), preparation=preparation)


def _input_of_images(graph: Graph, fitted: FittedModel, shape: tuple[int, ...]) -> GraphInput:
    wanted = [part.size for part in graph.modules() if isinstance(part, Backbone) and part.size is not None]
    shape = (shape[0], wanted[0], wanted[0]) if wanted else shape
    preparation = {
        "input": "uint8 [items, channels, height, width], 0 to 255, in the order R, G, B: they are normalized inside",
        "size": list(shape[1:]),
        "from_files": "turned as EXIF says, on white where transparent, the short side resized to the size (bilinear, "
        "with antialiasing), the center cut out",
        "from_arrays": "resized to the size (bilinear, with antialiasing) where they have another",
    }
    return GraphInput("pictures", shape, preparation)


def _identity(x: Tensor) -> Tensor:
    return x


def _input_of_texts(graph: Graph, fitted: FittedModel, shape: tuple[int, ...]) -> GraphInput:
    """Start the graph at the tokens of the backbone."""
    reader: Any = None
    for part in [part for part in graph.modules() if isinstance(part, nn.Sequential) and len(part) > 1]:
        if isinstance(part[1], Backbone):
            reader, part[0] = part[1], nn.Identity()  # no standardization
            reader.preprocess = _identity  # numbers come in
    origin = fitted.method.task.items.origin
    name = fitted.config.backbone if origin is None else origin.backbone
    preparation: dict[str, Any] = {"backbone": name}
    if isinstance(reader, TextModel):
        preparation |= {
            "input": "int64 [texts, tokens]: numbers of tokens, shorter texts filled up at the end with `padding`",
            "tokenizer": f"that of the backbone {name}, with its special tokens",
            "most_tokens": reader.length,
            "padding": reader.padding,
        }
        config: Any = reader.model.config
        return GraphInput("tokens", (reader.length,), preparation, tokens=int(config.vocab_size))
    if isinstance(reader, HashedWords):
        places = reader.words.num_embeddings - 1
        preparation |= {
            "input": "int64 [texts, words]: places of words, shorter texts filled up at the end with `padding`",
            "tokenizer": "the words of the casefolded text (the regular expression \\w+); the place of a word is "
            "1 + CRC-32 of its UTF-8 bytes modulo `places`",
            "places": places,
            "padding": 0,
        }
        return GraphInput("tokens", shape, preparation, tokens=places + 1)
    raise SettingError(
        f"backbone = {name!r}: its tokenizer is unknown, so texts cannot be exported with it. Export "
        "texts with minilm, hf:... or hashed-words."
    )
