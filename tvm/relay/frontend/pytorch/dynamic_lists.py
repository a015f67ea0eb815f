"""Lists whose length is known at run time only: their items stacked along a first axis.

for i in range(n):                   loop (0 < n, empty(0, 4)) where each step gives
    found.append(x * i)      ->          concatenate(found, expand_dims(x * i))
torch.stack(found)                   found
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.error import OpNotImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, static_or
from tvm.relay.frontend.indexing import move_axis

from .dynamic_shapes import size_of
from .nested import DynamicList, Slot, filled, is_dynamic_list, item_parts
from .registry import as_dtype, as_number, is_tensor


def extended(values: list[DynamicList], items: Sequence[Any]) -> list[DynamicList]:
    """A list with more items behind its own."""
    (old,) = values
    if is_dynamic_list(items):
        more = [items[0].stacks]
    else:
        more = [
            tuple([_op.expand_dims(p, 0) for p in item_parts(old.pattern, item)]) for item in items
        ]
    stacks = []
    for i, stack in enumerate(old.stacks):
        added = [as_dtype(parts[i], infer_dtype(stack)) for parts in more]
        stacks.append(_op.concatenate([stack, *added], 0))
    return [DynamicList(old.pattern, tuple(stacks))]


def slices(x: RelayExpr, axis: int) -> list[DynamicList]:
    """The slices of an axis whose size is known at run time only."""
    return [DynamicList(Slot(0), (move_axis(x, axis, 0),))]


def length(values: list[DynamicList]) -> Any:
    return size_of(values[0].stacks[0], 0)


def item(values: list[DynamicList], index: Any) -> Any:
    """One item; negative indices count from the end."""
    index = as_number(index)
    if not is_tensor(index):
        given = constant(index, "int64")
        index = given if index >= 0 else as_dtype(length(values), "int64") + given
    parts = [_op.take(stack, index, 0) for stack in values[0].stacks]
    return filled(values[0].pattern, parts)


def stacked(values: list[DynamicList], dim: int = 0) -> RelayExpr:
    """The items along a new axis."""
    return move_axis(values[0].stacks[0], 0, dim)


def concatenated(values: list[DynamicList], dim: int = 0) -> RelayExpr:
    """The items behind each other along one of their axes."""
    (stack,) = values[0].stacks
    kept = static_or(infer_shape(stack)[1:], 0)
    axis = dim % len(kept)
    return _op.reshape(move_axis(stack, 0, axis), [*kept[:axis], -1, *kept[axis + 1 :]])


def _write(values: list[Any], more: Sequence[Any]) -> list[Any]:
    values[:] = extended(values, more)
    return values


# what lists of unknown length are used for
DYNAMIC_LIST_OPERATORS: dict[str, Callable[..., Any]] = {
    "aten::len": length, "aten::__getitem__": item, "aten::stack": stacked,
    "aten::cat": concatenated, "aten::concat": concatenated,
    "aten::add": extended, "aten::list": list, "aten::copy": list,
    "aten::append": lambda values, more: _write(values, [more]), "aten::extend": _write,
    "aten::add_": _write, "prim::unchecked_cast": lambda values: values,
}  # fmt: skip


def on_dynamic_list(kind: str, args: Sequence[Any]) -> Any:
    """The result of an operator that gets a list of unknown length first."""
    if kind not in DYNAMIC_LIST_OPERATORS or not is_dynamic_list(args[0]):
        raise OpNotImplemented(
            "the PyTorch importer requires lists of known length for most operators, got one "
            f"whose length is known at run time only for {kind}",
            hint="stack it, torch.stack(items), or trace the model instead of scripting it",
        )
    return DYNAMIC_LIST_OPERATORS[kind](*args)
