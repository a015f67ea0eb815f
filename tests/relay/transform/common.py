"""Helpers of the pass tests."""

from __future__ import annotations

import tvm
from tvm import relay
from tvm.ir.transform import Pass


def typed(func: relay.Function) -> tvm.IRModule:
    """A module with `func` as main, types inferred."""
    return relay.transform.InferType()(tvm.IRModule.from_expr(func))


def run(func: relay.Function, *passes: Pass) -> relay.Function:
    """Main after some passes."""
    mod = typed(func)
    for item in passes:
        mod = item(mod)
    return mod["main"]


def assert_transforms(before: relay.Function, after: relay.Function, *passes: Pass) -> None:
    """`before` becomes `after`."""
    tvm.ir.assert_structural_equal(run(before, *passes), typed(after)["main"])


def assert_unchanged(func: relay.Function, *passes: Pass) -> None:
    """The passes return the very same function."""
    mod = typed(func)
    for item in passes:
        assert item(mod) is mod
