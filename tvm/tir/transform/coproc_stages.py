"""Tokens that keep the stages of a coprocessor in the order of the program.

for i in range(n):                            coproc_dep_push(2, 1)
    attr coproc_scope 1:              ->      for i in range(n):
        load                                      attr coproc_scope 1:
    attr coproc_scope 2:                              coproc_dep_pop(2, 1)
        compute                                       load
                                                      coproc_dep_push(1, 2)
                                                  attr coproc_scope 2:
                                                      coproc_dep_pop(1, 2)
                                                      compute
                                                      coproc_dep_push(2, 1)
                                              coproc_dep_pop(2, 1)

A loop whose last stage is another one than its first needs a token before it and leaves one behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir.expr import const
from tvm.tir.stmt import AttrStmt, For, IfThenElse, Stmt, seq
from tvm.tir.transform.common import as_int

SCOPE = "coproc_scope"
MakeCall = Callable[[str, Sequence[PrimExpr]], Stmt]
Token = tuple[int, int]  # from one stage to another


@dataclass(frozen=True)
class Work:
    """Statements that belong together: their first and last stages, and the tokens that cross their borders."""

    first: Stmt
    last: Stmt
    enter: frozenset[int]
    leave: frozenset[int]
    needed: tuple[Token, ...] = ()
    left: tuple[Token, ...] = ()


class StageOrderer(Visitor):
    """Finds where tokens are pushed and popped."""

    def __init__(self) -> None:
        self.before: dict[int, list[tuple[str, Token]]] = {}
        self.behind: dict[int, list[tuple[str, Token]]] = {}
        self.first: Work | None = None
        self.last: Work | None = None

    def plan(self, body: Stmt) -> None:
        """Note the tokens of a function."""
        self.visit(body)
        self._close(self.first, self.last)

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        if attr.attr_key != SCOPE:
            self.visit_children(attr)
            return
        stage = frozenset({as_int(attr.value)})
        self._follow(Work(attr, attr, stage, stage))

    def visit_for(self, loop: For) -> None:
        first, last = self._apart(loop.body)
        if first is None or last is None:
            return
        # the next iteration follows this one
        needed, left = self._order(last, first, is_carried=True)
        self._follow(Work(loop, loop, first.enter, last.leave, needed, left))

    def visit_if_then_else(self, stmt: IfThenElse) -> None:
        enter: frozenset[int] = frozenset()
        leave: frozenset[int] = frozenset()
        for case in (stmt.then_case, stmt.else_case):
            if case is None:
                continue
            first, last = self._apart(case)
            self._close(first, last)
            if first is not None and last is not None:
                enter, leave = enter | first.enter, leave | last.leave
        if enter:
            self._follow(Work(stmt, stmt, enter, leave))

    def _apart(self, stmt: Stmt) -> tuple[Work | None, Work | None]:
        """The first and the last work inside a statement."""
        outer = self.first, self.last
        self.first = self.last = None
        self.visit(stmt)
        found = self.first, self.last
        self.first, self.last = outer
        return found

    def _follow(self, work: Work) -> None:
        if self.last is None:
            self.first = work
        else:
            self._order(self.last, work, is_carried=False)
        self.last = work

    def _order(
        self, previous: Work, following: Work, is_carried: bool
    ) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
        """Let one work wait for another. Tokens that cross the borders already are used."""
        wanted = [(a, b) for a in sorted(previous.leave) for b in sorted(following.enter) if a != b]
        pushed = dict.fromkeys([*previous.left, *wanted])
        popped = dict.fromkeys([*following.needed, *wanted])
        behind = [token for token in pushed if token not in previous.left]
        before = [token for token in popped if token not in following.needed]
        # a token that only one side knows is pushed or popped between them
        behind += [token for token in popped if token not in pushed]
        before += [token for token in pushed if token not in popped]
        self.behind.setdefault(id(previous.last), []).extend(
            [("coproc_dep_push", token) for token in behind]
        )
        self.before.setdefault(id(following.first), []).extend(
            [("coproc_dep_pop", token) for token in before]
        )
        if not is_carried:
            return (), ()
        crossing = tuple(dict.fromkeys([*pushed, *popped]))
        return crossing, crossing

    def _close(self, first: Work | None, last: Work | None) -> None:
        """Make the tokens that the first work needs, and take those that the last one leaves."""
        if first is not None:
            tokens = [("coproc_dep_push", token) for token in first.needed]
            self.before[id(first.first)] = tokens + self.before.get(id(first.first), [])
        if last is not None:
            tokens = [("coproc_dep_pop", token) for token in last.left]
            self.behind.setdefault(id(last.last), []).extend(tokens)


class TokenInserter(Rewriter):
    """Puts the calls in their places: those of a stage inside it."""

    def __init__(self, plan: StageOrderer, make: MakeCall) -> None:
        self.plan, self.make = plan, make

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key != SCOPE:
            return self.rewrite_children(attr)
        return attr.replace(body=self._between(attr, attr.body))

    def visit_for(self, loop: For) -> Stmt:
        return self._between(loop, self.rewrite_children(loop))

    def visit_if_then_else(self, stmt: IfThenElse) -> Stmt:
        return self._between(stmt, self.rewrite_children(stmt))

    def _between(self, key: Stmt, stmt: Stmt) -> Stmt:
        before, behind = [
            [self.make(name, [const(stage, "int32") for stage in token]) for name, token in calls]
            for calls in (self.plan.before.get(id(key), []), self.plan.behind.get(id(key), []))
        ]
        return seq([*before, stmt, *behind]) if before or behind else stmt


def with_stages_in_order(body: Stmt, make: MakeCall) -> Stmt:
    """The body with the tokens that its stages pass on."""
    plan = StageOrderer()
    plan.plan(body)
    ordered: Stmt = TokenInserter(plan, make).visit(body)
    return ordered
