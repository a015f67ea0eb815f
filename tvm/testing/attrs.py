"""A record of attributes that tests of attributes are written with: ``attrs.TestAttrs``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tvm.error import OpAttributeInvalid
from tvm.ir.attrs import Attrs
from tvm.ir.expr import PrimExpr
from tvm.ir.node import leaf
from tvm.tir.constants import as_expr

_AXES = range(1, 11)


class TestAttrs(Attrs, key="attrs.TestAttrs"):
    """An axis with bounds, a name without a default, expressions, and a function."""

    axis: int = leaf(default=10)
    name: str = leaf(default="")
    padding: tuple[PrimExpr, ...] = ()
    func: Any = leaf(default=None)

    def __init__(
        self,
        name: str,
        axis: int = 10,
        padding: Iterable[Any] = (0, 0),
        func: Any = None,
    ) -> None:
        if axis not in _AXES:
            raise OpAttributeInvalid(
                f"attrs.TestAttrs requires an axis of {_AXES.start} to {_AXES.stop - 1}, got {axis}"
            )
        self._init(int(axis), str(name), tuple([as_expr(value) for value in padding]), func)
