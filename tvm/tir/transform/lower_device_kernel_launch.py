"""Tell how kernels are launched, and launch them through the packed calls of the runtime.

    def f(A): f_kernel(A)        ->    def f(A): call_packed("f_kernel", A, 8, 128)
    def f_kernel(A):                   def f_kernel(A): ...      blockIdx.x = 8, threadIdx.x = 128
        blockIdx.x = 8 ...

A function for another machine of the host's kind is called by its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.error import LoweringError
from tvm.ir.expr import GlobalVar, PrimExpr
from tvm.ir.function import CallingConv
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext
from tvm.ir.structural import structural_equal
from tvm.ir.transform import ModulePass, PassInfo
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir.builtin import call_extern, call_packed
from tvm.tir.expr import Call, IterVar, StringImm
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Allocate, AttrStmt, Evaluate, Stmt
from tvm.tir.stmt_functor import substitute

SHARED_DYNAMIC = "shared.dyn"
DYNAMIC_MEMORY = "tir.use_dyn_shared_memory"


@dataclass(frozen=True)
class Launch:
    """The axes of a kernel's threads with their extents, and the shared memory it asks for."""

    extents: dict[str, PrimExpr]
    dynamic_bytes: PrimExpr | None

    @property
    def params(self) -> list[str]:
        """What is passed after the kernel's own arguments."""
        return [*self.extents, *([DYNAMIC_MEMORY] if self.dynamic_bytes is not None else [])]

    @property
    def arguments(self) -> list[PrimExpr]:
        """The values of ``params``, in terms of the kernel's parameters."""
        memory = [] if self.dynamic_bytes is None else [self.dynamic_bytes]
        return [*self.extents.values(), *memory]


class LaunchFinder(Visitor):
    """Reads the thread axes and dynamic shared memory of a kernel."""

    def __init__(self) -> None:
        self.extents: dict[str, PrimExpr] = {}
        self.dynamic_bytes: PrimExpr | None = None

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        axis = attr.node
        if attr.attr_key == "thread_extent" and isinstance(axis, IterVar):
            known = self.extents.setdefault(axis.thread_tag, attr.value)
            if not structural_equal(known, attr.value):
                raise LoweringError(
                    f"{axis.thread_tag} needs one extent in a kernel, got {known} and {attr.value}"
                )
        self.visit(attr.body)

    def visit_allocate(self, alloc: Allocate) -> None:
        scope = getattr(alloc.buffer_var.type_annotation, "storage_scope", "")
        if scope == SHARED_DYNAMIC:
            if self.dynamic_bytes is not None:
                raise LoweringError(
                    "a kernel may allocate dynamic shared memory once",
                    at=alloc,
                    hint="run MergeSharedMemoryAllocations before",
                )
            size: PrimExpr = alloc.extents[0] * alloc.dtype.itemsize
            for extent in alloc.extents[1:]:
                size = size * extent
            self.dynamic_bytes = size
        self.visit(alloc.body)


class LaunchWriter(Rewriter):
    """Replaces calls of kernels."""

    def __init__(self, mod: IRModule, launches: dict[GlobalVar, Launch], own: Any) -> None:
        self.mod = mod
        self.launches = launches
        self.own = own  # the target of the function around the calls

    def visit_evaluate(self, stmt: Evaluate) -> Stmt:
        call = stmt.value
        if not isinstance(call, Call) or not isinstance(call.op, GlobalVar):
            return stmt
        callee = self.mod.functions.get(call.op)
        if not isinstance(callee, PrimFunc):
            return stmt
        target = callee.get_attr("target")
        if target is None or is_same_machine(target, self.own):
            return stmt
        name = symbol(call.op, callee)
        launch = self.launches.get(call.op)
        if launch is None:
            return Evaluate(call_extern("void", name, *call.args))
        given = dict(zip(callee.params, call.args, strict=True))
        extra = [substitute(argument, given) for argument in launch.arguments]
        return Evaluate(call_packed(StringImm(name), *call.args, *extra))

    def visit_prim_expr(self, e: PrimExpr) -> PrimExpr:
        return e


def is_same_machine(target: Any, other: Any) -> bool:
    """Whether functions of both targets are compiled together."""
    return other is None or str(target) == str(other)


def is_kernel(func: PrimFunc) -> bool:
    """Whether a function runs on a device that the runtime launches kernels on."""
    target = func.get_attr("target")
    return target is not None and not target.runs_on_processor


def symbol(gvar: GlobalVar, func: PrimFunc) -> str:
    """The name a function is called by from other modules."""
    return str(func.get_attr("global_symbol") or gvar.name_hint)


def lower_device_kernel_launch(mod: IRModule, _: PassContext) -> IRModule:
    """Give kernels their calling convention, and callers the launches."""
    prim_funcs = {g: f for g, f in mod.functions.items() if isinstance(f, PrimFunc)}
    if len({str(func.get_attr("target")) for func in prim_funcs.values()}) == 1:
        return mod
    launches = {}
    for gvar, func in prim_funcs.items():
        if not is_kernel(func) or not is_called(mod, gvar):
            continue
        finder = LaunchFinder()
        finder.visit(func.body)
        launches[gvar] = Launch(finder.extents, finder.dynamic_bytes)
    functions: dict[Any, Any] = dict(mod.functions)
    for gvar, func in prim_funcs.items():
        if gvar in launches:
            functions[gvar] = func.with_attrs({
                "calling_conv": int(CallingConv.DEVICE_KERNEL_LAUNCH),
                "tir.kernel_launch_params": launches[gvar].params,
                "tir.is_global_func": True,
                "global_symbol": symbol(gvar, func),
            })  # fmt: skip
        else:
            writer = LaunchWriter(mod, launches, func.get_attr("target"))
            functions[gvar] = func.with_body(writer.visit(func.body))
    return mod.with_functions(functions)


class CallSearch(Visitor):
    """Looks for a call of one function."""

    def __init__(self, gvar: GlobalVar) -> None:
        self.gvar = gvar
        self.found = False

    def visit_call(self, call: Call) -> None:
        self.found = self.found or call.op is self.gvar
        self.visit_children(call)


def is_called(mod: IRModule, gvar: GlobalVar) -> bool:
    """Whether some function of the module calls this one."""
    search = CallSearch(gvar)
    for func in mod.functions.values():
        if isinstance(func, PrimFunc):
            search.visit(func.body)
    return search.found


_LOWER_DEVICE_KERNEL_LAUNCH = PassInfo(0, "tir.LowerDeviceKernelLaunch")


def LowerDeviceKernelLaunch() -> ModulePass:
    """The pass."""
    return ModulePass(lower_device_kernel_launch, _LOWER_DEVICE_KERNEL_LAUNCH)
