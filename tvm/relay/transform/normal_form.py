"""Between graphs and nested lets.

ToANormalForm:                                 ToGraphNormalForm:
    %0 = exp(%x);        let %x1 = exp(%x);        let %x1 = exp(%x);        %0 = exp(%x);
    add(%0, %0)    ->    let %x2 = add(%x1, %x1);  add(%x1, %x1)       ->    add(%0, %0)
                         %x2
"""

from __future__ import annotations

from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import PassContext
from tvm.relay.analysis.scopes import Scope, ScopeTree, strict_operands, with_parts
from tvm.relay.expr import Constant, Let, Var
from tvm.relay.function import Function, is_primitive
from tvm.relay.transform.common import relay_pass
from tvm.relay.traverse import operands, with_operands

_ATOMS = (Var, GlobalVar, Op, Constructor)


@relay_pass("ToGraphNormalForm", opt_level=0)
def to_graph_normal_form(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Replace let-bound variables by their values."""
    return inline_lets(func)


def inline_lets(func: Function) -> Function:
    """The values of lets in place of their variables, a value before its variable and its body."""
    done: dict[int, RelayExpr] = {}
    stack: list[tuple[RelayExpr, int]] = [(func.body, 0)]
    while stack:
        node, stage = stack.pop()
        if id(node) in done:
            continue
        if type(node) is Let and type(node.value) is not Function:
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
    body = done[id(func.body)]
    return func if body is func.body else func.replace(body=body)


class _Binder:
    """Names every intermediate value of each block."""

    def __init__(self, root: RelayExpr, atoms: tuple[type, ...]) -> None:
        self.tree = ScopeTree(root)
        self.kinds_of_atoms = atoms
        self.count = 0
        self.atoms: dict[int, RelayExpr] = {}  # what stands for an expression
        self.bound: dict[int, RelayExpr] = {}  # the values of variables
        self.kept_names: dict[int, Var] = {}  # of functions, which may call themselves

    def run(self) -> RelayExpr:
        """The whole as lets."""
        return self._block(self.tree.root)

    def _block(self, scope: Scope) -> RelayExpr:
        for let in [node for node in scope.nodes if type(node) is Let]:
            if type(let.value) is Function and not is_primitive(let.value):
                self.kept_names.setdefault(id(let.value), let.var)
            self.bound[id(let.var)] = let.value
        bindings: list[tuple[Var, RelayExpr]] = []
        for node in scope.nodes:
            if not isinstance(node, (*self.kinds_of_atoms, Let)) and not is_primitive(node):
                bindings.append((self._name(node), self._rebuilt(node)))
        result = self._atom(scope.body)
        for variable, value in reversed(bindings):
            result = Let(variable, value, result)
        return result

    def _name(self, node: RelayExpr) -> Var:
        name = self.kept_names.get(id(node))
        if name is None:
            name = Var(f"x{self.count}")
            self.count += 1
        self.atoms[id(node)] = name
        return name

    def _atom(self, node: RelayExpr) -> RelayExpr:
        """The variable or constant that an expression's value goes by."""
        while True:
            if (value := self.bound.get(id(node))) is not None:
                if id(value) in self.kept_names:
                    return self.kept_names[id(value)]
                node = value
            elif type(node) is Let:
                node = node.body
            else:
                return self.atoms.get(id(node), node)

    def _rebuilt(self, node: RelayExpr) -> RelayExpr:
        blocks = [self._block(inner) for inner in self.tree.inner.get(id(node), ())]
        return with_parts(node, [self._atom(n) for n in strict_operands(node)], blocks)


def name_results(expr: RelayExpr, atoms: tuple[type, ...] = (*_ATOMS, Constant)) -> RelayExpr:
    """An expression, or a function's body, with a let for every value that is no atom."""
    if type(expr) is Function:
        return expr.replace(body=_Binder(expr.body, atoms).run())
    return _Binder(expr, atoms).run()


def ToANormalFormExpr(e: RelayExpr) -> RelayExpr:
    """One expression with every intermediate value named, constants included."""
    return name_results(e, _ATOMS)


@relay_pass("ToANormalForm", opt_level=1)
def to_a_normal_form(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Name every intermediate value and every constant with a let."""
    return func if is_primitive(func) else func.replace(body=_Binder(func.body, _ATOMS).run())


@relay_pass("NameResults", opt_level=1)
def name_all_results(func: Function, mod: IRModule, context: PassContext) -> Function:
    """The same for results of computations: constants stay where they are used."""
    return func if is_primitive(func) else func.replace(body=name_results(func.body))


ToGraphNormalForm = to_graph_normal_form.factory
ToANormalForm = to_a_normal_form.factory
NameResults = name_all_results.factory
