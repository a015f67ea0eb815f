"""A program as a list of numbered nodes, for those who look at it as the graph tuner does."""

from ..traverse import bind_inputs
from .traverse_graph import expr2graph, get_direct_ancestor, get_in_nodes, get_out_nodes
from .utils import has_multiple_inputs, is_boundary_node, is_skipped_node

__all__ = [
    "bind_inputs",
    "expr2graph",
    "get_direct_ancestor",
    "get_in_nodes",
    "get_out_nodes",
    "has_multiple_inputs",
    "is_boundary_node",
    "is_skipped_node",
]
