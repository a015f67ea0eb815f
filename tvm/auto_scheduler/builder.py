"""Building candidates: each in a process of its own, so that none can hang or break the search."""

from __future__ import annotations

import shutil
import tempfile
import time
import traceback
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from tvm.contrib.popen_pool import PopenPoolExecutor
from tvm.driver.build_module import build
from tvm.runtime.object import Object
from tvm.support.cores import usable_cores
from tvm.te.declare import placeholder
from tvm.te.tensor import Tensor

from .compute_dag import ComputeDAG
from .measure_types import BuildResult, MeasureErrorNo, MeasureInput
from .steps import Step
from .utils import get_const_tuple, shortened


class ProgramBuilder(Object):
    """Builds candidates."""

    n_parallel: int = 1
    timeout: float = 0

    def build(self, measure_inputs: Sequence[MeasureInput], verbose: int = 1) -> list[BuildResult]:
        """Build candidates.

        Parameters
        ----------
        measure_inputs : list of MeasureInput
            The candidates.
        verbose : int
            0 is silent.
        """
        raise NotImplementedError


class BuildFunc:
    """How candidates become libraries.

    Attributes
    ----------
    name : str
        ``default``, or ``custom``.
    build_func : function
        ``f(library name, files)`` links a library; None links as usual.
    """

    name = "default"
    build_func: Callable[..., Any] | None = None


class LocalBuilder(ProgramBuilder):
    """Builds candidates on this machine, several at a time, in processes of their own.

    Parameters
    ----------
    timeout : float
        Seconds for one candidate.
    n_parallel : int, optional
        How many at a time; by default one for each processor.
    build_func : str or function
        ``"default"`` makes a shared library; a function ``f(library name, files)`` links one itself,
        with the suffix of its attribute ``output_format``.
    """

    def __init__(
        self, timeout: float = 15, n_parallel: int | None = None, build_func: Any = "default"
    ) -> None:
        if isinstance(build_func, str) and build_func != "default":
            raise ValueError(
                f"Invalid build_func: {build_func}; 'default' or a function is required"
            )
        if callable(build_func):
            BuildFunc.name, BuildFunc.build_func = "custom", build_func
        self.timeout = timeout
        self.n_parallel = n_parallel or usable_cores()
        self.link = None if isinstance(build_func, str) else build_func
        self.folder = tempfile.mkdtemp(prefix="tvm-auto-scheduler-")
        self._clean = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self._pool: PopenPoolExecutor | None = None

    @property
    def pool(self) -> PopenPoolExecutor:
        """The processes, which start with the first candidates."""
        if self._pool is None:
            self._pool = PopenPoolExecutor(self.n_parallel, timeout=self.timeout)
        return self._pool

    def build(self, measure_inputs: Sequence[MeasureInput], verbose: int = 1) -> list[BuildResult]:
        self.make_folder()
        futures = [
            self.pool.submit(build_candidate, *without_state(inp), self.folder, self.link)
            for inp in measure_inputs
        ]
        return self.owned([self.outcome(future.result) for future in futures])

    def make_folder(self) -> None:
        """An empty folder for libraries: those of the last batch have been run."""
        shutil.rmtree(self.folder, ignore_errors=True)
        Path(self.folder).mkdir(parents=True)

    def owned(self, results: list[BuildResult]) -> list[BuildResult]:
        """The results, with which the builder's folder stays."""
        for result in results:
            result.owner = self
        return results

    def outcome(self, result_of_process: Callable[[], tuple[Any, ...]]) -> BuildResult:
        """The library of a candidate, or why there is none.

        Parameters
        ----------
        result_of_process : function
            Gives what :func:`build_candidate` returned in its process, or raises.
        """
        try:
            outcome = result_of_process()
        except TimeoutError:
            return BuildResult(
                None, [], MeasureErrorNo.BUILD_TIMEOUT, "building timed out", self.timeout
            )
        except Exception as error:  # the process ended, or the candidate cannot be sent to it
            return BuildResult(None, [], MeasureErrorNo.COMPILE_HOST, shortened(str(error)), 0.0)
        filename, args, failure, seconds = outcome
        if failure is not None:
            kind, text = failure
            return BuildResult(None, [], kind, text, seconds)
        tensors = [placeholder(shape, dtype, name) for shape, dtype, name in args]
        return BuildResult(filename, tensors, MeasureErrorNo.NO_ERROR, None, seconds)


def without_state(inp: MeasureInput) -> tuple[Any, ...]:
    """What another process needs of a candidate: no state, no analyses."""
    task = inp.task
    dag = task.compute_dag or ComputeDAG(task.workload_key)
    return (
        dag.tensors, dag.ops, inp.state.transform_steps, task.target, task.layout_rewrite_option
    )  # fmt: skip


def build_candidate(
    tensors: Sequence[Tensor],
    ops: Sequence[Any],
    steps: tuple[Step, ...],
    target: Any,
    layout_rewrite: int,
    folder: str,
    link: Callable[..., Any] | None,
) -> tuple[str | None, list[Any], tuple[int, str] | None, float]:
    """Build a candidate, in a process of the builder: the library, its arguments, the error, seconds."""
    started = time.time()
    dag = ComputeDAG.of(tensors, ops)
    try:
        state = dag.graph.state_after(steps)
        schedule, args = dag.apply_steps_from_state(state, layout_rewrite)
    except Exception:
        error = (int(MeasureErrorNo.INSTANTIATION_ERROR), shortened(traceback.format_exc()))
        return None, [], error, time.time() - started
    try:
        with target:
            library = build(schedule, args, target=target)
        suffix = "so" if link is None else str(getattr(link, "output_format", "so"))
        path = str(Path(folder) / f"tmp_func_{uuid4().hex[:16]}.{suffix}")
        library.export_library(path, fcompile=link)
    except Exception:
        error = (int(MeasureErrorNo.COMPILE_HOST), shortened(traceback.format_exc()))
        return None, [], error, time.time() - started
    described = [(get_const_tuple(t.shape), str(t.dtype), t.op.name) for t in args]
    return path, described, None, time.time() - started


def local_build_worker(args: Sequence[Any]) -> tuple[Any, ...]:
    """Build one candidate here: the library, its arguments, the error, seconds.

    Parameters
    ----------
    args : tuple
        What :meth:`MeasureInput.serialize` gave; ``"default"`` or a function to link with.
    """
    data, link, *_ = args
    folder = tempfile.mkdtemp(prefix="tvm-auto-scheduler-")
    parts = (
        *without_state(MeasureInput.deserialize(data)),
        folder,
        None if link == "default" else link,
    )
    return build_candidate(*parts)


def local_builder_build(
    inputs: Sequence[MeasureInput],
    timeout: float,
    n_parallel: int,
    build_func: Any = "default",
    verbose: int = 1,
) -> list[BuildResult]:
    """Build candidates as :class:`LocalBuilder` does; the libraries stay until the program ends.

    Parameters
    ----------
    inputs : list of MeasureInput
        The candidates.
    timeout, n_parallel, build_func :
        As of :class:`LocalBuilder`.
    verbose : int
        0 is silent.
    """
    builder = LocalBuilder(timeout, n_parallel, build_func)
    results = builder.build(inputs, verbose)
    builder._clean.detach()
    weakref.finalize(BuildFunc, shutil.rmtree, builder.folder, ignore_errors=True)
    return results
