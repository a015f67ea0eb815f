"""Say where values are read for the last time, so that their memory can be used again.

let %a = exp(%x);                 let %a = exp(%x);
let %b = exp(%a);          ->     let %b = exp(%a);
%b                                let %_ = memory.kill(%a);
                                  %b

The program must be in A-normal form.
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.relay.expr import Let, Var
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.memory.memory import kill
from tvm.relay.transform.common import FunctionPass
from tvm.relay.transform.let_list import with_inner_blocks
from tvm.relay.traverse import operands


def _with_kills(body: RelayExpr) -> RelayExpr:
    """A block in which each of its variables is killed behind its last use."""
    bindings: list[tuple[Var, RelayExpr]] = []
    while isinstance(body, Let):
        bindings.append((body.var, body.value))
        body = body.body
    own = {id(variable): variable for variable, _ in bindings}
    alive = {id(v) for v in variables_of(body)}
    result = with_inner_blocks(body, _with_kills)
    for variable, value in reversed(bindings):
        dying = [v for v in variables_of(value) if id(v) in own and id(v) not in alive]
        for last in dying:
            alive.add(id(last))
            result = Let(Var("killed"), kill(last), result)
        result = Let(variable, with_inner_blocks(value, _with_kills), result)
    return result


def variables_of(value: RelayExpr) -> list[Var]:
    """The variables read by a value, in its inner blocks as well, each once."""
    found: dict[int, Var] = {}
    seen: set[int] = set()
    stack = [value]
    while stack:
        node = stack.pop()
        if id(node) in seen or is_primitive(node):
            continue
        seen.add(id(node))
        if isinstance(node, Var):
            found[id(node)] = node
        stack.extend(operands(node))
    return list(found.values())


def ManifestLifetimes() -> Pass:
    """The pass."""

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        return func if is_primitive(func) else func.replace(body=_with_kills(func.body))

    return FunctionPass(run, PassInfo(0, "ManifestLifetimes"))
