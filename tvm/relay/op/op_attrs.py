"""All records of attributes, under the classic module name: found by their type keys."""

from __future__ import annotations

from tvm.ir.node import NODE_TYPES

_PREFIX = "relay.attrs."
# under a second name
_ALIASES = {"StftAttrs": "STFTAttrs"}


def __getattr__(name: str) -> type:
    found = NODE_TYPES.get(_PREFIX + _ALIASES.get(name, name))
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


def __dir__() -> list[str]:
    keys = [key.removeprefix(_PREFIX) for key in NODE_TYPES if key.startswith(_PREFIX)]
    return sorted([*keys, *_ALIASES, *globals()])
