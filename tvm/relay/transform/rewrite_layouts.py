"""Bring operators to other layouts, and let the operators between them follow.

    nn.relu(nn.conv2d(%x, %w))   ->   %0 = layout_transform(%x, "NCHW", "NHWC");
                                      %1 = nn.conv2d(%0, ..., data_layout="NHWC");
                                      %2 = nn.relu(%1);
                                      layout_transform(%2, "NHWC", "NCHW")

A function of the caller replaces calls; the rules of the operators say which layouts a call had
and has now, and a transform comes where the layout of a value is not the one wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, Tuple, TupleGetItem
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.registry import LayoutChoice, ops
from tvm.relay.transform.infer_layout_utils import ends_in, layout_rule, plain_name
from tvm.relay.transform.operators import calls, is_operator_call
from tvm.relay.traverse import keep_span, operands, post_order, regrouped, tensors_of, with_operands
from tvm.tir.data_layout import Layout, layout

Alter: TypeAlias = Callable[[Call, list[RelayExpr], list[Type], Type], "RelayExpr | None"]


@dataclass(frozen=True)
class _Laid:
    """A new value, the layout that it had and the one it has; `parts` are those of a tuple."""

    value: RelayExpr
    old: Layout | None = None
    new: Layout | None = None
    parts: tuple[_Laid, ...] = ()

    @property
    def is_moved(self) -> bool:
        return self.old is not None and self.new is not None and self.old != self.new


class LayoutRewriter:
    """Rebuilds a function; every old expression gets a new one and its layouts.

    Parameters
    ----------
    alter : gives the new call for an old one over new arguments, None to leave it.
    """

    def __init__(self, alter: Alter) -> None:
        self.alter = alter
        self._laid: dict[int, _Laid] = {}
        self._transforms: dict[tuple[int, str, str], RelayExpr] = {}

    def run(self, func: Function) -> RelayExpr:
        for node in post_order(func):
            self._laid[id(node)] = laid = self._rewritten(node)
            keep_span(node, laid.value)
        return self._plain(func)

    def _rewritten(self, node: RelayExpr) -> _Laid:
        if is_operator_call(node):
            return self._call(node) or self._rebuilt(node)
        if isinstance(node, TupleGetItem):
            return self._tuple_item(node)
        return self._rebuilt(node)

    def _rebuilt(self, node: RelayExpr) -> _Laid:
        below = operands(node)
        if not below or is_primitive(node):
            return _Laid(node)
        value = with_operands(node, [self._plain(o) for o in below])
        parts = [self._laid[id(o)] for o in below] if isinstance(node, Tuple) else []
        return _Laid(value, parts=tuple(parts))

    def _tuple_item(self, node: TupleGetItem) -> _Laid:
        laid = self._laid[id(node.tuple_value)]
        if not laid.parts or not any([part.is_moved for part in laid.parts]):
            kept = laid.parts[node.index] if laid.parts else _Laid(node)
            return _Laid(self._rebuilt(node).value, kept.old, kept.new)
        part = laid.parts[node.index]
        if isinstance(node.tuple_value, Tuple):
            return part
        return _Laid(TupleGetItem(laid.value, node.index), part.old, part.new)

    # -- calls

    def _call(self, call: Call) -> _Laid | None:
        states = [self._laid[id(t)] for t in tensors_of(call)]
        types = [infer_type_of(a) for a in call.args]
        args = [self._plain(a) for a in call.args]
        altered = self.alter(call, list(args), types, infer_type_of(call))
        rule = layout_rule(call)
        before = rule and rule(call.attrs, None, [s.old for s in states], types)
        if before is not None and len(before.inputs) != len(states):
            before = None
        if altered is None:
            if before is None:
                return None
            return self._followed(call, before, states, types)
        return self._altered(call, altered, before, states, types)

    def _followed(
        self, call: Call, before: LayoutChoice, states: list[_Laid], types: list[Type]
    ) -> _Laid | None:
        """The call in the layouts that its arguments are in, if the operator can."""
        if not any([state.is_moved for state in states]):
            plain = with_operands(call, [call.op, *[self._plain(a) for a in call.args]])
            return _result(plain, before, before)
        rule = layout_rule(call)
        assert rule is not None
        after = rule(call.attrs, *_known(states, before), types)
        if after is None or len(after.inputs) != len(states):
            return None
        args = [
            self._moved(t, state, was, now)
            for t, state, was, now in zip(
                tensors_of(call), states, before.inputs, after.inputs, strict=True
            )
        ]
        attrs = call.attrs if after.attrs is None else after.attrs
        value = call.replace(args=tuple(regrouped(call, args)), attrs=attrs)
        return _result(value, before, after)

    def _altered(
        self,
        call: Call,
        altered: RelayExpr,
        before: LayoutChoice | None,
        states: list[_Laid],
        types: list[Type],
    ) -> _Laid:
        """The caller's call between transforms; other expressions stand as they are."""
        args = [self._plain(t) for t in tensors_of(call)]
        rule = layout_rule(altered)
        if before is None or rule is None or not isinstance(altered, Call):
            return self._opaque(altered, args)
        after = rule(altered.attrs, *_known(states, before), types)
        tensors = tensors_of(altered)
        if after is None or not len(tensors) == len(states) == len(after.inputs):
            return self._opaque(altered, args)
        for i, (state, was, now) in enumerate(
            zip(states, before.inputs, after.inputs, strict=True)
        ):
            if tensors[i] is args[i]:
                tensors[i] = self._moved(tensors_of(call)[i], state, was, now)
            elif was is not None and now is not None and not ends_in(tensors[i], now.name):
                tensors[i] = self._transform(tensors[i], was, now)
        attrs = altered.attrs if after.attrs is None else after.attrs
        new = altered.replace(args=tuple(regrouped(altered, tensors)), attrs=attrs)
        return _result(new, before, after)

    def _opaque(self, altered: RelayExpr, args: Sequence[RelayExpr]) -> _Laid:
        """An expression over plain arguments; a transform at its end is left to the users."""
        new = self._without_pairs(altered, {id(a) for a in args})
        if _is_transform(new):
            blocked, plain = [layout(str(new.attrs[key])) for key in ("src_layout", "dst_layout")]
            if plain_name(blocked) == plain.name:
                return _Laid(new.args[0], plain, blocked)
        return _Laid(new)

    def _without_pairs(self, expr: RelayExpr, known: set[int]) -> RelayExpr:
        """`expr` rebuilt down to the known expressions, inverse transforms cancelled."""
        if id(expr) in known or not operands(expr):
            return expr
        below = [self._without_pairs(o, known) for o in operands(expr)]
        new = with_operands(expr, below)
        if _is_transform(new):
            source, target = [layout(str(new.attrs[k])) for k in ("src_layout", "dst_layout")]
            return self._transform(new.args[0], source, target, new)
        return new

    # -- values in their layouts

    def _moved(
        self, old: RelayExpr, state: _Laid, was: Layout | None, now: Layout | None
    ) -> RelayExpr:
        """The new value of an argument that the operator took in layout `was`, and now in `now`."""
        if was is None or now is None:
            return self._plain(old)
        if state.new is not None and state.old == was:
            return self._transform(state.value, state.new, now)
        return self._transform(self._plain(old), was, now)

    def _plain(self, old: RelayExpr) -> RelayExpr:
        """The new expression in the layout the old one had."""
        laid = self._laid.get(id(old))
        if laid is None:
            return old
        if laid.parts and not isinstance(old, Tuple):
            return self._plain_tuple(laid)
        if laid.old is None or laid.new is None:
            return laid.value
        return self._transform(laid.value, laid.new, laid.old)

    def _plain_tuple(self, laid: _Laid) -> RelayExpr:
        if not any([part.is_moved for part in laid.parts]):
            return laid.value
        fields: list[RelayExpr] = []
        for i, part in enumerate(laid.parts):
            field: RelayExpr = TupleGetItem(laid.value, i)
            if part.old is not None and part.new is not None:
                field = self._transform(field, part.new, part.old)
            fields.append(field)
        return Tuple(fields)

    def _transform(
        self, value: RelayExpr, source: Layout, target: Layout, made: RelayExpr | None = None
    ) -> RelayExpr:
        """`value` from one layout to another; undoing a transform gives back what was there."""
        if source == target:
            return value
        if _is_transform(value) and str(value.attrs["dst_layout"]) == source.name:
            if str(value.attrs["src_layout"]) == target.name:
                return value.args[0]
        key = (id(value), source.name, target.name)
        if key not in self._transforms:
            self._transforms[key] = made or _transformed(value, source, target)
        return self._transforms[key]


def _known(states: Sequence[_Laid], before: LayoutChoice) -> tuple[Layouts, Layouts]:
    """The layouts of the arguments now and before; those the operator takes where none is known."""
    pairs = list(zip(states, before.inputs, strict=True))
    return (
        [was if state.new is None else state.new for state, was in pairs],
        [was if state.old is None else state.old for state, was in pairs],
    )


Layouts: TypeAlias = "list[Layout | None]"


def _result(value: RelayExpr, before: LayoutChoice, after: LayoutChoice) -> _Laid:
    ends = list(zip(before.outputs, after.outputs, strict=False))
    if len(ends) == 1:
        return _Laid(value, *ends[0])
    return _Laid(value, parts=tuple([_Laid(value, *pair) for pair in ends]))


def _transformed(value: RelayExpr, source: Layout, target: Layout) -> RelayExpr:
    """Between layouts of other axes, the value gets axes of extent 1 first."""
    missing = [letter for letter in target.primal_axes if letter not in source.primal_axes]
    if missing:
        ty = infer_type_of(value)
        if isinstance(ty, TensorType) and all([getattr(d, "value", 0) == 1 for d in ty.shape]):
            return value  # a single element fits into any layout
        value = ops.expand_dims(value, axis=0, num_newaxis=len(missing))
        source = layout("".join(missing) + source.name)
        if source == target:
            return value
    return ops.layout_transform(value, src_layout=source.name, dst_layout=target.name)


def _is_transform(expr: RelayExpr) -> TypeGuard[Call]:
    return calls(expr, ops.layout_transform)
