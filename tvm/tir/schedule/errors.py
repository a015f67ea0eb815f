"""How the error of a primitive reads: the program, the place, the reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.error import ScheduleError
from tvm.ir.module import IRModule
from tvm.ir.node import Node
from tvm.tir.stmt import Block, For

RENDER_LEVELS = ("detail", "fast", "none")
EXCERPT_LINES = 12


class PrimitiveError(Exception):
    """A primitive cannot be applied.

    Parameters
    ----------
    fast : str
        The reason, in one sentence.
    detail : str
        The reason with what was found; ``{0}`` and so on stand for the places.
    places : Node
        The loops and blocks in question.
    """

    def __init__(self, fast: str, detail: str = "", *places: Node) -> None:
        super().__init__(fast)
        self.fast = fast
        self.detail = detail or fast
        self.places = places


def rendered(error: PrimitiveError, primitive: str, mod: IRModule, level: str) -> ScheduleError:
    """The error as programs see it."""
    if level == "none":
        return ScheduleError("ScheduleError: (not rendered)")
    if level == "fast":
        return ScheduleError(f"{error.fast} (in schedule primitive '{primitive}')")
    names = place_names(error.places)
    lines = [
        f"An error occurred in the schedule primitive '{primitive}'.",
        "The IR with diagnostic is:",
        mod.script(),
    ]
    for place, name in zip(dict.fromkeys(error.places), dict.fromkeys(names), strict=True):
        lines += [f"{name} is:", *_excerpt(place)]
    lines.append(f"Error message: {error.detail.format(*names)}")
    return ScheduleError("\n".join(lines))


def place_names(places: Sequence[Node]) -> list[str]:
    """A name for each place: its class and number, with that of the block or loop variable."""
    distinct = {place: number for number, place in enumerate(dict.fromkeys(places))}
    return [_name(place, number) for place, number in [(p, distinct[p]) for p in places]]


def _name(place: Any, number: int) -> str:
    own = place.name_hint if isinstance(place, Block) else ""
    if isinstance(place, For):
        own = place.loop_var.name
    return f"{type(place).type_key}#{number}" + (f" ({own})" if own else "")


def _excerpt(place: Any) -> list[str]:
    lines = [f"    {line}" for line in str(place).splitlines()]
    return lines if len(lines) <= EXCERPT_LINES else [*lines[:EXCERPT_LINES], "    ..."]
