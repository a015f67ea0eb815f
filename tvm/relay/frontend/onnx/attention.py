"""Attention of com.microsoft: heads, masks, caches of keys and values, rotary positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.expr import Constant
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, is_static, scalar_like
from tvm.relay.frontend.dynamic_extents import (
    as_vector,
    broadcast,
    difference_of,
    extent,
    iota,
    sum_of,
)
from tvm.relay.frontend.matmul import matmul
from tvm.relay.frontend.normalization import rms_norm

from .quantized import integer_matmul
from .registry import OnnxNode, onnx_op, onnx_ops


def split_heads(x: RelayExpr, count: int) -> RelayExpr:
    """(batch, length, hidden) as (batch, heads, length, size)."""
    size = infer_shape(x)[-1] // count
    return _op.transpose(_op.reshape(x, (0, 0, count, size)), (0, 2, 1, 3))


def join_heads(x: RelayExpr) -> RelayExpr:
    """(batch, heads, length, size) as (batch, length, hidden)."""
    _, heads, _, size = infer_shape(x)
    return _op.reshape(_op.transpose(x, (0, 2, 1, 3)), (0, 0, heads * size))


@dataclass(frozen=True)
class Scores:
    """How the products of queries and keys become weights."""

    scale: float
    masks: Sequence[RelayExpr]  # added to the scores
    softcap: float = 0.0
    sink: RelayExpr | None = None  # a score of each head that takes weight from all keys

    def products(self, q: RelayExpr, k: RelayExpr) -> RelayExpr:
        """The scaled product of each key and each query, masks added."""
        scores = matmul(q, _op.transpose(k, (0, 1, 3, 2))) * scalar_like(self.scale, q)
        if self.softcap:
            cap = scalar_like(self.softcap, q)
            scores = cap * _op.tanh(scores / cap)
        for mask in self.masks:
            scores = scores + mask
        return scores

    def weights(self, q: RelayExpr, k: RelayExpr) -> RelayExpr:
        """The weight of each key for each query."""
        scores = self.products(q, k)
        if self.sink is None:
            return _op.nn.softmax(scores, axis=-1)
        first = _op.strided_slice(scores, [0], [1], axes=[3])
        column = _op.zeros_like(first) + _op.reshape(self.sink, (1, -1, 1, 1))
        weights = _op.nn.softmax(_op.concatenate([scores, column], 3), axis=-1)
        return _op.strided_slice(weights, [0], [-1], axes=[3])


def split_qkv(node: OnnxNode, x: RelayExpr) -> list[RelayExpr]:
    """Queries, keys and values, which stand beside each other in the last axis."""
    sizes = node.attr("qkv_hidden_sizes") or [infer_shape(x)[-1] // 3] * 3
    parts = _op.split(x, tuple(np.cumsum(sizes[:2]).tolist()), len(infer_shape(x)) - 1)
    return [parts[i] for i in range(3)]


def with_biases(parts: list[RelayExpr], bias: RelayExpr) -> list[RelayExpr]:
    """Queries, keys and values with their parts of a bias."""
    ends = np.cumsum([infer_shape(part)[-1] for part in parts[:2]]).tolist()
    biases = _op.split(bias, tuple(ends), 0)
    return [part + biases[i] for i, part in enumerate(parts)]


def attend(
    node: OnnxNode, q: RelayExpr, k: RelayExpr, v: RelayExpr, masks: Sequence[RelayExpr | None]
) -> RelayExpr:
    """The values by the weights of their keys, heads joined."""
    return join_heads(matmul(_scores(node, q, masks).weights(q, k), v))


def _scores(node: OnnxNode, q: RelayExpr, masks: Sequence[RelayExpr | None]) -> Scores:
    scale = node.attr("scale", 0.0) or 1 / math.sqrt(infer_shape(q)[-1])
    return Scores(scale, [mask for mask in masks if mask is not None])


def mask_of(kept: RelayExpr, like: RelayExpr, low: float) -> RelayExpr:
    """What is added to scores: zero where they are kept, ``low`` elsewhere."""
    return _op.where(kept, scalar_like(0.0, like), scalar_like(low, like))


def lowest(like: RelayExpr) -> float:
    """The least finite number of an element type."""
    return float(np.finfo(infer_dtype(like)).min)


def _causal(rows: Any, columns: Any, like: RelayExpr) -> RelayExpr:
    """Positions of the future, far below all scores; the last row sees all columns."""
    last = _op.expand_dims(iota(rows) + as_vector(difference_of(columns, rows)), 1)
    return mask_of(_op.less_equal(iota(columns), last), like, lowest(like))


def _key_mask(node: OnnxNode, index: int, rows: Any, columns: Any, like: RelayExpr) -> Any:
    """A mask of keys: lengths of the batch's items, or one number a key (0: masked)."""
    if not node.has(index):
        return None
    kept = _kept_keys(node, index, rows, columns, extent(like, 0))
    rank, have = len(infer_shape(kept)), infer_shape(kept)[-1]
    if isinstance(have, int) and isinstance(columns, int) and have < columns:  # a cache with room
        rest = [(0, 0)] * (rank - 1) + [(0, columns - have)]
        kept = _op.cast(_op.nn.pad(_op.cast(kept, "uint8"), rest), "bool")
    if rank < 4:
        kept = _op.expand_dims(kept, 1, 4 - rank)
    return mask_of(kept, like, node.attr("mask_filter_value", -10000.0))


def _kept_keys(node: OnnxNode, index: int, rows: Any, columns: Any, batch: Any) -> RelayExpr:
    mask, shape = node[index], node.shape(index)
    if len(shape) == 1:
        slots = _op.cast(_op.expand_dims(iota(columns), 0), node.dtype(index))
        if not isinstance(batch, int) or not isinstance(shape[0], int):
            return _op.less(slots, _op.expand_dims(mask, 1))  # a number for each item
        ends = _op.strided_slice(mask, [0], [batch])
        kept = _op.less(slots, _op.expand_dims(ends, 1))
        if shape[0] == 2 * batch and batch:  # where each begins follows where it ends
            begins = _op.strided_slice(mask, [batch], [2 * batch])
            kept = _op.logical_and(kept, _op.greater_equal(slots, _op.expand_dims(begins, 1)))
        elif shape[0] != batch:
            raise node.unsupported(f"a mask of shape {shape}")
        return kept
    if len(shape) == 4:  # of all positions there may be
        own = iota(rows) + as_vector(difference_of(columns, rows))
        mask = _op.take(_op.take(mask, own, 2), iota(columns), 3)
    return _op.not_equal(mask, scalar_like(0, mask))


def _appended(past: RelayExpr, new: RelayExpr) -> RelayExpr:
    """A cache and what comes after it, along the positions."""
    return _op.concatenate([past, new], 2)


@dataclass(frozen=True)
class Buffer:
    """A cache with room for more positions than it holds: how many it holds, known at import or
    not, and how many come new."""

    held: RelayExpr
    new: Any

    def filled(self, past: RelayExpr, new: RelayExpr) -> RelayExpr:
        """The buffer with the new positions behind those it holds."""
        slots = iota(extent(past, 2)) - _op.cast(self.held, "int64")
        zero, new_count = constant(0, "int64"), _op.reshape(as_vector(self.new), ())
        source = _op.maximum(_op.minimum(slots, new_count - constant(1, "int64")), zero)
        is_new = _op.logical_and(_op.greater_equal(slots, zero), _op.less(slots, new_count))
        return _op.where(_op.reshape(is_new, (1, 1, -1, 1)), _op.take(new, source, 2), past)

    def mask(self, room: Any, is_causal: bool, like: RelayExpr) -> RelayExpr:
        """Far below all scores where nothing is held yet, or for a query what comes later."""
        last = iota(self.new)
        if not is_causal:
            last = _op.zeros_like(last) + as_vector(difference_of(self.new, 1))
        ends = _op.cast(self.held, "int64") + _op.expand_dims(last, 1)
        kept = _op.less_equal(_op.expand_dims(iota(room), 0), ends)
        return mask_of(kept, like, lowest(like))


def _buffer(node: OnnxNode, length: int, new: Any) -> Buffer | None:
    """The cache that inputs and outputs share, if the input ``length`` says what it holds."""
    if node.attr("do_rotary", 0):
        raise node.unsupported("rotary positions")
    if not node.has(length):
        if node.attr("past_present_share_buffer", 0):
            raise node.unsupported("a cache that inputs and outputs share without its length")
        return None
    return Buffer(_op.reshape(node[length], ()), new)


@onnx_op("com.microsoft.Attention")
def _attention(node: OnnxNode) -> list[RelayExpr]:
    """Self-attention from one product for queries, keys and values."""
    x = matmul(node[0], node[1])
    x = x + node[2] if node.has(2) else x
    return _self_attention(node, x, past=4, mask=3, bias=5, held=6)


@onnx_op("com.microsoft.QAttention")
def _quantized_attention(node: OnnxNode) -> list[RelayExpr]:
    total = integer_matmul(node, (0, 6), (1, 7))
    x = _op.cast(total, "float32") * (node[3] * node[4]) + node[2]
    return _self_attention(node, x, past=8, mask=5, bias=9, held=10)


def _self_attention(
    node: OnnxNode, x: RelayExpr, past: int, mask: int, bias: int, held: int
) -> list[RelayExpr]:
    """Attention within ``x``, queries beside keys beside values; the others are inputs' indices."""
    q, k, v = [split_heads(part, node.attr("num_heads")) for part in split_qkv(node, x)]
    buffer = _buffer(node, held, extent(q, 2))
    if node.has(past):
        old = [_op.squeeze(part, [0]) for part in _op.split(node[past], 2, 0)]
        extend = buffer.filled if buffer else _appended
        k, v = extend(old[0], k), extend(old[1], v)
    masks = _masks(node, mask, bias, q, k, buffer)
    result = [attend(node, q, k, v, masks)]
    return [*result, _op.stack([k, v], 0)] if node.output_count > 1 else result


def _masks(
    node: OnnxNode, mask: int, bias: int, q: RelayExpr, k: RelayExpr, buffer: Buffer | None
) -> list[RelayExpr | None]:
    """What is added to the scores; ``mask`` and ``bias`` are inputs' indices."""
    rows, columns = extent(q, 2), extent(k, 2)
    masks = [_key_mask(node, mask, rows, columns, q), _wide_bias(node, bias, columns)]
    is_causal = bool(node.attr("unidirectional", 0))
    if buffer:
        masks.append(buffer.mask(columns, is_causal, q))
    elif is_causal:
        masks.append(_causal(rows, columns, q))
    return masks


def _wide_bias(node: OnnxNode, index: int, columns: Any) -> RelayExpr | None:
    """A bias of all keys there is room for."""
    if not node.has(index):
        return None
    bias, have = node[index], node.shape(index)[-1]
    if not isinstance(have, int) or not isinstance(columns, int) or have in (1, columns):
        return bias
    return _op.nn.pad(bias, [(0, 0)] * 3 + [(0, columns - have)])


@onnx_op("com.microsoft.MultiHeadAttention")
def _multi_head_attention(node: OnnxNode) -> list[RelayExpr]:
    """Attention of projected queries, keys and values."""
    q, k, v = _projected(node)
    buffer = _buffer(node, 8, extent(q, 2)) if node.has(6) else None
    if node.has(6):
        extend = buffer.filled if buffer else _appended
        k, v = extend(node[6], k), extend(node[7], v)
    seen = [_of_beams(node, 9, x) for x in (k, v)] if node.has(9) and buffer else [k, v]
    scores = _scores(node, q, _masks(node, 4, 5, q, k, buffer))
    result = join_heads(matmul(scores.weights(q, seen[0]), seen[1]))
    outputs = [result, k, v]
    if node.output_count > 3:
        outputs.append(scores.products(q, seen[0]))
    return outputs[: node.output_count]


def _of_beams(node: OnnxNode, index: int, cache: RelayExpr) -> RelayExpr:
    """The cache as each beam sees it: (batch, beams, positions) says whose each position is."""
    shape = infer_shape(cache)
    batch, beams, room = node.static_shape(index)
    first = constant((np.arange(batch) * beams)[:, None, None], node.dtype(index))
    rows = _op.reshape(node[index] + first, (batch * beams, 1, room, 1))
    if room != shape[2]:
        rows = _op.strided_slice(rows, [0], [shape[2]], axes=[2])
    return _op.gather(cache, 0, _op.cast(_op.broadcast_to(rows, shape), "int64"))


@onnx_op("com.microsoft.DecoderMaskedSelfAttention")
def _decoder_self_attention(node: OnnxNode) -> list[RelayExpr]:
    """The same from one product for queries, keys and values; keys and values in one cache."""
    x = matmul(node[0], node[1]) + node[2]
    q, k, v = split_qkv(node, x)
    old = [_op.squeeze(part, [0]) for part in _op.split(node[4], 2, 0)]
    rest = [node[i] if node.has(i) else None for i in (3, 5)]
    tail = [node[i] if node.has(i) else None for i in (6, 8)]
    view = replace(node, inputs=[q, k, v, None, *rest, *old, *tail], output_count=3)
    result, keys, values = _multi_head_attention(view)
    return [result, _op.stack([keys, values], 0)][: node.output_count]


def _projected(node: OnnxNode) -> list[RelayExpr]:
    """Queries, keys and values by heads; all or the last two may come in one tensor."""
    heads = node.attr("num_heads")
    parts = [node[i] for i in range(3) if node.has(i)]
    if len(infer_shape(parts[-1])) == 5:
        packed = parts.pop()
        parts += [
            _op.reshape(part, (0, 0, -1)) for part in _op.split(packed, infer_shape(packed)[3], 3)
        ]
    if len(parts) == 1:
        hidden = infer_shape(parts[0])[-1] // 3
        parts = list(_op.split(parts[0], (hidden, 2 * hidden), 2))
    if node.has(3):
        of_input = [i for i in range(3) if len(infer_shape(parts[i])) == 3]
        counts = [infer_shape(parts[min(i, of_input[-1])])[-1] for i in range(2)]
        biases = _op.split(node[3], tuple(np.cumsum(counts).tolist()), 0)
        parts = [p + biases[i] if i in of_input else p for i, p in enumerate(parts)]
    return [p if len(infer_shape(p)) == 4 else split_heads(p, heads) for p in parts]


# ---- groups of queries that share keys and values


@onnx_op("com.microsoft.GroupQueryAttention")
def _group_query_attention(node: OnnxNode) -> list[RelayExpr]:
    """Attention over a cache; the items of a batch may be of different lengths."""
    if (
        node.has(12)
        or node.has(13)
        or node.attr("sliding_window_cache", 0)
        or node.output_count > 3
    ):
        raise node.unsupported("quantised or rolling caches, nor the output of its scores")
    q, k, v = _normalized(node, _grouped_heads(node))
    length, total = extent(q, 2), _total_length(node)
    starts = _starts(node, extent(q, 0), length, total)
    if node.attr("do_rotary", 0):
        positions = node[9] if node.has(9) else starts + _iota_row(length)
        is_interleaved = bool(node.attr("rotary_interleaved", 0))
        q, k = [rotated(x, positions, node[7], node[8], is_interleaved) for x in (q, k)]
    if node.has(3):
        k, v = [_cached(node[i], x, starts, total) for i, x in ((3, k), (4, v))]
    present = [k, v]
    room = extent(k, 2)
    if not isinstance(room, int) or not isinstance(total, int):
        k, v = [_op.take(x, iota(total), 2) for x in (k, v)]
    elif room != total:  # a cache with room for more
        k, v = [_op.strided_slice(x, [0], [total], axes=[2]) for x in (k, v)]
    share = node.attr("num_heads") // node.attr("kv_num_heads")
    k, v = [_op.repeat(x, share, 1) if share > 1 else x for x in (k, v)]
    weights = _group_scores(node, q, starts, total).weights(q, k)
    return [join_heads(matmul(weights, v)), *present][: node.output_count]


def _grouped_heads(node: OnnxNode) -> list[RelayExpr]:
    heads, shared = node.attr("num_heads"), node.attr("kv_num_heads")
    if node.has(1):
        parts = [node[0], node[1], node[2]]
    else:
        size = node.shape(0)[-1] // (heads + 2 * shared)
        parts = list(_op.split(node[0], (heads * size, (heads + shared) * size), 2))
    return [split_heads(x, n) for x, n in zip(parts, (heads, shared, shared), strict=True)]


def _normalized(node: OnnxNode, parts: list[RelayExpr]) -> list[RelayExpr]:
    """Queries and keys with a root mean square of one in each head, if weights for it are given."""
    if not node.has(14):
        return parts
    epsilon = node.attr("qk_norm_epsilon", 1e-6)
    return [
        rms_norm(parts[0], [-1], epsilon, node[14]),
        rms_norm(parts[1], [-1], epsilon, node[15]),
        parts[2],
    ]


def _total_length(node: OnnxNode) -> Any:
    """The length of the longest item with its new positions."""
    total = node.value_or_expr(6, "the total length")
    if isinstance(total, RelayExpr):
        return _op.reshape(_op.cast(total, "int64"), (1,))
    return int(total.reshape(()))


def _iota_row(count: Any) -> RelayExpr:
    """The slots from zero up to an extent, (1, count)."""
    return _op.expand_dims(_op.cast(iota(count), "int32"), 0)


def _starts(node: OnnxNode, batch: Any, length: Any, total: Any) -> RelayExpr:
    """Where the new positions of each item of the batch begin, (batch, 1)."""
    is_known = is_static([batch, length, total])
    if is_known and length == total:
        return constant(np.zeros((batch, 1)), "int32")
    if is_known and batch == 1:  # the longest item is as long as the total
        return constant([[total - length]], "int32")
    last = _op.reshape(_op.cast(node[5], "int32"), (-1, 1))
    starts = last + _op.cast(as_vector(difference_of(1, length)), "int32")
    if is_known:
        return starts
    # a prompt begins at zero, filled up behind the shorter items
    is_prompt = _op.equal(as_vector(length), as_vector(total))
    return _op.where(is_prompt, _op.zeros_like(starts), starts)


def _cached(past: RelayExpr, new: RelayExpr, starts: RelayExpr, total: Any) -> RelayExpr:
    """The cache with the new positions where each item of the batch begins, zeros behind them."""
    batch, heads, room, size = [extent(past, axis) for axis in range(4)]
    length = extent(new, 2)
    if (begin := _known_start(starts)) is not None:
        end = max(room, total)
        parts = [_op.strided_slice(past, [0], [begin], axes=[2])] if begin else []
        parts.append(new)
        if begin + length < end:
            rest = (batch, heads, end - begin - length, size)
            parts.append(_op.zeros(rest, infer_dtype(new)))
        return _op.concatenate(parts, 2) if len(parts) > 1 else new
    is_known = isinstance(room, int) and isinstance(total, int)
    end = max(room, total) if is_known else _op.maximum(as_vector(room), as_vector(total))
    slots = _iota_row(end)
    of_new, behind = slots - starts, sum_of(room, length)
    source = _op.where(_op.less(of_new, _narrow(length)), of_new + _narrow(room), _narrow(behind))
    source = _op.where(_op.less(slots, starts), slots, source)
    source = broadcast(_op.expand_dims(_op.expand_dims(source, 1), 3), [batch, heads, end, size])
    widths = [(0, 0), (0, 0), (0, 1), (0, 0)]
    return _op.gather(_op.nn.pad(_op.concatenate([past, new], 2), widths), 2, source)


def _narrow(count: Any) -> RelayExpr:
    return _op.cast(as_vector(count), "int32")


def _known_start(starts: RelayExpr) -> int | None:
    """Where all items begin, if that is one position known at import."""
    found = np.unique(starts.data.numpy()) if isinstance(starts, Constant) else np.zeros(0)
    return int(found[0]) if found.size == 1 else None


def _group_scores(node: OnnxNode, q: RelayExpr, starts: RelayExpr, total: Any) -> Scores:
    _, heads, _, size = infer_shape(q)
    kept = _visible_keys(node, starts, extent(q, 2), total)
    masks = [mask_of(_op.expand_dims(kept, 1), q, lowest(q))]
    if node.has(10):
        masks.insert(0, node[10])
    sink = node[11] if node.has(11) else None
    if sink is None and node.attr("smooth_softmax", 0) == 1:
        sink = constant(np.zeros(heads), infer_dtype(q))
    scale = node.attr("scale", 0.0) or 1 / math.sqrt(size)
    return Scores(scale, masks, node.attr("softcap", 0.0), sink)


def _visible_keys(node: OnnxNode, starts: RelayExpr, length: Any, total: Any) -> RelayExpr:
    """(batch, queries, keys): the keys that each query may look at."""
    keys, queries = _op.expand_dims(_iota_row(total), 0), _iota_row(length)
    if not node.attr("causal", 1):
        ends = _op.reshape(_op.cast(node[5], "int32"), (-1, 1))
        return _op.less_equal(keys, _op.expand_dims(ends + _op.zeros_like(queries), 2))
    own = _op.expand_dims(starts + queries, 2)
    kept = _op.less_equal(keys, own)
    if (window := node.attr("local_window_size", -1)) > 0:
        near = _op.greater(keys, own - constant(window, "int32"))
        kept = _op.logical_and(kept, near)
    return kept


# ---- rotary positions


def rotated(
    x: RelayExpr, positions: RelayExpr, cosine: RelayExpr, sine: RelayExpr, is_interleaved: bool
) -> RelayExpr:
    """The heads' first numbers turned in pairs, by angles of a table at each item's positions."""
    half, size = infer_shape(cosine)[1], infer_shape(x)[3]
    rest = None
    if 2 * half != size:
        x, rest = _op.split(x, (2 * half,), 3)
    cosine, sine = [_op.expand_dims(_op.take(table, positions, 0), 1) for table in (cosine, sine)]
    if is_interleaved:
        pairs = _op.reshape(x, (0, 0, 0, half, 2))
        a, b = [_op.squeeze(part, [4]) for part in _op.split(pairs, 2, 4)]
        turned = _op.stack([a * cosine - b * sine, a * sine + b * cosine], 4)
        turned = _op.reshape(turned, (0, 0, 0, 2 * half))
    else:
        a, b = _op.split(x, 2, 3)
        turned = _op.concatenate([a * cosine - b * sine, b * cosine + a * sine], 3)
    return turned if rest is None else _op.concatenate([turned, rest], 3)


@onnx_op("com.microsoft.RotaryEmbedding")
def _rotary_embedding(node: OnnxNode) -> RelayExpr:
    """Pairs of numbers turned by angles that grow with the position."""
    x, rank = node[0], len(node.shape(0))
    if rank == 3:
        hidden = node.shape(0)[2]
        x = split_heads(x, node.attr("num_heads", 0) or hidden // (2 * node.shape(2)[1]))
    positions = node[1]
    if len(node.shape(1)) < 2:  # of the first
        following = _op.expand_dims(iota(extent(x, 2)), 0)
        positions = _op.reshape(positions, (1, 1)) + following
    result = rotated(x, positions, node[2], node[3], bool(node.attr("interleaved", 0)))
    return result if rank == 4 else join_heads(result)


@onnx_op("com.microsoft.GemmaRotaryEmbedding")
def _gemma_rotary_embedding(node: OnnxNode) -> list[RelayExpr]:
    angles = _op.expand_dims(node[0], 1)
    cosine, sine = [_op.cast(f(angles), node.dtype(1)) for f in (_op.cos, _op.sin)]
    return [node[i] * cosine + node[i + 1] * sine for i in (1, 3)]


onnx_ops({
    # `MultiHeadAttention` of one new position, with its inputs in another order
    "com.microsoft.DecoderMaskedMultiHeadAttention": lambda node: _multi_head_attention(
        replace(
            node, inputs=[node[i] if node.has(i) else None for i in (0, 1, 2, 10, 3, 4, 5, 6, 7, 9)]
        )
    ),
})  # fmt: skip
