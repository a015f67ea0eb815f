"""What the nodes of a TorchScript graph tell: their operators, names, results of known shapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tvm.error import suggest
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import var
from tvm.relay.frontend.common import Unsupported, constant, infer_shape

from .complex_tensors import Complex
from .graph_types import SCALAR_TYPES, traced_shape, type_text
from .registry import is_tensor
from .tree import leaves


def all_nodes(block: Any) -> Iterator[Any]:
    """The nodes of a block and of the blocks in them."""
    for node in block.nodes():
        yield node
        for inner in [*node.blocks(), *traced_function(node)]:
            yield from all_nodes(inner)


def is_within_branch(node: Any) -> bool:
    """Whether a condition or a loop decides if a node is ever computed."""
    return node.owningBlock().owningNode() is not None


def traced_function(node: Any) -> list[Any]:
    """The graph of what a function of torch.autograd computes."""
    return [node.g("Subgraph")] if "Subgraph" in node.attributeNames() else []


def stand_ins(node: Any) -> list[RelayExpr] | None:
    """Variables for the results of a node, so that the import goes on to find more faults."""
    types = [(traced_shape(v), v.type()) for v in node.outputs()]
    if any(
        shape is None or SCALAR_TYPES.get(kind.scalarType(), "complex").startswith("complex")
        for shape, kind in types
    ):
        return None
    return [
        var("unknown", shape=shape, dtype=SCALAR_TYPES[kind.scalarType()]) for shape, kind in types
    ]


def empty_results(node: Any, args: Sequence[Any]) -> list[RelayExpr] | None:
    """Results without elements, of arguments without; the trace knows their shapes."""
    given = [arg for arg in tensors_in(args) if isinstance(infer_type_of(arg), TensorType)]
    if not any(0 in infer_shape(arg) for arg in given):
        return None
    for value, arg in zip(node.inputs(), args, strict=True):
        if is_tensor(arg) and traced_shape(value) not in (None, infer_shape(arg)):
            return None
    results = []
    for value in node.outputs():
        shape = traced_shape(value)
        scalar = SCALAR_TYPES.get(value.type().scalarType(), "complex") if shape else "complex"
        if shape is None or 0 not in shape or scalar.startswith("complex"):
            return None
        results.append(constant(np.zeros(shape), SCALAR_TYPES[value.type().scalarType()]))
    return results


def overload_of(node: Any) -> Any:
    """The operator of torch that a node calls, None if it is none of ATen."""
    import torch

    text = node.schema()
    if text == "(no schema)":
        return None
    schema = torch._C.parse_schema(text)
    library, name = schema.name.split("::")
    if name.endswith("_") and not name.startswith("__"):
        name = name[:-1]
    packet = getattr(getattr(torch.ops, library), name, None)
    try:
        found = getattr(packet, schema.overload_name or "default", None)
    except RuntimeError:  # an operator of TorchScript's language, which torch.ops does not have
        return None
    return found or getattr(packet, "default", None)


def node_name(node: Any) -> str:
    """The name of the first result."""
    return next((f"%{value.debugName()}" for value in node.outputs()), node.kind())


def unsupported(node: Any, known: Iterable[str]) -> Unsupported:
    """What a node is that nothing converts; `known` are the operators that something does."""
    kind = node.kind()
    inputs = [type_text(value) for value in node.inputs()]
    return Unsupported(kind, node_name(node), inputs, suggest(kind, known))


def has_traced_shapes(node: Any, args: Sequence[Any]) -> bool:
    """Whether the tensors that a node takes have the shapes that they had in the trace."""
    return all(
        tuple(infer_shape(arg)) == tuple(traced_shape(value) or ())
        for value, arg in zip(node.inputs(), args, strict=True)
        if is_tensor(arg)
    )


def tensors_in(values: Any) -> Iterator[RelayExpr]:
    """The expressions among nested values."""
    for leaf in leaves(values):
        if isinstance(leaf, Complex):
            yield from leaf.parts
        elif is_tensor(leaf):
            yield leaf
