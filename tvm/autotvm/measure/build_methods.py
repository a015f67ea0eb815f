"""Building candidates: each in a process of its own, so that none can hang or break the tuner."""

from __future__ import annotations

import shutil
import tempfile
import time
import traceback
import weakref
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from tvm.autotvm.env import AutotvmGlobalScope, reset_global_scope
from tvm.autotvm.measure.interface import Builder, MeasureErrorNo, MeasureInput, MeasureResult
from tvm.autotvm.task.space import InstantiationError
from tvm.autotvm.utils import get_const_tuple
from tvm.contrib.popen_pool import PopenPoolExecutor
from tvm.driver.build_module import build
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext
from tvm.target import Target
from tvm.tir.analysis import calculate_allocated_bytes, verify_gpu_code
from tvm.tir.function import PrimFunc
from tvm.tir.transform import prim_func_pass

BuildResult = namedtuple("BuildResult", ["filename", "arg_info", "error", "time_cost"])
BuildResult.__doc__ = """What a build function returns.

Parameters
----------
filename : str or None
    The library; None if it failed.
arg_info : tuple of (shape, dtype)
    Of each argument.
error : (str, Exception) or None
    Where it failed, and how.
time_cost : float
    Seconds.
"""


class LocalBuilder(Builder):
    """Compiles candidates on this machine, several at a time.

    Parameters
    ----------
    timeout : float
        Seconds for one candidate.
    n_parallel : int, optional
        How many at a time; by default one for each processor.
    build_kwargs : dict, optional
        Options of the build function: ``build_option``, a dict of pass options.
    build_func : str or function
        ``"default"`` makes a shared library. A function ``f(library name, files)`` links one itself; its
        attribute ``output_format`` is the suffix of the name.
    do_fork : bool
        Either way candidates are built in fresh processes, never in forks.
    runtime : Runtime, optional
        The runtime to build for.
    """

    def __init__(
        self,
        timeout: float = 10,
        n_parallel: int | None = None,
        build_kwargs: Mapping[str, Any] | None = None,
        build_func: Any = "default",
        do_fork: bool = False,
        runtime: Any = None,
    ) -> None:
        super().__init__(timeout, n_parallel, build_kwargs)
        if isinstance(build_func, str) and build_func != "default":
            raise ValueError(
                f"build_func is 'default' or a function that links a library, got {build_func!r}"
            )
        if not isinstance(build_func, str) and not hasattr(build_func, "output_format"):
            raise AttributeError("Expect build_func to have the attribute output_format.")
        link = None if isinstance(build_func, str) else build_func
        self.build_func = BuildFunction(link, runtime)
        self.do_fork = do_fork
        self.tmp_dir = tempfile.mkdtemp(prefix="tvm-autotvm-")
        self._folder = weakref.finalize(self, shutil.rmtree, self.tmp_dir, ignore_errors=True)
        self._executor: PopenPoolExecutor | None = None

    @property
    def executor(self) -> PopenPoolExecutor:
        """The processes, which start with the first candidates."""
        if self._executor is None:
            self._executor = PopenPoolExecutor(
                self.n_parallel,
                timeout=self.timeout,
                initializer=reset_global_scope,
                initargs=(AutotvmGlobalScope.current,),
            )
        return self._executor

    def build(self, measure_inputs: Sequence[MeasureInput]) -> list[Any]:
        self.make_folder()
        futures = [
            self.executor.submit(self.build_func, inp, self.tmp_dir, **self.build_kwargs)
            for inp in self.sendable(measure_inputs)
        ]
        return [self.outcome(future.result) for future in futures]

    def make_folder(self) -> None:
        """An empty folder for libraries: those of the last batch have been run."""
        shutil.rmtree(self.tmp_dir, ignore_errors=True)
        Path(self.tmp_dir).mkdir(parents=True)

    @staticmethod
    def sendable(measure_inputs: Sequence[MeasureInput]) -> list[MeasureInput]:
        """The candidates without the spaces that they are from, which may be large."""
        return [inp._replace(task=inp.task.without_space()) for inp in measure_inputs]

    def outcome(self, result_of_process: Callable[[], Any]) -> Any:
        """The library of a candidate, or why there is none.

        Parameters
        ----------
        result_of_process : function
            Gives the :class:`BuildResult` of the process that built it, or raises.
        """
        try:
            result = result_of_process()
        except TimeoutError as error:
            return _failure(MeasureErrorNo.BUILD_TIMEOUT, _traced(error), self.timeout)
        except Exception as error:  # the process ended, or the candidate cannot be sent to it
            return _failure(MeasureErrorNo.COMPILE_HOST, _traced(error), 0.0)
        if result.error is None:
            return result
        is_illegal = isinstance(result.error[1], InstantiationError) or (
            "InstantiationError" in str(result.error[1])
        )
        kind = MeasureErrorNo.INSTANTIATION_ERROR if is_illegal else MeasureErrorNo.COMPILE_HOST
        return _failure(kind, result.error, result.time_cost)


def _failure(kind: MeasureErrorNo, error: tuple[str, Exception], seconds: float) -> MeasureResult:
    return MeasureResult(error, kind, seconds, time.time())


def _traced(error: Exception) -> tuple[str, Exception]:
    return "".join(traceback.format_exception(error)), error


class BuildFunction:
    """Builds a candidate and writes its library; sent to the processes of the builder."""

    def __init__(self, link: Any, runtime: Any = None) -> None:
        self.link: Callable[..., Any] | None = link
        self.runtime = runtime
        self.output_format = "so" if link is None else str(link.output_format)

    def __call__(self, measure_input: MeasureInput, tmp_dir: str, **kwargs: Any) -> BuildResult:
        """The library of a candidate, or the error."""
        started = time.time()
        try:
            func, arg_info = build_candidate(measure_input, self.runtime, **kwargs)
            path = Path(tmp_dir) / f"tmp_func_{uuid4().hex[:16]}.{self.output_format}"
            func.export_library(str(path), fcompile=self.link)
        except Exception as error:
            return BuildResult(None, None, _traced(error), time.time() - started)
        return BuildResult(str(path), arg_info, None, time.time() - started)


def build_candidate(
    measure_input: MeasureInput,
    runtime: Any = None,
    check_gpu: Mapping[str, Any] | None = None,
    build_option: Mapping[str, Any] | None = None,
) -> tuple[Any, tuple[Any, ...]]:
    """Build a candidate; the module, and shape and type of each argument.

    Parameters
    ----------
    measure_input : MeasureInput
        The candidate.
    runtime : Runtime, optional
        The runtime to build for.
    check_gpu : dict, optional
        The limits of a GPU; a kernel beyond them is an :class:`InstantiationError`.
    build_option : dict, optional
        Options of passes.
    """
    target, task, config = measure_input
    target = Target(target)
    host = task.target_host or target.host
    options = dict(build_option or {})
    if check_gpu:
        passes = list(options.get("tir.add_lower_pass", ()))
        options["tir.add_lower_pass"] = [*passes, (2, gpu_verify_pass(**check_gpu))]
    with target:
        s, args = task.instantiate(config)
        if not config.valid():
            raise InstantiationError(config.errors)
        if config.code_hash != getattr(s, "code_hash", None):
            raise InstantiationError(
                f"got template code hash {getattr(s, 'code_hash', None)}, the configuration is of "
                f"{config.code_hash}"
            )
        with PassContext(config=options):
            func = build(s, args, target=target, target_host=host, runtime=runtime)
    return func, tuple([(get_const_tuple(arg.shape), str(arg.dtype)) for arg in args])


def set_cuda_target_arch(arch: str) -> None:
    """Of old: the architecture is an option of the target.

    Parameters
    ----------
    arch : str
        For example ``"sm_80"``.
    """
    raise ValueError(
        "The API 'autotvm.measure.set_cuda_target_arch' is deprecated: add the architecture to the "
        f"target, tvm.target.Target('cuda -arch={arch}')"
    )


def gpu_verify_pass(**kwargs: Any) -> Any:
    """A pass that raises an :class:`InstantiationError` for kernels beyond the limits of a GPU.

    Parameters
    ----------
    kwargs :
        The limits, as of :func:`tvm.tir.analysis.verify_gpu_code`.
    """

    def verify(func: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
        if not verify_gpu_code(func, kwargs):
            raise InstantiationError("Skipped because of invalid gpu kernel")
        return func

    return prim_func_pass(verify, opt_level=0)


def vtcm_verify_pass(**kwargs: Any) -> Any:
    """A pass that raises an :class:`InstantiationError` for functions that use too much of Hexagon's VTCM.

    Parameters
    ----------
    vtcm_capacity : int
        How many bytes there are; 0 is no limit.
    """

    def verify(func: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
        limit = kwargs.get("vtcm_capacity", 0)
        used = calculate_allocated_bytes(func).get("global.vtcm", 0)
        if 0 < limit < used:
            raise InstantiationError("Skipped because of invalid vtcm allocation")
        return func

    return prim_func_pass(verify, opt_level=0)
