"""Building and running candidates of searches on a Dask cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tvm.autotvm.measure.dask_methods import library_call, run_on_fleet
from tvm.autotvm.measure.fleet import Fleet, raised
from tvm.autotvm.measure.run_methods import default_module_loader

from .builder import LocalBuilder, build_candidate, without_state
from .measure_types import BuildResult, MeasureInput, MeasureResult
from .runner import LocalRunner, as_library, as_result, failed_before
from .runner_args import prepare_runner_args


class DaskBuilder(LocalBuilder):
    """Builds candidates on a Dask cluster; the libraries come here.

    Targets name their processor: ``-mcpu=native`` is that of the worker which builds.

    Parameters
    ----------
    cluster : str, distributed.Client or distributed cluster
        The scheduler's address, such as ``"scheduler:8786"``; or what is connected to it.
    timeout : float
        Seconds for one candidate.
    build_func : str or function
        As of :class:`LocalBuilder`.
    """

    def __init__(self, cluster: Any, timeout: float = 15, build_func: Any = "default") -> None:
        self.fleet = Fleet(cluster)
        super().__init__(timeout, self.fleet.threads, build_func)

    def build(self, measure_inputs: Sequence[MeasureInput], verbose: int = 1) -> list[BuildResult]:
        self.make_folder()
        calls = [(without_state(inp), self.link) for inp in measure_inputs]
        found = self.fleet.call(_build_to_bytes, calls, self.timeout)
        return self.owned([self.outcome(partial(self._kept, built)) for built in found])

    def _kept(self, built: Any) -> tuple[Any, ...]:
        """What was built, its library in the builder's folder."""
        (filename, *rest), content = raised(built)
        if content is None:
            return None, *rest
        path = Path(self.folder) / Path(filename).name
        path.write_bytes(content)
        return str(path), *rest


def _build_to_bytes(
    parts: tuple[Any, ...], link: Callable[..., Any] | None
) -> tuple[tuple[Any, ...], bytes | None]:
    """What was built, and the library's content, where a worker is."""
    with tempfile.TemporaryDirectory(prefix="tvm-fleet-") as folder:
        call: tuple[Any, ...] = (*parts, folder, link)
        result = build_candidate(*call)
        return result, None if result[0] is None else Path(result[0]).read_bytes()


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
        self,
        measure_inputs: Sequence[MeasureInput],
        build_results: Sequence[BuildResult],
        verbose: int = 1,
    ) -> list[MeasureResult]:
        pairs = list(zip(measure_inputs, build_results, strict=True))
        failed = [failed_before(inp, built) for inp, built in pairs]
        calls = [
            library_call(
                inp.task.target, as_library(built),
                (self.config, prepare_runner_args(inp, built), default_module_loader()),
            )
            for (inp, built), failure in zip(pairs, failed, strict=True)
            if failure is None
        ]  # fmt: skip
        found = iter(run_on_fleet(self.fleet, calls, self.timeout))
        return [as_result(next(found)) if failure is None else failure for failure in failed]
