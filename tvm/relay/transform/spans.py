"""Give nodes spans: those in the program's own text, or their number in the order of evaluation."""

from __future__ import annotations

from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.span import SourceName, Span
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.relay.analysis.dominators import index_dominators
from tvm.relay.function import Function
from tvm.relay.parser import parse
from tvm.relay.transform.common import map_relay_functions
from tvm.relay.transform.infer_type import infer_types
from tvm.relay.traverse import rewrite_function


def AnnotateSpans() -> Pass:
    """The pass that prints a module and takes the positions in that text as spans."""

    def run(mod: IRModule, _: PassContext) -> IRModule:
        found = parse(infer_types(mod).astext(), "GeneratedSource")
        return IRModule(found.functions, found.type_definitions, mod.attrs, mod.global_infos)

    return ModulePass(run, PassInfo(0, "AnnotateSpans"))


def capture_indices(func: Function) -> Function:
    """Each node's span named `index:<its number>:<that of its post-dominator>`; its line is the number."""
    spans = {
        key: Span(SourceName(f"index:{index}:{dominator}"), index, index, 0, 0)
        for key, (index, dominator) in index_dominators(func).items()
    }

    def rewrite(old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if isinstance(new, (Op, GlobalVar)) or id(old) not in spans:
            return new
        return new.replace(span=spans[id(old)])

    return rewrite_function(func, rewrite)


def CapturePostDfsIndexInSpans() -> Pass:
    """The pass that numbers the nodes of each function in their spans."""

    def run(mod: IRModule, _: PassContext) -> IRModule:
        return infer_types(map_relay_functions(mod, capture_indices))

    return ModulePass(run, PassInfo(0, "CapturePostDfsIndexInSpans"))
