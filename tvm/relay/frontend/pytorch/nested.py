"""Values of TorchScript: tensors, and what nests them.

A branch or a loop that depends on data has one type of result, so its values are flattened into
their tensors and numbers, and nested again around what the branch or loop gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeGuard

import numpy as np

from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.expr import TupleWrapper
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, static_or

from .complex_tensors import Complex
from .registry import is_tensor
from .views import Stale


class Uninitialized:
    """What TorchScript has where no path that is taken defines a value."""


UNINITIALIZED = Uninitialized()


@dataclass(eq=False)
class Record:
    """An object of a scripted class."""

    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DynamicList:
    """The items of a list whose length is known at run time only.

    It is the one item of a Python list, so that all names of the list see what is appended.
    """

    pattern: Any  # of an item
    stacks: tuple[RelayExpr, ...]  # of the tensors of the items, along a first axis


@dataclass(frozen=True)
class Composite:
    """The pattern of a value that is no container: its parts, and how it is made of them."""

    parts: list[Any]
    make: Callable[[list[Any]], Any]


def _parts(value: Any) -> Composite | None:
    if isinstance(value, Complex):
        return Composite(value.parts, lambda parts: Complex(*parts))
    if isinstance(value, DynamicList):
        return Composite(list(value.stacks), lambda parts: DynamicList(value.pattern, tuple(parts)))
    return None


@dataclass(frozen=True)
class Slot:
    """The place of a tensor in nested values."""

    index: int


def containers(values: Iterable[Any]) -> Iterator[Any]:
    """The lists, dictionaries and objects among nested values, each once."""
    seen: set[int] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        if not isinstance(value, (list, tuple, dict, Record)) or id(value) in seen:
            continue
        seen.add(id(value))
        if not isinstance(value, tuple):
            yield value
        pending.extend(contents(value))


def contents(container: Any) -> list[Any]:
    """What is directly in a list, dictionary or object."""
    if isinstance(container, Record):
        return list(container.fields.values())
    return list(container.values() if isinstance(container, dict) else container)


def copied(container: Any) -> Any:
    """The contents of a container as a value of their own."""
    if isinstance(container, Record):
        return dict(container.fields)
    return dict(container) if isinstance(container, dict) else list(container)


def refill(container: Any, values: Any) -> None:
    """Replace what is in a container."""
    if isinstance(container, Record):
        container = container.fields
    container.clear()
    (container.update if isinstance(container, dict) else container.extend)(values)


def is_same(a: Any, b: Any) -> bool:
    """Whether two values are the same object, or equal numbers or strings."""
    return a is b or (type(a) is type(b) and isinstance(a, _PLAIN) and bool(a == b))


def are_same_contents(a: Any, b: Any) -> bool:
    """Whether copies of a container have the same in them."""
    keys_agree = not isinstance(a, dict) or list(a) == list(b)
    left, right = contents(a), contents(b)
    return keys_agree and len(left) == len(right) and all(map(is_same, left, right))


_PLAIN = (bool, int, float, str)
_NUMBERS = (bool, int, float)


def as_tensor(value: Any) -> Any:
    """A number as a tensor without axes: torch's numbers are int64 and float64."""
    if is_tensor(value):
        return value
    if isinstance(value, bool):
        return constant(value)
    return constant(value, "int64" if isinstance(value, int) else "float64")


def merged(yes: Any, no: Any, pairs: list[tuple[Any, Any]]) -> Any:
    """The results of two branches as one, with slots for the tensors that differ."""
    yes, no = _unwrapped(yes), _unwrapped(no)
    if is_same(yes, no) or no is UNINITIALIZED:
        return yes
    if yes is UNINITIALIZED:
        return no
    for value in (yes, no):
        if isinstance(value, Stale):
            return value
    if _is_leaf(yes) and _is_leaf(no):
        pairs.append((as_tensor(yes), as_tensor(no)))
        return Slot(len(pairs) - 1)
    left, right = _parts(yes), _parts(no)
    if left is not None and right is not None and type(yes) is type(no):
        return Composite(merged(left.parts, right.parts, pairs), left.make)
    yes, no = _as_long(yes, no), _as_long(no, yes)
    if not isinstance(yes, (list, tuple, dict)) or not _is_like(yes, no):
        _raise_mismatch(yes, no)
    if isinstance(yes, dict):
        return {key: merged(yes[key], no[key], pairs) for key in yes}
    return [merged(x, y, pairs) for x, y in zip(yes, no, strict=True)]


def is_dynamic_list(value: Any) -> TypeGuard[list[DynamicList]]:
    """Whether a value is a list of unknown length."""
    return isinstance(value, list) and len(value) == 1 and isinstance(value[0], DynamicList)


def _as_long(value: Any, other: Any) -> Any:
    """A list as one of unknown length, if the other one is of another length."""
    if not isinstance(value, list) or not isinstance(other, list) or is_dynamic_list(value):
        return value
    if is_dynamic_list(other):
        return as_dynamic_list(value, filled(other[0].pattern, other[0].stacks), of_stacks=True)
    return value if len(value) == len(other) else as_dynamic_list(value, [*value, *other][0])


def as_dynamic_list(
    items: Sequence[Any], example: Any, of_stacks: bool = False
) -> list[DynamicList]:
    """A list as one of unknown length, whose items are like an example or one item of stacks."""
    leaves: list[Any] = []
    pattern = flattened(example, leaves)
    if items:
        rows = [item_parts(pattern, item) for item in items]
        stacks = [_op.stack(list(found), 0) for found in zip(*rows, strict=True)]
        return [DynamicList(pattern, tuple(stacks))]
    shapes = [infer_shape(leaf)[int(of_stacks) :] for leaf in map(as_tensor, leaves)]
    if not all(isinstance(dim, (int, np.integer)) for shape in shapes for dim in shape):
        raise TVMError("a list of unknown length requires items of known shapes", hint=_HINT)
    dtypes = [infer_dtype(leaf) for leaf in map(as_tensor, leaves)]
    empty = [constant(np.zeros((0, *s)), d) for s, d in zip(shapes, dtypes, strict=True)]
    return [DynamicList(pattern, tuple(empty))]


def item_parts(pattern: Any, item: Any) -> list[RelayExpr]:
    """The tensors of an item."""
    found: dict[int, Any] = {}
    followed(pattern, item, found)
    return [as_tensor(found[i]) for i in range(len(found))]


_HINT = "trace the model with example inputs instead of scripting it"


def _raise_mismatch(a: Any, b: Any) -> NoReturn:
    raise TVMError(
        "control flow that depends on data requires values of one structure, got "
        f"{_text(a)} and {_text(b)}",
        hint=_HINT,
    )


def _is_leaf(value: Any) -> bool:
    return is_tensor(value) or isinstance(value, _NUMBERS)


def _unwrapped(value: Any) -> Any:
    return list(value) if isinstance(value, TupleWrapper) else value


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return f"a dictionary of {', '.join(map(str, value)) or 'nothing'}"
    if isinstance(value, (list, tuple)):
        return f"a list or tuple of {len(value)}"
    return "a tensor" if is_tensor(value) else repr(value)


def filled(pattern: Any, values: Sequence[Any]) -> Any:
    """A pattern with values in place of its slots; what has no slots stays the very same."""
    if isinstance(pattern, Slot):
        return values[pattern.index]
    if isinstance(pattern, Composite):
        return pattern.make(filled(pattern.parts, values))
    if not _has_slots(pattern):
        return pattern
    if isinstance(pattern, dict):
        return {key: filled(value, values) for key, value in pattern.items()}
    return [filled(value, values) for value in pattern]


def flattened(value: Any, leaves: list[Any]) -> Any:
    """A pattern of a value, its tensors and numbers in the order of the slots."""
    value = _unwrapped(value)
    if _is_leaf(value) or value is UNINITIALIZED:
        leaves.append(value)
        return Slot(len(leaves) - 1)
    if (composite := _parts(value)) is not None:
        return Composite([flattened(part, leaves) for part in composite.parts], composite.make)
    if isinstance(value, dict):
        return {key: flattened(item, leaves) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [flattened(item, leaves) for item in value]
    return value


def followed(pattern: Any, value: Any, leaves: dict[int, Any]) -> None:
    """Find the tensors and numbers of a value at the slots of a pattern."""
    value = _unwrapped(value)
    if isinstance(pattern, Slot):
        if value is not UNINITIALIZED:
            if not _is_leaf(value):
                _raise_mismatch(UNINITIALIZED, value)
            leaves[pattern.index] = value
    elif isinstance(pattern, Composite) and (composite := _parts(value)) is not None:
        followed(pattern.parts, composite.parts, leaves)
    elif isinstance(pattern, (list, dict)) and _is_like(pattern, value):
        for one, item in zip(contents(pattern), contents(value), strict=True):
            followed(one, item, leaves)
    elif not is_same(pattern, value):
        _raise_mismatch(pattern, value)


def with_structure_of(start: Any, value: Any) -> Any:
    """``start`` with zeros like those in ``value`` where it is not initialized.

    Lists that are longer in ``value`` become lists of unknown length.
    """
    value = _unwrapped(value)
    if start is UNINITIALIZED:
        return start if value is UNINITIALIZED else _zeros(value)
    start_ = _as_long(start, value) if isinstance(value, list) else start
    if start_ is not start or not isinstance(start, (list, dict)) or not _is_like(start, value):
        return start_
    made = [with_structure_of(a, b) for a, b in zip(contents(start), contents(value), strict=True)]
    if all(map(is_same, made, contents(start))):
        return start
    return dict(zip(start, made, strict=True)) if isinstance(start, dict) else made


def _zeros(value: Any) -> Any:
    if is_tensor(value):
        shape = static_or(infer_shape(value), 0)
        return constant(np.zeros(shape), infer_dtype(value))
    if isinstance(value, _NUMBERS):
        return type(value)(0)
    if (composite := _parts(value)) is not None:
        return composite.make([_zeros(part) for part in composite.parts])
    if isinstance(value, dict):
        return {key: _zeros(item) for key, item in value.items()}
    return [_zeros(item) for item in value] if isinstance(value, (list, tuple)) else value


def _is_like(a: Any, b: Any) -> bool:
    if isinstance(a, dict) or isinstance(b, dict):
        return isinstance(a, dict) and isinstance(b, dict) and list(a) == list(b)
    return isinstance(b, (list, tuple)) and len(a) == len(b)


def _has_slots(pattern: Any) -> bool:
    if isinstance(pattern, (list, tuple, dict)):
        return any([_has_slots(value) for value in contents(pattern)])
    return isinstance(pattern, (Slot, Composite))
