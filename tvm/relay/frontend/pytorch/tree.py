"""Nested lists of values: what is in them, and the same lists of something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tvm.relay.expr import TupleWrapper


def leaves(value: Any) -> Iterator[Any]:
    """What is in lists and tuples, however deep."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def mapped(value: Any, apply: Callable[[Any], Any]) -> Any:
    """The lists, also for tuples, of what a function makes of each leaf."""
    if isinstance(value, TupleWrapper):
        return [mapped(value[i], apply) for i in range(value.size)]
    if isinstance(value, (list, tuple)):
        return [mapped(item, apply) for item in value]
    return apply(value)
