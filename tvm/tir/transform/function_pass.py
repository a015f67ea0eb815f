"""The classic decorator for users' own passes.

@tvm.tir.transform.prim_func_pass(opt_level=1)
def transform(func, mod, ctx):
    return func
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tvm.ir.transform import make_pass_decorator
from tvm.tir.transform.common import PrimFuncPass


def prim_func_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Iterable[str] | None = None,
    traceable: bool = False,
) -> Any:
    """Make a pass of a function, or of a class with ``transform_function``.

    Parameters
    ----------
    pass_func : callable or class, optional
        ``f(func, mod, ctx) -> func``; without it, a decorator is returned.
    opt_level : int
        The level from which on the pass runs.
    name : str, optional
        The function's name by default.
    required : list of str, optional
        Names of passes to run before.
    """
    decorate = make_pass_decorator(PrimFuncPass, "transform_function")
    return decorate(pass_func, opt_level, name, required, traceable)
