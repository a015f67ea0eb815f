"""Reading pickles that hold nodes and plain data, and nothing that could run other code.

Which classes and functions a pickle may name is decided here; all others are rejected before anything
is called.
"""

from __future__ import annotations

import io
import pickle
import sys
from dataclasses import is_dataclass
from enum import Enum
from typing import Any

from tvm.ir.node import Node

_PACKAGE = __name__.partition(".")[0]
# what makes nodes, arrays and plain values again
_MAKERS = frozenset(
    {
        (f"{_PACKAGE}.ir.node", "_rebuild"),
        (f"{_PACKAGE}.ir.op", "Op.get"),
        (f"{_PACKAGE}.runtime.ndarray", "_rebuild"),
        (f"{_PACKAGE}.support.dtype", "dtype"),
        (f"{_PACKAGE}.target.kind", "TargetKind.get"),
        *[("builtins", name) for name in ("bytearray", "complex", "frozenset", "range", "set")],
        ("builtins", "slice"),
        ("collections", "OrderedDict"),
        ("numpy", "dtype"),
        ("numpy", "ndarray"),
        *[
            (f"numpy.{core}.{name}", maker)
            for core in ("core", "_core")
            for name, maker in (
                ("multiarray", "_reconstruct"),
                ("multiarray", "scalar"),
                ("numeric", "_frombuffer"),
            )
        ],
    }
)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _MAKERS:
            return super().find_class(module, name)
        found = getattr(sys.modules.get(module), name, None)
        if module.partition(".")[0] != _PACKAGE or not _is_data(found):
            raise pickle.UnpicklingError(f"a pickle of nodes may not name {module}.{name}")
        return found


def _is_data(found: Any) -> bool:
    """Whether this is a class of nodes, of names, of tuples or of records that do not change."""
    if not isinstance(found, type):
        return False
    if issubclass(found, (Node, Enum)):
        return True
    if issubclass(found, tuple):
        return found.__new__ is tuple.__new__ and found.__init__ is tuple.__init__
    return is_dataclass(found) and bool(found.__dataclass_params__.frozen)  # type: ignore[attr-defined]


def loads(data: bytes) -> Any:
    """What was pickled; raises `pickle.UnpicklingError` if it names anything but data."""
    return _Unpickler(io.BytesIO(data)).load()
