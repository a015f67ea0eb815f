"""Operators of TorchScript's language on numbers, texts, lists and dictionaries.

Torch itself computes what no tensor takes part in. Lists and dictionaries that are written to are
Python's own, so that all names of one see what is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .complexes import Complex
from .nested import UNINITIALIZED, containers, contents
from .registry import Converter, as_number, is_tensor

LANGUAGE: dict[str, Converter] = {}


def language_op(*names: str) -> Callable[[Converter], Converter]:
    """Register what an operator does with plain values, by its name and overload."""

    def register(convert: Converter) -> Converter:
        for name in names:
            LANGUAGE[name if "::" in name else f"aten::{name}"] = convert
        return convert

    return register


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


@language_op("format")
def _format(text: str, *values: Any) -> str:
    return text.format(*[_shown(value) for value in values])


@language_op("percentFormat")
def _percent_format(text: str, *values: Any) -> str:
    return re.sub(r"%[sdifg]", "{}", text).format(*[_shown(value) for value in values])


def _shown(value: Any) -> Any:
    return "<tensor>" if is_tensor(value) else value


@language_op("warn", "prim::Print", "prim::AddStatValue", "manual_seed")
def _ignored(*_: Any) -> None:
    """Done when the model was scripted, or of no effect on results."""


@language_op("prim::unchecked_cast", "prim::unchecked_unwrap_optional", "_unwrap_optional",
          "prim::data", "prim::rangelist")  # fmt: skip
def _same(value: Any) -> Any:
    return value


@language_op("IntImplicit")
def _int(value: Any) -> Any:
    number = as_number(value)
    return number if is_tensor(number) else int(number)


@language_op("FloatImplicit")
def _float(value: Any) -> Any:
    number = as_number(value)
    return number if is_tensor(number) else float(number)


@language_op("is_autocast_enabled", "is_autocast_cpu_enabled", "prim::is_cuda", "prim::is_nested",
             "prim::is_sparse")  # fmt: skip
def _is_not_so(*_: Any) -> bool:
    return False


@language_op("is_grad_enabled", "prim::requires_grad")
def _is_so(*_: Any) -> bool:
    """Modules choose operators that are fused for inference if nobody needs gradients."""
    return True


@language_op("prim::Uninitialized")
def _uninitialized() -> Any:
    return UNINITIALIZED


@language_op("prim::isinstance")
def _is_instance(*_: Any) -> bool:
    return True


@language_op("__is__")
def _is(a: Any, b: Any) -> bool:
    return a is b


@language_op("__isnot__")
def _is_not(a: Any, b: Any) -> bool:
    return a is not b


# ---- lists


@language_op(
    "__getitem__.t", "__getitem__.Dict_str", "__getitem__.Dict_int", "__getitem__.Dict_bool",
    "__getitem__.Dict_float",
)  # fmt: skip
def _getitem(values: Any, index: Any) -> Any:
    return values[as_number(index)]


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


@language_op("pop.t", "pop.Dict_str", "pop.Dict_int", "pop.Dict_bool", "pop.Dict_float")
def _pop(values: Any, place: Any = -1) -> Any:
    return values.pop(as_number(place))


@language_op("pop.Dict_default_str", "pop.Dict_default_int", "pop.Dict_default_bool",
          "pop.Dict_default_float")  # fmt: skip
def _pop_or(values: dict[Any, Any], key: Any, default: Any) -> Any:
    return values.pop(as_number(key), default)


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


@language_op("list", "list.t", "copy.t")
def _list(values: Any) -> list[Any]:
    return list(values)


@language_op("add.t")
def _joined(a: list[Any], b: Sequence[Any]) -> list[Any]:
    return [*a, *b]


@language_op("mul.left_t")
def _repeated(values: list[Any], count: Any) -> list[Any]:
    return values * as_number(count)


@language_op("mul.right_")
def _repeated_right(count: Any, values: list[Any]) -> list[Any]:
    return values * as_number(count)


@language_op("slice.t")
def _cut(values: list[Any], start: Any = None, end: Any = None, step: Any = 1) -> list[Any]:
    return values[as_number(start) : as_number(end) : as_number(step)]


# ---- dictionaries


@language_op("_set_item")
def _set_item(values: Any, key: Any, item: Any) -> Any:
    values[as_number(key)] = item
    return values


@language_op("Delete")
def _delete(values: Any, key: Any) -> None:
    del values[as_number(key)]


@language_op("__contains__")
def _contains(values: Any, key: Any) -> bool:
    return as_number(key) in values


@language_op("keys.str", "keys.int", "keys.bool", "keys.float")
def _keys(values: dict[Any, Any]) -> list[Any]:
    return list(values.keys())


@language_op("values.str", "values.int", "values.bool", "values.float")
def _values(values: dict[Any, Any]) -> list[Any]:
    return list(values.values())


@language_op("items")
def _items(values: dict[Any, Any]) -> list[Any]:
    return [list(item) for item in values.items()]


@language_op("get")
def _get(values: dict[Any, Any], key: Any, default: Any = None) -> Any:
    return values.get(as_number(key), default)


@language_op("setdefault")
def _set_default(values: dict[Any, Any], key: Any, default: Any) -> Any:
    return values.setdefault(as_number(key), default)


@language_op("update")
def _update(values: dict[Any, Any], more: dict[Any, Any]) -> None:
    values.update(more)


@language_op("popitem")
def _pop_item(values: dict[Any, Any]) -> Any:
    return list(values.popitem())


@language_op("dict", "copy.Dict_str", "copy.Dict_int", "copy.Dict_bool", "copy.Dict_float")
def _dict(items: Any = ()) -> dict[Any, Any]:
    return dict(items)
