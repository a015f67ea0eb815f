"""Regions between annotations: which nodes belong together, what enters and leaves them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeGuard

from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.relay.expr import Call, Var
from tvm.relay.traverse import operands, post_order


@dataclass(eq=False)
class AnnotatedRegion:
    """The nodes of one region, its begin and its end annotations."""

    id: int
    nodes: list[RelayExpr] = field(default_factory=list)
    args: list[RelayExpr] = field(default_factory=list)
    rets: list[RelayExpr] = field(default_factory=list)


class AnnotatedRegionSet:
    """The regions of an expression.

    Parameters
    ----------
    expr : the expression.
    region_begin_op, region_end_op : the operators that mark values entering and leaving a region.
    """

    def __init__(self, expr: RelayExpr, region_begin_op: Op, region_end_op: Op) -> None:
        self._begin = region_begin_op
        self._end = region_end_op
        self._region_of: dict[int, AnnotatedRegion] = {}
        self._regions: list[AnnotatedRegion] = []
        for node in reversed(post_order(expr)):
            self._visit(node)
        for region in self._regions:
            region.nodes.reverse()
            region.args.reverse()

    def _visit(self, node: RelayExpr) -> None:
        region = self._region_of.get(id(node))
        if self._is_annotation(node, self._end):
            inside = self._region_of.get(id(node.args[0])) or self._new_region()
            self._add(node, inside)
            inside.rets.append(node)
            self._join(node.args[0], inside)
        elif region is not None:
            if self._is_annotation(node, self._begin):
                region.args.append(node)
                return
            for operand in operands(node):
                if not isinstance(operand, (Op, Var)):
                    self._join(operand, region)

    def _is_annotation(self, node: RelayExpr, op: Op) -> TypeGuard[Call]:
        return isinstance(node, Call) and node.op is op

    def _new_region(self) -> AnnotatedRegion:
        self._regions.append(AnnotatedRegion(len(self._regions)))
        return self._regions[-1]

    def _add(self, node: RelayExpr, region: AnnotatedRegion) -> None:
        self._region_of[id(node)] = region
        region.nodes.append(node)

    def _join(self, node: RelayExpr, region: AnnotatedRegion) -> None:
        """A node that a region uses belongs to it; two regions that meet are one."""
        if self._is_annotation(node, self._end):
            raise TVMError(
                "a region ends inside another one: its end mark needs a begin mark after"
            )
        other = self._region_of.get(id(node))
        if other is None:
            self._add(node, region)
        elif other is not region:
            for member in other.nodes:
                self._region_of[id(member)] = region
            region.nodes += other.nodes
            region.args += other.args
            region.rets += other.rets
            self._regions.remove(other)

    def __len__(self) -> int:
        return len(self._regions)

    def __iter__(self) -> Iterator[AnnotatedRegion]:
        return iter(self._regions)

    def get_region(self, expr: RelayExpr) -> AnnotatedRegion | None:
        """The region of a node, or None."""
        return self._region_of.get(id(expr))
