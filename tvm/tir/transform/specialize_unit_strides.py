"""Give vectors over buffers whose strides only the call tells a version for elements side by side.

def f(A: Buffer(n, strides=[s])):    ->    def f(A: Buffer(n, strides=[s])):
    B[0:8] = A[0 : 8 * s : s]                  if s == 1:
                                                   B[0:8] = A[0:8]
                                               else:
                                                   B[0:8] = A[0 : 8 * s : s]

A vector of any stride is loaded element by element.
"""

from __future__ import annotations

from collections.abc import Collection

from tvm.ir.visitor import Visitor
from tvm.tir import op
from tvm.tir.buffer import BufferType
from tvm.tir.expr import Ramp, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import IfThenElse
from tvm.tir.stmt_functor import substitute
from tvm.tir.transform.common import prim_func_pass, variables_of
from tvm.tir.transform.convert_ssa import separate_definitions
from tvm.tir.transform.simplify import SimplifyConfig, simplify


class RampFinder(Visitor):
    """Whether a vector's elements are as far apart as one of some variables says."""

    def __init__(self, strides: Collection[Var]) -> None:
        self.strides = strides
        self.found = False

    def visit_ramp(self, ramp: Ramp) -> None:
        steps = variables_of(ramp.stride)
        self.found = self.found or any([var in self.strides for var in steps])


def innermost_strides(func: PrimFunc) -> dict[Var, None]:
    """The variables for the strides of last axes that a call may make broadcast."""
    return {
        buffer.strides[-1]: None
        for buffer in func.buffer_map.values()
        if buffer.buffer_type is BufferType.AUTO_BROADCAST
        and buffer.strides
        and isinstance(buffer.strides[-1], Var)
    }


def runs_on_cpu(func: PrimFunc) -> bool:
    """Whether the function is for a processor, where a branch around it costs nothing."""
    target = func.get_attr("target")
    return target is None or "cpu" in target.keys


@prim_func_pass("tir.SpecializeUnitStrides")
def specialize_unit_strides(func: PrimFunc) -> PrimFunc:
    """Compile functions with vectors of open strides for strides of 1 too."""
    strides = innermost_strides(func)
    if not strides or not runs_on_cpu(func):
        return func
    finder = RampFinder(strides)
    finder.visit(func.body)
    if not finder.found:
        return func
    ones = {stride: const(1, stride.dtype) for stride in strides}
    body = substitute(func.body, ones)
    close = simplify(func.with_body(body), SimplifyConfig(thorough=False)).body
    are_ones = op.all(*[op.equal(stride, one) for stride, one in ones.items()])
    return func.with_body(separate_definitions(IfThenElse(are_ones, close, func.body), func))


SpecializeUnitStrides = specialize_unit_strides.factory
