"""The rules by which layouts spread: of operators, of users, and of attributes that name layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tvm.error import TVMError
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import Type
from tvm.relay.op.layout import layout_named
from tvm.relay.op.layout_shapes import plain_layout
from tvm.relay.op.registry import LayoutChoice, ops
from tvm.relay.transform.operators import calls, is_operator_call
from tvm.tir.data_layout import Layout, layout

_UNKNOWN = "__undef__"
Layouts: TypeAlias = Sequence[Layout | None]
LayoutRule: TypeAlias = Callable[
    [Any, Layouts | None, Layouts, Sequence[Type]], LayoutChoice | None
]


@dataclass(frozen=True)
class InferCorrectLayoutOutput:
    """What a function of `register_infer_correct_layout` gives.

    Parameters
    ----------
    input_layouts : one layout a tensor; an undefined one asks for the tensor as it was.
    output_layouts : the layouts of the results.
    new_attrs : the attributes in these layouts.
    """

    input_layouts: Sequence[Layout | str]
    output_layouts: Sequence[Layout | str]
    new_attrs: Attrs | None


def layout_rule(expr: RelayExpr) -> LayoutRule | None:
    """The rule of a call's operator; None if it knows nothing of layouts."""
    if not is_operator_call(expr) or expr.op is ops.layout_transform:
        return None
    if (function := expr.operator.get_attr("FInferCorrectLayout")) is not None:
        return _rule_of_user(expr.operator, function)
    rule: LayoutRule | None = expr.operator.infer_layout
    if rule is None and expr.attrs is not None:
        return layout_named if {"data_layout", "layout"} & {*expr.attrs.keys()} else None
    return rule


def _rule_of_user(op: Op, function: Callable[..., object]) -> LayoutRule:
    def rule(
        attrs: Any, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
    ) -> LayoutChoice | None:
        new = None if new_in is None else _named(new_in)
        found = function(attrs, new, _named(old_in), list(arg_types))
        if not isinstance(found, InferCorrectLayoutOutput):
            raise TVMError(
                f"FInferCorrectLayout of {op.name} requires an InferCorrectLayoutOutput, got "
                f"{type(found).__name__}"
            )
        inputs, outputs = _known(found.input_layouts), _known(found.output_layouts)
        return LayoutChoice(inputs, outputs, found.new_attrs)

    return rule


def _named(layouts: Layouts) -> list[Layout]:
    return [layout(_UNKNOWN) if found is None else found for found in layouts]


def _known(layouts: Sequence[Layout | str]) -> tuple[Layout | None, ...]:
    found = [layout(x) if isinstance(x, str) else x for x in layouts]
    return tuple([None if x.name == _UNKNOWN else x for x in found])


def ends_in(expr: RelayExpr, name: str) -> bool:
    """Whether the expression is a transform to that layout."""
    return calls(expr, ops.layout_transform) and expr.attrs["dst_layout"] == name


def plain_name(blocked: Layout) -> str:
    """The layout without its blocks: `NCHW16c` gives `NCHW`."""
    return plain_layout(blocked.name)
