"""Parallel loops: the body becomes a function that the runtime's threads call.

for i in parallel(n): body     ->    __TVMBackendParallelLaunch(body_task, captured values, 0)

int body_task(int task, TVMParallelGroupEnv* env, captured*):
    for i in range(task * n / env->num_task, (task + 1) * n / env->num_task): body
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tvm.tir.expr import Var
from tvm.tir.stmt import For, Stmt
from tvm.tir.transform.common import VariableCollector

from .code import Code
from .types import TYPES, is_constant, quoted

if TYPE_CHECKING:
    from .statements import FunctionWriter


@dataclass
class ParallelRegion:
    """Where the tasks of one launch share work."""

    task: str  # operand: this task's number
    tasks: str  # operand: how many tasks there are
    environment: str  # operand: the runtime's description of the launch
    strided: bool = False  # tasks take every n-th iteration, rather than consecutive ones
    used: bool = False  # a parallel loop of this region is being written


def write_launch(writer: FunctionWriter, body: Stmt) -> None:
    """Move ``body`` to a function of its own and let all threads run it."""
    name = writer.module.new_symbol(f"{writer.name}_task")
    code = Code(f"define internal i32 @{quoted(name)}(i32 %task, ptr %env, ptr %closure) #0")
    tasks_at = code.value("getelementptr inbounds { ptr, i32 }, ptr %env, i64 0, i32 1")
    tasks = code.value(f"load i32, ptr {tasks_at}, align 8")
    closure, _ = write_moved(writer, body, name, code, ParallelRegion("%task", tasks, "%env"))
    launch = writer.code.value(
        f"load ptr, ptr {writer.module.context_slot('TVMBackendParallelLaunch')}, align 8"
    )
    # 0 tasks: as many as the runtime has threads
    status = writer.code.value(f"call i32 {launch}(ptr @{quoted(name)}, ptr {closure}, i32 0)")
    writer.return_if_failed(status)


def write_moved(
    writer: FunctionWriter, body: Stmt, name: str, code: Code, region: ParallelRegion | None
) -> tuple[str, str]:
    """Write ``body`` as the function that ``code`` begins, whose parameter ``%closure`` has its variables.

    Returns
    -------
    closure, type : str
        The operand for that parameter, and the type of what it points to.
    """
    module, outer = writer.module, writer.code
    used = captured(writer, body)
    fields = [TYPES[var.dtype].text for var in used]
    closure_type = f"%{quoted(name + '_closure')}"
    module.definitions.append(f"{closure_type} = type {{ {', '.join(fields)} }}\n")
    values = {var: operand for var, operand in writer.values.items() if is_constant(operand)}
    for number, (var, field) in enumerate(zip(used, fields, strict=True)):
        at = code.value(f"getelementptr inbounds {closure_type}, ptr %closure, i64 0, i32 {number}")
        values[var] = code.value(f"load {field}, ptr {at}")
    with writer.moved_to(type(writer.frame)(code, values, "i32", region)):
        writer.visit(body)
        code.do("ret i32 0")
    module.definitions.append(code.text())
    return _filled_closure(writer, outer, closure_type, used, fields), closure_type


def _filled_closure(
    writer: FunctionWriter, code: Code, closure_type: str, used: list[Var], fields: list[str]
) -> str:
    closure = code.stack(closure_type, 1, 8) if used else "null"
    for number, (var, field) in enumerate(zip(used, fields, strict=True)):
        at = code.value(
            f"getelementptr inbounds {closure_type}, ptr {closure}, i64 0, i32 {number}"
        )
        code.do(f"store {field} {writer.values[var]}, ptr {at}")
    return closure


def partitioned(writer: FunctionWriter, loop: For, region: ParallelRegion) -> None:
    """The iterations of a parallel loop that belong to this task."""
    code = writer.code
    begin, extent = writer.wide(loop.min), writer.wide(loop.extent)
    task = code.pure(f"sext i32 {region.task} to i64")
    tasks = code.pure(f"sext i32 {region.tasks} to i64")
    if region.strided:
        first = code.pure(f"add nsw i64 {begin}, {task}")
        end = code.pure(f"add nsw i64 {begin}, {extent}")
        writer.counted(loop, first, end, tasks, runs=False)
        return
    # chunks of ceil(extent / tasks), so that only the last ones are shorter
    total = code.pure(f"add nsw i64 {extent}, {code.pure(f'sub nsw i64 {tasks}, 1')}")
    chunk = code.pure(f"sdiv i64 {total}, {tasks}")
    low = _bounded(code, code.pure(f"mul nsw i64 {task}, {chunk}"), extent)
    high = _bounded(code, code.pure(f"add nsw i64 {low}, {chunk}"), extent)
    first = code.pure(f"add nsw i64 {begin}, {low}")
    writer.counted(loop, first, code.pure(f"add nsw i64 {begin}, {high}"), "1", runs=False)


def _bounded(code: Code, value: str, limit: str) -> str:
    return code.pure(f"call i64 @llvm.smin(i64 {value}, i64 {limit})")


def captured(writer: FunctionWriter, body: Stmt) -> list[Var]:
    """Variables of the outer function that the body uses, in order of use."""
    uses = UsedVars()
    uses.visit(body)
    outer = writer.values
    return [
        var
        for var in uses.found
        if var in outer and var not in uses.loops and not is_constant(outer[var])
    ]


class UsedVars(VariableCollector):
    """Collects variables in order of use, and those of the loops inside."""

    def __init__(self) -> None:
        super().__init__()
        self.loops: dict[Var, None] = {}  # their variables

    def visit_for(self, loop: For) -> None:
        self.loops[loop.loop_var] = None
        self.visit_children(loop)
