"""Loops as recursive functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm.ir.expr import RelayExpr
from tvm.ir.type import TupleType
from tvm.relay.expr import If, Let, Tuple, Var
from tvm.relay.function import Function


def while_loop(
    cond: Callable[..., RelayExpr],
    loop_vars: Sequence[Var],
    loop_bodies: Callable[..., Sequence[RelayExpr]],
) -> Let:
    """A function of the initial values that loops while `cond` holds and returns the last values.

    Parameters
    ----------
    cond : from the loop variables to a boolean scalar.
    loop_vars : the variables, with their types.
    loop_bodies : from the loop variables to their next values.
    """
    loop = Var("while_loop")
    fresh = [v for v in loop_vars if isinstance(v, Var)]
    condition = cond(*fresh)
    again = loop(*loop_bodies(*fresh))
    body = If(condition, again, Tuple(fresh))
    types = [v.type_annotation for v in fresh if v.type_annotation is not None]
    result = TupleType(types) if len(types) == len(fresh) else None
    return Let(loop, Function(fresh, body, result), loop)
