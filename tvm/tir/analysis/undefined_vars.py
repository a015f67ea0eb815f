"""The variables that a program takes from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.tir.expr import Var
from tvm.tir.stmt_functor import free_vars


def undefined_vars(node: Any, defs: Sequence[Var] | None = None) -> list[Var]:
    """The variables used in a statement or expression and defined neither in it nor in ``defs``."""
    return free_vars(node, defs or ())
