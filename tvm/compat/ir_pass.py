"""``tvm.ir_pass`` of old: passes and questions as functions of statements and expressions.

stmt = tvm.ir_pass.LoopPartition(stmt, True)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvm import arith, tir
from tvm.ir import IRModule, PrimExpr, structural_equal, structural_hash
from tvm.ir.transform import Pass, PassContext
from tvm.te.schedule import SchedulePostProcToPrimFunc
from tvm.tir import stmt_functor, transform
from tvm.tir.analysis import expr_deep_equal, undefined_vars
from tvm.tir.stmt import Stmt

PostOrderVisit = stmt_functor.post_order_visit
Substitute = stmt_functor.substitute
IRTransform = stmt_functor.ir_transform


def Simplify(node: Any, vrange: dict[Any, Any] | None = None) -> Any:
    """A statement or expression, simplified where the variables have the given ranges."""
    analyzer = arith.Analyzer()
    for var, bound in (vrange or {}).items():
        analyzer.bind(var, bound)
    if isinstance(node, Stmt):
        return run(transform.Simplify(), node)
    return analyzer.simplify(node)


CanonicalSimplify = Simplify


def Equal(lhs: Any, rhs: Any) -> bool:
    """Whether both are the same but for the names of what they bind."""
    if isinstance(lhs, PrimExpr) and isinstance(rhs, PrimExpr):
        return bool(expr_deep_equal(lhs, rhs))
    return bool(structural_equal(lhs, rhs))


AttrsEqual = Equal
AttrsHash = structural_hash


def VerifySSA(stmt: Any) -> bool:
    """Whether each variable is defined once."""
    return bool(tir.analysis.verify_ssa(_function(stmt)))


def LoopPartition(stmt: Stmt, split_const_loop: bool = False) -> Stmt:
    """Separate the parts of loops that need no check."""
    with PassContext(config={"tir.LoopPartition": {"partition_const_loop": split_const_loop}}):
        return run(transform.LoopPartition(), stmt)


def UnrollLoop(
    stmt: Stmt,
    auto_max_step: int = 0,
    auto_max_depth: int = 8,
    auto_max_extent: int = 0,
    explicit_unroll: bool = True,
) -> Stmt:
    """Unroll loops."""
    options = {
        "auto_max_step": auto_max_step, "auto_max_depth": auto_max_depth,
        "auto_max_extent": auto_max_extent, "explicit_unroll": explicit_unroll,
    }  # fmt: skip
    with PassContext(config={"tir.UnrollLoop": options}):
        return run(transform.UnrollLoop(), stmt)


def StorageFlatten(stmt: Stmt, extern_buffer: Mapping[Any, Any], cache_line_size: int = 64) -> Stmt:
    """The loops of ``ScheduleOps`` on flat memory; the tensors outside are given their buffers."""
    func = SchedulePostProcToPrimFunc(list(extern_buffer.values()), stmt, extern_buffer)
    flatten = transform.StorageFlatten(cache_line_size)
    result: Stmt = flatten(IRModule({"main": func}))["main"].body
    return result


def InjectDoubleBuffer(stmt: Stmt, split_loop: int = 1) -> Stmt:
    """Give buffers that are marked two halves."""
    with PassContext(config={"tir.InjectDoubleBuffer": {"split_loop": split_loop}}):
        return run(transform.InjectDoubleBuffer(), stmt)


def run(item: Pass, stmt: Stmt) -> Stmt:
    """A pass on a statement."""
    if not isinstance(stmt, Stmt):
        raise TypeError(f"{item.info.name} requires a statement, got {type(stmt).__name__}")
    result: Stmt = item(IRModule({"main": _function(stmt)}))["main"].body
    return result


def _function(stmt: Any) -> tir.PrimFunc:
    return stmt if isinstance(stmt, tir.PrimFunc) else tir.PrimFunc(undefined_vars(stmt), stmt)


def __getattr__(name: str) -> Callable[..., Stmt]:
    make = getattr(transform, name, None)
    if make is None:
        raise AttributeError(f"module 'tvm.ir_pass' has no attribute {name!r}")
    return lambda stmt, *args, **kwargs: run(make(*args, **kwargs), stmt)
