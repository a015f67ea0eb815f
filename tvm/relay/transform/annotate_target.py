"""Mark what external compilers take.

nn.relu(%x)   ->   compiler_end(nn.relu(compiler_begin(%x, compiler="c")), compiler="c")

A compiler `c` takes an operator if the operator's attribute `target.c`, a function of the call,
says so; and the composite functions called `c.<something>`. What none takes is marked "default".
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.relay.expr import Call, If, Let, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem, Var
from tvm.relay.function import Function
from tvm.relay.op.annotation import compiler_begin, compiler_end
from tvm.relay.op.annotation.annotation import COMPILER_BEGIN, COMPILER_END
from tvm.relay.transform.common import FunctionPass
from tvm.relay.transform.regions import DEFAULT
from tvm.relay.traverse import operands, rebuilt, rewrite_function

_DATA = (Tuple, TupleGetItem, RefCreate, RefRead, RefWrite)


def _takes(compiler: str, call: Call) -> bool:
    if isinstance(call.op, Function):
        composite = str(call.op.attrs.get("Composite", ""))
        return composite.split(".")[0] == compiler
    if not isinstance(call.op, Op):
        return False
    supported = call.op.get_attr(f"target.{compiler}")
    return supported is not None and bool(supported(call))


class _CallAnnotator:
    """Marks calls; tuples, references and bindings of variables compute in no region."""

    def __init__(self, compilers: Sequence[str]) -> None:
        self.compilers = compilers
        self.compiler: dict[int, str] = {}  # of each new expression that has one
        self._kept: list[RelayExpr] = []  # so that ids stay valid

    def rewrite(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if isinstance(new, Call):
            assert isinstance(old, Call)
            return self._call(old, new)
        if isinstance(new, _DATA):
            return self.data(new)
        if isinstance(new, Let):
            return Let(new.var, self.bound(new.value), self.ended(new.body))
        if isinstance(new, If):
            return rebuilt(new, [self.ended(part) for part in operands(new)])
        if isinstance(new, Function):
            return old if "Composite" in new.attrs else new.replace(body=self.ended(new.body))
        return new

    def _call(self, old: Call, call: Call) -> RelayExpr:
        if call.op is COMPILER_BEGIN:
            return call.args[0]
        if call.op is COMPILER_END:
            # of an earlier run of the pass; its annotations are written anew
            value = call.args[0]
            if id(value) not in self.compiler:
                self.remember(value, str(call.attrs["compiler"]))
            return value
        if isinstance(call.op, Var):
            return self.call_of_variable(call)
        compiler = _earlier_compiler(old) or self._compiler_of(old)
        args = self.marked(call.args, compiler)
        return self.remember(call.replace(args=tuple(args)), compiler)

    def _compiler_of(self, call: Call) -> str:
        return next((c for c in self.compilers if _takes(c, call)), DEFAULT)

    def marked(self, values: Sequence[RelayExpr], compiler: str) -> list[RelayExpr]:
        """The values as they leave their regions and enter one of a compiler."""
        return [compiler_begin(self._left(value), compiler) for value in values]

    def _left(self, value: RelayExpr) -> RelayExpr:
        found = self.compiler.get(id(value))
        return value if found is None else compiler_end(value, found)

    def ended(self, value: RelayExpr) -> RelayExpr:
        """A value as it leaves its region; what takes nothing is in none."""
        return self._left(value) if operands(value) else value

    def remember(self, expr: RelayExpr, compiler: str) -> RelayExpr:
        self._kept.append(expr)
        self.compiler[id(expr)] = compiler
        return expr

    def call_of_variable(self, call: Call) -> RelayExpr:
        return call.replace(args=tuple([self.ended(arg) for arg in call.args]))

    def data(self, expr: RelayExpr) -> RelayExpr:
        """A tuple or a reference."""
        return rebuilt(expr, [self.ended(value) for value in operands(expr)])

    def bound(self, value: RelayExpr) -> RelayExpr:
        """What a variable is bound to."""
        return self.ended(value)


class _Annotator(_CallAnnotator):
    """Marks tuples, references and values of variables too, with the compiler of what they hold."""

    def call_of_variable(self, call: Call) -> RelayExpr:
        args = self.marked(call.args, DEFAULT)
        return self.remember(call.replace(args=tuple(args)), DEFAULT)

    def data(self, expr: RelayExpr) -> RelayExpr:
        values = operands(expr)
        if not values:
            return expr
        compiler = self._common(values)
        return self.remember(rebuilt(expr, self.marked(values, compiler)), compiler)

    def bound(self, value: RelayExpr) -> RelayExpr:
        if isinstance(value, Function):
            return value
        return self.marked([value], self._common([value]))[0]

    def _common(self, values: Sequence[RelayExpr]) -> str:
        """The compiler of all values, or the default."""
        found = {self.compiler.get(id(value), DEFAULT) for value in values}
        return found.pop() if len(found) == 1 else DEFAULT


def _earlier_compiler(call: Call) -> str | None:
    """The compiler that an earlier run of the pass gave a call to."""
    first = call.args[0] if call.args else None
    if not isinstance(first, Call) or first.op is not COMPILER_BEGIN:
        return None
    compiler = str(first.attrs["compiler"])
    return None if compiler == DEFAULT else compiler


def AnnotateTarget(targets: str | Sequence[str], include_non_call_ops: bool = True) -> Pass:
    """The pass.

    Parameters
    ----------
    targets : str or list of str
        Names of external compilers; the first that takes an operator gets it.
    include_non_call_ops : bool
        Mark tuples, references and values of variables as well.
    """
    compilers = [targets] if isinstance(targets, str) else list(targets)
    annotator = _Annotator if include_non_call_ops else _CallAnnotator

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        return rewrite_function(func, annotator(compilers).rewrite)

    return FunctionPass(run, PassInfo(0, "AnnotateTarget"))
