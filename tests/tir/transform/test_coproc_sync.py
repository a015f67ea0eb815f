"""A processor, its coprocessor, and the coprocessor's stages wait for each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tvm
from tvm import te, tir
from tvm.error import LoweringError
from tvm.tir.transform import CoProcSync

from .checks import apply, assert_unchanged
from .programs import function, store

NAMES = ("sync", "read_barrier", "write_barrier", "dep_push", "dep_pop")
B = tir.decl_buffer((64,), name="B")


@pytest.fixture(autouse=True)
def operators() -> None:
    for name in NAMES:
        tvm.ir.register_op_attr(f"tir.unit.coproc_{name}", "TGlobalSymbol", f"unit_{name}")


class Program:
    """Loops with stages of the coprocessor ``unit``."""

    def __init__(self) -> None:
        self.ib = tir.ir_builder.create()
        self.axis = te.thread_axis((0, 1), "cop", name="unit")
        self.n = te.var("n")
        self.a = self.ib.allocate("float32", 64, name="A")
        self.b = self.ib.allocate("float32", 64, name="B")

    def stage(self, number: int, index: object, buffer: str = "a") -> None:
        with self.ib.new_scope():
            self.ib.scope_attr(self.axis, "coproc_scope", number)
            getattr(self, buffer)[index] = 1.0

    def events(self) -> list[str]:
        """Calls, stages and the processor's own stores, in the order of the text."""
        func = apply(CoProcSync(), tir.PrimFunc([self.n], self.ib.get()))
        return list(events_in(func.body))


def events_in(stmt: Any) -> Iterator[str]:
    if isinstance(stmt, tir.SeqStmt):
        for part in stmt.seq:
            yield from events_in(part)
    elif isinstance(stmt, tir.AttrStmt) and stmt.attr_key == "coproc_scope":
        yield f"stage {stmt.value}"
        yield from [event for event in events_in(stmt.body) if event != "store"]
    elif isinstance(stmt, tir.Evaluate):
        call = stmt.value
        args = " ".join([str(arg) for arg in call.args])
        yield f"{call.op.name.removeprefix('tir.unit.coproc_')} {args}".strip()
    elif isinstance(stmt, tir.BufferStore):
        yield "store"
    else:
        yield from events_in(stmt.body)


def test_stages_pass_tokens_on() -> None:
    program = Program()
    with program.ib.for_range(0, program.n) as i:
        program.stage(1, i)
        program.stage(2, i)
    program.stage(3, 0)
    assert program.events() == [
        "dep_push 2 1",
        "stage 1", "dep_pop 2 1", "dep_push 1 2",
        "stage 2", "dep_pop 1 2", "dep_push 2 1",
        "dep_push 2 3",
        "stage 3", "dep_pop 2 3", "dep_pop 2 1",
        "sync",
    ]  # fmt: skip


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_every_token_is_pushed_once_and_popped_once(turns: int) -> None:
    program = Program()
    with program.ib.for_range(0, 3) as i:
        program.stage(1, i)
        with program.ib.for_range(0, turns + 1):
            program.stage(2, i)
            program.stage(3, i)
        with program.ib.if_scope(i < turns):
            program.stage(2, i)
            program.stage(1, i)
        with program.ib.else_scope():
            program.stage(4, i)
    func = apply(CoProcSync(), tir.PrimFunc([program.n], program.ib.get()))
    tokens: dict[tuple[int, ...], int] = {}

    def run(stmt: object, values: dict[tir.Var, int]) -> None:
        if isinstance(stmt, tir.For):
            for turn in range(int(stmt.extent)):
                run(stmt.body, {**values, stmt.loop_var: turn})
        elif isinstance(stmt, tir.SeqStmt):
            for part in stmt:
                run(part, values)
        elif isinstance(stmt, tir.IfThenElse):
            point = {var: tir.const(value, "int32") for var, value in values.items()}
            holds = tvm.arith.Analyzer().simplify(
                tir.stmt_functor.substitute(stmt.condition, point)
            )
            case = stmt.then_case if bool(holds.value) else stmt.else_case
            if case is not None:
                run(case, values)
        elif isinstance(stmt, tir.Evaluate) and isinstance(stmt.value, tir.Call):
            token = tuple([int(arg) for arg in stmt.value.args])
            step = {"tir.unit.coproc_dep_push": 1, "tir.unit.coproc_dep_pop": -1}.get(
                stmt.value.op.name, 0
            )
            if step:
                tokens[token] = tokens.get(token, 0) + step
                assert tokens[token] >= 0, f"{token} is popped before it is pushed"
        elif hasattr(stmt, "body"):
            run(stmt.body, values)

    run(func.body, {})
    assert tokens and not any(tokens.values())


def test_the_processor_waits_before_it_reads_what_is_written() -> None:
    program = Program()
    with program.ib.for_range(0, 8) as j:
        program.stage(1, j + 4)
    program.b[0] = program.a[5]
    assert program.events() == ["stage 1", "sync", "write_barrier A 32 4 8", "store"]


def test_the_coprocessor_is_shown_what_it_reads() -> None:
    program = Program()
    program.a[0] = 2.0
    with program.ib.for_range(0, 8) as j, program.ib.new_scope():
        program.ib.scope_attr(program.axis, "coproc_scope", 1)
        program.b[j] = program.a[j]
    # nothing runs on when the function ends
    assert program.events() == ["store", "read_barrier A 32 0 8", "stage 1", "sync"]


def test_iterations_wait_for_each_other() -> None:
    program = Program()
    with program.ib.for_range(0, program.n) as i:
        program.a[i] = 2.0
        program.stage(1, i)
    assert program.events() == ["store", "stage 1", "sync", "write_barrier A 32 i 1"]


def test_programs_without_a_coprocessor_are_left_alone() -> None:
    assert_unchanged(CoProcSync(), function([B], store(B, 0, 1.0)))


def test_operators_have_to_be_registered() -> None:
    ib = tir.ir_builder.create()
    data = ib.allocate("float32", 4, name="A")
    ib.scope_attr(te.thread_axis((0, 1), "cop", name="other"), "coproc_scope", 1)
    data[0] = 1.0
    with pytest.raises(LoweringError, match=r"tir\.other\.coproc_sync, which is not registered"):
        apply(CoProcSync(), tir.PrimFunc([], ib.get()))
