"""Struct info over new expressions and numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.ir.expr import PrimExpr, RelayExpr

from .struct_info import (
    FuncStructInfo,
    PrimStructInfo,
    ShapeExpr,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)


class StructInfoMutator:
    """Rewrites the expressions in struct info, and its numbers."""

    def __init__(
        self, visit_expr: Callable[[RelayExpr], Any], visit_prim_expr: Callable[[PrimExpr], Any]
    ) -> None:
        self.visit_expr = visit_expr
        self.visit_prim_expr = visit_prim_expr

    def visit(self, info: Any) -> Any:
        if isinstance(info, TensorStructInfo) and info.shape is not None:
            shape = self.shape(info.shape)
            if shape is info.shape:
                return info
            return TensorStructInfo(shape, info.dtype, info.vdevice, span=info.span)
        if isinstance(info, TupleStructInfo):
            return info.map_children(self.visit)
        if isinstance(info, ShapeStructInfo) and info.values is not None:
            values = self.numbers(info.values)
            return info if values is info.values else ShapeStructInfo(values)
        if isinstance(info, PrimStructInfo) and info.value is not None:
            value = self.visit_prim_expr(info.value)
            return info if value is info.value else PrimStructInfo(value=value)
        if isinstance(info, FuncStructInfo) and info.params is not None:
            params = tuple([self.visit(p) for p in info.params])
            ret = self.visit(info.ret)
            same = all([a is b for a, b in zip(params, info.params, strict=True)])
            if same and ret is info.ret:
                return info
            return FuncStructInfo(params, ret, info.purity)
        return info

    def shape(self, shape: RelayExpr) -> Any:
        if isinstance(shape, ShapeExpr):
            values = self.numbers(shape.values)
            return shape if values is shape.values else ShapeExpr(values)
        return self.visit_expr(shape)

    def numbers(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        new = [self.visit_prim_expr(v) for v in values]
        same = all([a is b for a, b in zip(new, values, strict=True)])
        return values if same else tuple(new)
