"""Mark what external compilers can take.

nn.relu(%x)   ->   compiler_end(nn.relu(compiler_begin(%x, compiler="c")), compiler="c")

A compiler `c` takes an operator if the operator's attribute `target.c`, a function of the call,
says so; and the composite functions called `c.<something>`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.relay.expr import Call, Tuple, TupleGetItem
from tvm.relay.function import Function
from tvm.relay.transform.common import FunctionPass
from tvm.relay.transform.regions import Regions, is_free, read_regions, unmarked, write_regions
from tvm.relay.traverse import operands


def _takes(compiler: str, call: Call) -> bool:
    if isinstance(call.op, Function):
        composite = str(call.op.attrs.get("Composite", ""))
        return composite.split(".")[0] == compiler
    if not isinstance(call.op, Op):
        return False
    supported = call.op.get_attr(f"target.{compiler}")
    return supported is not None and bool(supported(call))


def _compiler_for(
    node: RelayExpr, regions: Regions, compilers: Sequence[str], include_non_call_ops: bool
) -> str | None:
    if isinstance(node, Call):
        return next((c for c in compilers if _takes(c, node)), None)
    if include_non_call_ops and isinstance(node, (Tuple, TupleGetItem)):
        below = {regions.compiler_of(unmarked(o)) for o in operands(node)}
        return below.pop() if len(below) == 1 else None
    return None


def AnnotateTarget(targets: str | Sequence[str], include_non_call_ops: bool = True) -> Pass:
    """The pass.

    Parameters
    ----------
    targets : names of external compilers; the first that takes an operator gets it.
    include_non_call_ops : mark tuples as well whose fields one compiler has.
    """
    compilers = [targets] if isinstance(targets, str) else list(targets)

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        regions = read_regions(func)
        fresh = len(regions.order)
        changed = False
        for node in regions.order:
            if is_free(node) or regions.compiler_of(node) is not None:
                continue
            found = _compiler_for(node, regions, compilers, include_non_call_ops)
            if found is not None:
                changed = True
                regions.number[id(node)] = fresh
                regions.compiler[fresh] = found
                fresh += 1
        return write_regions(regions) if changed else func

    return FunctionPass(run, PassInfo(0, "AnnotateTarget"))
