"""Steps of traces as JSON: texts in quotes, random variables by name, index maps as JSON of nodes.

["Split", ["l1", null, 32], [1, 0], ["l2", "l3"]]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.node import Node
from tvm.ir.serialize import load_json, save_json
from tvm.tir.expr import FloatImm, IntImm, StringImm, Var
from tvm.tir.stmt_functor import substitute

from .instruction import Instruction, RandomVariable, variables_in

NODE = "__node__"  # a map with this key has a node's JSON


def instruction_json(inst: Instruction, name: Callable[[Any], str]) -> list[Any]:
    """A step as a list of its kind, inputs, attributes and outputs."""
    return [
        inst.kind.name,
        [_input_json(value, name) for value in inst.inputs],
        [plain(value) for value in inst.attrs],
        [name(output) for output in inst.outputs],
    ]


def _input_json(value: Any, name: Callable[[Any], str]) -> Any:
    if isinstance(value, RandomVariable):
        return name(value)
    if isinstance(value, (str, StringImm)):
        return f'"{value if isinstance(value, str) else value.value}"'
    if isinstance(value, (list, tuple)):
        return [_input_json(item, name) for item in value]
    if isinstance(value, Mapping):
        return {key: _input_json(item, name) for key, item in value.items()}
    if isinstance(value, Node) and not isinstance(value, (IntImm, FloatImm)):
        used = {var: var.replace(name=name(var)) for var in variables_in(value)}
        return {
            NODE: save_json(_renamed(value, used)),
            "variables": [v.name for v in used.values()],
        }
    return plain(value)


def _renamed(value: Any, used: Mapping[Var, Var]) -> Any:
    if isinstance(value, PrimExpr):
        return substitute(value, used)
    return value.replace(final_indices=tuple([substitute(e, used) for e in value.final_indices]))


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, (IntImm, FloatImm)):
        return value.value
    if isinstance(value, StringImm):
        return value.value
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, Node):
        return {NODE: save_json(value), "variables": []}
    return value


def value_of_json(value: Any, known: Mapping[str, Any]) -> Any:
    """An input or attribute as it was; names of random variables stand for what they are now."""
    if isinstance(value, str):
        if len(value) > 1 and value.startswith('"') and value.endswith('"'):
            return value[1:-1]
        return known.get(value, value)
    if isinstance(value, (list, tuple)):
        return [value_of_json(item, known) for item in value]
    if isinstance(value, Mapping):
        if NODE in value:
            return _node_of_json(value, known)
        return {key: value_of_json(item, known) for key, item in value.items()}
    return value


def _node_of_json(value: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
    node = load_json(value[NODE])
    names = dict.fromkeys(value["variables"])
    used = {var: known[var.name] for var in variables_in(node) if var.name in names}
    return _renamed(node, used) if used else node


def attr_of_json(value: Any) -> Any:
    """An attribute as it was."""
    if isinstance(value, list):
        return [attr_of_json(item) for item in value]
    if isinstance(value, Mapping):
        return (
            load_json(value[NODE])
            if NODE in value
            else {k: attr_of_json(v) for k, v in value.items()}
        )
    return value
