"""Cases of operators that change no value."""

from __future__ import annotations

from typing import Any

import numpy as np

import tvm
from tvm import relay
from tvm.relay.op.registry import ops

from .cases import Case, floats

_HINTS = ("stop_fusion", "checkpoint", "bitpack_start", "bitpack_end")


def marks() -> list[tuple[str, Any]]:
    """The operators' names, and calls of one argument."""
    hints = relay.annotation
    return [
        *[(f"annotation.{name}", getattr(hints, name)) for name in _HINTS],
        ("annotation.cast_hint", lambda a: hints.cast_hint(a, "int8")),
        ("annotation.with_funcid", lambda a: ops.annotation.with_funcid(a, relay_func_id="main")),
        ("on_device", lambda a: hints.on_device(a, tvm.cpu())),
        ("device_copy", lambda a: relay.device_copy(a, tvm.cpu(0), "cpu")),
        ("debug", relay.debug),
    ]


def mark_cases() -> list[Case]:
    return [
        Case(name, lambda a, f=build: relay.add(f(relay.exp(a)), a), (floats(2, 3),), _expected)
        for name, build in marks()
    ]


def _expected(a: Any) -> Any:
    return np.exp(a) + a
