"""Equations between types that programs give one by one."""

from __future__ import annotations

from typing import Any

import pytest

import tvm
from tvm import relay
from tvm.relay.ty import FuncType, GlobalTypeVar, IncompleteType, TensorType, TupleType, TypeCall

ROWS, ROW, NUMBER = (TensorType(shape) for shape in ((4, 5), (4, 1), ()))


@pytest.fixture
def solver() -> Any:
    found = relay.analysis._ffi_api._test_type_solver()
    for name in ("Solve", "Unify", "Resolve", "AddConstraint"):
        setattr(found, name, found(name))
    return found


def related(solver: Any, name: str, args: list[Any], out: Any = None) -> Any:
    """The result of a type relation that is told to a solver."""
    out = out or IncompleteType()
    func = tvm.ir.EnvFunc.get(f"tvm.relay.type_relation.{name}")
    solver.AddConstraint(relay.ty.TypeRelation(func, [*args, out], len(args), None))
    return out


def variables(*names: str) -> list[relay.TypeVar]:
    return [relay.TypeVar(name) for name in names]


def test_relations_are_solved_forwards_and_backwards(solver: Any) -> None:
    hole = IncompleteType()
    total = related(solver, "Broadcast", [ROWS, hole])
    same = related(solver, "Identity", [total])
    assert not solver.Solve()
    related(solver, "Identity", [hole], ROW)
    assert solver.Solve()
    assert solver.Resolve(same) == ROWS
    assert solver.Resolve(hole) == ROW


def test_parts_of_types_are_unified(solver: Any) -> None:
    a, b, c = (IncompleteType() for _ in range(3))
    list_of = GlobalTypeVar("List")
    left = FuncType([TupleType([a, b]), TypeCall(list_of, [a])], TupleType([c, a]))
    right = FuncType([TupleType([ROWS, ROW]), TypeCall(list_of, [ROWS])], TupleType([NUMBER, ROWS]))
    assert solver.Unify(left, right) == right
    assert solver.Resolve(c) == NUMBER
    assert solver.Resolve(left) == right


def test_what_is_learnt_later_reaches_types_that_were_solved(solver: Any) -> None:
    a, b, c = (IncompleteType() for _ in range(3))
    first = related(solver, "Identity", [TupleType([a, b])])
    second = related(solver, "Identity", [TupleType([a, c])], first)
    assert solver.Solve()
    solver.Unify(a, ROWS)
    related(solver, "Identity", [ROW], c)
    assert solver.Solve()
    assert solver.Resolve(first) == solver.Resolve(second) == TupleType([ROWS, ROW])


def test_polymorphic_functions_have_their_common_instance(solver: Any) -> None:
    a, b, c = variables("a", "b", "c")
    general = FuncType([a, TupleType([b, c])], TupleType([a, b, c]), [a, b, c])
    narrow = FuncType([a, TupleType([a, c])], TupleType([a, a, c]), [a, c])
    concrete = FuncType([ROWS, TupleType([ROW, ROW])], TupleType([ROWS, ROW, ROW]))
    for other in (narrow, concrete):
        assert solver.Unify(general, other) == other
        assert solver.Unify(other, general) == other
    open_type = FuncType([IncompleteType()], IncompleteType(), variables("d", "e"))
    found = solver.Unify(open_type, FuncType([a], b, [a, b]))
    assert found == solver.Resolve(open_type) == FuncType([a], b, [a, b])


def test_types_that_differ_are_rejected(solver: Any) -> None:
    hole = IncompleteType()
    a, b = variables("a", "b")
    left, right = GlobalTypeVar("Left"), GlobalTypeVar("Right")
    for one, other in [
        (ROWS, NUMBER),
        (left, right),
        (TypeCall(left, [ROWS]), TypeCall(right, [ROWS])),
        (TupleType([hole, hole]), TupleType([ROWS, ROW])),
        (TupleType([ROWS]), TupleType([ROWS, ROWS])),
        (FuncType([a, b], a, [a, b]), FuncType([ROWS, ROW], ROW)),
    ]:
        with pytest.raises(tvm.TVMError, match="cannot be unified"):
            solver.Unify(one, other)
    self_made = IncompleteType()
    with pytest.raises(tvm.TVMError, match="a part of itself"):
        solver.Unify(self_made, TupleType([self_made, ROWS]))
