"""Questions about one node of a list that :func:`expr2graph` made."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from tvm.relay.expr import Tuple as RelayTuple

from ..traverse import bind_inputs as bind_inputs

# operators whose results have a layout of their own, whatever their operands have
_LAYOUT_FIXED = {
    "nn.batch_flatten", "transpose", "reshape", "vision.multibox_prior",
    "vision.multibox_transform_loc", "where", "vision.non_max_suppression", "strided_slice",
}  # fmt: skip


def has_multiple_inputs(
    node_list: Sequence[Mapping[str, Any]],
    node_idx: int,
    input_names: Container[str],
    opt_out_op: Container[str],
) -> bool:
    """Whether a node joins several tensors that are computed or come from outside; parameters do not count.

    Parameters
    ----------
    node_list : list of dict
        The nodes.
    node_idx : int
        Which one.
    input_names : list of str
        The names of the program's inputs.
    opt_out_op : list of str
        Operators whose results do not count.
    """
    counted = 0
    for number, *_ in node_list[node_idx]["inputs"]:
        source = node_list[number]
        op = source["op"]
        is_computed = op is not None and getattr(op, "name", "") not in opt_out_op
        counted += is_computed or source.get("name") in input_names
    return counted > 1


def is_boundary_node(node_entry: Mapping[str, Any], input_names: Container[str]) -> bool:
    """Whether the layout of a node's result is given: by the program's inputs or by the operator."""
    op = node_entry["op"]
    return getattr(op, "name", "") in _LAYOUT_FIXED or node_entry.get("name") in input_names


def is_skipped_node(node_entry: Mapping[str, Any]) -> bool:
    """Whether a node computes nothing: it is a tuple."""
    return isinstance(node_entry["node"], RelayTuple)
