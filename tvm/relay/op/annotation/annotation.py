"""Marks on values: hints, positions, and where regions for an external compiler begin and end."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import register_op
from tvm.ir.type import Type
from tvm.relay.expr import Call

from ..hints import (
    bitpack_end,
    bitpack_start,
    cast_hint,
    checkpoint,
    function_on_device,
    on_device,
    stop_fusion,
)
from ..registry import OpPattern, Precision

__all__ = [
    "bitpack_end",
    "bitpack_start",
    "cast_hint",
    "checkpoint",
    "compiler_begin",
    "compiler_end",
    "function_on_device",
    "on_device",
    "stop_fusion",
]


class CompilerAttrs(Attrs, key="relay.attrs.CompilerAttrs"):
    """The name of the external compiler, `default` for our own."""

    compiler: str


def _same_type(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
    return arg_types[0]


# no `define_op`: they are gone before kernels are made, and have no compute facet
COMPILER_BEGIN = register_op("annotation.compiler_begin")
COMPILER_END = register_op("annotation.compiler_end")
for _mark in (COMPILER_BEGIN, COMPILER_END):
    _mark.set_facets(
        attrs_type=CompilerAttrs,
        num_inputs=1,
        arguments=[("data", "Expr", "")],
        infer_type=_same_type,
        fuse=OpPattern.OPAQUE,
        precision=Precision.FOLLOW,
    )


def compiler_begin(data: RelayExpr, compiler: str) -> Call:
    """`data` as it enters a region of an external compiler."""
    return Call(COMPILER_BEGIN, (data,), CompilerAttrs(compiler))


def compiler_end(data: RelayExpr, compiler: str) -> Call:
    """`data` as it leaves a region of an external compiler."""
    return Call(COMPILER_END, (data,), CompilerAttrs(compiler))
