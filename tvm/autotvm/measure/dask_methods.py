"""Building and running candidates of AutoTVM on a Dask cluster."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tvm.autotvm.measure.build_methods import BuildFunction, BuildResult, LocalBuilder
from tvm.autotvm.measure.fleet import Fleet, raised, run_library
from tvm.autotvm.measure.interface import MeasureInput, MeasureResult
from tvm.autotvm.measure.run_methods import (
    LocalRunner,
    outcome_of,
    run_candidate,
)


class DaskBuilder(LocalBuilder):
    """Compiles candidates on a Dask cluster; the libraries come here.

    Targets name their processor: ``-mcpu=native`` is that of the worker which builds.

    Parameters
    ----------
    cluster : str, distributed.Client or distributed cluster
        The scheduler's address, such as ``"scheduler:8786"``; or what is connected to it.
    timeout : float
        Seconds for one candidate.
    build_kwargs, build_func, runtime :
        As of :class:`LocalBuilder`.
    """

    def __init__(
        self,
        cluster: Any,
        timeout: float = 10,
        build_kwargs: Mapping[str, Any] | None = None,
        build_func: Any = "default",
        runtime: Any = None,
    ) -> None:
        self.fleet = Fleet(cluster)
        super().__init__(
            timeout, self.fleet.threads, build_kwargs, build_func=build_func, runtime=runtime
        )

    def build(self, measure_inputs: Sequence[MeasureInput]) -> list[Any]:
        self.make_folder()
        calls = [(self.build_func, inp, self.build_kwargs) for inp in self.sendable(measure_inputs)]
        found = self.fleet.call(_build_to_bytes, calls, self.timeout)
        return [self.outcome(partial(self._kept, built)) for built in found]

    def _kept(self, built: Any) -> BuildResult:
        """What was built, its library in the builder's folder."""
        result, content = raised(built)
        if content is None:
            return BuildResult(*result)
        path = Path(self.tmp_dir) / Path(result.filename).name
        path.write_bytes(content)
        return BuildResult(str(path), *result[1:])


def _build_to_bytes(
    build: BuildFunction, inp: MeasureInput, kwargs: Mapping[str, Any]
) -> tuple[BuildResult, bytes | None]:
    """What was built, and the library's content, where a worker is."""
    with tempfile.TemporaryDirectory(prefix="tvm-fleet-") as folder:
        result = build(inp, folder, **kwargs)
        return result, None if result.filename is None else Path(result.filename).read_bytes()


class DaskRunner(LocalRunner):
    """Runs candidates on a Dask cluster, one at a time on each machine.

    Parameters
    ----------
    cluster : str, distributed.Client or distributed cluster
        The scheduler's address, such as ``"scheduler:8786"``; or what is connected to it. Its machines
        should be alike, as their times are compared.
    args, kwargs :
        Those of :class:`LocalRunner`.
    """

    def __init__(
        self,
        cluster: Any,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.fleet = Fleet(cluster)

    def run(
        self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[Any]
    ) -> list[MeasureResult]:
        pairs = zip(measure_inputs, build_results, strict=True)
        good = [(inp, built) for inp, built in pairs if not isinstance(built, MeasureResult)]
        rest = (self.config, self._ref_input, self.module_loader)
        calls = [library_call(inp.target, built, rest) for inp, built in good]
        found = iter(run_on_fleet(self.fleet, calls, self.timeout))
        return [
            built if isinstance(built, MeasureResult) else next(found) for built in build_results
        ]


LibraryCall = tuple[Any, ...]


def library_call(target: Any, built: BuildResult, rest: tuple[Any, ...]) -> LibraryCall:
    """The arguments with which a worker runs a candidate: its library goes along.

    Parameters
    ----------
    target : Target
        What it was built for.
    built : BuildResult
        The library.
    rest : tuple
        The further arguments of :func:`run_candidate`.
    """
    path = Path(built.filename)
    return path.read_bytes(), path.suffix, run_candidate, target, built, *rest


def run_on_fleet(fleet: Fleet, calls: Sequence[LibraryCall], timeout: float) -> list[MeasureResult]:
    """The outcomes of candidates that the workers of a fleet run.

    Parameters
    ----------
    fleet : Fleet
        The cluster.
    calls : list of tuple
        From :func:`library_call`.
    timeout : float
        Seconds for one candidate.
    """
    started = time.time()
    found = fleet.call(run_library, calls, timeout, is_exclusive=True)
    return [
        outcome_of(partial(raised, value), call[4], started)
        for value, call in zip(found, calls, strict=True)
    ]


__all__ = ["DaskBuilder", "DaskRunner", "library_call", "run_on_fleet"]
