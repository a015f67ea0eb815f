"""Evaluate expressions from Python: `relay.create_executor(...).evaluate(expr)(*args)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import tvm.runtime.ndarray as nd
from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.expr import Constant, Var
from tvm.relay.function import Function
from tvm.relay.traverse import bind, free_vars
from tvm.runtime.executor.inputs import as_number
from tvm.support import DType

_NUMBERS = (np.ndarray, np.generic, int, float)


@dataclass
class ConstructorValue:
    """A value of an algebraic data type: the constructor that built it, and its fields."""

    tag: int
    fields: list[Any]
    constructor: Constructor | None


@dataclass
class RefValue:
    """A mutable cell."""

    value: Any


class Executor:
    """The base of executors; a subclass compiles a function to a Python callable."""

    mod: IRModule

    def _make_executor(self, func: Function) -> Callable[..., Any]:
        raise NotImplementedError

    def evaluate(
        self, expr: RelayExpr | None = None, binds: Mapping[Var, Any] | None = None
    ) -> Any:
        """The value of an expression; a function gives a Python callable.

        Parameters
        ----------
        expr : `main` of the executor's module by default.
        binds : values of free variables.
        """
        if expr is None:
            expr = self.mod["main"]
        elif isinstance(expr, GlobalVar):
            expr = self.mod[expr]
        if isinstance(expr, Constant):
            return expr.data
        if binds:
            values = {v: Constant(as_array(value)) for v, value in binds.items()}
            expr = bind(expr, values)
        if isinstance(expr, Function):
            return _by_name(self._make_executor(expr), expr)
        if free := free_vars(expr):
            names = ", ".join([v.name_hint for v in free])
            raise ValueError(f"evaluate requires values for the free variables {names}")
        return self._make_executor(Function([], expr))()


def _by_name(call: Callable[..., Any], func: Function) -> Callable[..., Any]:
    """`call`, taking arguments by position or by parameter name.

    Names that the function does not have are passed over: programs give all parameters of a model,
    of which some have become constants.
    """
    names = [p.name_hint for p in func.params]

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        rest = names[len(args) :]
        if twice := [n for n in names[: len(args)] if n in kwargs]:
            raise ValueError(f"the parameters {twice} are given by position and by name")
        if missing := [n for n in rest if n not in kwargs]:
            raise ValueError(f"values are missing for the parameters {missing}")
        if len(args) > len(names):
            raise ValueError(f"the function takes {len(names)} arguments, got {len(args)}")
        values = [*args, *[kwargs[n] for n in rest]]
        params = zip(values, func.params, strict=True)
        return call(*[_of_type(value, p.type_annotation) for value, p in params])

    return wrapper


def _of_type(value: Any, ty: Type | None) -> Any:
    """Numbers in the width that a parameter has, where the program says it."""
    if isinstance(ty, TupleType) and isinstance(value, (tuple, list)):
        return [_of_type(v, field) for v, field in zip(value, ty.fields, strict=True)]
    if not isinstance(ty, TensorType):
        return value
    if isinstance(value, np.ndarray) and _is_narrow(ty.dtype):
        return _narrowed(value, ty.dtype)
    if not isinstance(value, _NUMBERS):
        return value
    return nd.array(as_number(np.asarray(value), ty.dtype.numpy))


def _is_narrow(dtype: DType) -> bool:
    """Whether numpy itself has no such type."""
    held: np.dtype[Any] = dtype.numpy
    return (dtype.bits < 8 and held.kind != "b") or held.isbuiltin != _OF_NUMPY


def _narrowed(value: np.ndarray, dtype: DType) -> Any:
    """An array of a type of numpy's as one that numpy lacks, if that has all the numbers."""
    if value.dtype.isbuiltin != _OF_NUMPY:
        return value
    element = getattr(ml_dtypes, str(dtype)) if dtype.bits < 8 else dtype.numpy
    back = value.astype(element).astype(value.dtype)
    if not np.array_equal(back, value, equal_nan=value.dtype.kind == "f"):
        return value
    return nd.empty(value.shape, dtype).copyfrom(back)


_OF_NUMPY = 1  # `isbuiltin` of numpy's own types


def as_array(value: Any) -> nd.NDArray:
    """A value that programs pass for a tensor."""
    if isinstance(value, nd.NDArray):
        return value
    if isinstance(value, Constant):
        return value.data
    return nd.array(np.asarray(value))


def nested(values: list[Any], ty: Type) -> Any:
    """Flat results in the shape of the type: a tuple becomes a list."""
    if isinstance(ty, TupleType):
        return [nested(values, field) for field in ty.fields]
    return values.pop(0)
