"""Parallel loops: the body becomes a function that the runtime's threads call.

for i in parallel(n): body     ->    __TVMBackendParallelLaunch(f_task, &f_task_closure, 0)

static int f_task(int task_id, TVMParallelGroupEnv* env, void* closure) {
  for (i = task_id * n / env->num_task; i < (task_id + 1) * n / env->num_task; ++i) body
}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tvm.codegen.llvm.parallel import UsedVars
from tvm.tir.expr import IntImm, Var
from tvm.tir.stmt import For, Stmt

from .arithmetic import bare
from .code import Code

if TYPE_CHECKING:
    from .statements import FunctionWriter


@dataclass
class ParallelRegion:
    """Where the tasks of one launch share work."""

    strided: bool = False  # tasks take every n-th iteration, rather than consecutive ones
    used: bool = False  # a parallel loop of this region is being written


def write_launch(w: FunctionWriter, body: Stmt) -> None:
    """Move ``body`` to a function of its own and let all threads run it."""
    module, outer = w.module, w.code
    captured = _captured(w, body)
    name = module.new_name(f"{w.name}_task")
    closure = outer.name(f"{name}_closure")
    types = {var: w.pointer_type(var) for var in captured}
    fields = [f"  {types[var]} {w.values[var]};\n" for var in captured]
    if fields:
        module.definitions.append(f"struct {name}_closure {{\n{''.join(fields)}}};\n")
    code = Code(f"static int {name}(int task_id, TVMParallelGroupEnv* env, void* closure)")
    for reserved in (*w.taken, "task_id", "env", "closure", *[w.values[var] for var in captured]):
        code.reserve(reserved)
    for var in captured:
        value = f"((struct {name}_closure*)closure)->{w.values[var]}"
        code.do(f"{w.declared_type(var)} {w.values[var]} = {value}")
    if not captured:
        code.do("(void)closure")
    with w.moved_to(code, "int", ParallelRegion()):
        w.visit(body)
    code.do("(void)env")
    code.do("(void)task_id")
    code.do("return 0")
    module.definitions.append(code.text())
    _call_launch(w, outer, name, closure, captured)


def _call_launch(
    w: FunctionWriter, code: Code, name: str, closure: str, captured: list[Var]
) -> None:
    given = "NULL"
    if captured:
        given = f"&{closure}"
        code.do(f"struct {name}_closure {closure}")
    for var in captured:
        w.used.add(var)
        code.do(f"{closure}.{w.values[var]} = {w.values[var]}")
    # 0 tasks: as many as the runtime has threads
    launch = w.module.slot("TVMBackendParallelLaunch")
    w.fail_if(f"{launch}({name}, {given}, 0) != 0")


def partitioned(w: FunctionWriter, loop: For, region: ParallelRegion) -> None:
    """The iterations of a parallel loop that belong to this task."""
    code = w.code
    with w.wrapping(False):
        begin, extent = w.operand(loop.min), w.operand(loop.extent)
    start = "" if isinstance(loop.min, IntImm) and loop.min.value == 0 else f"{begin} + "
    if region.strided:
        first = code.define("int64_t", "first", f"{start}task_id")
        w.counted(loop, first, f"{start}{extent}", "env->num_task", "int64_t")
        return
    # chunks of ceil(extent / tasks), so that only the last ones are shorter
    chunk = code.define(
        "int64_t", "chunk", f"((int64_t){extent} + env->num_task - 1) / env->num_task"
    )
    first = code.define("int64_t", "first", f"{start}task_id * {chunk}")
    last = code.define("int64_t", "last", f"{first} + {chunk}")
    whole = code.define("int64_t", "whole", f"{start}{bare(extent)}")
    end = code.define("int64_t", "end", f"{last} < {whole} ? {last} : {whole}")
    w.counted(loop, first, end, "1", "int64_t")


def _captured(w: FunctionWriter, body: Stmt) -> list[Var]:
    """Variables of the outer function that the body uses, in order of use."""
    uses = UsedVars()
    uses.visit(body)
    return [var for var in uses.found if var in w.values and var not in w.constants]
