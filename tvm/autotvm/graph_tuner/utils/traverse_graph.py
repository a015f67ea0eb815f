"""From a program to numbered nodes, and which of them a node's layout depends on."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from tvm.ir.module import IRModule
from tvm.ir.type import Type
from tvm.relay import transform
from tvm.relay.analysis import post_order_visit
from tvm.relay.expr import Call, Constant, RelayExpr, TupleGetItem, Var
from tvm.relay.expr import Tuple as RelayTuple
from tvm.relay.function import Function
from tvm.relay.ty import TupleType
from tvm.target import Target

from .._base import OPT_OUT_OP
from ..traverse import WorkloadFinder
from .utils import has_multiple_inputs, is_boundary_node, is_skipped_node

Nodes = list[dict[str, Any]]


def expr2graph(
    expr: Function,
    target_ops: Iterable[Any],
    node_dict: dict[RelayExpr, int],
    node_list: Nodes,
    tvm_target: Any,
) -> None:
    """Number the nodes of a program: parameters first, then each behind what it uses.

    Parameters
    ----------
    expr : relay.Function
        The program; the shapes of its inputs are known.
    target_ops : list of tvm.ir.Op
        The tuned operators.
    node_dict : dict
        Receives the number of each node.
    node_list : list
        Receives a dict for each: `node`, `inputs` as `[number, 0, 0]`, `types`, `op` or None, `name`;
        `workloads` for tuned ones.
    tvm_target : Target
        What the operators are tuned for.
    """
    # types are asked of a typed copy, whose nodes correspond one to one
    typed = transform.InferType()(IRModule.from_expr(expr))["main"]
    workloads = WorkloadFinder(Target(tvm_target))
    tuned = list(target_ops)

    def add(node: RelayExpr) -> None:
        if not isinstance(node, Call | Var | Constant | RelayTuple | TupleGetItem):
            return
        number = node_dict[node] = len(node_list)
        entry: dict[str, Any] = {
            "node": node,
            "inputs": [[node_dict[source], 0, 0] for source in _inputs_of(node)],
            "types": _tensor_types(node.checked_type),
            "op": node.op if isinstance(node, Call) else None,
            "name": node.name_hint if isinstance(node, Var) else f"node_{number}",
        }
        if isinstance(node, Call) and node.op in tuned:
            workload = workloads.workload_of(node)
            entry["workloads"] = [] if workload is None else [workload]
        node_list.append(entry)

    post_order_visit(typed, add)


def _inputs_of(node: RelayExpr) -> Sequence[RelayExpr]:
    if isinstance(node, Call):
        return node.args
    if isinstance(node, RelayTuple):
        return node.fields
    return [node.tuple_value] if isinstance(node, TupleGetItem) else []


def _tensor_types(kind: Type) -> list[Type]:
    if isinstance(kind, TupleType):
        return [tensor for field in kind.fields for tensor in _tensor_types(field)]
    return [kind]


def get_direct_ancestor(
    node_list: Sequence[Mapping[str, Any]],
    visited_dict: dict[int, list[int]],
    target_ops: Container[Any],
    node_idx: int,
    input_names: Container[str],
) -> list[int]:
    """The nearest nodes before one that decide about layouts: tuned ones, joining ones, and inputs.

    Parameters
    ----------
    node_list : list of dict
        The nodes.
    visited_dict : dict
        What is known already; receives what is found.
    target_ops : list of tvm.ir.Op
        The tuned operators.
    node_idx : int
        Which node.
    input_names : list of str
        The names of the program's inputs.
    """
    if node_idx in visited_dict:
        return visited_dict[node_idx]
    if is_boundary_node(node_list[node_idx], input_names):
        return [node_idx]
    found: dict[int, None] = {}
    for number, *_ in node_list[node_idx]["inputs"]:
        decides = node_list[number]["op"] in target_ops
        if decides or has_multiple_inputs(node_list, number, input_names, OPT_OUT_OP):
            found[number] = None
        else:
            before = get_direct_ancestor(node_list, visited_dict, target_ops, number, input_names)
            found.update(dict.fromkeys(before))
    visited_dict[node_idx] = list(found)
    return visited_dict[node_idx]


def get_in_nodes(
    node_list: Sequence[Mapping[str, Any]], target_ops: Container[Any], input_names: Container[str]
) -> dict[int, list[int]]:
    """For each tuned or joining node those that decide about the layouts of its operands.

    Joining nodes with nothing tuned before them are as inputs, and have no entry.
    """
    visited: dict[int, list[int]] = {}
    for number, node in enumerate(node_list):
        if not is_boundary_node(node, input_names) and not is_skipped_node(node):
            get_direct_ancestor(node_list, visited, target_ops, number, input_names)
    found: dict[int, list[int]] = {}
    for number, before in sorted(visited.items()):
        is_tuned = node_list[number]["op"] in target_ops
        joins = has_multiple_inputs(node_list, number, input_names, OPT_OUT_OP)
        if is_tuned or (joins and any([source in found for source in before])):
            found[number] = before
    return found


def get_out_nodes(in_node_dict: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    """The same relation from the other side: for each node those that it decides for."""
    found: dict[int, list[int]] = {}
    for number in in_node_dict:
        found.setdefault(number, [])
    for number, before in sorted(in_node_dict.items()):
        for source in before:
            found.setdefault(source, []).append(number)
    return found


def _replace_device_with_tracing(target: Any) -> Target:
    """The target as one whose tasks are only looked at."""
    return Target({**Target(target).export(), "device": "tracing"})
