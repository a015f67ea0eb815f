"""The decorator of modules."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from tvm.ir.module import IRModule

from ..core.entry import decorated, parse_class


def ir_module(mod: type | None = None, check_well_formed: bool = True) -> Any:
    """Read a Python class as a module; its functions are those with ``T.prim_func``.

    Parameters
    ----------
    mod : class
        The definition.
    check_well_formed : bool
        Whether a module that is not well formed is rejected.
    """
    return decorated(module_of_class, mod, sys._getframe(1), check_well_formed)


ir_module.dispatch_token = "ir"  # type: ignore[attr-defined]


def module_of_class(
    mod: Any, outer: FrameType, check_well_formed: bool = True, line: int | None = None
) -> IRModule:
    """A class as a module; ``outer`` is the scope that it stands in, and is at its line by default."""
    if not isinstance(mod, type):
        raise TypeError(f"I.ir_module requires a class, got {type(mod).__name__}")
    result: IRModule = parse_class(mod, outer, "ir", check_well_formed, line)
    result.__name__ = mod.__name__  # type: ignore[attr-defined]
    return result


__all__ = ["ir_module", "module_of_class"]
