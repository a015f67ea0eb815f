"""Drawn calls of operators on elements, axes and places."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm import relay

from .cases import _BINARY, _INTEGER_BINARY, _UNARY
from .drawing import FLOATS, INTEGERS, NUMBERS, Draw, Drawn


def element_wise(d: Draw) -> Drawn:
    name, function, low, high = d.pick(*_UNARY)
    data = d.array(d.shape(0), d.pick(*FLOATS), low, high)
    expected = np.asarray(function(data.astype("float64")))
    return getattr(relay, name), [data], expected.astype("bool" if "is" in name[:2] else data.dtype)


def element_wise_of_integers(d: Draw) -> Drawn:
    name, function = d.pick(
        ("abs", np.abs), ("negative", np.negative), ("sign", np.sign), ("bitwise_not", np.invert),
        ("copy", np.copy), ("floor", np.copy), ("ceil", np.copy), ("round", np.copy), ("trunc", np.copy),
        ("zeros_like", np.zeros_like), ("ones_like", np.ones_like),
    )  # fmt: skip
    data = d.array(d.shape(0), d.pick("int8", "int16", "int32", "int64"))
    return getattr(relay, name), [data], np.asarray(function(data))


def _broadcast(d: Draw) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = d.shape(0)
    pair = [tuple([n if d.number(0, 3) else 1 for n in shape])[d.number(0, len(shape)) :] for _ in range(2)]  # fmt: skip
    return pair[0], pair[1]


def broadcasts(d: Draw) -> Drawn:
    shape, other = _broadcast(d)
    is_float = d.flag()
    name, function = d.pick(*(_BINARY if is_float else _INTEGER_BINARY))
    dtype = d.pick(*(FLOATS[1:] if is_float else INTEGERS))
    lhs, rhs = d.array(shape, dtype), d.array(other, dtype, 1)
    with np.errstate(all="ignore"):
        expected = np.asarray(function(lhs, rhs))
    return getattr(relay, name), [lhs, rhs], expected


def choices(d: Draw) -> Drawn:
    kind = d.pick("where", "logical", "clip", "cast", "shift", "power")
    shape, other = _broadcast(d)
    if kind == "where":
        dtype = d.pick(*NUMBERS)
        mask, x, y = d.array(shape, "bool"), d.array(other, dtype), d.array(shape, dtype)
        return relay.where, [mask, x, y], np.where(mask, x, y)
    if kind == "logical":
        name = d.pick("logical_and", "logical_or", "logical_xor")
        x, y = d.array(shape, "bool"), d.array(other, "bool")
        return getattr(relay, name), [x, y], getattr(np, name)(x, y)
    if kind == "clip":
        x, low = d.array(shape, d.pick(*NUMBERS)), d.number(0, 2)
        return lambda a: relay.clip(a, low, low + 2), [x], x.clip(low, low + 2)
    if kind == "cast":
        x, dtype = d.array(shape, d.pick(*NUMBERS), 0), d.pick(*NUMBERS, "bool")
        return lambda a: relay.cast(a, dtype), [x], x.astype(dtype)
    if kind == "shift":
        name, dtype = d.pick("left_shift", "right_shift"), d.pick(*INTEGERS)
        x, y = d.array(shape, dtype), d.array(other, dtype, 0, 4)
        return getattr(relay, name), [x, y], getattr(np, name)(x, y)
    x, y = d.array(shape, "float32", 0.1), d.array(other, "float32", -2, 2)
    return relay.power, [x, y], x**y


def reductions(d: Draw) -> Drawn:
    shape = d.shape(0, least=1)
    name = d.pick("sum", "max", "min", "mean", "prod", "all", "any", "variance", "std", "logsumexp")
    dtype = "bool" if name in ("all", "any") else d.pick(*NUMBERS)
    if name in ("variance", "std", "logsumexp", "mean"):
        dtype = d.pick("float32", "float64")
    axis, keep = d.pick(None, d.axes(len(shape), 0)), d.flag()
    if axis is not None and len(axis) == 1 and d.flag():
        axis = axis[0]
    data = d.array(shape, dtype, -2, 3)
    named = (axis,) if isinstance(axis, int) else axis
    over = tuple(range(len(shape))) if named is None else tuple([a % len(shape) for a in named])
    if name == "logsumexp":
        expected = np.log(np.exp(data).sum(over, keepdims=keep))
        return lambda a: relay.logsumexp(a, axis, keep), [data], expected
    exclude = d.flag() and bool(named)
    if exclude:
        over = tuple([a for a in range(len(shape)) if a not in over])
    function = np.var if name == "variance" else getattr(np, name)
    extra = {"ddof": 0} if name in ("variance", "std") else {}
    expected = function(data, axis=over, keepdims=keep, **extra)
    if name in ("sum", "prod"):
        expected = expected.astype(data.dtype)
    return lambda a: getattr(relay, name)(a, axis, keep, exclude), [data], np.asarray(expected)


def places_of_extremes(d: Draw) -> Drawn:
    shape = d.shape(1, least=1)
    name, axis = d.pick("argmax", "argmin"), d.axis(len(shape))
    keep, last = d.flag(), d.flag()
    exclude = d.flag() and len(shape) == 1
    data = d.array(shape, d.pick(*NUMBERS), -2, 3)
    if exclude:
        axis = ()
    key = data.reshape(-1) if axis == () else data
    along = 0 if axis == () else axis
    if last:
        found = key.shape[along] - 1 - getattr(np, name)(np.flip(key, along), axis=along)
    else:
        found = getattr(np, name)(key, axis=along)
    if keep:
        found = np.expand_dims(found, along)
    return (
        lambda a: getattr(relay, name)(a, axis if axis != () else None, keep, False, last), [data],
        np.asarray(found).astype("int32"),
    )  # fmt: skip


def reshapes(d: Draw) -> Drawn:
    shape = d.shape(1, 4, 1)
    data = d.array(shape, d.pick(*NUMBERS, "bool"))
    kind = d.pick("codes", "like", "transpose", "squeeze", "expand", "flatten", "reverse", "layout")
    rank = len(shape)
    if kind == "codes":
        codes: list[int] = []
        wanted: list[int] = []
        at = 0
        while at < rank:
            code = d.pick(0, -1, -2, -3, -4, 1)
            if code == -1 and -1 not in codes:
                codes.append(-1)
                wanted.append(shape[at])
                at += 1
            elif code == -2:
                codes.append(-2)
                wanted += shape[at:]
                at = rank
            elif code == -3 and at + 1 < rank:
                codes.append(-3)
                wanted.append(shape[at] * shape[at + 1])
                at += 2
            elif code == -4:
                codes += [-4, 1, shape[at]]
                wanted += [1, shape[at]]
                at += 1
            else:
                codes.append(0)
                wanted.append(shape[at])
                at += 1
        return lambda a: relay.reshape(a, codes), [data], data.reshape(wanted)
    if kind == "like":
        begin = d.number(0, rank - 1)
        end = d.number(begin + 1, rank)
        size = int(np.prod(shape[begin:end]))
        like_shape = (*d.shape(0, 2, 1), *(size, 1)[: d.number(1, 2)], *d.shape(0, 2, 1))
        first = like_shape.index(size) if size in like_shape else 0
        like = d.array(like_shape)
        return (
            lambda a, b: relay.reshape_like(a, b, begin, end, first, first + 1), [data, like],
            data.reshape(*shape[:begin], like_shape[first], *shape[end:]),
        )  # fmt: skip
    if kind == "transpose":
        axes = [a - rank if d.flag() else a for a in d.order(rank)]
        return lambda a: relay.transpose(a, axes), [data], data.transpose(axes)
    if kind == "squeeze":
        ones = d.array([n if d.flag() else 1 for n in shape])
        axes = [a - rank if d.flag() else a for a in range(rank) if ones.shape[a] == 1]
        return lambda a: relay.squeeze(a, axes), [ones], ones.squeeze(tuple(axes))
    if kind == "expand":
        axis, count = d.number(-rank - 1, rank), d.number(0, 3)
        first = axis if axis >= 0 else axis + rank + 1
        wanted = (*shape[:first], *(1,) * count, *shape[first:])
        return lambda a: relay.expand_dims(a, axis, count), [data], data.reshape(wanted)
    if kind == "flatten":
        return relay.nn.batch_flatten, [data], data.reshape(shape[0], -1)
    if kind == "reverse":
        axis = d.axis(rank)
        return lambda a: relay.reverse(a, axis), [data], np.flip(data, axis)
    block = d.pick(1, 2, 3)
    data = d.array((d.number(1, 3), block * d.number(1, 3), 2, 3))
    packed = data.reshape(len(data), -1, block, 2, 3).transpose(0, 1, 3, 4, 2)
    if d.flag():
        return (lambda a: relay.layout_transform(a, f"NCHW{block}c", "NCHW"), [packed], data)
    return lambda a: relay.layout_transform(a, "NCHW", f"NCHW{block}c"), [data], packed


def joins(d: Draw) -> Drawn:
    shape = d.shape(1, 4)
    dtype, count, axis = d.pick(*NUMBERS, "bool"), d.number(1, 4), d.axis(len(shape))
    kind = d.pick("concatenate", "stack", "split", "sections", "meshgrid")
    if kind == "concatenate":
        own = [list(shape) for _ in range(count)]
        for each in own:
            each[axis] = d.number(0, 5)
        parts = [d.array(s, dtype) for s in own]
        return lambda *a: relay.concatenate(list(a), axis), parts, np.concatenate(parts, axis)
    if kind == "stack":
        axis = d.number(-len(shape) - 1, len(shape))
        parts = [d.array(shape, dtype) for _ in range(count)]
        return lambda *a: relay.stack(list(a), axis), parts, np.stack(parts, axis)
    if kind == "meshgrid":
        lines, indexing = [d.array((d.number(1, 5),), dtype) for _ in range(count)], d.pick("ij", "xy")  # fmt: skip
        return (
            lambda *a: relay.meshgrid(list(a), indexing).astuple(), lines,
            list(np.meshgrid(*lines, indexing=indexing)),
        )  # fmt: skip
    if kind == "split":
        ends = tuple(sorted(d.numbers(count, 0, shape[axis])))
        data = d.array(shape, dtype)
        return lambda a: relay.split(a, ends, axis).astuple(), [data], np.split(data, ends, axis)
    extents = list(shape)
    extents[axis] = count * d.number(1, 3)
    data = d.array(extents, dtype)
    return lambda a: relay.split(a, count, axis).astuple(), [data], np.split(data, count, axis)


def repeats(d: Draw) -> Drawn:
    shape, dtype = d.shape(1, 3), d.pick(*NUMBERS, "bool")
    data = d.array(shape, dtype)
    kind = d.pick(
        "tile", "repeat", "broadcast_to", "full", "full_like", "one_hot", "arange", "trilu"
    )
    if kind == "tile":
        times = d.numbers(d.number(1, 4), 0, 3)
        return lambda a: relay.tile(a, times), [data], np.tile(data, times)
    if kind == "repeat":
        times, axis = d.number(0, 3), d.axis(len(shape))
        return lambda a: relay.repeat(a, times, axis), [data], data.repeat(times, axis)
    if kind == "broadcast_to":
        data = d.array([n if d.flag() else 1 for n in shape], dtype)
        wanted = (*d.shape(0, 2), *shape)
        return lambda a: relay.broadcast_to(a, wanted), [data], np.broadcast_to(data, wanted)
    if kind == "full":
        value, given = d.array((), dtype), d.pick("", *NUMBERS)
        return (
            lambda a: relay.full(a, shape, given), [value],
            np.full(shape, value, dtype).astype(given or dtype),
        )  # fmt: skip
    if kind == "full_like":
        value = d.array((), dtype)
        return relay.full_like, [data, value], np.full_like(data, value)
    if kind == "one_hot":
        return _one_hot(d, shape)
    if kind == "arange":
        start, stop, step = d.number(-5, 5), d.number(-5, 5), d.pick(-2, -1, 1, 3)
        given = d.pick("int32", "int64", "float32", "float64")
        one = d.array((), given)
        return (
            lambda a: relay.arange(*[relay.const(v, given) for v in (start, stop, step)], given) + a,
            [one], (np.arange(start, stop, step) + one).astype(given),
        )  # fmt: skip
    matrix, which, upper = d.array((*shape, *d.numbers(2, 1, 5)), dtype), d.number(-4, 4), d.flag()
    return (
        lambda a: relay.trilu(a, relay.const(which), upper), [matrix],
        (np.triu if upper else np.tril)(matrix, which),
    )  # fmt: skip


def _one_hot(d: Draw, shape: tuple[int, ...]) -> Drawn:
    indices, depth = (
        d.array(shape, d.pick("int32", "int64", "uint8", "int8"), -1, 6),
        d.number(1, 6),
    )
    axis, dtype = d.number(-1, len(shape)), d.pick(*NUMBERS)
    on, off = d.pick(1, 2, 3), d.pick(0, 5)
    found = np.where(np.arange(depth) == indices[..., None].astype("int64"), on, off).astype(dtype)
    return (
        lambda i: relay.one_hot(i, relay.const(on, dtype), relay.const(off, dtype), depth, axis, dtype),
        [indices], np.moveaxis(found, -1, axis),
    )  # fmt: skip


def slices(d: Draw) -> Drawn:
    shape = d.shape(1, 4, 1)
    rank, dtype = len(shape), d.pick(*NUMBERS, "bool")
    data = d.array(shape, dtype)
    kind = d.pick("slice", "axes", "size", "like", "set")
    if kind == "like":
        like = d.array([d.number(1, n) for n in shape])
        axes = d.pick(None, d.axes(rank))
        over = range(rank) if axes is None else [a % rank for a in axes]
        where = tuple([slice(0, like.shape[a] if a in over else None) for a in range(rank)])
        return lambda a, b: relay.slice_like(a, b, axes), [data, like], data[where]
    steps = [d.pick(1, 1, 2, -1, -2) for _ in shape]
    begin = [d.number(-n - 1, n) for n in shape]
    end = [d.number(-n - 1, n + 2) for n in shape]
    where = tuple([slice(*s) for s in zip(begin, end, steps, strict=True)])
    if kind == "slice":
        return lambda a: relay.strided_slice(a, begin, end, steps), [data], data[where]
    if kind == "set":
        values = d.array(data[where].shape, dtype)
        expected = data.copy()
        expected[where] = values
        return lambda a, v: relay.strided_set(a, v, begin, end, steps), [data, values], expected
    axes = d.axes(rank)
    if kind == "axes":
        picked = [(begin[a], end[a], steps[a]) for a in axes]
        where = tuple([where[a] if a in {x % rank for x in axes} else slice(None) for a in range(rank)])  # fmt: skip
        starts, ends, strides = [list(x) for x in zip(*picked, strict=True)]
        return (
            lambda a: relay.strided_slice(a, starts, ends, strides, axes), [data], data[where]
        )  # fmt: skip
    starts = [d.number(0, n - 1) for n in shape]
    sizes = [d.pick(-1, d.number(0, n - b)) for b, n in zip(starts, shape, strict=True)]
    where = tuple([slice(b, None if s < 0 else b + s) for b, s in zip(starts, sizes, strict=True)])
    return (
        lambda a: relay.strided_slice(a, starts, sizes, slice_mode="size"), [data], data[where]
    )  # fmt: skip


def gathers(d: Draw) -> Drawn:
    shape = d.shape(1, 4, 1)
    rank, index = len(shape), d.pick("int32", "int64", "uint8", "int16")
    data = d.array(shape, d.pick(*NUMBERS, "bool"))
    kind = d.pick("take", "flat", "batched", "gather")
    axis = d.axis(rank)
    if kind == "take":
        mode = d.pick("clip", "wrap", "fast")
        reach = 0 if mode == "fast" else 4
        at = d.array(d.shape(0, 2), index, -reach, shape[axis] + reach)
        return (
            lambda a, i: relay.take(a, i, axis, mode=mode), [data, at],
            np.take(data, at, axis, mode="clip" if mode == "fast" else mode),
        )  # fmt: skip
    if kind == "flat":
        mode = d.pick("clip", "wrap")
        at = d.array(d.shape(0, 2), index, -3, min(data.size + 3, 128))
        return lambda a, i: relay.take(a, i, mode=mode), [data, at], np.take(data, at, mode=mode)
    if kind == "batched":
        count = d.number(0, rank - 1)
        axis = d.number(count, rank - 1)
        at = d.array((*shape[:count], *d.shape(0, 2)), index, 0, shape[axis])
        expected = np.empty((*shape[:axis], *at.shape[count:], *shape[axis + 1 :]), data.dtype)
        for where in np.ndindex(*shape[:count]):
            expected[where] = np.take(data[where], at[where], axis - count)
        return lambda a, i: relay.take(a, i, axis, count), [data, at], expected
    extents = [d.number(0, n) for n in shape]
    extents[axis] = d.number(0, 5)
    at = d.array(extents, index, 0, shape[axis])
    smaller = data[tuple([slice(None) if a == axis % rank else slice(n) for a, n in enumerate(extents)])]  # fmt: skip
    expected = np.take_along_axis(smaller, at.astype("int64"), axis)
    return lambda a, i: relay.gather(a, axis, i), [data, at], expected


def gathers_of_slices(d: Draw) -> Drawn:
    shape = d.shape(1, 4, 1)
    rank, index = len(shape), d.pick("int32", "int64", "uint8", "int16")
    data = d.array(shape, d.pick(*NUMBERS, "bool"))
    count = d.number(0, rank - 1)
    depth = d.number(1, rank - count)
    places = d.shape(0, 2, 1)
    at = np.stack([d.array((*shape[:count], *places), index, 0, n) for n in shape[count : count + depth]])  # fmt: skip
    expected = np.empty((*shape[:count], *places, *shape[count + depth :]), data.dtype)
    for where in np.ndindex(*shape[:count]):
        expected[where] = data[where][tuple(at[(slice(None), *where)])]
    return lambda a, i: relay.gather_nd(a, i, count), [data, at], expected


_REDUCTIONS: dict[str, Any] = {
    "update": lambda old, new: new, "add": np.add, "mul": np.multiply, "min": np.minimum,
    "max": np.maximum,
}  # fmt: skip


def scatters(d: Draw) -> Drawn:
    shape = d.shape(1, 3, 1)
    dtype = d.pick("float32", "float64", "int32", "int64")
    data, mode, axis = d.array(shape, dtype), d.pick(*_REDUCTIONS), d.axis(len(shape))
    extents = [d.number(0, n) for n in shape]
    extents[axis] = d.number(0, shape[axis])
    lines = list(extents)
    lines[axis] = shape[axis]
    at = np.argsort(d.rng().uniform(size=lines), axis)  # no place twice
    at = np.take(at, range(extents[axis]), axis).astype(d.pick("int32", "int64", "int8"))
    updates, expected = d.array(extents, dtype), data.copy()
    for where in np.ndindex(*extents):
        place = list(where)
        place[axis] = at[where]
        expected[tuple(place)] = _REDUCTIONS[mode](expected[tuple(place)], updates[where])
    return (
        lambda a, i, u: relay.scatter_elements(a, i, u, axis, mode), [data, at, updates], expected
    )  # fmt: skip


def scatters_of_slices(d: Draw) -> Drawn:
    shape = d.shape(1, 3, 1)
    dtype = d.pick("float32", "float64", "int32", "int64")
    data, mode = d.array(shape, dtype), d.pick(*_REDUCTIONS)
    expected = data.copy()
    depth = d.number(1, len(shape))
    space = int(np.prod(shape[:depth]))
    count = d.number(0, space)
    flat = d.rng().permutation(space)[:count]
    at = (
        np.array(np.unravel_index(flat, shape[:depth]))
        .reshape(depth, count)
        .astype(d.pick("int32", "int64", "int8"))
    )
    updates = d.array((count, *shape[depth:]), dtype)
    for k in range(count):
        place = tuple(at[:, k])
        expected[place] = _REDUCTIONS[mode](expected[place], updates[k])
    return lambda a, i, u: relay.scatter_nd(a, i, u, mode), [data, at, updates], expected


def scans(d: Draw) -> Drawn:
    shape = d.shape(1, 3)
    name, dtype = (
        d.pick("cumsum", "cumprod"),
        d.pick("float32", "float64", "int32", "int64", "int8"),
    )
    axis, exclusive = d.pick(None, d.axis(len(shape))), d.pick(None, False, True)
    given = d.pick(None, "float64", "int64") if dtype != "int8" else d.pick("int32", "float32")
    data = d.array(shape, dtype, -2, 3)
    key = (data.reshape(-1) if axis is None else data).astype(given or dtype)
    along = 0 if axis is None else axis
    if exclusive:
        first = np.full_like(np.take(key, [], along), 0)
        lead = list(key.shape)
        lead[along] = min(1, key.shape[along])
        first = np.full(lead, name == "cumprod", key.dtype)
        key = np.concatenate([first, np.take(key, range(max(key.shape[along] - 1, 0)), along)], along)  # fmt: skip
    expected = getattr(np, name)(key, along).astype(given or dtype)
    return lambda a: getattr(relay, name)(a, axis, given, exclusive), [data], expected


def pads(d: Draw) -> Drawn:
    shape = d.shape(1, 4, 1)
    data = d.array(shape, d.pick(*NUMBERS))
    mode = d.pick("constant", "edge", "reflect", "SYMMETRIC", "REFLECT")
    reach = {"reflect": -1, "REFLECT": -1, "SYMMETRIC": 0}
    widths = [d.numbers(2, 0, min(3, n + reach[mode]) if mode in reach else 3) for n in shape]
    if mode == "constant":
        value = d.number(0, 3)
        return lambda a: relay.nn.pad(a, widths, value), [data], np.pad(data, widths, constant_values=value)  # fmt: skip
    expected = np.pad(data, widths, mode=mode.lower())
    if mode.isupper():
        return lambda a: relay.nn.mirror_pad(a, widths, mode), [data], expected
    return lambda a: relay.nn.pad(a, widths, pad_mode=mode), [data], expected


def spaces(d: Draw) -> Drawn:
    kind, layout = d.pick("depth", "space", "to_batch", "from_batch"), d.pick("NCHW", "NHWC")
    n, c, h, w = d.numbers(4, 1, 3)
    block, mode = d.number(1, 3), d.pick("DCR", "CRD")
    last = (lambda x: x.transpose(0, 2, 3, 1).copy()) if layout == "NHWC" else (lambda x: x)
    if kind == "depth":
        data = d.array((n, c * block * block, h, w))
        split = (n, block, block, c, h, w) if mode == "DCR" else (n, c, block, block, h, w)
        order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
        expected = data.reshape(split).transpose(order).reshape(n, c, h * block, w * block)
        return (
            lambda a: relay.nn.depth_to_space(a, block, layout, mode), [last(data)], last(expected)
        )  # fmt: skip
    if kind == "space":
        data = d.array((n, c, h * block, w * block))
        expected = data.reshape(n, c, h, block, w, block).transpose(0, 3, 5, 1, 2, 4)
        expected = expected.reshape(n, c * block * block, h, w)
        return lambda a: relay.nn.space_to_depth(a, block, layout), [last(data)], last(expected)
    rank = d.number(1, 3)
    blocks, rest = d.numbers(rank, 1, 3), d.shape(0, 2, 1)
    before = d.numbers(rank, 0, 2)
    spatial = tuple([b * k for b, k in zip(blocks, d.numbers(rank, 1, 3), strict=True)])
    widths = [(min(p, s), 0) for p, s in zip(before, spatial, strict=True)]
    batch = d.number(1, 3)
    value = d.number(0, 3)
    whole = d.array((batch, *spatial, *rest))
    inner = whole[(slice(None), *[slice(p, None) for p, _ in widths])]
    padded = whole
    if kind == "to_batch":
        padded = np.pad(inner, [(0, 0), *widths, *[(0, 0)] * len(rest)], constant_values=value)
    split = [batch, *[x for s, b in zip(spatial, blocks, strict=True) for x in (s // b, b)], *rest]
    order = [*range(2, 2 * rank + 1, 2), 0, *range(1, 2 * rank + 1, 2), *range(2 * rank + 1, len(split))]  # fmt: skip
    moved = padded.reshape(split).transpose(order)
    batched = moved.reshape(batch * int(np.prod(blocks)), *[s // b for s, b in zip(spatial, blocks, strict=True)], *rest)  # fmt: skip
    if kind == "to_batch":
        return (
            lambda a: relay.nn.space_to_batch_nd(a, blocks, widths, value), [inner], batched
        )  # fmt: skip
    return lambda a: relay.nn.batch_to_space_nd(a, blocks, widths), [batched], inner


SHAPING = (
    element_wise, element_wise_of_integers, broadcasts, choices, reductions, places_of_extremes,
    reshapes, joins, repeats, slices, gathers, gathers_of_slices, scatters, scatters_of_slices,
    scans, pads, spaces,
)  # fmt: skip
