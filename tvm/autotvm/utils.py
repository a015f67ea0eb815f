"""Small helpers of the tuners: constants of shapes, ranks, parallel maps, numbers for people."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tvm.arith import Analyzer
from tvm.contrib.popen_pool import PopenPoolExecutor
from tvm.ir.expr import PrimExpr
from tvm.support.cores import usable_cores
from tvm.tir.expr import Any as UnknownDim
from tvm.tir.expr import IntImm, Var


def cpu_count() -> int:
    """How many processors this process may use."""
    return usable_cores()


class EmptyContext:
    """A ``with`` block that does nothing."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


def get_rank(values: Any) -> np.ndarray[Any, Any]:
    """The place of each value, the largest having place 0.

    Parameters
    ----------
    values : list or numpy.ndarray
        The values.
    """
    order = np.argsort(-np.asarray(values))
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return ranks


def pool_map(
    func: Callable[[Any], Any],
    args: Sequence[Any],
    batch_size: int,
    verbose: bool = False,
    pool: Any = None,
) -> np.ndarray[Any, Any] | None:
    """The results of a function for many arguments, in other processes, as one array.

    Parameters
    ----------
    func : function
        Called with one argument.
    args : list
        The arguments.
    batch_size : int
        How many calls are under way at a time.
    verbose : bool
        Whether to print how far it is.
    pool : object with a ``map``, optional
        The processes; by default as many as there are processors.

    Returns
    -------
    numpy.ndarray or None
        The results along a new first axis; None for no arguments.
    """
    started = time.perf_counter()
    executor = None if pool is not None else PopenPoolExecutor(cpu_count())
    results: list[Any] = []
    for first in range(0, len(args), batch_size):
        batch = args[first : first + batch_size]
        if executor is None:
            results.extend(pool.map(func, batch))
        else:
            results.extend([f.result() for f in [executor.submit(func, arg) for arg in batch]])
        if verbose:
            seconds = time.perf_counter() - started
            print(f"mapped: {len(results)}/{len(args)}, {seconds:.1f} s", flush=True)
    return np.array(results) if results else None


def get_func_name(func: Any) -> str:
    """The name of a function, or of what a partial application calls."""
    while not hasattr(func, "__name__") and hasattr(func, "func"):
        func = func.func
    return str(getattr(func, "__name__", type(func).__name__))


def get_const_int(exp: Any) -> int:
    """The value of an integer constant.

    Raises
    ------
    ValueError
        If it is not a constant.
    """
    if isinstance(exp, (int, np.integer)):
        return int(exp)
    if isinstance(exp, PrimExpr) and not isinstance(exp, IntImm):
        exp = Analyzer().simplify(exp)
    if not isinstance(exp, IntImm):
        raise ValueError(f"a constant integer is required here, got {exp}")
    return int(exp.value)


def get_const_tuple(in_tuple: Iterable[Any]) -> tuple[Any, ...]:
    """Ints for constants; variables and unknown dimensions stay."""
    return tuple(
        [
            element if isinstance(element, (Var, UnknownDim)) else get_const_int(element)
            for element in in_tuple
        ]
    )


SI_PREFIXES = {"T": 1e12, "G": 1e9, "M": 1e6, "K": 1e3, "k": 1e3, "": 1.0}


def format_si_prefix(x: float, si_prefix: str) -> float:
    """A number in thousands, millions and so on.

    Parameters
    ----------
    x : float
        The number.
    si_prefix : str
        "K", "M", "G", "T" or nothing.
    """
    if si_prefix not in SI_PREFIXES:
        raise ValueError(f"si_prefix must be one of K, M, G, T, got {si_prefix!r}")
    return x / SI_PREFIXES[si_prefix]
