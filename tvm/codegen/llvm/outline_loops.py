"""Long sequences of loops: groups of them become functions, for LLVM's time grows with a function's square.

for i: ...    # 100 loops     ->    main_part()     # 16 loops each
for j: ...                          main_part1()
...                                 ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tvm.ir.visitor import Visitor
from tvm.tir.expr import Call, const
from tvm.tir.stmt import Allocate, DeclBuffer, Evaluate, For, SeqStmt, Stmt, seq

from .code import Code
from .parallel import captured
from .types import TYPES, is_constant, quoted

if TYPE_CHECKING:
    from .statements import FunctionWriter

NOTHING = Evaluate(const(0, "int32"))
# loops in a function of their own
GROUP = 16
# sequences of fewer loops stay together
LEAST_LOOPS = 2 * GROUP


def loop_groups(parts: list[Stmt]) -> list[list[Stmt]]:
    """The parts of a long sequence of loops in groups; nothing if it is not long."""
    if sum([type(part) is For for part in parts]) < LEAST_LOOPS:
        return []
    if any([_returns(part) for part in parts]):
        return []
    groups: list[list[Stmt]] = [[]]
    loops = 0
    for part in parts:
        loops += type(part) is For
        if loops > GROUP:
            groups.append([])
            loops = 1
        groups[-1].append(part)
    return groups


def parts_of(stmt: Stmt) -> list[Stmt]:
    """What is done one after the other, in sequences within sequences.

    An allocation comes without its body, whose parts follow.
    """
    found: list[Stmt] = []
    pending = [stmt]
    while pending:
        part = pending.pop()
        if type(part) is SeqStmt:
            pending.extend(reversed(part.seq))
        elif type(part) is DeclBuffer:  # nothing is done there
            pending.append(part.body)
        elif type(part) is Allocate:
            found.append(part.replace(body=NOTHING))
            pending.append(part.body)
        else:
            found.append(part)
    return found


def _returns(stmt: Stmt) -> bool:
    finder = ReturnFinder()
    finder.visit(stmt)
    return finder.found


class ReturnFinder(Visitor):
    """Whether the function can be left."""

    def __init__(self) -> None:
        self.found = False

    def visit_call(self, call: Call) -> None:
        self.found |= getattr(call.op, "name", "") == "tir.ret"
        self.visit_children(call)


def write_group(writer: FunctionWriter, parts: list[Stmt]) -> None:
    """Move ``parts`` to a function and call it."""
    module, outer = writer.module, writer.code
    for part in parts:
        if type(part) is Allocate:
            writer.visit(part)  # other groups use the memory as well
    parts = [part for part in parts if type(part) is not Allocate]
    given = captured(writer, seq(parts))
    types = [TYPES[var.dtype].text for var in given]
    name = module.new_symbol(f"{writer.name}_part")
    params = ", ".join([f"{type_} %p{number}" for number, type_ in enumerate(types)])
    code = Code(f"define internal i32 @{quoted(name)}({params}) noinline #0")
    values = {var: operand for var, operand in writer.values.items() if is_constant(operand)}
    operands = ", ".join(
        [f"{type_} {writer.values[var]}" for var, type_ in zip(given, types, strict=True)]
    )
    values |= {var: f"%p{number}" for number, var in enumerate(given)}
    with writer.moved_to(type(writer.frame)(code, values, "i32")):
        for part in parts:
            writer.visit(part)
        code.do("ret i32 0")
    module.definitions.append(code.text())
    writer.return_if_failed(outer.value(f"call i32 @{quoted(name)}({operands})"))
