"""Operators of TorchScript's language on numbers, texts, lists and dictionaries.

Torch itself computes what no tensor takes part in. Lists and dictionaries that are written to are
Python's own, so that all names of one see what is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tvm.relay.frontend.converters import Converters

from .complexes import Complex
from .nested import UNINITIALIZED, containers, contents
from .registry import Converter, Rows, as_number, is_tensor

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


_OPERATORS: Rows = {
    "format": lambda text, *values: text.format(*[_shown(value) for value in values]),
    "percentFormat": lambda text, *values: re.sub(r"%[sdifg]", "{}", text).format(
        *[_shown(value) for value in values]
    ),
    "prim::unchecked_cast prim::unchecked_unwrap_optional _unwrap_optional prim::data prim::rangelist": lambda value: (
        value
    ),
    "is_autocast_enabled is_autocast_cpu_enabled prim::is_cuda prim::is_nested prim::is_sparse": lambda *_: (
        False
    ),
    # modules choose operators that are fused for inference if nobody needs gradients
    "is_grad_enabled prim::requires_grad": lambda *_: True,
    "prim::Uninitialized": lambda: UNINITIALIZED,
    "prim::isinstance": lambda *_: True,
    "__is__": lambda a, b: a is b,
    "__isnot__": lambda a, b: a is not b,
}
language_ops(_OPERATORS)


def _shown(value: Any) -> Any:
    return "<tensor>" if is_tensor(value) else value


@language_op("warn", "prim::Print", "prim::AddStatValue", "manual_seed")
def _ignored(*_: Any) -> None:
    """Done when the model was scripted, or of no effect on results."""


@language_op("IntImplicit")
def _int(value: Any) -> Any:
    number = as_number(value)
    return number if is_tensor(number) else int(number)


@language_op("FloatImplicit")
def _float(value: Any) -> Any:
    number = as_number(value)
    return number if is_tensor(number) else float(number)


# ---- lists


_LISTS: Rows = {
    "__getitem__.t __getitem__.Dict_str __getitem__.Dict_int __getitem__.Dict_bool __getitem__.Dict_float": lambda values, index: (
        values[as_number(index)]
    ),
    "pop.t pop.Dict_str pop.Dict_int pop.Dict_bool pop.Dict_float": lambda values, place=-1: (
        values.pop(as_number(place))
    ),
    "pop.Dict_default_str pop.Dict_default_int pop.Dict_default_bool pop.Dict_default_float": lambda values, key, default: (
        values.pop(as_number(key), default)
    ),
    "list list.t copy.t": lambda values: list(values),
    "add.t": lambda a, b: [*a, *b],
    "mul.left_t": lambda values, count: values * as_number(count),
    "mul.right_": lambda count, values: values * as_number(count),
    "slice.t": lambda values, start=None, end=None, step=1: values[
        as_number(start) : as_number(end) : as_number(step)
    ],
}
language_ops(_LISTS)


@language_op("append")
def _append(values: list[Any], item: Any) -> list[Any]:
    values.append(item)
    return values


@language_op("extend", "add_.t")
def _extend(values: list[Any], more: Sequence[Any]) -> list[Any]:
    values.extend(more)
    return values


@language_op("insert.t")
def _insert(values: list[Any], place: Any, item: Any) -> None:
    values.insert(as_number(place), item)


@language_op("clear")
def _clear(values: Any) -> Any:
    values.clear()
    return values


@language_op("reverse")
def _reverse(values: list[Any]) -> None:
    values.reverse()


@language_op("sort.int", "sort.float", "sort.bool", "sort.str", "sort.any")
def _sort(values: list[Any], reverse: bool = False) -> None:
    values.sort(reverse=reverse)


@language_op("remove.int", "remove.float", "remove.bool", "remove.str")
def _remove(values: list[Any], item: Any) -> None:
    values.remove(item)


# ---- dictionaries


@language_op("_set_item")
def _set_item(values: Any, key: Any, item: Any) -> Any:
    values[as_number(key)] = item
    return values


@language_op("Delete")
def _delete(values: Any, key: Any) -> None:
    del values[as_number(key)]


_DICTIONARIES: Rows = {
    "__contains__": lambda values, key: as_number(key) in values,
    "keys.str keys.int keys.bool keys.float": lambda values: list(values.keys()),
    "values.str values.int values.bool values.float": lambda values: list(values.values()),
    "items": lambda values: [list(item) for item in values.items()],
    "get": lambda values, key, default=None: values.get(as_number(key), default),
    "setdefault": lambda values, key, default: values.setdefault(as_number(key), default),
    "popitem": lambda values: list(values.popitem()),
    "dict copy.Dict_str copy.Dict_int copy.Dict_bool copy.Dict_float": lambda items=(): dict(items),
}
language_ops(_DICTIONARIES)


@language_op("update")
def _update(values: dict[Any, Any], more: dict[Any, Any]) -> None:
    values.update(more)
