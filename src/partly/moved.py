"""Aliases for modules and attributes that got another name in 0.3. Each warns, and all of them go in 0.4."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

FORMATS = (  # names of modules that moved from partly.data to partly.data.formats
    "chexpert coco digits feature_arrays feature_folder feature_table hugging_face label_studio "
    "labels_npy labels_npz ledger_db long mulan open_images scenes svmlight tag_lists tags text_table "
    "train_test voc_annotations voc_sets wide"
)
MOVED = {  # old name -> new name, of packages with all that is in them
    "partly.active.queries": "partly.active.strategies",
    "partly.auto": "partly.defaults",
    "partly.calling": "partly.calibration",
    "partly.catalogue": "partly.registry",
    "partly.checkpoint": "partly.engine.checkpoint",
    "partly.choosing": "partly.model_choice",
    "partly.commands": "partly.cli",
    "partly.diagnosis.finding": "partly.doctor.context",
    "partly.diagnosis": "partly.doctor",
    "partly.estimator": "partly.estimators.classifier",
    "partly.files": "partly.atomic_io",
    "partly.one_label": "partly.binary_relevance",
    "partly.optimising": "partly.optim",
    "partly.optim.optimisers": "partly.optim.optimizers",
    "partly.per_label": "partly.estimators.per_label",
    "partly.pictures": "partly.images",
    "partly.processes": "partly.distributed",
    "partly.run": "partly.engine",
    "partly.scikit_learn": "partly.estimators.sklearn_compat",
    "partly.solving": "partly.solvers",
    "partly.training": "partly.engine.training",
    "partly.two_networks": "partly.co_training",
    "partly.workers": "partly.executors",
    "partly.methods.l1r": "partly.methods.norm_penalty",
    "partly.methods.l2r": "partly.methods.norm_penalty",
    "partly.data.embedded_pictures": "partly.data.formats.embedded_images",
    "partly.data.picture_folder": "partly.data.formats.image_folder",
    "partly.data.picture_table": "partly.data.formats.image_table",
    **{f"partly.data.{name}": f"partly.data.formats.{name}" for name in FORMATS.split()},
}


class RenamedAttribute:
    """Former name of an attribute or method of a class. Reading it warns and returns the attribute of the new name."""

    def __init__(self, new: str) -> None:
        self.new = new

    def __set_name__(self, owner: type, name: str) -> None:
        self.old = name

    def __get__(self, instance: object, owner: type) -> Any:
        warnings.warn(
            f"{owner.__name__}.{self.old} is now {self.new}; the old name goes in 0.4.",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(owner if instance is None else instance, self.new)


def make_getattr(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` that keeps the former names (old: new) of a module working, with a warning."""

    def __getattr__(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        message = f"{module}.{name} is now {names[name]}; the old name goes in 0.4."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], names[name])

    return __getattr__


def adopt_former_names(cls: type, base: type) -> None:
    """Give what a subclass defines under former names of its base class the new names, with a warning."""
    for name, value in list(vars(cls).items()):
        renamed = vars(base).get(name)
        if isinstance(renamed, RenamedAttribute):
            warnings.warn(
                f"{cls.__module__}: {cls.__name__}.{name} is now {renamed.new}; the old name goes in 0.4.",
                DeprecationWarning,
                stacklevel=3,
            )
            setattr(cls, renamed.new, value)


class AliasFinder(MetaPathFinder, Loader):
    """Import the moved module in place of the old name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if _new_name(fullname) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        new = _new_name(spec.name)
        assert new is not None
        warnings.warn(f"{spec.name} is now {new}; the old name goes in 0.4.", DeprecationWarning, stacklevel=2)
        module = importlib.import_module(new)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state  # the import system has set that of the old name


def _new_name(name: str) -> str | None:
    """Return the new name of a module that moved, by the longest prefix that did."""
    for old, new in MOVED.items():
        if name == old or name.startswith(f"{old}."):
            return new + name.removeprefix(old)
    return None


def install() -> None:
    """Make the old names importable."""
    if not any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, AliasFinder())  # before files are searched: a package would be found under both names
