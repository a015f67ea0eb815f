"""What costs time without computing much: unfused operators, changes of layout, wide types, float among int8."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tvm.relay.op.registry import OpPattern

from .program import Program
from .record import Graph, Kernel, Node, Remark

_MOVES = {
    "layout_transform",
    "permute_dims",
    "transpose",
    "reshape",
    "copy",
    "squeeze",
    "expand_dims",
}
_WIDE = ("int64", "uint64", "float64")
_NARROW = ("int8", "uint8", "int4", "uint4")
_FLOATS = ("float32", "float64", "float16", "bfloat16")
_FAR = 3.0  # times the roof
_SMALL = 0.005  # of the model's time


def remarks(program: Program, kernels: Sequence[Kernel]) -> list[Remark]:
    """The remarks, the most expensive first."""
    built = program.built
    total = sum([node.seconds for node in built.nodes])
    patterns = [kernel.heaviest for kernel in program.kernels]
    found = [
        *_moves(built, patterns),
        *_unfused(built, patterns),
        *_types(built, patterns),
        *_far(kernels, total),
    ]
    return sorted(found, key=lambda remark: -(remark.seconds or 0.0))


def _calls(built: Graph) -> Iterator[tuple[int, Node]]:
    return ((i, node) for i, node in enumerate(built.nodes) if node.kernel >= 0)


def _is_move(node: Node) -> bool:
    return all([name in _MOVES for name in node.op.split(" + ")])


def _moves(built: Graph, patterns: Sequence[tuple[OpPattern, str]]) -> Iterator[Remark]:
    for number, node in _calls(built):
        if not _is_move(node):
            continue
        readers = [built.nodes[end] for start, end in built.edges if start == number]
        wanted = ", ".join(dict.fromkeys([r.op for r in readers])) or "the model's result"
        yield Remark(
            "layout",
            f"{node.op} moves {node.outputs[0].bytes:,} bytes and computes nothing",
            f"{wanted} reads another layout or order than what the tensor comes in"
            if readers
            else "the model's result has another layout than the last kernel writes",
            node.seconds,
            number,
        )


def _unfused(built: Graph, patterns: Sequence[tuple[OpPattern, str]]) -> Iterator[Remark]:
    users: dict[int, list[int]] = {}
    producers: dict[int, list[int]] = {}
    for start, end in built.edges:
        users.setdefault(start, []).append(end)
        producers.setdefault(end, []).append(start)
    for number, node in _calls(built):
        if patterns[node.kernel][0] > OpPattern.COMM_REDUCE or _is_move(node):
            continue
        before = [p for p in producers.get(number, []) if built.nodes[p].kernel >= 0]
        yield Remark(
            "unfused",
            f"{node.op} is a kernel of its own",
            "; ".join([_why_apart(built, patterns, users, p, number) for p in before])
            or "nothing computes before it that it could join",
            node.seconds,
            number,
        )


def _why_apart(
    built: Graph,
    patterns: Sequence[tuple[OpPattern, str]],
    users: dict[int, list[int]],
    producer: int,
    reader: int,
) -> str:
    """Why FuseOps left a kernel apart from the one whose result it reads."""
    first, second = built.nodes[producer], built.nodes[reader]
    pattern, name = patterns[first.kernel]
    own, own_name = patterns[second.kernel]
    if pattern is OpPattern.OPAQUE:
        return f"{name} before it is opaque, which is never fused"
    if len(users[producer]) > 1:
        return f"the result of {name} before it has {len(users[producer])} readers"
    if own is OpPattern.COMM_REDUCE and pattern >= OpPattern.COMM_REDUCE:
        return f"{own_name} reduces, and {name} before it does: a kernel does so once"
    if pattern is OpPattern.COMM_REDUCE:
        return f"{name} before it is known only when all of its input was read"
    if own is OpPattern.INJECTIVE and pattern is OpPattern.OUT_ELEMWISE_FUSABLE:
        return f"{own_name} moves elements, so that it cannot follow in the loops of {name}"
    return f"no rule of FuseOps joins {own_name} ({own.name}) to {name} ({pattern.name})"


def _types(built: Graph, patterns: Sequence[tuple[OpPattern, str]]) -> Iterator[Remark]:
    is_quantised = any(
        [t.dtype in _NARROW for node in built.nodes for t in (*node.weights, *node.outputs)]
    )
    for number, node in _calls(built):
        dtypes = [t.dtype for t in (*node.outputs, *node.weights)]
        if wide := [d for d in dtypes if d in _WIDE]:
            yield Remark(
                "wide",
                f"{node.op} computes in {wide[0]}",
                "the imported model says so; where the framework would allow int32 or float32, half "
                "of the bytes would do",
                node.seconds,
                number,
            )
        heavy = patterns[node.kernel][0] is OpPattern.OUT_ELEMWISE_FUSABLE
        if is_quantised and heavy and node.weights and node.weights[0].dtype in _FLOATS:
            yield Remark(
                "float",
                f"{node.op} stays in {node.weights[0].dtype} in a model with int8",
                "the imported model does not quantise it",
                node.seconds,
                number,
            )
    weights = [t for node in built.nodes for t in node.weights if t.dtype == "float32"]
    if not is_quantised and weights:
        size = sum([t.bytes for t in weights])
        yield Remark(
            "float",
            f"all weights are float32: {size / 1e6:.1f} MB",
            "the model is not quantised; bfloat16 would take half of that and int8 a quarter: "
            "docs/low_precision.md",
        )


def _far(kernels: Sequence[Kernel], total: float) -> Iterator[Remark]:
    for kernel in kernels:
        if not kernel.roof_seconds or not kernel.calls:
            continue
        one = kernel.seconds / kernel.calls
        lost = kernel.seconds - kernel.calls * kernel.roof_seconds
        if one > _FAR * kernel.roof_seconds and lost > _SMALL * total:
            yield Remark(
                "slow",
                f"{kernel.name} takes {one / kernel.roof_seconds:.1f} times its roof",
                f"{kernel.bound} would allow {kernel.roof_seconds * 1e6:.1f} µs a call, "
                f"{one * 1e6:.1f} µs were measured",
                lost,
                kernel.nodes[0],
            )
