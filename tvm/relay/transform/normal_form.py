"""Between graphs and nested lets.

ToANormalForm:                                 ToGraphNormalForm:
    %0 = exp(%x);        let %x1 = exp(%x);        let %x1 = exp(%x);        %0 = exp(%x);
    add(%0, %0)    ->    let %x2 = add(%x1, %x1);  add(%x1, %x1)       ->    add(%0, %0)
                         %x2
"""

from __future__ import annotations

from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import PassContext
from tvm.relay.expr import Call, Constant, If, Let, Var
from tvm.relay.function import Function, is_primitive
from tvm.relay.transform.common import relay_pass
from tvm.relay.traverse import operands, with_operands

_ATOMS = (Var, GlobalVar, Op, Constant)


@relay_pass("ToGraphNormalForm", opt_level=1)
def to_graph_normal_form(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Replace let-bound variables by their values."""
    result = _inline_lets(func)
    assert isinstance(result, Function)
    return result


def _inline_lets(func: RelayExpr) -> RelayExpr:
    """Bottom up, a let's value before its variable and its body."""
    done: dict[int, RelayExpr] = {}
    stack: list[tuple[RelayExpr, int]] = [(func, 0)]
    while stack:
        node, stage = stack.pop()
        if id(node) in done:
            continue
        if isinstance(node, Let) and not isinstance(node.value, Function):
            if stage == 0:
                stack += [(node, 1), (node.value, 0)]
            elif stage == 1:
                done[id(node.var)] = done[id(node.value)]
                stack += [(node, 2), (node.body, 0)]
            else:
                done[id(node)] = done[id(node.body)]
            continue
        below = operands(node)
        if stage == 0 and below:
            stack.append((node, 1))
            stack.extend([(n, 0) for n in reversed(below) if id(n) not in done])
            continue
        done[id(node)] = with_operands(node, [done[id(n)] for n in below]) if below else node
    return done[id(func)]


class _Binder:
    """Names every intermediate value of one block."""

    def __init__(self) -> None:
        self.count = 0
        self.values: dict[int, RelayExpr] = {}

    def block(self, body: RelayExpr) -> RelayExpr:
        """The block of `body` as lets."""
        bindings: list[tuple[Var, RelayExpr]] = []
        outer = dict(self.values)
        result = self._flatten(body, bindings)
        self.values = outer  # what a block names is not visible outside of it
        for variable, value in reversed(bindings):
            result = Let(variable, value, result)
        return result

    def _flatten(self, body: RelayExpr, bindings: list[tuple[Var, RelayExpr]]) -> RelayExpr:
        stack: list[tuple[RelayExpr, int]] = [(body, 0)]
        while stack:
            node, stage = stack.pop()
            if id(node) in self.values:
                continue
            if isinstance(node, _ATOMS):
                self.values[id(node)] = node
            elif isinstance(node, Let):
                if stage == 0:
                    stack += [(node, 1), (node.value, 0)]
                elif stage == 1:
                    self.values[id(node.var)] = self.values[id(node.value)]
                    stack += [(node, 2), (node.body, 0)]
                else:
                    self.values[id(node)] = self.values[id(node.body)]
            elif stage == 0:
                stack.append((node, 1))
                stack.extend([(n, 0) for n in reversed(_strict_operands(node))])
            else:
                variable = Var(f"x{self.count}")
                self.count += 1
                bindings.append((variable, self._rebuilt(node)))
                self.values[id(node)] = variable
        return self.values[id(body)]

    def _rebuilt(self, node: RelayExpr) -> RelayExpr:
        if isinstance(node, Function):
            return node if is_primitive(node) else node.replace(body=self.block(node.body))
        if isinstance(node, If):
            return If(
                self.values[id(node.cond)],
                self.block(node.true_branch),
                self.block(node.false_branch),
            )
        if isinstance(node, Call) and isinstance(node.op, Function):
            args = [self.values[id(a)] for a in node.args]
            return node.replace(op=self._rebuilt(node.op), args=tuple(args))
        return with_operands(node, [self.values[id(n)] for n in operands(node)])


def _strict_operands(node: RelayExpr) -> tuple[RelayExpr, ...]:
    """What must be evaluated before the node."""
    if isinstance(node, Function):
        return ()
    if isinstance(node, If):
        return (node.cond,)
    if isinstance(node, Call) and isinstance(node.op, Function):
        return node.args
    return operands(node)


def ToANormalFormExpr(e: RelayExpr) -> RelayExpr:
    """One expression with every intermediate value named."""
    if isinstance(e, Function):
        return e.replace(body=_Binder().block(e.body))
    return _Binder().block(e)


@relay_pass("ToANormalForm", opt_level=1)
def to_a_normal_form(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Name every intermediate value with a let."""
    if is_primitive(func):
        return func
    return func.replace(body=_Binder().block(func.body))


ToGraphNormalForm = to_graph_normal_form.factory
ToANormalForm = to_a_normal_form.factory
