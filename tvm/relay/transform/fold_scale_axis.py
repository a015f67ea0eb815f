"""Move a per-channel factor into the weights of a convolution or dense layer.

backward:  multiply(nn.conv2d(%x, %w), %s)       ->   nn.conv2d(%x, multiply(%w, %s'))
forward:   nn.conv2d(nn.relu(multiply(%x, %s)), %w)   ->   nn.conv2d(nn.relu(%x), multiply(%w, %s'))

The factor travels through additions of per-channel values, and through relu and max pooling if
it is a positive constant. Constant folding then computes the new weights. A factor that the program
computes, such as that of a squeeze-and-excitation block, stays: each run would scale the weights anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass, PassContext, Sequential
from tvm.ir.type import TensorType
from tvm.relay.analysis.infer import infer_type_of, tensor_type_of
from tvm.relay.expr import Call, Constant, Var, const
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.registry import ops
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.fold_constant import FoldConstant
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import operands, post_order, rewrite_function, use_counts
from tvm.tir.expr import IntImm


@dataclass(frozen=True)
class Scale:
    """A factor for each index of one axis: `values` has shape (length,)."""

    values: RelayExpr
    axis: int
    rank: int

    @property
    def is_positive(self) -> bool:
        return isinstance(self.values, Constant) and bool((self.values.data.numpy() > 0).all())

    def vector(self, rank: int, axis: int) -> RelayExpr:
        """The factors shaped to multiply a tensor of that rank along that axis."""
        return _aligned(self.values, rank, axis)

    def beside(self) -> RelayExpr:
        """The factors shaped to multiply the scaled tensor."""
        return self.vector(self.rank, self.axis)


def _aligned(values: RelayExpr, rank: int, axis: int) -> RelayExpr:
    trailing = rank - 1 - axis
    if trailing == 0:
        return values
    if isinstance(values, Constant):
        return const(values.data.numpy().reshape((-1,) + (1,) * trailing))
    return ops.expand_dims(values, axis=1, num_newaxis=trailing)


def channel_values(expr: RelayExpr, ty: TensorType, axis: int) -> RelayExpr | None:
    """The vector behind a tensor that varies along `axis` of a tensor of type `ty` only."""
    found = infer_type_of(expr)
    extent = ty.shape[axis]
    if not isinstance(found, TensorType) or found.is_dynamic or not isinstance(extent, IntImm):
        return None
    shape = found.concrete_shape
    rank, length = len(ty.shape), int(extent.value)
    padded = (1,) * (rank - len(shape)) + shape
    if len(padded) != rank or padded[axis] != length:
        return None
    if any(dim != 1 for i, dim in enumerate(padded) if i != axis):
        return None
    if shape == (length,):
        return expr
    if isinstance(expr, Constant):
        return const(expr.data.numpy().reshape(length))
    return ops.reshape(expr, newshape=(length,))


def is_parameter(expr: RelayExpr) -> bool:
    """Whether a value is known before the program runs: a constant or a parameter, reshaped at most."""
    while isinstance(expr, Call) and calls(expr, ops.reshape, ops.expand_dims, ops.squeeze):
        expr = expr.args[0]
    return isinstance(expr, Constant | Var)


def scale_axis_of(call: RelayExpr) -> int | None:
    """The output channel axis of a layer with weights, or None."""
    if calls(call, ops.nn.dense):
        return len(tensor_type_of(call).shape) - 1
    if calls(call, ops.nn.conv2d):
        layout = call.attrs["out_layout"] or call.attrs["data_layout"]
        return str(layout).index("C") if layout in ("NCHW", "NHWC") else None
    return None


def _scaled_weight(call: Call, scale: Scale, letter: str) -> RelayExpr | None:
    """The layer's weight times the factors along its output (`O`) or input (`I`) axis."""
    weight = call.args[1]
    # of narrow weights, whose layer adds up in wide numbers, the product would be rounded
    if tensor_type_of(weight).dtype != tensor_type_of(scale.values).dtype:
        return None
    if calls(call, ops.nn.dense):
        axis = 0 if letter == "O" else 1
        return ops.multiply(weight, scale.vector(2, axis))
    layout = str(call.attrs["kernel_layout"])
    if len(layout) != 4 or not layout.isupper():
        return None
    shape = tensor_type_of(weight).concrete_shape
    if call.attrs["groups"] == 1:
        return ops.multiply(weight, scale.vector(4, layout.index(letter)))
    if letter == "O" and layout.index("O") == 0:
        return ops.multiply(weight, scale.vector(4, 0))
    # depthwise with one filter a channel: input and output channels are the same ones
    if letter == "I" and layout == "OIHW" and shape[1] == 1 and shape[0] == call.attrs["groups"]:
        return ops.multiply(weight, scale.vector(4, 0))
    return None


class _Backward:
    """Pushes the factor of a multiplication up into the layer that made the other operand."""

    def __init__(self, func: Function) -> None:
        self.uses = use_counts(func)

    def rewrite(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if not isinstance(old, Call) or not calls(new, ops.multiply):
            return new
        for data, factor, old_data in ((0, 1, old.args[0]), (1, 0, old.args[1])):
            ty = tensor_type_of(old)
            if infer_type_of(old_data) != ty:
                continue
            pushed = self._push_factor(old_data, new.args[data], new.args[factor], ty)
            if pushed is not None:
                return pushed
        return new

    def _push_factor(
        self, old: RelayExpr, new: RelayExpr, factor: RelayExpr, ty: TensorType
    ) -> RelayExpr | None:
        axis = self._layer_axis(new) if is_parameter(factor) else None
        if axis is None:
            return None
        values = channel_values(factor, ty, axis)
        if values is None:
            return None
        return self._push(old, new, Scale(values, axis, len(ty.shape)))

    def _layer_axis(self, expr: RelayExpr) -> int | None:
        while calls(expr, *_PASSING):
            left, right = expr.args[0], expr.args[-1]
            is_left = infer_type_of(left) == infer_type_of(expr)
            expr = left if is_left or len(expr.args) == 1 else right
        return scale_axis_of(expr)

    def _push(self, old: RelayExpr, new: RelayExpr, scale: Scale) -> RelayExpr | None:
        if self.uses.get(id(old), 0) != 1 or not isinstance(new, Call):
            return None
        if scale_axis_of(new) == scale.axis:
            weight = _scaled_weight(new, scale, "O")
            return None if weight is None else new.replace(args=(new.args[0], weight))
        if not isinstance(old, Call) or len(old.args) != len(new.args):
            return None
        if calls(new, ops.nn.relu, ops.nn.leaky_relu) and scale.is_positive:
            inner = self._push(old.args[0], new.args[0], scale)
            return None if inner is None else new.replace(args=(inner,))
        if calls(new, ops.add, ops.subtract):
            return self._push_into_sum(old, new, scale)
        return None

    def _push_into_sum(self, old: Call, new: Call, scale: Scale) -> RelayExpr | None:
        """(a + b) * s is a * s + b * s: one side must take the factor, the other be a vector."""
        ty = tensor_type_of(old)
        for i in (0, 1):
            addend = channel_values(new.args[1 - i], ty, scale.axis)
            if addend is None:
                continue
            inner = self._push(old.args[i], new.args[i], scale)
            if inner is None:
                continue
            product = ops.multiply(addend, scale.values)
            vector = _aligned(product, scale.rank, scale.axis)
            return new.replace(args=(inner, vector) if i == 0 else (vector, inner))
        return None


_PASSING = (ops.add, ops.subtract, ops.nn.relu, ops.nn.leaky_relu)


@relay_pass("BackwardFoldScaleAxis", opt_level=2)
def backward_fold(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Fold factors that follow a layer into it."""
    if is_primitive(func):
        return func
    return rewrite_function(func, _Backward(func).rewrite)


class _Forward:
    """Finds the factors that all layers below can take, and moves them there."""

    def __init__(self, func: Function) -> None:
        self.users: dict[int, list[RelayExpr]] = {}
        for node in post_order(func):
            for operand in operands(node):
                self.users.setdefault(id(operand), []).append(node)
        self.moved: dict[int, Scale] = {}  # values that arrive without their factor

    def plan(self, func: Function) -> None:
        """Decide, for each multiplication by a vector, whether its factor moves."""
        for node in post_order(func):
            if calls(node, ops.multiply) and id(node) not in self.moved:
                self._plan_factor(node)

    def _plan_factor(self, call: Call) -> None:
        ty = tensor_type_of(call)
        for i in (0, 1):
            if infer_type_of(call.args[i]) != ty or not is_parameter(call.args[1 - i]):
                continue
            for axis in range(1, len(ty.shape)):
                values = channel_values(call.args[1 - i], ty, axis)
                if values is None:
                    continue
                reached: dict[int, Scale] = {}
                if self._takes(call, Scale(values, axis, len(ty.shape)), reached):
                    self.moved.update(reached)
                    return

    def _takes(self, value: RelayExpr, scale: Scale, reached: dict[int, Scale]) -> bool:
        """Whether every user of `value` can take the factor instead of it."""
        reached[id(value)] = scale
        users = self.users.get(id(value), [])
        return bool(users) and all(self._user_takes(u, value, scale, reached) for u in users)

    def _user_takes(
        self, user: RelayExpr, value: RelayExpr, scale: Scale, reached: dict[int, Scale]
    ) -> bool:
        if not isinstance(user, Call) or id(user) in self.moved:
            return False
        if scale_axis_of(user) is not None:
            return self._layer_takes(user, value, scale)
        if calls(user, ops.nn.relu, ops.nn.leaky_relu):
            return scale.is_positive and self._takes(user, scale, reached)
        if calls(user, ops.nn.max_pool2d):
            return scale.is_positive and scale.axis == 1 and self._takes(user, scale, reached)
        if calls(user, ops.add, ops.subtract):
            other = user.args[1] if user.args[0] is value else user.args[0]
            is_vector = channel_values(other, tensor_type_of(value), scale.axis) is not None
            return is_vector and _has_no_zero(scale) and self._takes(user, scale, reached)
        return False

    def _layer_takes(self, layer: Call, value: RelayExpr, scale: Scale) -> bool:
        if layer.args[0] is not value or layer.args[1] is value:
            return False
        if calls(layer, ops.nn.conv2d):
            layout = str(layer.attrs["data_layout"])
            if layout not in ("NCHW", "NHWC") or layout.index("C") != scale.axis:
                return False
        elif scale.axis != scale.rank - 1:
            return False
        return _scaled_weight(layer, scale, "I") is not None

    def rewrite(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if not isinstance(old, Call) or not isinstance(new, Call):
            return new
        if calls(old, ops.multiply) and id(old) in self.moved:
            is_left = infer_type_of(old.args[0]) == infer_type_of(old)
            return new.args[0] if is_left else new.args[1]
        scale = next((s for a in old.args if (s := self.moved.get(id(a))) is not None), None)
        if scale is None:
            return new
        if id(old) in self.moved:
            return self._carry(old, new, scale)
        weight = _scaled_weight(new, scale, "I")
        assert weight is not None
        return new.replace(args=(new.args[0], weight))

    def _carry(self, old: Call, new: Call, scale: Scale) -> RelayExpr:
        """An operator on unscaled data: what is added to it shrinks by the factor."""
        if not calls(old, ops.add, ops.subtract):
            return new
        i = 1 if id(old.args[0]) in self.moved else 0
        addend = channel_values(new.args[i], tensor_type_of(old), scale.axis)
        assert addend is not None
        shrunk = _aligned(ops.divide(addend, scale.values), scale.rank, scale.axis)
        return new.replace(args=(new.args[0], shrunk) if i == 1 else (shrunk, new.args[1]))


def _has_no_zero(scale: Scale) -> bool:
    if not isinstance(scale.values, Constant):
        return False
    factors = np.abs(scale.values.data.numpy())
    # dividing by a tiny factor would lose the addend's precision
    return bool((factors > 1e-6).all())


@relay_pass("ForwardFoldScaleAxis", opt_level=2)
def forward_fold(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Fold factors that precede layers into them."""
    if is_primitive(func):
        return func
    forward = _Forward(func)
    forward.plan(func)
    if not forward.moved:
        return func
    return rewrite_function(func, forward.rewrite)


BackwardFoldScaleAxis = backward_fold.factory
ForwardFoldScaleAxis = forward_fold.factory


def FoldScaleAxis() -> Pass:
    """Backward folding, then forward folding of what is left."""
    passes: list[Callable[[], Pass]] = [BackwardFoldScaleAxis, ForwardFoldScaleAxis, FoldConstant]
    return Sequential([make() for make in passes], opt_level=2, name="FoldScaleAxis")
