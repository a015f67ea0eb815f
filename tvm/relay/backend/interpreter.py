"""An interpreter of relay: the whole language, one operator at a time.

It runs what executors of graphs cannot, control flow, closures, recursion, data types and
references, and values whose shapes are known at run time only. Operators are evaluated on the
host where they have a numpy form, and compiled once for each shape otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tvm.relay.expr as nodes
import tvm.runtime.ndarray as nd
from tvm.error import TVMError
from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.structural import structural_hash
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.adt import Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from tvm.relay.analysis import free_vars
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.backend.evaluate import Kernel, call_kernel
from tvm.relay.backend.executors import ConstructorValue, Executor, RefValue, as_array
from tvm.relay.backend.vm import VMExecutor
from tvm.relay.function import Function
from tvm.relay.traverse import operands
from tvm.relay.ty import flat_types
from tvm.runtime.container import ADT, tuple_object
from tvm.runtime.ndarray import NDArray
from tvm.support import deep
from tvm.target import Target

__all__ = ["ConstructorValue", "Executor", "Interpreter", "RefValue", "needed_first"]

Value = Any  # NDArray, list of values, Closure, ConstructorValue, RefValue


@dataclass
class Frame:
    """The values of one activation of a function; variables are looked up outwards as well."""

    outer: Frame | None = None
    values: dict[int, Value] = field(default_factory=dict)

    def lookup(self, variable: nodes.Var) -> Value:
        frame: Frame | None = self
        while frame is not None:
            if id(variable) in frame.values:
                return frame.values[id(variable)]
            frame = frame.outer
        raise TVMError(f"the interpreter requires a value for the variable %{variable.name_hint}")


@dataclass
class Closure:
    """A function with the frame that it was made in."""

    func: Function
    frame: Frame | None


class Interpreter(Executor):
    """Evaluates functions of one module."""

    def __init__(self, mod: IRModule, device: Any, target: Target) -> None:
        self.mod = mod
        self.device = device
        self.target = target
        self._kernels: dict[object, Kernel] = {}
        self._constants: dict[int, nodes.Constant] = {}  # met so far, by identity of their data

    def _make_executor(self, func: Function) -> Callable[..., Any]:
        infer_type_of(func, self.mod)

        @deep
        def run(*args: Any) -> Any:
            if len(args) != len(func.params):
                raise ValueError(
                    f"the function takes {len(func.params)} arguments, got {len(args)}"
                )
            return as_tuples(self._apply(Closure(func, None), [_as_value(a) for a in args]))

        return run

    def _apply(self, callee: Value, args: Sequence[Value]) -> Value:
        if isinstance(callee, Constructor):
            return ConstructorValue(callee.tag, list(args), callee)
        if not isinstance(callee, Closure):
            raise TVMError(f"the interpreter requires a function to call, got {callee}")
        frame = Frame(callee.frame)
        for param, arg in zip(callee.func.params, args, strict=True):
            frame.values[id(param)] = arg
        return self._evaluate(callee.func.body, frame)

    def _evaluate(self, root: RelayExpr, frame: Frame) -> Value:
        """The value of an expression; what it needs first goes on a stack, not on Python's."""
        values = frame.values
        stack: list[tuple[RelayExpr, int]] = [(root, 0)]
        while stack:
            node, stage = stack.pop()
            if id(node) in values:
                continue
            if stage == 0 and (needed := needed_first(node)):
                stack.append((node, 1))
                stack.extend([(n, 0) for n in reversed(needed)])
            elif isinstance(node, (nodes.If, nodes.Let, Match)):
                if stage == 2:
                    values[id(node)] = values[id(self._taken(node, frame))]
                else:
                    stack += [(node, 2), (self._taken(node, frame), 0)]
            else:
                values[id(node)] = self._value(node, frame)
        return values[id(root)]

    def _taken(self, node: nodes.If | nodes.Let | Match, frame: Frame) -> RelayExpr:
        """The part of an expression that is its value, what it binds being bound."""
        values = frame.values
        if isinstance(node, nodes.If):
            return node.true_branch if values[id(node.cond)].numpy() else node.false_branch
        if isinstance(node, nodes.Let):
            values[id(node.var)] = values[id(node.value)]
            return node.body
        data = values[id(node.data)]
        for clause in node.clauses:
            bound: dict[int, Value] = {}
            if _fits(clause.lhs, data, bound):
                values.update(bound)
                return clause.rhs
        raise TVMError("the interpreter found no clause of a match that fits", at=node)

    def _value(self, node: RelayExpr, frame: Frame) -> Value:
        values = frame.values
        if isinstance(node, nodes.Call):
            args = [values[id(a)] for a in node.args]
            if isinstance(node.op, Op):
                return self.apply_operator(node, args)
            return self._apply(values[id(node.op)], args)
        if isinstance(node, nodes.Var):
            return frame.lookup(node)
        if isinstance(node, nodes.Constant):
            self._constants[id(node.data)] = node
            return node.data
        if isinstance(node, Function):
            return Closure(node, frame)
        if isinstance(node, GlobalVar):
            return Closure(self.mod[node], None)
        if isinstance(node, nodes.Tuple):
            return [values[id(f)] for f in node.fields]
        if isinstance(node, nodes.TupleGetItem):
            return values[id(node.tuple_value)][node.index]
        if isinstance(node, nodes.RefCreate):
            return RefValue(values[id(node.value)])
        if isinstance(node, nodes.RefRead):
            return values[id(node.ref)].value
        if isinstance(node, nodes.RefWrite):
            values[id(node.ref)].value = values[id(node.value)]
            return []
        if isinstance(node, (Constructor, Op)):
            return node
        raise TVMError(f"the interpreter cannot run a {type(node).__name__}", at=node)

    # -- operators

    def apply_operator(self, call: nodes.Call, args: Sequence[Value]) -> Value:
        """The result of a call of an operator with values for its arguments."""
        op = call.op
        assert isinstance(op, Op)
        arrays = [array for arg in args for array in _flat(arg)]
        if op.make_static is not None:
            static = op.make_static(call.replace(args=tuple([nodes.Constant(a) for a in arrays])))
            if static is not None:
                infer_type_of(static)
                return self._evaluate(static, Frame())
        typed = call.replace(args=tuple([_typed_var(arg) for arg in args]))
        out_type = infer_type_of(typed)
        is_tuple = isinstance(out_type, TupleType)
        if op.fold is not None:
            with np.errstate(all="ignore"):  # infinities and NaNs are results like any others
                folded = op.fold(call.attrs, [a.numpy() for a in arrays], out_type)
            if folded is not None:
                return _packed([nd.array(np.asarray(f)) for f in folded], is_tuple)
        if op.compute is not None:
            return _packed(self._kernel(typed, out_type, arrays)(arrays), is_tuple)
        return self._simplified(call, args)

    def _simplified(self, call: nodes.Call, args: Sequence[Value]) -> Value:
        """The value of a call through the operators that stand for it."""
        op = call.op
        assert isinstance(op, Op)
        frame = Frame()
        given = [self._bound(arg, frame) for arg in args]
        typed = call.replace(args=tuple(given))
        out_type = infer_type_of(typed)
        types = [infer_type_of(a) for a in given]
        simpler = None
        if op.simplify is not None:
            simpler = op.simplify(typed, types)
        elif op.qnn_canonicalize is not None:
            simpler = op.qnn_canonicalize(typed.attrs, given, [*types, out_type])
        if simpler is None:
            raise TVMError(f"the interpreter cannot evaluate {op.name}: it has no compute facet")
        infer_type_of(simpler)
        return self._evaluate(simpler, frame)

    def _bound(self, value: Value, frame: Frame) -> RelayExpr:
        """An argument as a variable of the frame; what is constant stays, as scales have to."""
        if isinstance(value, list):
            return nodes.Tuple([self._bound(v, frame) for v in value])
        if (constant := self._constants.get(id(value))) is not None:
            return constant
        variable = nodes.Var("p", _type_of(value))
        frame.values[id(variable)] = value
        return variable

    def _kernel(self, call: nodes.Call, out_type: Type, arrays: Sequence[NDArray]) -> Kernel:
        attrs = structural_hash(call.attrs) if call.attrs is not None else 0
        shapes = tuple([(tuple(a.shape), str(a.dtype)) for a in arrays])
        assert isinstance(call.op, Op)
        key = (call.op.name, attrs, shapes)
        if key not in self._kernels:
            self._kernels[key] = (
                self._measured(call)
                if any([ty.is_dynamic for ty in flat_types(out_type)])
                else call_kernel(call, self.target)
            )
        return self._kernels[key]

    def _measured(self, call: nodes.Call) -> Kernel:
        """A call whose results have the shapes that a function of the run finds in its data."""
        mod = IRModule.from_expr(Function(free_vars(call), call))
        run = VMExecutor(mod, self.device, self.target).evaluate()
        return lambda arrays: _flat(as_lists(run(*arrays)))


def needed_first(node: RelayExpr) -> tuple[RelayExpr, ...]:
    """The operands that are evaluated before the node, in any case."""
    if isinstance(node, Function):
        return ()
    if isinstance(node, nodes.If):
        return (node.cond,)
    if isinstance(node, nodes.Let):
        return (node.value,)
    if isinstance(node, Match):
        return (node.data,)
    return operands(node)


def _fits(pattern: Pattern, value: Value, bound: dict[int, Value]) -> bool:
    """Whether a value has the form of a pattern; notes what its variables stand for."""
    if isinstance(pattern, PatternVar):
        bound[id(pattern.var)] = value
        return True
    if isinstance(pattern, PatternTuple):
        parts = value
    elif isinstance(pattern, PatternConstructor):
        if value.tag != pattern.constructor.tag:
            return False
        parts = value.fields
    else:
        return True
    return all([_fits(p, v, bound) for p, v in zip(pattern.patterns, parts, strict=True)])


def _as_value(value: Any) -> Value:
    if isinstance(value, ADT):
        return [_as_value(v) for v in value]
    if isinstance(value, (list, tuple)) and any(
        [isinstance(v, (NDArray, np.ndarray)) for v in value]
    ):
        return [_as_value(v) for v in value]
    if isinstance(value, (ConstructorValue, RefValue, Closure)):
        return value
    if isinstance(value, (bool, int, float, list)):
        return nodes.const(value).data  # Python's numbers in the types that programs mean by them
    return as_array(value)


def as_lists(value: Any) -> Any:
    """Tuples of the runtime as the interpreter has them."""
    return [as_lists(v) for v in value] if isinstance(value, ADT) else value


def as_tuples(value: Value) -> Any:
    """Tuples of the interpreter as the runtime has them."""
    return tuple_object([as_tuples(v) for v in value]) if isinstance(value, list) else value


def _flat(value: Value) -> list[NDArray]:
    if isinstance(value, list):
        return [array for v in value for array in _flat(v)]
    if not isinstance(value, NDArray):
        raise TVMError(f"an operator requires tensors, got {type(value).__name__}")
    return [value]


def _typed_var(value: Value) -> RelayExpr:
    if isinstance(value, list):
        return nodes.Tuple([_typed_var(v) for v in value])
    return nodes.Var("p", _type_of(value))


def _type_of(value: NDArray) -> Type:
    return TensorType(tuple(value.shape), value.dtype)


def _packed(results: list[NDArray], is_tuple: bool) -> Value:
    return list(results) if is_tuple else results[0]
