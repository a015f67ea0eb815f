"""Layouts that calls name in their attributes, and those that users' functions infer.

nn.conv2d(%x, %w)                                 named layouts NCHW and OIHW, result NCHW
nn.conv2d(%x, %w, data_layout="NHWC", ...)        with_transforms puts them in its place:
    layout_transform(nn.conv2d(layout_transform(%x, "NCHW", "NHWC"), ...), "NHWC", "NCHW")
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm.error import TVMError
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type
from tvm.relay.expr import Call
from tvm.relay.op.layout_shapes import plain_layout
from tvm.relay.op.registry import LayoutChoice, ops
from tvm.relay.transform.operators import calls, is_operator_call
from tvm.tir.data_layout import Layout, layout

_UNKNOWN = "__undef__"


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


def layout_choice(
    call: Call,
    in_layouts: Sequence[Layout | None],
    arg_types: Sequence[Type],
    plain: str | None = None,
) -> LayoutChoice | None:
    """The layouts that an operator takes and gives; None if it has no rule or cannot follow.

    `plain` is the layout that the arguments had; by default, theirs without blocks.
    """
    infer = call.operator.get_attr("FInferCorrectLayout")
    if infer is None:
        rule = call.operator.infer_layout
        choice: LayoutChoice | None = rule and rule(call.attrs, in_layouts, arg_types)
        return choice
    unknown = layout(_UNKNOWN)
    old = [layout(plain or plain_name(x)) if x is not None else unknown for x in in_layouts]
    new = [unknown if x is None else x for x in in_layouts]
    found = infer(call.attrs, new, old, list(arg_types))
    if not isinstance(found, InferCorrectLayoutOutput):
        raise TVMError(
            f"FInferCorrectLayout of {call.operator.name} requires an InferCorrectLayoutOutput, got "
            f"{type(found).__name__}"
        )
    inputs, outputs = _defined(found.input_layouts), _defined(found.output_layouts)
    return LayoutChoice(inputs, outputs, found.new_attrs)


def _defined(layouts: Sequence[Layout | str]) -> tuple[Layout | None, ...]:
    found = [layout(x) if isinstance(x, str) else x for x in layouts]
    return tuple([None if x.name == _UNKNOWN else x for x in found])


def named_layouts(expr: RelayExpr) -> tuple[list[str], str]:
    """The layouts of a call's arguments and of its result, as far as its attributes name them."""
    if not is_operator_call(expr) or expr.attrs is None:
        return [], ""
    attrs = expr.attrs
    if expr.op is ops.layout_transform:
        return [], ""
    names = ["data_layout", "kernel_layout"] if "data_layout" in attrs else ["layout"]
    found = [str(attrs[name]) for name in names if name in attrs]
    out = str(attrs["out_layout"]) if "out_layout" in attrs else ""
    return found, out or (found[0] if found else "")


def with_transforms(old: Call, new: RelayExpr) -> RelayExpr:
    """`new` in the place of `old`, on arguments in the layouts that it names."""
    (old_in, old_out), (new_in, new_out) = named_layouts(old), named_layouts(new)
    if not isinstance(new, Call) or len(old_in) != len(new_in):
        return new
    args = list(new.args)
    for i, (source, target) in enumerate(zip(old_in, new_in, strict=True)):
        if source != target and not ends_in(args[i], target):
            args[i] = ops.layout_transform(args[i], src_layout=source, dst_layout=target)
    if any([a is not b for a, b in zip(args, new.args, strict=True)]):
        new = new.replace(args=tuple(args))
    if new_out == old_out:
        return new
    return ops.layout_transform(new, src_layout=new_out, dst_layout=old_out)


def ends_in(expr: RelayExpr, name: str) -> bool:
    """Whether the expression is a transform to that layout."""
    return calls(expr, ops.layout_transform) and expr.attrs["dst_layout"] == name


def plain_name(blocked: Layout) -> str:
    """The layout without its blocks: `NCHW16c` gives `NCHW`."""
    return plain_layout(blocked.name)
