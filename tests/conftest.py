"""Make tests the same on every machine: one thread, fixed Hypothesis examples, SIGINT heard, a cache of their own.

HYPOTHESIS_PROFILE=random draws other examples every time (`make fuzz`).
"""

from __future__ import annotations

import os
import signal
import tempfile

# Before torch is imported; child processes inherit it.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

CACHE = tempfile.TemporaryDirectory(prefix="partly-tests-")  # goes when the tests end
os.environ["PARTLY_CACHE"] = CACHE.name

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background starts with it ignored

import pytest  # noqa: E402
import torch  # noqa: E402
from hypothesis import settings  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Commands that a test calls choose a number of threads for their process, and bits depend on it."""
    torch.set_num_threads(1)


settings.register_profile("partly", deadline=None, max_examples=50, derandomize=True, database=None)
settings.register_profile("random", deadline=None, max_examples=500, derandomize=False, print_blob=True, database=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "partly"))
