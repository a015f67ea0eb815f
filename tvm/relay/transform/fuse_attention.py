"""Put attention in one kernel each, with the reshapes and transposes around it.

    %0 = nn.batch_matmul(%q, %k);          fn (%q, %k, %v, %mask, Primitive=1) {
    %1 = multiply(%0, 0.125f);               nn.contrib_attention(
    %2 = add(%1, %mask);            ->         %q, %k, transpose(%v), (%mask,), scale=0.125f)
    %3 = nn.softmax(%2);                   }
    nn.batch_matmul(%3, %v)

Scores may be scaled, then replaced where a condition fails, then added to. What only moves
queries, keys and values about is read through, so that they are taken from where they lie.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.ir.type import TensorType
from tvm.relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.new_shape import find_new_shape
from tvm.relay.op.registry import ops
from tvm.relay.op.types import Dim, Shape, are_known, is_any, same_dim, shape_of_type, simplified
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.operators import RESHAPES, calls, is_operator_call
from tvm.relay.traverse import operands, post_order, rewrite_function, with_operands
from tvm.target import Target
from tvm.topi.x86 import choose_attention

_MOVES = (*RESHAPES, ops.transpose, ops.strided_slice, ops.broadcast_to)


@dataclass
class _Scores:
    """What happens between the product of queries and keys and the softmax."""

    product: Call
    heads: int | None = None  # if the scores are split in examples and heads on the way
    scale: float = 1.0
    keep: RelayExpr | None = None
    fill: float = 0.0
    biases: list[RelayExpr] = field(default_factory=list)


@dataclass
class _Match:
    """One attention: from the queries' product to where the heads are put together."""

    scores: _Scores
    result: Call  # the product with the values
    tail: Call  # whose value the kernel gives
    heads: int
    is_merged: bool

    def new_shape(self) -> tuple[int, ...]:
        """The reshape that takes the kernel's heads of a query apart again."""
        tail, (count, queries, width) = _shape(self.tail), _shape(self.result) or (0, 0, 0)
        assert tail is not None, "matched tails have shapes"
        if are_known(tail):
            return tail
        merged = simplified(count // self.heads), queries, simplified(width * self.heads)
        found = find_new_shape(merged, tail)
        assert found is not None, "dimensions are split and dropped alone"
        return tuple(found)


class _Finder:
    """Looks for attention in one function."""

    def __init__(self, func: Function, target: Target) -> None:
        self.order = post_order(func)
        self.target = target
        self.users: dict[int, list[RelayExpr]] = {}
        for node in self.order:
            for operand in operands(node):
                self.users.setdefault(id(operand), []).append(node)

    def matches(self) -> list[_Match]:
        found = [self._match(node) for node in self.order]
        return [match for match in found if match is not None]

    def _match(self, result: RelayExpr) -> _Match | None:
        if not isinstance(result, Call) or result.op is not ops.nn.batch_matmul:
            return None
        if result.attrs["transpose_a"] or not _is_plain(result):
            return None
        weights = self._below_reshapes(result.args[0])
        if weights is None or not calls(weights, ops.nn.softmax) or not self._is_used_once(weights):
            return None
        assert isinstance(weights, Call)
        shape = _shape(weights)
        if shape is None or weights.attrs["axis"] not in (-1, len(shape) - 1):
            return None
        scores = self._scores(weights.args[0])
        if scores is None or not _is_plain(scores.product) or not self._is_worth(scores, result):
            return None
        if not _have_same_shape(scores.product, result.args[0]):
            return None
        return self._with_tail(scores, result)

    def _is_worth(self, scores: _Scores, result: Call) -> bool:
        query, key, value = [_shape(e) for e in _factors(scores, result)]
        if query is None or key is None or value is None:
            return False
        if not (same_dim(query[0], key[0]) and same_dim(query[0], value[0])):
            return False
        return choose_attention(query, value, "float32", self.target) is not None

    def _is_used_once(self, expr: RelayExpr) -> bool:
        return len(self.users.get(id(expr), ())) == 1

    def _below_reshapes(self, expr: RelayExpr) -> RelayExpr | None:
        """What is reshaped without a change of the last two axes."""
        while calls(expr, *RESHAPES):
            assert isinstance(expr, Call)
            if not self._is_used_once(expr) or not _keeps_matrices(expr.args[0], expr):
                return None
            expr = expr.args[0]
        return expr

    def _scores(self, expr: RelayExpr) -> _Scores | None:
        """The product of queries and keys under what is done to it."""
        if not isinstance(expr, Call) or not self._is_used_once(expr):
            return None
        if expr.op is ops.nn.batch_matmul:
            return _Scores(expr)
        if calls(expr, *RESHAPES):
            return self._reshaped(expr)
        if expr.op is ops.where:
            return self._replaced(expr)
        if calls(expr, ops.multiply, ops.divide):
            return self._scaled(expr)
        if expr.op is ops.add:
            return self._biased(expr)
        return None

    def _biased(self, expr: Call) -> _Scores | None:
        shape = _shape(expr)
        for position in (0, 1):
            found = self._scores(expr.args[position])
            if (
                found is not None
                and shape is not None
                and _have_same_shape(expr.args[position], expr)
            ):
                return _with_bias(found, expr.args[1 - position], len(shape))
        return None

    def _reshaped(self, expr: Call) -> _Scores | None:
        found, shape = self._scores(expr.args[0]), _shape(expr)
        if found is None or shape is None or not _keeps_matrices(expr.args[0], expr):
            return None
        if len(shape) == 4:
            heads = shape[1]
            if not isinstance(heads, int) or found.heads not in (None, heads):
                return None
            if len(_shape(expr.args[0]) or ()) != 3:
                return None
            found.heads = heads
            return found
        return found if len(shape) == 3 else None

    def _replaced(self, expr: Call) -> _Scores | None:
        condition, scores, fill = expr.args
        found, value = self._scores(scores), _number(fill)
        is_first = found is not None and found.keep is None and not found.biases
        if found is None or value is None or not is_first or not _have_same_shape(scores, expr):
            return None
        shape = _shape(expr) or ()
        found.keep, found.fill = _as_mask(condition, found, len(shape)), value
        return found if found.keep is not None else None

    def _scaled(self, expr: Call) -> _Scores | None:
        for position in (0, 1) if expr.op is ops.multiply else (0,):
            number = _number(expr.args[1 - position])
            if number is None:
                continue
            found = self._scores(expr.args[position])
            if found is None or found.keep is not None or found.biases:
                return None
            found.scale *= number if expr.op is ops.multiply else 1.0 / number
            return found
        return None

    def _with_tail(self, scores: _Scores, result: Call) -> _Match:
        """The match, up to the transpose that puts the heads of a query side by side."""
        count = (_shape(result) or (1,))[0]
        heads = scores.heads or 1
        plain = _Match(scores, result, result, heads, False)
        node: RelayExpr = result
        while True:
            users = self.users.get(id(node), ())
            if len(users) != 1 or not isinstance(users[0], Call):
                return plain
            user, shape = users[0], _shape(node)
            if calls(user, *RESHAPES) and _keeps_matrices(node, user):
                node = user
                continue
            if user.op is not ops.transpose or shape is None:
                return plain
            merged = _merged_heads(shape, user.attrs["axes"])
            if merged is None or not _divides(merged, count) or (scores.heads or merged) != merged:
                return plain
            # other heads would distinguish the masks' examples in another way
            if scores.heads is None and (scores.biases or scores.keep is not None):
                return plain
            return _Match(scores, result, user, merged, True)


def _merged_heads(shape: Shape, axes: Sequence[int] | None) -> int | None:
    """The heads, if a transpose puts those of one query side by side."""
    order = None if axes is None else [int(a) % len(shape) for a in axes]
    heads: Dim | None = None
    if len(shape) == 3 and order == [1, 0, 2]:
        heads = shape[0]
    if len(shape) == 4 and (
        order == [0, 2, 1, 3] or (order == [2, 0, 1, 3] and same_dim(shape[0], 1))
    ):
        heads = shape[1]
    return heads if isinstance(heads, int) else None


def _divides(number: int, extent: Dim) -> bool:
    return same_dim(simplified(extent % number), 0)


def _is_plain(product: Call) -> bool:
    ty = product.checked_type
    types = [arg.checked_type for arg in product.args]
    return all([isinstance(t, TensorType) and t.dtype == "float32" for t in (ty, *types)])


def _shape(expr: RelayExpr) -> Shape | None:
    """The dimensions, numbers or expressions; None if nothing is known of one."""
    ty = expr.checked_type
    shape = shape_of_type(ty) if isinstance(ty, TensorType) else None
    return None if shape is None or any([is_any(dim) for dim in shape]) else shape


def _have_same_shape(left: RelayExpr, right: RelayExpr) -> bool:
    """Whether two values certainly have the same shape."""
    a, b = _shape(left), _shape(right)
    return a is not None and b is not None and _are_same(a, b)


def _are_same(a: Shape, b: Shape) -> bool:
    return len(a) == len(b) and all([same_dim(x, y) for x, y in zip(a, b, strict=True)])


def _keeps_matrices(before: RelayExpr, after: RelayExpr) -> bool:
    """Whether a reshape leaves the last two axes alone."""
    old, new = _shape(before), _shape(after)
    return old is not None and new is not None and len(new) >= 3 and _are_same(old[-2:], new[-2:])


def _number(expr: RelayExpr) -> float | None:
    """The value of a constant with one element."""
    if isinstance(expr, Constant) and math.prod(expr.data.shape) == 1:
        return float(expr.data.numpy().item())
    return None


def _as_mask(expr: RelayExpr, found: _Scores, rank: int) -> RelayExpr | None:
    """A mask of scores of that rank, its axes the last of (batch, heads, queries, keys)."""
    shape = _shape(expr)
    if shape is None or len(shape) < 3 or rank == 4:
        return None if shape is None else expr
    if same_dim(shape[0], 1):
        return ops.squeeze(expr, axis=[0])
    found.heads = found.heads or 1
    if not _divides(found.heads, shape[0]):
        return None
    return ops.reshape(expr, newshape=(-4, -1, found.heads, -2))


def _with_bias(found: _Scores, bias: RelayExpr, rank: int) -> _Scores | None:
    mask = _as_mask(bias, found, rank)
    if mask is None:
        return None
    found.biases.append(mask)
    return found


def _factors(scores: _Scores, result: Call) -> tuple[RelayExpr, RelayExpr, RelayExpr]:
    """Queries, keys and values with one of them a row."""
    product = scores.product
    return (
        _oriented(product.args[0], bool(product.attrs["transpose_a"])),
        _oriented(product.args[1], not product.attrs["transpose_b"]),
        _oriented(result.args[1], bool(result.attrs["transpose_b"])),
    )


def _oriented(expr: RelayExpr, is_transposed: bool) -> RelayExpr:
    if not is_transposed:
        return expr
    turned = ops.transpose(expr, axes=(0, 2, 1))
    a, b, c = _shape(expr) or (0, 0, 0)
    turned._checked_type_ = TensorType((a, c, b), "float32")
    return turned


class _Kernel:
    """The primitive function of one attention."""

    def __init__(self) -> None:
        self.params: list[Var] = []
        self.roots: list[RelayExpr] = []

    def param_for(self, root: RelayExpr) -> Var:
        """The parameter that stands for a value computed outside."""
        for param, known in zip(self.params, self.roots, strict=True):
            if known is root:
                return param
        self.params.append(Var(f"p{len(self.params)}", root.checked_type))
        self.roots.append(root)
        return self.params[-1]

    def moved(self, expr: RelayExpr) -> RelayExpr:
        """A value read through what only moves it."""
        if isinstance(expr, TupleGetItem) and calls(expr.tuple_value, ops.split):
            return with_operands(expr, [self._over_moved(expr.tuple_value)])
        return self._over_moved(expr) if _only_moves(expr) else self.param_for(expr)

    def _over_moved(self, expr: RelayExpr) -> RelayExpr:
        op, data, *rest = operands(expr)
        return with_operands(expr, [op, self.moved(data), *rest])


def _only_moves(expr: RelayExpr) -> bool:
    if not is_operator_call(expr):
        return False
    if expr.op is ops.take:
        return isinstance(expr.args[1], Constant) and expr.args[1].data.shape == ()
    return calls(expr, *_MOVES) and len(expr.args) == 1


def _without_factors(expr: RelayExpr) -> tuple[RelayExpr, float]:
    """A value without the numbers it is multiplied with on its way, and their product."""
    if calls(expr, ops.multiply, ops.divide):
        assert isinstance(expr, Call)
        for position in (0, 1) if expr.op is ops.multiply else (0,):
            number = _number(expr.args[1 - position])
            if number is not None and _have_same_shape(expr.args[position], expr):
                inner, factor = _without_factors(expr.args[position])
                return inner, factor * (number if expr.op is ops.multiply else 1.0 / number)
    if _only_moves(expr):
        op, data, *rest = operands(expr)
        inner, factor = _without_factors(data)
        return with_operands(expr, [op, inner, *rest]), factor
    return expr, 1.0


def _outlined(match: _Match, outside: dict[int, RelayExpr]) -> RelayExpr:
    """A call of the kernel on the values of the rebuilt function."""
    scores, kernel = match.scores, _Kernel()
    query, key, value = _factors(scores, match.result)
    (query, first), (key, second) = _without_factors(query), _without_factors(key)
    inside = [kernel.moved(e) for e in (query, key, value)]
    masks = [kernel.moved(bias) for bias in scores.biases]
    if masks:
        masks = [reduce(ops.add, masks)]
    if scores.keep is not None:
        masks.append(kernel.moved(scores.keep))
    body = ops.nn.contrib_attention(
        *inside,
        Tuple(masks),
        scale=scores.scale * first * second,
        fill=scores.fill,
        has_bias=bool(scores.biases),
        has_keep=scores.keep is not None,
        heads=match.heads,
        merge_heads=match.is_merged,
    )
    func = Function(kernel.params, body, None, (), {"Primitive": 1})
    call = Call(func, [outside[id(root)] for root in kernel.roots])
    return ops.reshape(call, newshape=match.new_shape()) if match.is_merged else call


class _Rewriter:
    """Rebuilds a function with its attentions as kernels."""

    def __init__(self, matches: list[_Match]) -> None:
        self.by_tail = {id(match.tail): match for match in matches}
        self.done: dict[int, RelayExpr] = {}

    def rewrite(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        match = self.by_tail.get(id(old))
        result = new if match is None else _outlined(match, self.done)
        self.done[id(old)] = result
        return result


@relay_pass("FuseAttention", opt_level=2)
def fuse_attention(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Put attention in kernels of its own."""
    target = Target.current()
    if is_primitive(func) or target is None or "cpu" not in target.keys:
        return func
    matches = _Finder(func, target).matches()
    if not matches:
        return func
    return rewrite_function(func, _Rewriter(matches).rewrite)


FuseAttention = fuse_attention.factory
