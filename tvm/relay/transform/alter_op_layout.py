"""Run convolutions and dense layers in the data layout that suits the target.

    nn.relu(nn.conv2d(%x, %w))   ->   %0 = layout_transform(%x, "NCHW", "NCHW16c");
                                      %1 = nn.contrib_conv2d_NCHWc(%0, ...);
                                      %2 = nn.relu(%1);
                                      layout_transform(%2, "NCHW16c", "NCHW")

An operator's `alter_layout` facet gives the new call. The result stays
in its blocked layout for as long as the `infer_layout` facets of the operators that read it can
work in it; a transform back is inserted only where somebody needs the plain tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.ir.type import TensorType, Type
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, Tuple, TupleGetItem
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.registry import ops
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.infer_layout_utils import layout_choice, plain_name, with_transforms
from tvm.relay.transform.operators import calls, is_operator_call
from tvm.relay.traverse import keep_span, operands, post_order, regrouped, tensors_of, with_operands
from tvm.tir.data_layout import Layout, layout
from tvm.topi.rewrites import ALTERATIONS, users_rewrite


@dataclass(frozen=True)
class _Laid:
    """A new value; `layouts` has one entry a tensor, None where it is the plain one."""

    value: RelayExpr
    layouts: tuple[Layout | None, ...] = (None,)

    @property
    def layout(self) -> Layout | None:
        return self.layouts[0] if len(self.layouts) == 1 else None


Alter: TypeAlias = Callable[[Call, list[RelayExpr], list[Type], Type], "RelayExpr | None"]


def by_facet(
    call: Call, args: list[RelayExpr], arg_types: list[Type], out_type: Type
) -> RelayExpr | None:
    """What users or the operator's `alter_layout` facet make of a call over new arguments.

    Tensors without elements have no layout that would suit them better.
    """
    rewrites = (users_rewrite(ALTERATIONS, call.operator.name), call.operator.alter_layout)
    types = (*arg_types, out_type)
    if any([isinstance(ty, TensorType) and ty.is_empty for ty in types]):
        return None
    for alter in rewrites:
        altered: RelayExpr | None = alter and alter(call.attrs, args, arg_types, out_type)
        if altered is not None:
            return altered
    return None


class LayoutAlterer:
    """Rebuilds a function; every old expression gets a new one and its layout.

    Parameters
    ----------
    alter : gives the new call for an old one over new arguments, None to leave it.
    """

    def __init__(self, alter: Alter = by_facet) -> None:
        self.alter = alter
        self._laid: dict[int, _Laid] = {}
        self._transforms: dict[tuple[int, str, str], RelayExpr] = {}

    def run(self, func: Function) -> RelayExpr:
        for node in post_order(func):
            self._laid[id(node)] = laid = self._alter(node)
            keep_span(node, laid.value)
        return self._plain(func)

    def _alter(self, node: RelayExpr) -> _Laid:
        if is_operator_call(node):
            return self._altered_call(node) or self._kept_layout(node) or self._rebuilt(node)
        if isinstance(node, TupleGetItem):
            return self._tuple_item(node)
        return self._rebuilt(node)

    def _rebuilt(self, node: RelayExpr) -> _Laid:
        below = operands(node)
        if not below or is_primitive(node):
            return _Laid(node)
        return _Laid(with_operands(node, [self._plain(o) for o in below]))

    def _altered_call(self, call: Call) -> _Laid | None:
        args = [self._plain(a) for a in call.args]
        types = [infer_type_of(a) for a in call.args]
        altered = self.alter(call, list(args), types, infer_type_of(call))
        if altered is None:
            return None
        plain_call = with_operands(call, [call.op, *args])
        assert isinstance(plain_call, Call)
        altered = with_transforms(plain_call, altered)
        new = self._without_pairs(altered, {id(a) for a in args})
        if _is_transform(new):
            blocked = layout(str(new.attrs["src_layout"]))
            if plain_name(blocked) == new.attrs["dst_layout"]:
                return _Laid(new.args[0], (blocked,))
        return _Laid(new)

    def _without_pairs(self, expr: RelayExpr, known: set[int]) -> RelayExpr:
        """`expr` rebuilt down to the known expressions, inverse transforms cancelled."""
        if id(expr) in known or not operands(expr):
            return expr
        below = [self._without_pairs(o, known) for o in operands(expr)]
        new = with_operands(expr, below)
        if _is_transform(new):
            attrs = new.attrs
            return self._transform(
                new.args[0], str(attrs["src_layout"]), str(attrs["dst_layout"]), new
            )
        return new

    def _kept_layout(self, call: Call) -> _Laid | None:
        """The call in the layout that its arguments are in, if the operator can."""
        tensors = tensors_of(call)
        in_layouts = [self._laid[id(t)].layout for t in tensors]
        if not any(found is not None for found in in_layouts):
            return None
        types = [infer_type_of(a) for a in call.args]
        choice = layout_choice(call, in_layouts, types)
        if choice is None or len(choice.inputs) != len(tensors):
            return None
        new = [self._in_layout(t, w) for t, w in zip(tensors, choice.inputs, strict=True)]
        attrs = call.attrs if choice.attrs is None else choice.attrs
        return _Laid(
            call.replace(args=tuple(regrouped(call, new)), attrs=attrs), tuple(choice.outputs)
        )

    def _tuple_item(self, node: TupleGetItem) -> _Laid:
        laid = self._laid[id(node.tuple_value)]
        if len(laid.layouts) > 1:
            return _Laid(TupleGetItem(laid.value, node.index), (laid.layouts[node.index],))
        return self._rebuilt(node)

    def _in_layout(self, old: RelayExpr, wanted: Layout | None) -> RelayExpr:
        laid = self._laid[id(old)]
        if wanted is None:
            return self._plain(old)
        if laid.layout is not None and laid.layout.name == wanted.name:
            return laid.value
        if wanted.name == plain_name(wanted):
            return self._plain(old)
        return self._transform(self._plain(old), plain_name(wanted), wanted.name)

    def _plain(self, old: RelayExpr) -> RelayExpr:
        """The new expression in the layout the old one had."""
        laid = self._laid.get(id(old))
        if laid is None:
            return old
        if len(laid.layouts) > 1:
            return self._plain_tuple(laid)
        if laid.layout is None or laid.layout.name == plain_name(laid.layout):
            return laid.value
        return self._transform(laid.value, laid.layout.name, plain_name(laid.layout))

    def _plain_tuple(self, laid: _Laid) -> RelayExpr:
        if all(found is None for found in laid.layouts):
            return laid.value
        fields: list[RelayExpr] = []
        for i, found in enumerate(laid.layouts):
            field: RelayExpr = TupleGetItem(laid.value, i)
            if found is not None:
                field = self._transform(field, found.name, plain_name(found))
            fields.append(field)
        return Tuple(fields)

    def _transform(
        self, value: RelayExpr, src: str, dst: str, made: RelayExpr | None = None
    ) -> RelayExpr:
        """`value` from one layout to another; undoing a transform gives back what was there."""
        if src == dst:
            return value
        if _is_transform(value) and str(value.attrs["dst_layout"]) == src:
            before = str(value.attrs["src_layout"])
            if before == dst:
                return value.args[0]
        key = (id(value), src, dst)
        found = self._transforms.get(key)
        if found is None:
            found = made or ops.layout_transform(value, src_layout=src, dst_layout=dst)
            self._transforms[key] = found
        return found


def _is_transform(expr: RelayExpr) -> TypeGuard[Call]:
    return calls(expr, ops.layout_transform)


@relay_pass("AlterOpLayout", opt_level=2)
def alter_op_layout(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Apply the `alter_layout` facets for the current target; without one, those of users."""
    if is_primitive(func):
        return func
    result = LayoutAlterer().run(func)
    assert isinstance(result, Function)
    return result


AlterOpLayout = alter_op_layout.factory
