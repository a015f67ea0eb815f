"""Operators of TorchScript's language on numbers, strings, lists and dictionaries.

Torch itself computes what no tensor takes part in. Lists and dictionaries that are written to are
Python's own, so that all names of one see what is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tvm.relay.frontend.converters import Converters

from .complex_tensors import Complex
from .nested import UNINITIALIZED, containers, contents
from .registry import Converter, as_number, is_tensor

# by name and overload
LANGUAGE: Converters[Converter] = Converters("aten::")
language_op, language_ops = LANGUAGE.op, LANGUAGE.rows


def is_plain(node: Any) -> bool:
    """Whether torch can compute a node if none of its arguments has tensors in it."""
    if not node.inputsSize() or not node.outputsSize():
        return False
    if any("Tensor" in str(value.type()) for value in node.outputs()):
        return False
    is_generic = re.search(r"\bt(Val)?\b", node.schema()) is not None  # torch wants a type for t
    return not is_generic and _operation(node) is not None


def _operation(node: Any) -> Any:
    """Torch's own function of an overload."""
    import torch

    name, _, overload = node.schema().partition("(")[0].partition(".")
    found = torch._C._get_operation_overload(name, overload) if "::" in name else None
    return None if found is None else found[0]


def computed(node: Any, args: Sequence[Any]) -> list[Any] | None:
    """The results of a node on plain values, None if there are tensors among them."""
    numbers = [as_number(arg) for arg in args]
    if any(is_tensor(value) or isinstance(value, Complex) for value in _leaves(numbers)):
        return None
    result = _operation(node)(*numbers)
    return [result] if node.outputsSize() == 1 else list(result)


def has_list_first(args: Sequence[Any]) -> bool:
    """Whether an operator is one on lists: ``any([...])``, ``sum([...])``."""
    return bool(args) and isinstance(args[0], (list, dict))


def language_operator(node: Any) -> Converter | None:
    """What a node does with plain values, if it is one of the language's."""
    overload = node.schema().partition("(")[0]
    return LANGUAGE.get(overload) or LANGUAGE.get(node.kind())


def _leaves(values: Sequence[Any]) -> Iterator[Any]:
    yield from values
    for container in containers(values):
        yield from contents(container)


def _shown(value: Any) -> Any:
    return "<tensor>" if is_tensor(value) else value


@language_op("warn", "prim::Print", "prim::AddStatValue", "manual_seed")
def _ignored(*_: Any) -> None:
    """Done when the model was scripted, or of no effect on results."""


def _implicit(kind: type) -> Converter:
    def convert(value: Any) -> Any:
        number = as_number(value)
        return number if is_tensor(number) else kind(number)

    return convert


def _changing(change: Callable[..., Any]) -> Converter:
    """What changes a container, which is the result."""

    def convert(values: Any, *args: Any) -> Any:
        change(values, *args)
        return values

    return convert


def _overloads(name: str, kinds: str = "str int bool float") -> str:
    """An operator for keys or elements of several types."""
    return " ".join([f"{name}{kind}" for kind in kinds.split()])


language_ops({
    "format": lambda text, *values: text.format(*[_shown(value) for value in values]),
    "percentFormat": lambda text, *values: re.sub(r"%[sdifg]", "{}", text).format(
        *[_shown(value) for value in values]
    ),
    "IntImplicit": _implicit(int),
    "FloatImplicit": _implicit(float),
    (
        "prim::unchecked_cast prim::unchecked_unwrap_optional _unwrap_optional prim::data "
        "prim::rangelist"
    ): lambda value: value,
    "is_autocast_enabled is_autocast_cpu_enabled": lambda *_: False,
    "prim::is_cuda prim::is_nested prim::is_sparse": lambda *_: False,
    # modules choose operators that are fused for inference if nobody needs gradients
    "is_grad_enabled prim::requires_grad": lambda *_: True,
    "prim::Uninitialized": lambda: UNINITIALIZED,
    "prim::isinstance": lambda *_: True,
    "__is__": lambda a, b: a is b,
    "__isnot__": lambda a, b: a is not b,
})  # fmt: skip
language_ops({
    "append": _changing(list.append),
    "extend add_.t": _changing(list.extend),
    "clear": _changing(lambda values: values.clear()),
    "insert.t": lambda values, position, item: values.insert(as_number(position), item),
    "reverse": list.reverse,
    _overloads("sort.", "int float bool str any"): lambda values, reverse=False: values.sort(
        reverse=reverse
    ),
    _overloads("remove."): list.remove,
    "list list.t copy.t": list,
    "add.t": lambda a, b: [*a, *b],
    "mul.left_t": lambda values, count: values * as_number(count),
    "mul.right_": lambda count, values: values * as_number(count),
    "slice.t": lambda values, start=None, end=None, step=1: values[
        as_number(start) : as_number(end) : as_number(step)
    ],
})  # fmt: skip
language_ops({
    _overloads("__getitem__.", "t Dict_str Dict_int Dict_bool Dict_float"): lambda values, key: (
        values[as_number(key)]
    ),
    _overloads("pop.", "t Dict_str Dict_int Dict_bool Dict_float"): lambda values, key=-1: (
        values.pop(as_number(key))
    ),
    _overloads("pop.Dict_default_"): lambda values, key, item: values.pop(as_number(key), item),
    "_set_item": _changing(lambda values, key, item: values.__setitem__(as_number(key), item)),
    "Delete": lambda values, key: values.__delitem__(as_number(key)),
    "__contains__": lambda values, key: as_number(key) in values,
    _overloads("keys."): lambda values: list(values.keys()),
    _overloads("values."): lambda values: list(values.values()),
    "items": lambda values: [list(item) for item in values.items()],
    "get": lambda values, key, default=None: values.get(as_number(key), default),
    "setdefault": lambda values, key, default: values.setdefault(as_number(key), default),
    "update": lambda values, more: values.update(more),
    "popitem": lambda values: list(values.popitem()),
    f"dict {_overloads('copy.Dict_')}": dict,
})  # fmt: skip
