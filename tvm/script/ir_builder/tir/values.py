"""What ``T`` has for values: data types, variables, constants, reducers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.node import NODE_TYPES
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype
from tvm.tir import op
from tvm.tir.expr import (
    HANDLE,
    CommReducer,
    FloatImm,
    IterVar,
    IterVarType,
    Let,
    SizeVar,
    Var,
    as_expr,
    as_exprs,
    const,
    pointer_type,
)
from tvm.tir.expr import Range as RangeNode
from tvm.tir.index_map import IndexMap


class DTypeCall:
    """``T.int32``: the type of a parameter; called, a new variable, a constant or a conversion."""

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype

    def __call__(self, expr: Any = None, is_size_var: bool = False) -> PrimExpr:
        if expr is None:
            return (SizeVar if is_size_var else Var)("", self.dtype)
        if isinstance(expr, str):
            return FloatImm(self.dtype, float(expr))
        if isinstance(expr, (int, float)) and self.dtype.is_float is isinstance(expr, float):
            return const(expr, self.dtype)
        return op.cast(as_expr(expr), self.dtype)

    def __repr__(self) -> str:
        return f"T.{self.dtype}"


def handle(dtype: Any = None, storage_scope: str = "global", *, is_size_var: bool = False) -> Var:
    """A pointer; to elements of ``dtype`` if that is given."""
    kind = SizeVar if is_size_var else Var
    return kind("", HANDLE if dtype is None else pointer_type(_dtype(dtype), storage_scope))


ptr = handle


class PtrType:
    """``T.Ptr(T.float32, "shared")``, also written ``T.Ptr[T.float32, "shared"]``."""

    def __call__(self, dtype: Any, storage_scope: str = "global") -> Var:
        return handle(dtype, storage_scope)

    def __getitem__(self, keys: Any) -> Var:
        return self(*keys) if isinstance(keys, tuple) else self(keys)


def buffer_var(dtype: Any, storage_scope: str = "global") -> Var:
    """A pointer to the elements of a buffer."""
    return handle(dtype, storage_scope)


def _dtype(value: Any) -> DType:
    return value.dtype if isinstance(value, DTypeCall) else as_dtype(value)


def var(dtype: Any, name: str = "") -> Var:
    """A variable."""
    return Var(name, _dtype(dtype))


def Range(begin: Any, end: Any) -> RangeNode:
    """The integers from ``begin`` to before ``end``."""
    return RangeNode(begin, end)


def iter_var(v: Var | str, dom: Any, iter_type: str, thread_tag: str) -> IterVar:
    """An iteration variable; ``iter_type`` is a name such as ``"ThreadIndex"``."""
    return IterVar(dom, v, IterVarType[iter_type], thread_tag)


def comm_reducer(combiner: Callable[..., Any], identity: Sequence[Any]) -> CommReducer:
    """A reducer: a function of two (tuples of) values, and its neutral elements."""
    neutral = as_exprs(identity)
    names = list(inspect.signature(combiner).parameters)
    dtypes = [value.dtype for value in neutral] * 2
    variables = [Var(name, dtype) for name, dtype in zip(names, dtypes, strict=True)]
    result = combiner(*variables)
    results = result if isinstance(result, (tuple, list)) else (result,)
    count = len(neutral)
    return CommReducer(
        tuple(variables[:count]), tuple(variables[count:]), as_exprs(results), neutral
    )


def let_expr(expr: Any, where: Mapping[Var, Any]) -> PrimExpr:
    """``expr`` with variables bound."""
    result = as_expr(expr)
    for variable, value in where.items():
        result = Let(variable, as_expr(value, variable.dtype), result)
    return result


def index_map(
    mapping: Callable[..., Any], *, inverse_index_map: Callable[..., Any] | None = None
) -> IndexMap:
    """A function from indices to indices."""
    return IndexMap.from_func(mapping, inverse_index_map=inverse_index_map)


def target(target_config: Any, host: Any = None) -> Any:
    """A target from its text or configuration."""
    make: Any = NODE_TYPES.get("Target")
    if make is None:
        raise ValueError("T.target requires tvm.target to be loaded")
    return make(target_config, host)


class meta_var:
    """A value that keeps its name in the script but is no part of the program."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __iter__(self) -> Iterator[meta_var]:
        """Its parts, each of them a value of the script too."""
        return iter([meta_var(item) for item in self.value])


BITS = {"int": (8, 16, 32, 64), "uint": (8, 16, 32, 64), "float": (16, 32, 64)}


def scalar_types() -> dict[str, DTypeCall]:
    """The types by their names in ``T``."""
    names = [f"{code}{bits}" for code, sizes in BITS.items() for bits in sizes]
    names += ["bfloat16", "e4m3_float8", "e5m2_float8", "bool"]
    return {name: DTypeCall(as_dtype(name)) for name in names}


def vector_type(name: str) -> DTypeCall | None:
    """A type that is not listed, such as a vector; None if it is no type's name."""
    try:
        return DTypeCall(as_dtype(name))
    except ValueError:
        return None


def unlisted_types(module: str) -> Callable[[str], DTypeCall]:
    """What a module's ``__getattr__`` finds: data types that are not listed, such as ``T.float32x4``."""

    def find(name: str) -> DTypeCall:
        found = vector_type(name)
        if found is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return found

    return find
