"""More kinds of nodes of random ONNX graphs: shapes as values, extents that inputs decide,
sequences, optionals, loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper

from .random_onnx_graph import LARGEST, Graph, Value

# -- shapes as values


def _shape(g: Graph) -> None:
    """An extent of a value, or a tensor in its shape."""
    value = g.pick(lambda v: v.rank > 0)
    if not value:
        return
    whole = g.add("Shape", [value], Value("", (value.rank,), "int64"))
    match g.integer(0, 3):
        case 0:
            index = g.constant(np.array(g.axis(value), "int64"))
            g.add("Gather", [whole, index], Value("", (), "int64"), axis=0)
        case 1:
            fill = helper.make_tensor("value", TensorProto.FLOAT, [1], [0.5])
            g.add("ConstantOfShape", [whole], replace(value, dtype="float32", is_exact=True),
                  value=fill)  # fmt: skip
        case 2:
            g.add("Size", [value], Value("", (), "int64"))
        case _:
            one = g.constant(g.array((), value.dtype))
            g.add("Expand", [one, whole], replace(value, is_exact=True))


def _reshape_by_shape(g: Graph) -> None:
    """The first extent is computed, the others follow."""
    value = g.pick(lambda v: v.rank > 1)
    if not value:
        return
    whole = g.add("Shape", [value], Value("", (value.rank,), "int64"))
    first = [g.integers(n) for n in (0, 1, 0)]
    batch = g.add("Slice", [whole, *first], Value("", (1,), "int64"))
    spec = g.add("Concat", [batch, g.integers(-1)], Value("", (2,), "int64"), axis=0)
    shape = (value.shape[0], prod(value.shape[1:]))
    g.add("Reshape", [value, spec], replace(value, shape=shape))


def _range(g: Graph) -> None:
    dtype = g.choose(("int64", "int32", "float32"))
    start, count, step = g.integer(-3, 3), g.integer(1, 6), g.choose((1, 2, -1))
    bounds = [g.constant(np.array(n, dtype)) for n in (start, start + step * count, step)]
    g.add("Range", bounds, Value("", (count,), dtype))


def _eye(g: Graph) -> None:
    value = g.pick(lambda v: v.rank == 2 and v.dtype in ("float32", "int64"))
    if value:
        g.add("EyeLike", [value], replace(value, is_exact=True), k=g.integer(-1, 1))


def _cast_like(g: Graph) -> None:
    value = g.pick(lambda v: v.dtype in ("float32", "int64", "bool"))
    if value and g.opset >= 15:
        other = g.constant(g.array((2,), g.choose(("float32", "float64"))))
        g.add("CastLike", [value, other], replace(value, dtype=other.dtype))


# -- extents that the elements of an input decide


def _input(g: Graph, rank: int | None = None) -> Value | None:
    return g.pick(lambda v: v.name in g.inputs and v.rank > 0 and rank in (None, v.rank))


def _nonzero(g: Graph) -> None:
    value = _input(g)
    if value and np.any(g.inputs[value.name]):
        shape = np.stack(np.nonzero(g.inputs[value.name])).shape
        g.add("NonZero", [value], Value("", shape, "int64"))


def _compress(g: Graph) -> None:
    value, axis = g.pick(lambda v: v.rank > 0), 0
    if value:
        kept = g.rng.integers(0, 2, value.shape[axis]).astype(bool)
        kept[0] = True
        shape = (int(kept.sum()), *value.shape[1:])
        g.add("Compress", [value, g.constant(kept)], replace(value, shape=shape), axis=axis)


def _unique(g: Graph) -> None:
    value = _input(g)
    if value and value.dtype in ("float32", "int64"):
        count = np.unique(g.inputs[value.name]).size
        g.add("Unique", [value], replace(value, shape=(count,)), sorted=1)


def _suppression(g: Graph) -> None:
    count = g.integer(1, 8)
    corners = g.array((1, count, 2), "float32")
    boxes = np.concatenate([corners, corners + 1], 2)
    scores = g.rng.permutation(count).astype("float32")[None, None] / 8
    given = [g.constant(x) for x in (boxes, scores)]
    most = g.integers(1)
    g.add("NonMaxSuppression", [*given, most], Value("", (1, 3), "int64"))


# -- sequences and optionals


def _sequence(g: Graph) -> None:
    """Values into a sequence, changed there, and out of it again."""
    first = g.pick()
    if not first:
        return
    items = [first, *[v for _ in range(2) if (v := g.pick(lambda v: v.dtype == first.dtype))]]
    name = g.raw("SequenceConstruct", items)
    if g.chance(0.5):
        items.insert(0, items[-1])
        name = g.raw("SequenceInsert", [name, items[0], g.scalar(0)])
    if len(items) > 1 and g.chance(0.5):
        name = g.raw("SequenceErase", [name, g.scalar(-1)])
        items.pop()
    if g.chance(0.3):
        g.add("SequenceLength", [name], Value("", (), "int64"))
    at = g.integer(0, len(items) - 1)
    if len({v.shape for v in items}) == 1 and prod(first.shape) * len(items) <= LARGEST:
        like = replace(first, shape=(len(items), *first.shape),
                       is_exact=all(v.is_exact for v in items))  # fmt: skip
        g.add("ConcatFromSequence", [name], like, axis=0, new_axis=1)
    else:
        g.add("SequenceAt", [name, g.scalar(at - len(items) * g.integer(0, 1))], items[at])


def _split_to_sequence(g: Graph) -> None:
    value = _input(g)  # how many parts there are has to be known
    if value and value.dtype in ("float32", "int64"):
        axis, keeps = g.axis(value), g.integer(0, 1)
        at = axis % value.rank
        name = g.raw("SplitToSequence", [value], axis=axis, keepdims=keeps)
        shape = (*value.shape[:at], *[1] * keeps, *value.shape[at + 1 :])
        index = g.scalar(g.integer(0, value.shape[at] - 1))
        g.add("SequenceAt", [name, index], replace(value, shape=shape))


def _optional(g: Graph) -> None:
    value = g.pick(lambda v: v.dtype == "float32")
    if value and g.opset >= 18:
        name = g.raw("Optional", [value])
        if g.chance(0.5):
            g.add("OptionalHasElement", [name], Value("", (), "bool"))
        g.add("OptionalGetElement", [name], value)


# -- regions


def _info(name: str, value: Value) -> object:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(value.dtype))
    return helper.make_tensor_value_info(name, kind, list(value.shape))


def _body(g: Graph, given: str, result: str, captured: Value) -> list[NodeProto]:
    """Nodes of a region, of what is given and of a value around it; all of them exact."""
    nodes, name = [], given
    ops = [g.choose(("Neg", "Abs", "Max", "Min", "Relu")) for _ in range(g.integer(1, 3))]
    for i, op in enumerate(ops):
        made = result if i == len(ops) - 1 else f"{result}_{i}"
        operands = [name, captured.name] if op in ("Max", "Min") else [name]
        nodes.append(helper.make_node(op, operands, [made]))
        name = made
    return nodes


def _branch_of_run(g: Graph) -> None:
    """An `If` whose condition is computed."""
    value = g.pick(lambda v: v.dtype == "float32")
    flags = g.pick(lambda v: v.dtype == "bool" and v.rank == 1)
    if not value or not flags:
        return
    condition = g.add("Gather", [flags, g.scalar(0)], Value("", (), "bool"), axis=0)
    tag = f"b{len(g.nodes)}"
    branches = [
        helper.make_graph(
            _body(g, value.name, f"{tag}{side}", value), side, [], [_info(f"{tag}{side}", value)]
        )
        for side in ("t", "e")
    ]
    g.add("If", [condition], value, then_branch=branches[0], else_branch=branches[1])


def _loop(g: Graph) -> None:
    """A value that is changed some times; what it was in each trip is kept."""
    value = g.pick(lambda v: v.dtype == "float32")
    if not value:
        return
    tag, trips = f"l{len(g.nodes)}", g.integer(1, 4)
    nodes = _body(g, f"{tag}s", f"{tag}n", value)
    nodes.append(helper.make_node("Identity", [f"{tag}n"], [f"{tag}k"]))
    flag, trip = Value("", (), "bool"), Value("", (), "int64")
    if g.chance(0.4):  # ends by what is counted
        last = g.scalar(g.integer(0, trips - 1))
        nodes.append(helper.make_node("Less", [f"{tag}i", last], [f"{tag}g"]))
        trips = min(trips, 1 + int(_value_of(g, last)))
    else:
        nodes.append(helper.make_node("Identity", [f"{tag}c"], [f"{tag}g"]))
    inputs = [_info(f"{tag}i", trip), _info(f"{tag}c", flag), _info(f"{tag}s", value)]
    results = [_info(f"{tag}g", flag), _info(f"{tag}n", value), _info(f"{tag}k", value)]
    body = helper.make_graph(nodes, "body", inputs, results)
    given = [g.scalar(4 if trips < 4 else trips), ""] if _ends(body) else [g.scalar(trips), ""]
    _with_two_results(g, "Loop", [*given, value.name], value, trips, body=body)


def _value_of(g: Graph, name: str) -> int:
    (tensor,) = [c for c in g.constants if c.name == name]
    return int(np.frombuffer(tensor.raw_data, "int64")[0])


def _ends(body: GraphProto) -> bool:
    return any(node.op_type == "Less" for node in body.node)


def _scan(g: Graph) -> None:
    """Rows one after the other, each changed by what the last one left."""
    value = g.pick(lambda v: v.rank > 1 and v.dtype == "float32")
    if not value:
        return
    row = replace(value, shape=value.shape[1:])
    tag, start = f"s{len(g.nodes)}", g.constant(np.zeros(row.shape, "float32"))
    op = g.choose(("Max", "Min"))
    nodes = [
        helper.make_node(op, [f"{tag}s", f"{tag}x"], [f"{tag}n"]),
        helper.make_node("Neg", [f"{tag}n"], [f"{tag}k"]),
    ]
    inputs, results = [[_info(f"{tag}{n}", row) for n in names] for names in ("sx", "nk")]
    body = helper.make_graph(nodes, "body", inputs, results)
    way = {"scan_input_directions": [g.integer(0, 1)], "scan_output_directions": [g.integer(0, 1)]}
    given = [start.name, value.name]
    _with_two_results(g, "Scan", given, row, value.shape[0], body=body, num_scan_inputs=1, **way)


def _with_two_results(
    g: Graph, op: str, given: Sequence[str], state: Value, trips: int, **attrs: object
) -> None:
    if trips * prod(state.shape) > LARGEST:
        return
    names = [f"v{len(g.nodes)}", f"v{len(g.nodes)}_1"]
    g.nodes.append(helper.make_node(op, given, names, **attrs))
    g.values.append(replace(state, name=names[0]))
    g.values.append(replace(state, name=names[1], shape=(trips, *state.shape)))


SHAPE_DRAWS: tuple[Callable[[Graph], None], ...] = (
    _shape, _shape, _reshape_by_shape, _range, _eye, _cast_like, _nonzero, _compress, _unique,
    _suppression, _sequence, _sequence, _split_to_sequence, _optional, _branch_of_run, _loop, _scan,
)  # fmt: skip
