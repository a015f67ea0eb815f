"""Reject predicates of loads and stores that a program writes for targets without such instructions.

Languages have none: what the vectorizer makes of a loop's conditions becomes branches there again.
"""

from __future__ import annotations

from typing import NoReturn

from tvm.error import LoweringError
from tvm.ir.visitor import Visitor
from tvm.tir.expr import BufferLoad
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import BufferStore
from tvm.tir.transform.common import prim_func_pass
from tvm.tir.transform.lanes import LANE_MASKS

# targets whose code is text
LANGUAGES = ("c", "cuda", "opencl")


class PredicateFinder(Visitor):
    """Raises at the first predicate."""

    def __init__(self, target: object) -> None:
        self.target = target

    def visit_buffer_load(self, load: BufferLoad) -> None:
        if load.predicate is not None:
            self._reject("load", load)
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        if store.predicate is not None:
            self._reject("store", store)
        self.visit_children(store)

    def _reject(self, access: str, at: BufferLoad | BufferStore) -> NoReturn:
        raise LoweringError(
            f"a {access} with a predicate requires a target with masked vectors, got {self.target}",
            at=at,
            hint="put the access under a condition, or build for llvm",
            classic=f"Predicated buffer {access} is not supported.",
        )


@prim_func_pass("tir.VerifyPredicates")
def verify_predicates(func: PrimFunc) -> PrimFunc:
    """Check that the target of a function knows its predicates."""
    target = func.get_attr("target")
    if target is None or target.kind.name not in LANGUAGES or func.get_attr(LANE_MASKS):
        return func
    PredicateFinder(target).visit(func.body)
    return func


VerifyPredicates = verify_predicates.factory
