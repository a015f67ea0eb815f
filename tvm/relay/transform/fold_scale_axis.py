"""Move a per-channel factor into the weights of a convolution or dense layer.

backward:  multiply(nn.conv2d(%x, %w), %s)       ->   nn.conv2d(%x, multiply(%w, %s'))
forward:   nn.conv2d(nn.relu(multiply(%x, %s)), %w)   ->   nn.conv2d(nn.relu(%x), multiply(%w, %s'))

The factor travels through additions of per-channel values, and through relu and max pooling if
it is a positive constant. Constant folding then computes the new weights. A factor that the program
computes, such as that of a squeeze-and-excitation block, stays: each run would scale the weights anew.
"""

from __future__ import annotations

import math
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
from tvm.relay.op.layout_shapes import layout_parts
from tvm.relay.op.registry import ops
from tvm.relay.op.types import are_known, shape_of_type
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.fold_constant import FoldConstant
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import operands, post_order, rewrite_calls, use_counts


@dataclass(frozen=True)
class Scale:
    """A factor for each channel of a tensor: `values` has the extents of its channel axes.

    The axes are one, or two where channels are in blocks.
    """

    values: RelayExpr
    axes: tuple[int, ...]
    shape: tuple[int, ...]  # of the factors beside the scaled tensor: 1 along other axes

    @property
    def numbers(self) -> np.ndarray | None:
        """The factors, if they are constants."""
        values = _before_reshaping(self.values)
        return values.data.numpy() if isinstance(values, Constant) else None

    @property
    def is_positive(self) -> bool:
        return self.numbers is not None and bool((self.numbers > 0).all())

    def shaped(self, shape: tuple[int, ...], axes: tuple[int, ...]) -> RelayExpr:
        """The factors shaped to multiply a tensor along its channel axes."""
        if len(self.axes) > 1 or len(axes) > 1:
            return ops.reshape(self.values, newshape=shape)
        trailing = len(shape) - 1 - axes[0]
        if trailing == 0:
            return self.values
        return ops.expand_dims(self.values, axis=1, num_newaxis=trailing)

    def beside(self) -> RelayExpr:
        """The factors shaped to multiply the scaled tensor."""
        return self.shaped(self.shape, self.axes)


def scale_of(expr: RelayExpr, ty: TensorType, axes: tuple[int, ...]) -> Scale | None:
    """The factors that a tensor has for another one of type `ty`, if they vary along `axes` only."""
    found = infer_type_of(expr)
    if not isinstance(found, TensorType) or found.is_dynamic:
        return None
    wanted = tuple([dim if i in axes else 1 for i, dim in enumerate(shape_of_type(ty))])
    if not are_known(wanted):
        return None
    shape, rank = found.concrete_shape, len(ty.shape)
    padded = (1,) * (rank - len(shape)) + shape
    if padded != wanted:
        return _uniform_scale(expr, axes, wanted) if math.prod(shape) == 1 else None
    kept = [axis - (rank - len(shape)) for axis in axes]
    lost = tuple([i for i in range(len(shape)) if i not in kept])
    if any([axis < 0 for axis in kept]):  # one channel, of which nothing is said
        return None
    return Scale(ops.squeeze(expr, axis=lost) if lost else expr, axes, wanted)


def _uniform_scale(expr: RelayExpr, axes: tuple[int, ...], wanted: tuple[int, ...]) -> Scale | None:
    """A constant of one element as the factor of every channel."""
    value = _before_reshaping(expr)
    if not isinstance(value, Constant):
        return None
    element = value.data.numpy().reshape(())
    extents = [wanted[axis] for axis in axes]
    return Scale(const(np.full(extents, element)), axes, wanted)


def is_parameter(expr: RelayExpr) -> bool:
    """Whether a value is known before the program runs: a constant or a parameter, reshaped at most."""
    return isinstance(_before_reshaping(expr), Constant | Var)


def _before_reshaping(expr: RelayExpr) -> RelayExpr:
    while calls(expr, ops.reshape, ops.expand_dims, ops.squeeze):
        expr = expr.args[0]
    return expr


def scale_axes_of(call: RelayExpr) -> tuple[int, ...] | None:
    """The output channel axes of a layer with weights, or None."""
    if calls(call, ops.nn.dense):
        return (len(tensor_type_of(call).shape) - 1,)
    if calls(call, ops.nn.conv2d, ops.nn.conv3d):
        return _channel_axes(str(call.attrs["out_layout"] or call.attrs["data_layout"]))
    return None


def _channel_axes(name: str) -> tuple[int, ...] | None:
    """Where a layout has its channels, and their blocks; None if other axes are in blocks too."""
    letters = [letter for letter, _ in layout_parts(name)]
    blocks = [letter for letter in letters if letter.islower()]
    if "C" not in letters or blocks not in ([], ["c"]):
        return None
    axes = tuple([i for i, letter in enumerate(letters) if letter in "Cc"])
    return axes if list(axes) == sorted(axes) and letters[axes[0]] == "C" else None


def _scaled_weight(call: Call, scale: Scale, letter: str) -> RelayExpr | None:
    """The layer's weight times the factors along its output (`O`) or input (`I`) axis."""
    weight = call.args[1]
    ty = tensor_type_of(weight)
    # of narrow weights, whose layer adds up in wide numbers, the product would be rounded
    if ty.dtype != tensor_type_of(scale.values).dtype:
        return None
    if calls(call, ops.nn.dense):
        axis = 0 if letter == "O" else 1
        return ops.multiply(weight, scale.shaped(_only(ty, (axis,)), (axis,)))
    letters = [part for part, _ in layout_parts(str(call.attrs["kernel_layout"]))]
    groups = call.attrs["groups"]
    if groups > 1:
        outputs, inputs = [
            math.prod(
                [n for n, part in zip(ty.concrete_shape, letters, strict=True) if part in kind]
            )
            for kind in ("Oo", "Ii")
        ]
        if math.prod(tensor_type_of(scale.values).concrete_shape) != outputs:
            return None
        # depthwise with one filter a channel: input and output channels are the same ones
        if letter == "I" and (outputs, inputs) != (groups, 1):
            return None
        letter = "O"
    axes = tuple([i for i, part in enumerate(letters) if part.upper() == letter])
    if letters[axes[0]] != letter or len(axes) > 2:
        return None
    return ops.multiply(weight, scale.shaped(_only(ty, axes), axes))


def _only(ty: TensorType, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([extent if i in axes else 1 for i, extent in enumerate(ty.concrete_shape)])


class _Backward:
    """Pushes the factor of a multiplication up into the layer that made the other operand."""

    def __init__(self, func: Function) -> None:
        self.uses = use_counts(func)

    def rewrite(self, old: Call, new: Call) -> RelayExpr:
        if not calls(new, ops.multiply):
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
        axes = self._layer_axes(new) if is_parameter(factor) else None
        scale = None if axes is None else scale_of(factor, ty, axes)
        return None if scale is None else self._push(old, new, scale)

    def _layer_axes(self, expr: RelayExpr) -> tuple[int, ...] | None:
        while calls(expr, *_PASSING):
            left, right = expr.args[0], expr.args[-1]
            is_left = infer_type_of(left) == infer_type_of(expr)
            expr = left if is_left or len(expr.args) == 1 else right
        return scale_axes_of(expr)

    def _push(self, old: RelayExpr, new: RelayExpr, scale: Scale) -> RelayExpr | None:
        if self.uses.get(id(old), 0) != 1 or not isinstance(new, Call):
            return None
        if scale_axes_of(new) == scale.axes:
            weight = _scaled_weight(new, scale, "O")
            return None if weight is None else new.replace(args=(new.args[0], weight))
        if not isinstance(old, Call) or len(old.args) != len(new.args):
            return None
        if calls(new, ops.nn.relu, ops.nn.leaky_relu) and scale.is_positive:
            inner = self._push(old.args[0], new.args[0], scale)
            return None if inner is None else new.replace(args=(inner,))
        if calls(new, ops.add, ops.subtract):
            return self._push_into_sum(old, new, scale)
        if calls(new, ops.nn.bias_add):
            axis = new.attrs["axis"] % len(scale.shape)
            inner = self._push(old.args[0], new.args[0], scale) if scale.axes == (axis,) else None
            bias = ops.multiply(new.args[1], scale.values)
            return None if inner is None else new.replace(args=(inner, bias))
        return None

    def _push_into_sum(self, old: Call, new: Call, scale: Scale) -> RelayExpr | None:
        """(a + b) * s is a * s + b * s: both sides take the factor, or one of them is a vector."""
        ty = tensor_type_of(old)
        for i in (0, 1):
            addend = new.args[1 - i]
            if scale_of(addend, ty, scale.axes) is None:
                continue
            inner = self._push(old.args[i], new.args[i], scale)
            if inner is None:
                continue
            vector = ops.multiply(addend, scale.beside())
            return new.replace(args=(inner, vector) if i == 0 else (vector, inner))
        both = [self._push(a, b, scale) for a, b in zip(old.args, new.args, strict=True)]
        sides = [side for side in both if side is not None]
        return new.replace(args=tuple(sides)) if len(sides) == len(both) else None


_PASSING = (ops.add, ops.subtract, ops.nn.bias_add, ops.nn.relu, ops.nn.leaky_relu)


@relay_pass("BackwardFoldScaleAxis", opt_level=2)
def backward_fold(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Fold factors that follow a layer into it."""
    if is_primitive(func):
        return func
    return rewrite_calls(func, _Backward(func).rewrite)


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
            last = len(ty.shape) - 1
            # channels in blocks have two axes: those of NCHW16c, or of NHWC16c
            blocked = [(axis, last) for axis in (1, last - 1) if 0 < axis < last]
            for axes in (*[(axis,) for axis in range(1, last + 1)], *blocked):
                scale = scale_of(call.args[1 - i], ty, axes)
                reached: dict[int, Scale] = {}
                if scale is not None and self._takes(call, scale, reached):
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
        if scale_axes_of(user) is not None:
            return self._layer_takes(user, value, scale)
        if calls(user, ops.nn.relu, ops.nn.leaky_relu):
            return scale.is_positive and self._takes(user, scale, reached)
        if calls(user, ops.nn.max_pool2d):
            axes = _channel_axes(str(user.attrs["layout"]))
            return scale.is_positive and scale.axes == axes and self._takes(user, scale, reached)
        if calls(user, ops.add, ops.subtract):
            other = user.args[1] if user.args[0] is value else user.args[0]
            is_vector = scale_of(other, tensor_type_of(value), scale.axes) is not None
            return is_vector and _has_no_zero(scale) and self._takes(user, scale, reached)
        return False

    def _layer_takes(self, layer: Call, value: RelayExpr, scale: Scale) -> bool:
        if layer.args[0] is not value or layer.args[1] is value:
            return False
        if calls(layer, ops.nn.dense):
            axes: tuple[int, ...] | None = (len(scale.shape) - 1,)
        else:
            axes = _channel_axes(str(layer.attrs["data_layout"]))
        if scale.axes != axes:
            return False
        return _scaled_weight(layer, scale, "I") is not None

    def rewrite(self, old: Call, new: Call) -> RelayExpr:
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
        shrunk = ops.divide(new.args[i], scale.beside())
        return new.replace(args=(new.args[0], shrunk) if i == 1 else (shrunk, new.args[1]))


def _has_no_zero(scale: Scale) -> bool:
    # dividing by a tiny factor would lose the addend's precision
    return scale.numbers is not None and bool((np.abs(scale.numbers) > 1e-6).all())


@relay_pass("ForwardFoldScaleAxis", opt_level=2)
def forward_fold(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Fold factors that precede layers into them."""
    if is_primitive(func):
        return func
    forward = _Forward(func)
    forward.plan(func)
    if not forward.moved:
        return func
    return rewrite_calls(func, forward.rewrite)


BackwardFoldScaleAxis = backward_fold.factory
ForwardFoldScaleAxis = forward_fold.factory


def FoldScaleAxis() -> Pass:
    """Backward folding, then forward folding of what is left."""
    passes: list[Callable[[], Pass]] = [BackwardFoldScaleAxis, ForwardFoldScaleAxis, FoldConstant]
    return Sequential([make() for make in passes], opt_level=2, name="FoldScaleAxis")
