"""The graph of a model as it was imported, and that of the kernel calls that it became.

Every call of the imported model gets a place of its own for its span, `#12`. Passes carry spans along,
so that each kernel call still knows the calls that it was made from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tvm.contrib.relay_viz.layered import layered_layout
from tvm.ir.span import SequentialSpan, SourceName, Span
from tvm.relay.backend.graph import TensorInfo
from tvm.runtime.ndarray import NDArray
from tvm.support.dtype import dtype as as_dtype

from .record import Graph, Tensor

_LAYOUTS = ("out_layout", "dst_layout", "data_layout", "layout")
ORIGIN = re.compile(r"#(\d+)")


def origin(number: int) -> Span:
    """The place of a numbered call."""
    return Span(SourceName(f"#{number}"), 0, 0, 0, 0)


def number_of(span: object) -> int | None:
    """The number that `marked` gave."""
    found = ORIGIN.fullmatch(span.source_name.name) if isinstance(span, Span) else None
    return int(found[1]) if found else None


def numbers_of(span: object) -> list[int]:
    """The numbers of all calls that a call was made from."""
    spans = span.spans if isinstance(span, SequentialSpan) else [span]
    found = [number_of(one) for one in spans]
    return list(dict.fromkeys([number for number in found if number is not None]))


def link(imported: Graph, built: Graph) -> None:
    """Let the imported nodes know the calls that serve them, and name calls after what they serve."""
    for number, node in enumerate(built.nodes):
        for other in node.others:
            imported.nodes[other].others.append(number)
        names = [imported.nodes[other].name for other in node.others]
        if any(names):
            node.name = ", ".join(dict.fromkeys([name for name in names if name]))
    varies = [node.op == "input" for node in imported.nodes]
    for start, end in imported.edges:  # in order: what a node uses stands before it
        varies[end] |= varies[start]
    for node, is_varying in zip(imported.nodes, varies, strict=True):
        node.is_folded = not is_varying and not node.others


def layouts_of(attrs: Any) -> list[str]:
    """The layouts that attributes name, that of the result first."""
    return [] if attrs is None else [str(attrs[k]) for k in _LAYOUTS if _has(attrs, k)]


def _has(attrs: Any, key: str) -> bool:
    return key in attrs.keys() and bool(str(attrs[key]))  # noqa: SIM118


def tensor_record(shape: Sequence[int], dtype: str) -> Tensor:
    """What is known of a tensor; -1 stands for an open dimension."""
    info = TensorInfo(tuple([max(d, 0) for d in shape]), as_dtype(dtype))
    return Tensor(list(shape), dtype, info.nbytes)


def lay_out(graph: Graph) -> None:
    """Give the nodes their places, and the edges their bends."""
    layout = layered_layout(len(graph.nodes), graph.edges)
    for node, x, layer in zip(graph.nodes, layout.x, layout.layer, strict=True):
        node.x, node.y = round(x, 3), float(layer)
    graph.bends = [
        [round(value, 3) for bend in layout.bends.get(i, []) for value in bend]
        for i in range(len(graph.edges))
    ]


def weight_tensor(array: NDArray) -> Tensor:
    """What is known of a constant."""
    return tensor_record([int(d) for d in array.shape], str(array.dtype))
