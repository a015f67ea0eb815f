"""Join neighbouring regions of one external compiler.

end(relu(begin(end(exp(begin(%x))))))   ->   end(relu(exp(begin(%x))))

Regions are joined only if nothing outside them stands between them: a region is called as one
function, so it cannot wait for something that waits for it.
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.relay.function import Function
from tvm.relay.transform.common import FunctionPass
from tvm.relay.transform.regions import (
    Regions,
    is_free,
    read_regions,
    without_annotations,
    write_regions,
)
from tvm.relay.traverse import operands


class _Merger:
    """Grows regions in topological order; sets of units are bits of integers."""

    def __init__(self, regions: Regions) -> None:
        self.regions = regions
        self.unit: dict[int, int] = {}  # of each expression
        self.needs: dict[int, int] = {}  # the units that a unit waits for, itself left out
        self.members: dict[int, list[RelayExpr]] = {}

    def run(self) -> None:
        for node in self.regions.order:
            if not is_free(node):
                self._assign_unit(node)
        for unit, members in self.members.items():
            compiler = self.regions.compiler_of(members[0])
            for node in members:
                self.regions.number[id(node)] = -unit - 2
            if compiler is not None:
                self.regions.compiler[-unit - 2] = compiler

    def _assign_unit(self, node: RelayExpr) -> None:
        below = [without_annotations(o) for o in operands(node)]
        below = [o for o in below if id(o) in self.unit]
        compiler = self.regions.compiler_of(node)
        own = len(self.unit)
        self.unit[id(node)] = own
        self.members[own] = [node]
        needs = 0
        for operand in below:
            unit = self.unit[id(operand)]
            needs |= 1 << unit | self.needs[unit]
        self.needs[own] = needs
        if compiler is None:
            return
        for operand in below:
            unit = self.unit[id(operand)]
            if unit != own and self.regions.compiler_of(operand) == compiler:
                own = self._join(own, unit)

    def _join(self, a: int, b: int) -> int:
        """One unit of two, unless something else stands between them; the unit of `a` after."""
        both = 1 << a | 1 << b
        waiting = (self.needs[a] | self.needs[b]) & ~both
        for unit, needs in self.needs.items():
            if waiting >> unit & 1 and needs & both:
                return a
        members = self.members.pop(a)
        for node in members:
            self.unit[id(node)] = b
        self.members[b] += members
        self.needs[b] = waiting
        del self.needs[a]
        for unit, needs in self.needs.items():
            if needs & both:
                self.needs[unit] = needs & ~(1 << a) | 1 << b | waiting
        return b


def MergeCompilerRegions() -> Pass:
    """The pass."""
    return _MERGE_COMPILER_REGIONS


def _run(func: Function, _: IRModule, __: PassContext) -> Function:
    regions = read_regions(func)
    if not regions.compiler:
        return func
    _Merger(regions).run()
    return write_regions(regions)


_MERGE_COMPILER_REGIONS = FunctionPass(_run, PassInfo(0, "MergeCompilerRegions"))
