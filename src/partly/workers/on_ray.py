"""Jobs on Ray, the only module that knows it: one is started for as long as the jobs take, unless an address says which
cluster to join, or the caller has Ray running already.

A job whose process dies is done again by Ray, a few times, wherever there is room; jobs are functions of what they are
given, so nothing changes by it. All machines must have the same packages, and see the same files under the same paths.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from partly.errors import SettingError
from partly.workers.local import Died, Job

WORKERS = "PARTLY_WORKERS"
STARTS = 3  # of Ray on this machine: it gives itself 30 seconds, which are short where much else goes on
RETRIES = 3  # of a job whose process died
# What Ray would do beside the work: report its use, warn of a variable that changes its meaning some day, and let all
# other processes of the machine go first.
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_worker_niceness": "0"}


def results(
    jobs: Sequence[Job], work: Callable[[Job], Any], count: int | None = None, address: str | None = None
) -> Iterator[tuple[Job, Any]]:
    """As `local.results`, for jobs of one core each; `count` at a time, or as many as there are cores."""
    left: deque[Job] = deque(jobs)
    if not left:
        return
    ray = _imported()
    with _session(ray, address, count):
        given = ray.put((work, os.getcwd()))  # once a machine, however many jobs there are
        remote = ray.remote(_done).options(num_cpus=1, max_retries=RETRIES)
        running: dict[Any, Job] = {}
        try:
            while left or running:
                # One more for each core, so that none waits for the next; not all, since what came of them takes room.
                while left and len(running) < (count or 2 * int(ray.cluster_resources().get("CPU", 1))):
                    job = left.popleft()
                    running[remote.remote(job, given)] = job
                (ready,), _ = ray.wait(list(running), num_returns=1)
                job, found = running.pop(ready), _found(ray, ready)
                if isinstance(found, BaseException):
                    raise found
                yield job, found
        finally:
            for one in running:
                ray.cancel(one, force=True)


def _done(job: Job, given: tuple[Callable[[Job], Any], str]) -> Any:
    """In a worker: one thread, as everywhere that jobs run, and in the caller's folder."""
    import torch

    torch.set_num_threads(1)
    work, folder = given
    try:
        os.chdir(folder)
        return work(job)
    except Exception as error:
        return error


def _found(ray: Any, ready: Any) -> Any:
    lost = (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.OutOfMemoryError)
    try:
        return ray.get(ready)
    except lost as error:
        return Died(f"its process ended {RETRIES + 1} times ({type(error).__name__})")
    except ray.exceptions.RayError as error:  # before or after the work: what it needs is not there
        last = str(error).strip().splitlines()[-1]
        return SettingError(f"Ray cannot run this: {last}\nAll machines of a cluster need the same packages.")


@contextmanager
def _session(ray: Any, address: str | None, count: int | None) -> Iterator[None]:
    """The caller's Ray where it runs; else one that ends with the jobs."""
    if ray.is_initialized():
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    how = {"num_cpus": count, "include_dashboard": False} if address == "local" else {}
    ours = {WORKERS: "0"}  # a job has one core, and decodes pictures by itself
    ours |= {name: value for name, value in os.environ.items() if name.startswith("PARTLY_")}
    on_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    for start in range(1, STARTS + 1):
        try:
            ray.init(address, log_to_driver=False, configure_logging=False, runtime_env={"env_vars": ours}, **how)
            break
        except Exception as error:  # of any kind: Ray has none of its own for this
            ray.shutdown()
            if start == STARTS or address != "local":
                raise SettingError(f"Ray ({address}) does not answer: {error}") from error
    try:
        if on_main:
            signal.signal(signal.SIGTERM, handler)  # Ray has put its own in its place, which loses the exit code
        yield
    finally:
        ray.shutdown()


def _imported() -> Any:
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise SettingError('To run on Ray, install it: pip install "partly[ray]"') from error
    return ray
