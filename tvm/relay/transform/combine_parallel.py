"""Run sibling layers of one input as one wider layer.

    %0 = nn.dense(%x, %w0);            %0 = concatenate((%w0, %w1, %w2));
    %1 = nn.dense(%x, %w1);     ->     %1 = nn.dense(%x, %0);
    %2 = nn.dense(%x, %w2);            strided_slice(%1, begin=[0], end=[4], axes=[-1]), ...

Element-wise operators that follow in every branch, a bias or an activation, are joined as well, and so are new axes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.structural import structural_equal
from tvm.ir.transform import Pass, PassContext, PassInfo, Sequential
from tvm.relay.analysis.infer import infer_type_of, tensor_type_of
from tvm.relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.registry import OpPattern, ops
from tvm.relay.transform.common import FunctionPass
from tvm.relay.transform.operators import is_operator_call
from tvm.relay.traverse import operands, post_order, rewrite_function
from tvm.relay.ty import static_shape

_LARGEST_WEIGHT_EXPRESSION = 16


@dataclass(frozen=True)
class Layer:
    """One operator whose calls can be joined."""

    op: Op
    key: Callable[[Call], Hashable]  # what joined calls share besides their input; None: never
    join: Callable[[RelayExpr, Sequence[Call]], RelayExpr]
    axis: Callable[[Call], int]  # of the result, counted from its end, along which they are joined
    batches: bool = False  # joined as batches of one product
    repeats: bool = False  # single elements beside a branch are repeated for each of its columns
    cut: Callable[[RelayExpr, int, int, int, int], RelayExpr] = lambda *at: _window(*at)


@dataclass
class Branch:
    """One layer's call and the element-wise calls after it."""

    calls: list[Call]
    size: int
    axes: list[int]  # of each call's result, counted from its end, along which it is joined

    @property
    def tail(self) -> Call:
        return self.calls[-1]

    @property
    def axis(self) -> int:
        return self.axes[-1]

    def append(self, call: Call) -> None:
        self.axes.append(_axis_behind(call, self.axis))
        self.calls.append(call)


@dataclass
class Group:
    """Branches that become one."""

    layer: Layer
    branches: list[Branch]
    joined: RelayExpr | None = None
    parts: RelayExpr | None = None  # of batches, split


def _shape(expr: RelayExpr) -> tuple[int, ...] | None:
    return static_shape(infer_type_of(expr))


def _is_parameter(expr: RelayExpr) -> bool:
    """Whether an operand comes from parameters alone, and little is done with them."""
    if isinstance(expr, (Constant, Var)):
        return True
    waiting, count = [expr], 0
    while waiting:
        node = waiting.pop()
        count += 1
        if count > _LARGEST_WEIGHT_EXPRESSION or not isinstance(node, (Call, Constant, Var, Op)):
            return False
        if isinstance(node, Op) and (node.fuse is None or node.fuse > OpPattern.INJECTIVE):
            return False
        waiting.extend(operands(node))
    return True


class _Finder:
    """Looks for groups in one function."""

    def __init__(self, func: Function, layer: Layer, least: int) -> None:
        self.layer = layer
        self.least = least
        self.order = post_order(func)
        self.users: dict[int, list[RelayExpr]] = {}
        for node in self.order:
            for operand in operands(node):
                self.users.setdefault(id(operand), []).append(node)

    def groups(self) -> list[Group]:
        siblings: dict[Hashable, list[Call]] = {}
        for node in self.order:
            if not isinstance(node, Call) or node.op is not self.layer.op:
                continue
            if (key := self.layer.key(node)) is not None and _is_parameter(node.args[1]):
                siblings.setdefault((id(node.args[0]), key), []).append(node)
        found = [calls for calls in siblings.values() if len(calls) >= self.least]
        return [Group(self.layer, self._branches(calls)) for calls in found]

    def _branches(self, calls: list[Call]) -> list[Branch]:
        axis = self.layer.axis(calls[0])
        sizes = [tensor_type_of(call).concrete_shape[axis] for call in calls]
        branches = [Branch([c], size, [axis]) for c, size in zip(calls, sizes, strict=True)]
        while True:
            following = [self._next(branch) for branch in branches]
            found = [call for call in following if call is not None]
            if len(found) < len(branches) or not self._are_alike(found, branches):
                break
            for branch, call in zip(branches, found, strict=True):
                branch.append(call)
        return branches

    def _next(self, branch: Branch) -> Call | None:
        users = self.users.get(id(branch.tail), [])
        if len(users) != 1 or not is_operator_call(user := users[0]):
            return None
        fuse = user.operator.fuse
        if fuse is None or fuse > OpPattern.BROADCAST or user.op is ops.broadcast_to:
            return None
        if infer_type_of(user) == infer_type_of(branch.tail):
            return user
        return user if not self.layer.batches and _keeps_columns(user, branch) else None

    def _are_alike(self, calls: list[Call], branches: list[Branch]) -> bool:
        first, axis = calls[0], branches[0].axis
        if any([c.op is not first.op or len(c.args) != len(first.args) for c in calls]):
            return False
        if not all([structural_equal(c.attrs, first.attrs) for c in calls]):
            return False
        places = {
            _argument_index(call, branch.tail) for call, branch in zip(calls, branches, strict=True)
        }
        if len(places) > 1:
            return False
        for position in range(len(first.args)):
            if position in places:
                continue
            others = [call.args[position] for call in calls]
            if all([other is others[0] for other in others]) and _shape(others[0]) == ():
                continue
            sizes = [branch.size for branch in branches]
            if not all([_is_parameter(o) for o in others]):
                return False
            if self.layer.batches:
                if not _can_stack(first, others):
                    return False
                continue
            if self.layer.repeats and axis == -1 and _are_rows(others, sizes):
                continue
            own = -1 if first.op is ops.nn.bias_add else axis
            if not _can_join(others, sizes, own):
                return False
            if first.op is ops.nn.bias_add and not _is_along(first, axis):
                return False
        return True


def _keeps_columns(call: Call, branch: Branch) -> bool:
    """Whether a call that changes a branch's type leaves what is joined along an axis of its own."""
    if call.op is ops.expand_dims:
        return True
    if len(call.args) != 2 or call.attrs is not None:
        return False
    shape = _shape(call)
    return shape is not None and shape[branch.axis] == branch.size


def _axis_behind(call: Call, axis: int) -> int:
    """The joined axis of a call's result, counted from its end, where that of its operand is `axis`."""
    if call.op is not ops.expand_dims:
        return axis
    added, rank = int(call.attrs["num_newaxis"]), len(_shape(call) or ())
    place = int(call.attrs["axis"])
    if place < 0:
        # negative places count from behind the operand's last axis
        place += rank - added + 1
    return axis - added if place > rank - added + axis else axis


def _argument_index(call: Call, argument: RelayExpr) -> int:
    """Which of a call's arguments an expression is."""
    return [arg is argument for arg in call.args].index(True)


def _is_along(bias_add: Call, axis: int) -> bool:
    shape = _shape(bias_add)
    return shape is not None and bias_add.attrs["axis"] % len(shape) == axis % len(shape)


def _can_stack(call: Call, others: list[RelayExpr]) -> bool:
    """Whether operands can become batches of one: they have one type, and no axis moves."""
    first = infer_type_of(others[0])
    same = all([infer_type_of(o) == first for o in others])
    return same and call.attrs is None and _shape(others[0]) not in (None, ())


def _can_join(others: list[RelayExpr], sizes: list[int], axis: int) -> bool:
    shapes = [_shape(other) for other in others]
    if any([shape is None or len(shape) < -axis for shape in shapes]):
        return False
    rest = [(*s[:axis], *s[len(s) + axis + 1 :]) for s in shapes if s is not None]
    along = [s[axis] for s in shapes if s is not None]
    return along == sizes and all([r == rest[0] for r in rest])


def _concat(exprs: Sequence[RelayExpr], axis: int) -> RelayExpr:
    return ops.concatenate(Tuple(exprs), axis=axis)


class _Joiner:
    """Rebuilds a function with its groups joined."""

    def __init__(self, groups: list[Group]) -> None:
        self.by_head = {id(b.calls[0]): group for group in groups for b in group.branches}
        self.by_tail = {id(b.tail): (group, b) for group in groups for b in group.branches}

    def rewrite(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if (group := self.by_head.get(id(old))) is not None and group.joined is None:
            assert isinstance(new, Call)
            group.joined = self._joined(group, new.args[0])
        if (found := self.by_tail.get(id(old))) is not None:
            return self._part(*found)
        return new

    def _joined(self, group: Group, data: RelayExpr) -> RelayExpr:
        branches = group.branches
        heads = [branch.calls[0] for branch in branches]
        joined = group.layer.join(data, heads)
        for level in range(1, len(branches[0].calls)):
            calls = [branch.calls[level] for branch in branches]
            axis = branches[0].axes[level - 1]
            place = _argument_index(calls[0], branches[0].calls[level - 1])
            args: list[RelayExpr] = []
            for position in range(len(calls[0].args)):
                others = [call.args[position] for call in calls]
                if position == place:
                    args.append(joined)
                elif group.layer.batches and _shape(others[0]) != ():
                    args.append(_stacked(others, len(_shape(heads[0]) or ())))
                elif all([other is others[0] for other in others]) and _shape(others[0]) == ():
                    args.append(others[0])
                elif (
                    group.layer.repeats
                    and axis == -1
                    and _are_rows(others, [b.size for b in branches])
                ):
                    pairs = zip(others, branches, strict=True)
                    last = max(len(_shape(others[0]) or ()) - 1, 0)
                    args.append(_concat([_repeated(o, b.size) for o, b in pairs], last))
                else:
                    rank = len(_shape(others[0]) or ())
                    args.append(
                        _concat(others, 0 if calls[0].op is ops.nn.bias_add else rank + axis)
                    )
            joined = Call(calls[0].op, args, calls[0].attrs)
        return joined

    def _part(self, group: Group, branch: Branch) -> RelayExpr:
        assert group.joined is not None
        position = [b is branch for b in group.branches].index(True)
        if group.layer.batches:
            if group.parts is None:
                count = len(group.branches)
                group.parts = ops.split(group.joined, indices_or_sections=count, axis=0)
            return ops.squeeze(TupleGetItem(group.parts, position), axis=(0,))
        rank = len(_shape(branch.tail) or ())
        start = sum([b.size for b in group.branches[:position]])
        return group.layer.cut(group.joined, start, branch.size, rank + branch.axis, rank)


def _stacked(exprs: Sequence[RelayExpr], rank: int) -> RelayExpr:
    """Operands that broadcast to `rank` axes as batches."""
    missing = rank - len(_shape(exprs[0]) or ())
    wide = [ops.expand_dims(e, axis=0, num_newaxis=missing) if missing else e for e in exprs]
    return ops.stack(Tuple(wide), axis=0)


def _are_rows(exprs: Sequence[RelayExpr], sizes: Sequence[int]) -> bool:
    """Whether each has along its last axis the columns of its branch, or a single element."""
    shapes = [_shape(e) for e in exprs]
    rows = [shape or (1,) for shape in shapes if shape is not None]
    alike = len(rows) == len(exprs) and len({row[:-1] for row in rows}) == 1
    return alike and all([row[-1] in (1, n) for row, n in zip(rows, sizes, strict=True)])


def _repeated(expr: RelayExpr, count: int) -> RelayExpr:
    """An operand of `count` columns; a single element is repeated."""
    shape = _shape(expr)
    if shape and shape[-1] == count:
        return expr
    rows = expr if shape else ops.expand_dims(expr, axis=-1, num_newaxis=1)
    return ops.repeat(rows, repeats=count, axis=len(shape or (1,)) - 1)


def _window(expr: RelayExpr, start: int, size: int, axis: int, rank: int) -> RelayExpr:
    return ops.strided_slice(expr, begin=(start,), end=(start + size,), strides=(1,), axes=(axis,))


def _sized_window(expr: RelayExpr, start: int, size: int, axis: int, rank: int) -> RelayExpr:
    """The slice as the classic passes write it, by the sizes along the axes up to its own."""
    return _window_of_all(expr, start, size, axis, axis + 1)


def _window_of_all(expr: RelayExpr, start: int, size: int, axis: int, rank: int) -> RelayExpr:
    """The slice by the sizes along all `rank` axes."""
    before, behind = (0,) * axis, rank - 1 - axis
    return ops.strided_slice(
        expr, begin=(*before, start, *[0] * behind), end=(*[-1] * axis, size, *[-1] * behind),
        strides=(1,) * rank, slice_mode="size",
    )  # fmt: skip


def _combine(name: str, layer: Layer, min_num_branches: int, opt_level: int = 4) -> Pass:
    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        if is_primitive(func):
            return func
        groups = _Finder(func, layer, min_num_branches).groups()
        if not groups:
            return func
        return rewrite_function(func, _Joiner(groups).rewrite)

    return FunctionPass(run, PassInfo(opt_level, name))


# -- the layers


def _dense_key(call: Call) -> Hashable:
    data, weight = _shape(call.args[0]), _shape(call.args[1])
    if data is None or weight is None:
        return None
    return (str(call.attrs["out_dtype"]), str(tensor_type_of(call.args[1]).dtype))


def _constant_dense_key(call: Call) -> Hashable:
    """As `_dense_key`, of weights known now: others would be joined at each run."""
    weight = call.args[1]
    if not _is_parameter(weight) or any([isinstance(n, Var) for n in post_order(weight)]):
        return None
    return _dense_key(call)


def _dense_batch_key(call: Call) -> Hashable:
    key, data, weight = _dense_key(call), _shape(call.args[0]), _shape(call.args[1])
    return None if key is None or data is None or len(data) != 2 else (key, weight)


def _join_dense(data: RelayExpr, calls: Sequence[Call]) -> Call:
    weights = [call.args[1] for call in calls]
    units = sum([tensor_type_of(w).concrete_shape[0] for w in weights])
    attrs = calls[0].attrs.replace(units=units)
    return Call(ops.nn.dense, (data, _concat(weights, 0)), attrs)


def _join_as_batches(data: RelayExpr, calls: Sequence[Call]) -> RelayExpr:
    many = ops.stack(Tuple([data] * len(calls)), axis=0)
    weights = ops.stack(Tuple([call.args[1] for call in calls]), axis=0)
    out_dtype = calls[0].attrs["out_dtype"]
    return ops.nn.batch_matmul(many, weights, out_dtype=out_dtype, transpose_b=True)


def _conv2d_key(call: Call) -> Hashable:
    attrs, weight = call.attrs, _shape(call.args[1])
    layouts = (attrs["data_layout"], attrs["kernel_layout"])
    if attrs["groups"] != 1 or weight is None or layouts not in _CHANNEL_AXES:
        return None
    if _shape(call.args[0]) is None or attrs["out_layout"] not in ("", layouts[0]):
        return None
    size = [d for i, d in enumerate(weight) if i != layouts[1].index("O")]
    dtypes = (str(attrs["out_dtype"]), str(tensor_type_of(call.args[1]).dtype))
    return (attrs["strides"], attrs["padding"], attrs["dilation"], layouts, dtypes, tuple(size))


_CHANNEL_AXES = {("NCHW", "OIHW"): -3, ("NHWC", "HWIO"): -1, ("NHWC", "OHWI"): -1}


def _conv2d_axis(call: Call) -> int:
    return _CHANNEL_AXES[(call.attrs["data_layout"], call.attrs["kernel_layout"])]


def _join_conv2d(data: RelayExpr, calls: Sequence[Call]) -> Call:
    weights = [call.args[1] for call in calls]
    axis = calls[0].attrs["kernel_layout"].index("O")
    channels = sum([tensor_type_of(w).concrete_shape[axis] for w in weights])
    return Call(
        ops.nn.conv2d, (data, _concat(weights, axis)), calls[0].attrs.replace(channels=channels)
    )


def _batch_matmul_key(call: Call) -> Hashable:
    a, b, attrs = _shape(call.args[0]), _shape(call.args[1]), call.attrs
    if a is None or b is None:
        return None
    return (b[0], str(attrs["out_dtype"]), attrs["transpose_a"], attrs["transpose_b"])


def _join_batch_matmul(data: RelayExpr, calls: Sequence[Call]) -> Call:
    axis = 1 if calls[0].attrs["transpose_b"] else 2
    return Call(
        ops.nn.batch_matmul, (data, _concat([call.args[1] for call in calls], axis)), calls[0].attrs
    )


_FLAT_DENSE = Layer(
    ops.nn.dense, _dense_key, _join_dense, lambda _: -1, repeats=True, cut=_window_of_all
)
_CONSTANT_DENSE = Layer(ops.nn.dense, _constant_dense_key, _join_dense, lambda _: -1)
_BATCHED_DENSE = Layer(ops.nn.dense, _dense_batch_key, _join_as_batches, lambda _: -1, batches=True)
_CONV2D = Layer(ops.nn.conv2d, _conv2d_key, _join_conv2d, _conv2d_axis, cut=_sized_window)
_BATCH_MATMUL = Layer(
    ops.nn.batch_matmul, _batch_matmul_key, _join_batch_matmul, lambda _: -1, cut=_sized_window
)


def CombineParallelDense(min_num_branches: int = 3, to_batch: bool = True) -> Pass:
    """Join dense layers of one input.

    Parameters
    ----------
    min_num_branches : join no fewer than these.
    to_batch : into one batch_matmul of layers of one size, rather than into one wide dense layer.
    """
    layer = _BATCHED_DENSE if to_batch else _FLAT_DENSE
    return _combine("CombineParallelDense", layer, min_num_branches)


def CombineParallelConv2D(min_num_branches: int = 3) -> Pass:
    """Join convolutions of one input that differ in their weights alone."""
    return _combine("CombineParallelConv2D", _CONV2D, min_num_branches)


def CombineParallelBatchMatmul(min_num_branches: int = 3) -> Pass:
    """Join batched products of one left factor."""
    return _combine("CombineParallelBatchMatmul", _BATCH_MATMUL, min_num_branches)


def WidenDense(min_num_branches: int = 3) -> Pass:
    """`CombineParallelDense(to_batch=False)` as part of the usual passes.

    Packed weights of a wide layer fill the tiles better: the queries, keys and values of a
    transformer take less time as one layer. Weights that are inputs stay separate.
    """
    return _combine("WidenDense", _CONSTANT_DENSE, min_num_branches, opt_level=2)


def BatchingOps() -> Pass:
    """Join convolutions, dense layers and batched products of one input, each kind in turn."""
    passes = [CombineParallelConv2D(), CombineParallelDense(), CombineParallelBatchMatmul()]
    return Sequential(passes, name="BatchingOps")
