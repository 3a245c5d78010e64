"""One training run: a recipe, the data it is for, and the folder that says exactly what was run on what.

This is the engine: it trains and predicts. `Classifier`, the loop of questions and comparisons call it.
"""

from partly.run.fitting import Fitted, fit, load, publish, save
from partly.run.folder import claim, describe, digest, read_beliefs, read_description, read_ids, state_of
from partly.run.memory import MEMORY_SHARE, check_memory, entry_memory
from partly.run.recipe import Recipe, complete, default_recipe

__all__ = [
    "MEMORY_SHARE",
    "Fitted",
    "Recipe",
    "check_memory",
    "claim",
    "complete",
    "default_recipe",
    "describe",
    "digest",
    "entry_memory",
    "fit",
    "load",
    "publish",
    "read_beliefs",
    "read_description",
    "read_ids",
    "save",
    "state_of",
]
