"""Index maps: where the elements of an array go when its layout changes."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tvm.error import RuntimeTypeError, RuntimeValueError
from tvm.ir import extension
from tvm.ir.expr import PrimExpr
from tvm.ir.node import Node, binder, child, reference
from tvm.ir.visitor import Visitor
from tvm.runtime import ndarray

from . import op as _op
from .expr import (
    Add,
    BinaryOpExpr,
    Cast,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Range,
    Sub,
    Var,
    as_expr,
    as_exprs,
    const,
)  # fmt: skip
from .rebuild import BINARY
from .stmt_functor import substitute

# elements of which a map's places are listed, to see that they differ
MAX_LISTED = 1 << 16


class IndexMap(Node):
    """A function from indices to indices.

    Parameters
    ----------
    initial_indices : list of Var
        The variables that stand for the old indices.
    final_indices : list of PrimExpr
        The new indices in terms of them.
    inverse_index_map : IndexMap, optional
        The way back, where it cannot be found from the map itself.
    """

    AXIS_SEPARATOR = "axis_separator"

    initial_indices: tuple[Var, ...] = binder("final_indices")
    final_indices: tuple[PrimExpr, ...] = child(convert=as_exprs)
    inverse_index_map: IndexMap | None = reference(default=None)

    @staticmethod
    def from_func(
        mapping_function: Callable[..., Any],
        ndim: int | None = None,
        inverse_index_map: Callable[..., Any] | IndexMap | None = None,
        *,
        index_dtype: str = "int64",
    ) -> IndexMap:
        """The map that a Python function of the indices describes."""
        index_map, separators = IndexMap.from_func_with_separators(
            mapping_function, ndim, inverse_index_map, index_dtype=index_dtype
        )
        if separators:
            raise RuntimeValueError(
                "IndexMap.from_func requires a function without axis separators; "
                "hint: use from_func_with_separators"
            )
        return index_map

    @staticmethod
    def from_func_with_separators(
        mapping_function: Callable[..., Any],
        ndim: int | None = None,
        inverse_index_map: Callable[..., Any] | IndexMap | None = None,
        *,
        index_dtype: str = "int64",
    ) -> tuple[IndexMap, list[int]]:
        """The map and the positions of ``IndexMap.AXIS_SEPARATOR`` in the function's result."""
        positional, by_name = _index_variables(mapping_function, ndim, index_dtype)
        variables = [*positional, *by_name.values()]
        result = mapping_function(*positional, **by_name)
        items = result if isinstance(result, (list, tuple)) else [result]
        indices: list[PrimExpr] = []
        separators: list[int] = []
        for item in items:
            if isinstance(item, str) and item == IndexMap.AXIS_SEPARATOR:
                separators.append(len(indices))
            else:
                indices.append(as_expr(item, variables[0].dtype if variables else None))
        inverse = inverse_index_map
        if inverse is not None and not isinstance(inverse, IndexMap):
            inverse = IndexMap.from_func(inverse, ndim=len(indices), index_dtype=index_dtype)
        return IndexMap(tuple(variables), tuple(indices), inverse), separators

    def map_indices(self, indices: Sequence[Any]) -> list[PrimExpr]:
        """The new indices of an element, of the data type of its old ones."""
        given = as_exprs(indices)
        applied = _Applied(dict(zip(self.initial_indices, given, strict=True)))
        wanted = given[0].dtype if given else None
        return [as_expr(applied.visit(index), wanted) for index in self.final_indices]

    def map_range(self, ranges: Sequence[Range]) -> list[Range]:
        """What the new indices cover, when the old ones cover some ranges."""
        return extension.mapped_ranges.required(self, ranges)

    def map_shape(self, shape: Sequence[Any]) -> list[PrimExpr]:
        """The extents of the array that the map leads to, of the data type of its own."""
        extents = as_exprs(shape)
        wanted = max(
            [extent.dtype for extent in extents], key=lambda dtype: dtype.bits, default=None
        )
        covered = self.map_range([Range(extent) for extent in extents])
        return [r.extent if wanted is None else _op.cast(r.extent, wanted) for r in covered]

    def _evaluate(self, position: int, grid: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        values = dict(zip(self.initial_indices, grid, strict=True))
        value = _Evaluator(values).visit(self.final_indices[position])
        return np.broadcast_to(value, grid.shape[1:])

    def map_ndarray(self, arr_src: Any) -> Any:
        """The array with its elements where the map puts them; other places hold zero."""
        source = arr_src.numpy() if hasattr(arr_src, "numpy") else np.asarray(arr_src)
        shape = [int(extent) for extent in self.map_shape(source.shape)]  # type: ignore[call-overload]
        grid = np.indices(source.shape)
        target = np.zeros(shape, dtype=source.dtype)
        target[tuple([self._evaluate(i, grid) for i in range(len(shape))])] = source
        return ndarray.array(target) if isinstance(arr_src, ndarray.NDArray) else target

    def inverse(self, shape: Sequence[Any]) -> IndexMap:
        """The way back, of an array of the given shape (numbers or ranges).

        Raises
        ------
        ValueError
            If elements would have no place to come from, or the map is no sum of parts of indices.
        """
        return self._inverted(shape, bijective=True)[0]

    def non_surjective_inverse(self, shape: Sequence[Any]) -> tuple[IndexMap, PrimExpr]:
        """The way back, and the condition under which a new index is padding."""
        return self._inverted(shape, bijective=False)

    def _inverted(self, shape: Sequence[Any], bijective: bool) -> tuple[IndexMap, PrimExpr]:
        if self.inverse_index_map is not None:
            return self.inverse_index_map, const(False)
        ranges = [
            item if isinstance(item, Range) else Range(as_expr(item, var.dtype))
            for var, item in zip(self.initial_indices, shape, strict=True)
        ]
        new, old, padding = extension.inverted_index_map.required(self, ranges, bijective)
        return IndexMap(tuple(new), tuple(old)), padding

    def is_injective(self, shape: Sequence[int]) -> bool:
        """Whether no two elements of an array of constant shape come to one place.

        Large arrays need a map that can be inverted.
        """
        try:
            self._inverted(shape, bijective=False)
        except ValueError:
            size = math.prod(shape)
            if size > MAX_LISTED:
                return False
            grid = np.indices(shape)
            places = [self._evaluate(i, grid).ravel() for i in range(len(self.final_indices))]
            return len(set(zip(*places, strict=True))) == size if places else size <= 1
        return True

    def is_equivalent_to(self, other_map: IndexMap) -> bool:
        """Whether both maps have the same indices, up to the names of variables."""
        if len(self.initial_indices) != len(other_map.initial_indices):
            return False
        others = other_map.map_indices(self.initial_indices)
        if len(self.final_indices) != len(others):
            return False
        prove = extension.are_equal_dimensions.required
        return all([prove(a, b) for a, b in zip(self.final_indices, others, strict=True)])


def _index_variables(
    mapping_function: Callable[..., Any], ndim: int | None, dtype: str
) -> tuple[list[Var], dict[str, Var]]:
    """The function's arguments; parameters behind ``*args`` are the last indices."""
    names: list[str] = []
    last: list[str] = []
    variadic: str | None = None
    for name, parameter in inspect.signature(mapping_function).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            variadic = name
        elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            last.append(name)
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            raise RuntimeValueError(
                f"an index map requires parameters for its indices, got **{name}"
            )
        else:
            names.append(name)
    if variadic is not None:
        if ndim is None:
            raise RuntimeValueError("an index map of *args requires ndim")
        names += [f"{variadic}_{i}" for i in range(ndim - len(names) - len(last))]
    if ndim is not None and len(names) + len(last) != ndim:
        count = len(names) + len(last)
        raise RuntimeValueError(f"an index map of {ndim} dimensions is required, got {count}")
    return [Var(name, dtype) for name in names], {name: Var(name, dtype) for name in last}


class _Applied(Visitor):
    """Puts values in the place of variables; literals take the data type of what is beside them."""

    def __init__(self, values: Mapping[Var, PrimExpr]) -> None:
        self.values = values

    def visit_var(self, var: Var) -> Any:
        return self.values.get(var, var)

    def visit_int_imm(self, constant: IntImm) -> Any:
        return constant.value

    def visit_binary_op_expr(self, expr: BinaryOpExpr) -> Any:
        a, b = self.visit(expr.a), self.visit(expr.b)
        if not isinstance(a, PrimExpr) and not isinstance(b, PrimExpr):
            a = as_expr(a, expr.dtype)
        return BINARY[type(expr)](a, b)

    def visit_prim_expr(self, expr: PrimExpr) -> Any:
        return substitute(expr, self.values)


class _Evaluator(Visitor):
    """Evaluates integer expressions on numpy arrays."""

    def __init__(self, values: dict[Var, Any]) -> None:
        self.values = values

    def visit_var(self, var: Var) -> Any:
        return self.values[var]

    def visit_int_imm(self, constant: IntImm) -> Any:
        return constant.value

    def visit_binary_op_expr(self, expr: BinaryOpExpr) -> Any:
        return _NUMPY[type(expr)](self.visit(expr.a), self.visit(expr.b))

    def visit_cast(self, expr: Cast) -> Any:
        return self.visit(expr.value)

    def visit_prim_expr(self, expr: PrimExpr) -> Any:
        raise RuntimeTypeError(f"an index map requires integer arithmetic, got {expr}")


_NUMPY: dict[type, Callable[[Any, Any], Any]] = {
    Add: operator.add,
    Sub: operator.sub,
    Mul: operator.mul,
    FloorDiv: operator.floordiv,
    FloorMod: operator.mod,
    # indices are non-negative, so both kinds of division agree
    Div: operator.floordiv,
    Mod: operator.mod,
    Min: np.minimum,
    Max: np.maximum,
}
