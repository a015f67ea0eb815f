"""Say where values are read for the last time, so that their memory can be used again.

let %a = exp(%x);                 let %a = exp(%x);
let %b = exp(%a);          ->     let %_ = memory.kill(%x);
%b                                let %b = exp(%a);
                                  let %_ = memory.kill(%a);
                                  %b

What branches read for the last time they kill themselves. The program must be in A-normal form.
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.relay.analysis.scopes import inner_blocks, map_inner_blocks, strict_operands
from tvm.relay.expr import Let, Var
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.memory.memory import kill
from tvm.relay.transform.common import FunctionPass
from tvm.relay.traverse import free_vars, operands, split_lets


def _with_kills(func: Function) -> Function:
    """A function in which parameters and variables of its own are killed; not what it captures."""
    return func.replace(body=_block(func.body, frozenset(map(id, free_vars(func)))))


def _block(body: RelayExpr, after: frozenset[int]) -> RelayExpr:
    """A block in which each variable is killed behind its last use, unless it is read `after`."""
    lets, value = split_lets(body)
    alive = {*after, *map(id, variables_of(value))}
    result = _with_inner_kills(value, after)
    for let in reversed(lets):
        inside, reads = _reads(let.value)
        for last in reads:
            if id(last) not in alive and id(last) not in inside:
                result = Let(Var("killed"), kill(last), result)
        result = Let(let.var, _with_inner_kills(let.value, frozenset(alive)), result)
        alive |= inside | {id(last) for last in reads}
    return result


def _reads(value: RelayExpr) -> tuple[set[int], list[Var]]:
    """What the blocks in a value read, which kill it themselves; what it reads otherwise."""
    if type(value) is Function:
        return set(), free_vars(value)
    blocks = inner_blocks(value)
    if not blocks:
        return set(), variables_of(value)
    inside = {id(v) for block in blocks for v in variables_of(block)}
    return inside, [v for operand in strict_operands(value) for v in variables_of(operand)]


def _with_inner_kills(value: RelayExpr, after: frozenset[int]) -> RelayExpr:
    if type(value) is Function:
        return value if is_primitive(value) else _with_kills(value)
    return map_inner_blocks(value, lambda block: _block(block, after))


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
        if type(node) is Var:
            found[id(node)] = node
        stack.extend(operands(node))
    return list(found.values())


def ManifestLifetimes() -> Pass:
    """The pass."""

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        return func if is_primitive(func) else _with_kills(func)

    return FunctionPass(run, PassInfo(0, "ManifestLifetimes"))
