"""Run jobs on Ray. Ray is started for the time of the jobs, unless an address names a cluster or Ray runs already.

Jobs are rows of a Ray Data dataset, one block each. Ray retries a job whose process dies; results are the same, since
jobs depend only on their arguments. All machines need the same packages and must see the same files under the same
paths.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from partly.errors import SettingError
from partly.executors.local import Died, Job

WORKERS = "PARTLY_WORKERS"
START_ATTEMPTS = 3  # the timeout of 30 seconds to start Ray is short on a busy machine
RETRIES = 3  # for a job whose process died
# Turn off usage reports, a warning about a variable, low process priority and progress bars.
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_worker_niceness": "0",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
}


@dataclass(frozen=True)
class _Found:
    """Result of a job, wrapped so that Ray Data does not convert it to columns."""

    value: Any


class _Begun:
    """Count the attempts of each job: Ray itself would retry forever a job that ends its process."""

    def __init__(self) -> None:
        self.times: Counter[int] = Counter()

    def again(self, place: int) -> int:
        self.times[place] += 1
        return self.times[place]


def results(
    jobs: Sequence[Job], work: Callable[[Job], Any], count: int | None = None, address: str | None = None
) -> Iterator[tuple[Job, Any]]:
    """Like `local.results`, with one core per job and `count` jobs at a time (by default the number of cores)."""
    if not jobs:
        return
    ray = _import()
    with _session(ray, address, count):
        shared = ray.put((jobs, work, os.getcwd()))  # sent once per machine, not per job
        begun = ray.remote(_Begun).options(num_cpus=0).remote()
        how = {"compute": ray.data.TaskPoolStrategy(size=count), "num_cpus": 1}
        places = ray.data.range(len(jobs), override_num_blocks=len(jobs))
        rows = places.map(_run_job, fn_kwargs={"given": [shared], "begun": begun}, **how)
        try:
            for one in rows.iter_batches(batch_size=None, prefetch_batches=0):  # each result as soon as it is ready
                result = one["found"][0].value
                if isinstance(result, BaseException):
                    raise result
                yield jobs[one["id"][0]], result
        except ray.exceptions.RayError as error:  # outside of the job itself, such as a missing package
            last = str(error).strip().splitlines()[-1]
            raise SettingError(f"Ray cannot run this: {last}\nAll machines need the same packages.") from error
        finally:
            ray.kill(begun)


def _run_job(row: dict[str, Any], given: list[Any], begun: Any) -> dict[str, Any]:
    """Run a job in a worker, on one thread and in the caller's folder."""
    import ray
    import torch

    torch.set_num_threads(1)
    place = row["id"]
    if ray.get(begun.again.remote(place)) > RETRIES + 1:
        return row | {"found": _Found(Died(f"its process ended {RETRIES + 1} times"))}
    jobs, work, folder = ray.get(given[0])
    try:
        os.chdir(folder)
        return row | {"found": _Found(work(jobs[place]))}
    except Exception as error:
        return row | {"found": _Found(error)}


@contextmanager
def _session(ray: Any, address: str | None, count: int | None) -> Iterator[None]:
    """Use the Ray that runs in this process, or start one that ends with the jobs."""
    if ray.is_initialized():
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    how = {"num_cpus": count, "include_dashboard": False} if address == "local" else {}
    ours = {WORKERS: "0"}  # a job has one core and decodes images itself
    ours |= {name: value for name, value in os.environ.items() if name.startswith("PARTLY_")}
    on_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    for start in range(1, START_ATTEMPTS + 1):
        try:
            ray.init(address, log_to_driver=False, configure_logging=False, runtime_env={"env_vars": ours}, **how)
            break
        except Exception as error:  # Ray has no error type for this
            ray.shutdown()
            if start == START_ATTEMPTS or address != "local":
                raise SettingError(f"Ray ({address}) does not answer: {error}") from error
    try:
        if on_main:
            signal.signal(signal.SIGTERM, handler)  # Ray replaces it by one that loses the exit code
        yield
    finally:
        ray.shutdown()


def _import() -> Any:
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise SettingError('To run on Ray, install it: pip install "partly[ray]"') from error
    logging.getLogger("ray.data").setLevel(logging.ERROR)  # it logs its execution plans
    return ray
