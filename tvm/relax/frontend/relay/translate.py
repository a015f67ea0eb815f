"""A function of relay, binding by binding, as a function of relax.

%0 = nn.dense(%x, %w); nn.relu(%0)
->
lv = R.permute_dims(w); lv1 = R.matmul(x, lv); lv2 = R.nn.relu(lv1)

An operator that has a row becomes operators of relax; any other becomes `call_tir` of a loop program
made of its te stages. Dimensions are symbolic variables; the elements of computed shapes are known
as far as these tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tvm import te, tir, topi
from tvm.error import OpNotImplemented, TVMError
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import TensorType, TupleType
from tvm.relax import op as _op
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Call as RelaxCall
from tvm.relax.expr import Constant, ShapeExpr
from tvm.relax.frontend.relay.operators import ROWS
from tvm.relax.frontend.relay.shape_rows import Row
from tvm.relax.struct_info import ShapeStructInfo, TensorStructInfo
from tvm.relay import expr as graphs
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.analysis.symbolic_elements import MOST, Elements, as_number, elements_of_call
from tvm.relay.backend.name_transforms import sanitize
from tvm.relay.op.strategy import select_implementation
from tvm.relay.traverse import post_order
from tvm.relay.ty import flat_types
from tvm.target import Target

Value: TypeAlias = "Any"  # an expression of relax, or a list of them for a tuple


class Translator:
    """Values of relay's expressions, emitted into a block.

    Parameters
    ----------
    builder : BlockBuilder
        In the function, and the dataflow block, that is being built.
    rows : dict of str to callable
        Relax's operators for those of relay.
    target : Target
        What loop programs are for; strategies of operators look at it.
    """

    def __init__(
        self, builder: BlockBuilder, rows: Mapping[str, Row] = ROWS, target: Target | None = None
    ) -> None:
        self.builder = builder
        self.rows = rows
        self.target = target or Target("llvm")
        self.values: dict[int, Value] = {}
        self.known: dict[int, Elements] = {}
        self.kept: list[RelayExpr] = []  # so that identities stay valid

    def bind(self, var: RelayExpr, value: Value) -> None:
        """Say what a variable stands for."""
        self.kept.append(var)
        self.values[id(var)] = value

    def emit(self, expr: Any) -> Any:
        """Bind an expression to a variable."""
        return self.builder.emit(expr)

    def run(self, body: RelayExpr) -> Value:
        """The value of an expression whose free variables are bound."""
        infer_type_of(body)
        self.kept.append(body)
        for node in post_order(body):
            if id(node) not in self.values and not isinstance(node, Op):
                self.values[id(node)] = self._value(node)
        return self.values[id(body)]

    def _value(self, node: RelayExpr) -> Value:
        if isinstance(node, graphs.Call):
            return self._call(node)
        if isinstance(node, graphs.Constant):
            self._note_constant(node)
            return Constant(node.data)
        if isinstance(node, graphs.Tuple):
            return self.fields([self.values[id(field)] for field in node.fields])
        if isinstance(node, graphs.TupleGetItem):
            return self.item(self.values[id(node.tuple_value)], node.index)
        if isinstance(node, graphs.Var):
            raise TVMError(f"the translation to relax requires a value for {node.name_hint}")
        raise OpNotImplemented(
            f"relax's importers take graphs of operators, {type(node).__name__} is not translated",
            hint="import it with relay's importers, which know control flow",
        )

    def fields(self, values: list[Value]) -> list[Value]:
        """The value of a tuple."""
        return values

    def program_attrs(self, call: graphs.Call) -> dict[str, Any] | None:
        """The attributes of an operator's loop program."""
        return None

    def item(self, value: Value, index: int) -> Value:
        """A field of a tuple."""
        if isinstance(value, list):
            return value[index]
        return self.emit(value[index])

    def _note_constant(self, node: graphs.Constant) -> None:
        array = node.data
        if int(np.prod(array.shape)) <= MOST and not str(array.dtype).startswith(("float", "bf")):
            self.known[id(node)] = array.numpy().astype("int64").astype(object)

    def _call(self, call: graphs.Call) -> Value:
        op = call.op
        if not isinstance(op, Op):
            raise OpNotImplemented(f"a call of {type(op).__name__} is not translated to relax")
        args = [self.values[id(arg)] for arg in call.args]
        ty = infer_type_of(call)
        if op.name == "shape_of":
            self._note_shape(call, args[0])
        else:
            fields = [
                field
                for arg in call.args
                for field in (arg.fields if isinstance(arg, graphs.Tuple) else (arg,))
            ]
            found = elements_of_call(call, ty, [self.known.get(id(f)) for f in fields])
            if found is not None:
                self.known[id(call)] = found
        row = self.rows.get(op.name)
        made = row(self, call, args) if row is not None else None
        if made is None or self._loses_dims(made):
            made = self._simplified(call) or self.loop_program(call, args)
        if isinstance(made, list):
            return made
        value = made if isinstance(made, (Constant,)) else self.emit(made)
        if isinstance(ty, TupleType) and not isinstance(made, list):
            return [self.emit(value[i]) for i in range(len(ty.fields))]
        return value

    def _loses_dims(self, made: Value) -> bool:
        """Whether relax does not know the shape of an operator's result, which a loop program tells."""
        if not isinstance(made, RelaxCall):
            return False
        info = self.builder.normalize(made).struct_info
        return isinstance(info, TensorStructInfo) and not isinstance(info.shape, ShapeExpr)

    def _note_shape(self, call: graphs.Call, value: Any) -> None:
        dims = dims_of(value)
        if dims is not None:
            self.known[id(call)] = np.array([as_number(d) for d in dims], object)

    def _simplified(self, call: graphs.Call) -> Value:
        """The value in simpler operators, of an operator that kernels do not compute."""
        op = call.operator
        if op.compute is not None or op.strategy is not None:
            return None
        types = [infer_type_of(arg) for arg in call.args]
        simpler = op.simplify(call, types) if op.simplify is not None else None
        if simpler is None and op.qnn_canonicalize is not None:
            simpler = op.qnn_canonicalize(call.attrs, list(call.args), types)
        if simpler is None:
            raise OpNotImplemented(f"operator {op.name} is not translated to relax")
        if isinstance(simpler, graphs.TupleWrapper):
            simpler = simpler.astuple()
        return self.run(simpler)

    def loop_program(self, call: graphs.Call, args: Sequence[Value]) -> Any:
        """A call of the loop program that an operator's te stages make."""
        op = call.operator
        dims = self._computed_dims(call, args)

        def compute(operands: Sequence[Any], shapes: Sequence[Any] | None) -> Any:
            types = [_type_of(operand) for operand in operands]
            out = _with_dims(call, types, shapes)
            inputs = [t for operand in operands for t in _flat(operand)]
            results = self._stages(op, call.attrs, inputs, out)
            return results if isinstance(out, TupleType) else results[0]

        return self.builder.call_te(
            compute, list(args), dims, primfunc_name_hint=program_name(op),
            primfunc_attrs=self.program_attrs(call),
        )  # fmt: skip

    def _stages(self, op: Op, attrs: Any, inputs: Sequence[te.Tensor], out: Any) -> list[te.Tensor]:
        with self.target:
            if op.strategy is not None:
                return select_implementation(op, attrs, inputs, out, self.target)[1]
            assert op.compute is not None
            return list(op.compute(attrs, inputs, out))

    def _computed_dims(self, call: graphs.Call, args: Sequence[Value]) -> list[Any] | None:
        """Variables for the dimensions of results that depend on values, which a program computes.

        None if the shapes of the arguments tell them.
        """
        op = call.operator
        if not _is_open(_with_relation(call, [_type_of_value(arg) for arg in args])):
            return None
        if op.shape_func is None:
            raise OpNotImplemented(
                f"relax requires the shape of {op.name}'s result, which depends on values"
            )
        shape_func = op.shape_func
        flags = op.get_attr("TShapeDataDependent") or False
        is_read = flags if isinstance(flags, (list, tuple)) else [flags] * len(args)
        ranks = [tir.IntImm("int32", len(ty.shape)) for ty in flat_types(call.checked_type)]

        def shapes(operands: Sequence[Any]) -> Any:
            given = [
                t if flag else topi.shape(t, "int64")
                for operand, flag in zip(operands, is_read, strict=True)
                for t in _flat(operand)
            ]
            return [topi.cast(t, "int64") for t in shape_func(call.attrs, given, ranks)]

        name = f"shape_of_{program_name(op)}"
        found = self.emit(self.builder.call_te(shapes, list(args), primfunc_name_hint=name))
        vectors = [found] if len(ranks) == 1 else [self.emit(found[i]) for i in range(len(ranks))]
        return [self._named_dims(v, int(n.value)) for v, n in zip(vectors, ranks, strict=True)]

    def _named_dims(self, vector: Any, rank: int) -> list[tir.Var]:
        names = [tir.Var(self.builder.get_unique_name("dim"), "int64") for _ in range(rank)]
        shape = self.emit(_op.tensor_to_shape(vector))
        self.builder.match_cast(shape, ShapeStructInfo(names))
        return names

    # ---- shapes

    def elements(self, node: RelayExpr) -> list[Any] | None:
        """The elements of a vector of integers, if the import knows them."""
        found = self.known.get(id(node))
        return None if found is None else found.reshape(-1).tolist()

    def dims(self, value: Any) -> tuple[PrimExpr, ...] | None:
        """The dimensions of a tensor, if all are known or symbolic."""
        return dims_of(value)

    def result_dims(self, call: graphs.Call, args: Sequence[Value]) -> list[Any] | None:
        """The dimensions that an operator gives to arguments of symbolic shapes, if they tell them."""
        infos = [_type_of_value(arg) for arg in args]
        if any([info is None for info in infos]):
            return None
        found = _with_relation(call, infos)
        return None if has_open_dims(found) else [as_number(d) for d in found.shape]


def dims_of(value: Any) -> tuple[PrimExpr, ...] | None:
    """The dimensions of a tensor, if all are known or symbolic."""
    info = value.struct_info
    if not isinstance(info, TensorStructInfo) or not isinstance(info.shape, ShapeExpr):
        return None
    return tuple(info.shape.values)


def has_open_dims(ty: TensorType) -> bool:
    """Whether nothing is known of a dimension."""
    return any([isinstance(d, tir.Any) for d in ty.shape])


def program_name(op: Op) -> str:
    """What the loop program of an operator is called."""
    return sanitize(op.name.removeprefix("nn."))


def _with_relation(call: graphs.Call, types: Sequence[Any]) -> Any:
    relation = call.operator.infer_type
    assert relation is not None, "an operator of a graph has a type relation"
    return relation(call.attrs, types)


def _with_dims(call: graphs.Call, types: Sequence[Any], shapes: Sequence[Any] | None) -> Any:
    """The type of the result over the arguments' dimensions, or of the dimensions that are given."""
    out = _with_relation(call, types)
    if shapes is None:
        return out
    made = [TensorType(s, ty.dtype) for s, ty in zip(shapes, flat_types(out), strict=True)]
    return TupleType(made) if isinstance(out, TupleType) else made[0]


def _is_open(ty: Any) -> bool:
    return any([has_open_dims(part) for part in flat_types(ty)])


def _type_of_value(value: Value) -> Any:
    """A type with the symbolic dimensions of a value, None if it has none."""
    if isinstance(value, list):
        fields = [_type_of_value(field) for field in value]
        return None if any([field is None for field in fields]) else TupleType(fields)
    dims = dims_of(value)
    return None if dims is None else TensorType(dims, value.struct_info.dtype)


def _type_of(operand: Any) -> Any:
    if isinstance(operand, (list, tuple)):
        return TupleType([_type_of(field) for field in operand])
    return TensorType(operand.shape, operand.dtype)


def _flat(operand: Any) -> list[te.Tensor]:
    if isinstance(operand, (list, tuple)):
        return [t for field in operand for t in _flat(field)]
    return [operand]
