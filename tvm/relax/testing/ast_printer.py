"""Programs as trees: each node with its class and its fields.

relax.op.add(x, y)    ->    Call(
                                op=Op(name="relax.add"),
                                args=[Var(name_hint="x"), Var(name_hint="y")]
                            )
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tvm.ir.expr import GlobalVar, PrimExpr, RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import FuncType, TupleType, Type
from tvm.relax.base import StructInfo
from tvm.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataTypeImm,
    ExternFunc,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from tvm.relax.expr_functor import ExprFunctor
from tvm.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from tvm.relax.ty import DynTensorType, ObjectType, PackedFuncType, ShapeType
from tvm.tir import Var as TirVar


def wrap_quotes(text: str) -> str:
    """The text in quotation marks."""
    return f'"{text}"'


class ASTPrinter(ExprFunctor):
    """Prints expressions, bindings, struct info and types as trees.

    Parameters
    ----------
    indent_str : str
        What a level of the tree is indented by.
    include_struct_info_annotations : bool
        Print the struct info of variables and calls.
    include_type_annotations : bool
        Print their types, too.
    include_call_attrs : bool
        Print the attributes of calls.
    """

    def __init__(
        self,
        indent_str: str = "    ",
        include_struct_info_annotations: bool = True,
        include_type_annotations: bool = False,
        include_call_attrs: bool = True,
    ) -> None:
        self.indent_str = indent_str
        self.include_struct_info_annotations = include_struct_info_annotations
        self.include_type_annotations = include_type_annotations
        self.include_call_attrs = include_call_attrs

    # ---- layout

    def indent(self, text: str) -> str:
        """The lines of a text one level deeper."""
        return "".join([f"{self.indent_str}{line}" for line in text.splitlines(keepends=True)])

    def build_ast_node(self, nodename: str, force_newline: bool = False, /, **fields: str) -> str:
        """A node; its fields stand on lines of their own if one of them takes several."""
        return self._enclosed(
            f"{nodename}(", ")", [f"{name}={text}" for name, text in fields.items()], force_newline
        )

    def build_list(self, members: Iterable[str], open_tok: str = "[", close_tok: str = "]") -> str:
        """A list, laid out as nodes are."""
        return self._enclosed(open_tok, close_tok, list(members), False)

    def _enclosed(self, head: str, tail: str, parts: list[str], force_newline: bool) -> str:
        if not force_newline and not any(["\n" in part for part in parts]):
            return f"{head}{', '.join(parts)}{tail}"
        inner = ",\n".join([self.indent(part) for part in parts])
        return f"{head}\n{inner}\n{tail}"

    def _annotations(self, expr: RelayExpr) -> dict[str, str]:
        found: dict[str, str] = {}
        info = getattr(expr, "struct_info_", None)
        if info is not None and self.include_struct_info_annotations:
            found["struct_info"] = self.visit_struct_info_(info)
        if info is not None and self.include_type_annotations:
            found["checked_type_"] = self.visit_type_(expr.checked_type)
        return found

    # ---- expressions

    def visit_constant_(self, op: Constant) -> str:
        return self.build_ast_node("Constant", True, data=str(op.data), **self._annotations(op))

    def visit_tuple_(self, op: Tuple) -> str:
        fields = self.build_list([self.visit_expr(field) for field in op.fields])
        return self.build_ast_node("Tuple", fields=fields, **self._annotations(op))

    def _variable(self, name: str, op: Any) -> str:
        return self.build_ast_node(
            name, name_hint=wrap_quotes(op.name_hint), **self._annotations(op)
        )

    def visit_var_(self, op: Var) -> str:
        return self._variable("Var", op)

    def visit_dataflow_var_(self, op: Var) -> str:
        return self._variable("DataflowVar", op)

    def visit_global_var_(self, op: GlobalVar) -> str:
        return self._variable("GlobalVar", op)

    def visit_shape_expr_(self, op: ShapeExpr) -> str:
        values = self.build_list([self.visit_prim_expr_(value) for value in op.values])
        return self.build_ast_node("ShapeExpr", values=values, **self._annotations(op))

    def visit_extern_func_(self, op: ExternFunc) -> str:
        symbol = wrap_quotes(op.global_symbol)
        return self.build_ast_node("ExternFunc", global_symbol=symbol, **self._annotations(op))

    def visit_function_(self, op: Function) -> str:
        fields = {
            "params": self.build_list([self.visit_expr(param) for param in op.params]),
            "body": self.visit_expr(op.body),
            "ret_struct_info": self.visit_struct_info_(op.ret_struct_info),
            "is_pure": str(bool(op.is_pure)),
        }
        if op.attrs:
            fields["attrs"] = self._mapping(dict(op.attrs.items()))
        return self.build_ast_node("Function", **fields, **self._annotations(op))

    def visit_call_(self, op: Call) -> str:
        fields = {
            "op": self.visit_expr(op.op),
            "args": self.build_list([self.visit_expr(arg) for arg in op.args]),
        }
        if op.sinfo_args:
            infos = [self.visit_struct_info_(info) for info in op.sinfo_args]
            fields["sinfo_args"] = self.build_list(infos)
        if self.include_call_attrs and op.attrs is not None:
            attrs = dict(op.attrs.items())
            if attrs:
                fields["attrs"] = self._mapping(attrs)
        return self.build_ast_node("Call", **fields, **self._annotations(op))

    def _mapping(self, values: Mapping[str, Any]) -> str:
        parts = [f"{wrap_quotes(key)}: {_plain(value)}" for key, value in values.items()]
        return self.build_list(parts, "{", "}")

    def visit_seq_expr_(self, op: SeqExpr) -> str:
        blocks = self.build_list([self.visit_binding_block(block) for block in op.blocks])
        return self.build_ast_node(
            "SeqExpr", blocks=blocks, body=self.visit_expr(op.body), **self._annotations(op)
        )

    def visit_if_(self, op: If) -> str:
        return self.build_ast_node(
            "If", cond=self.visit_expr(op.cond), true_branch=self.visit_expr(op.true_branch),
            false_branch=self.visit_expr(op.false_branch), **self._annotations(op),
        )  # fmt: skip

    def visit_op_(self, op: Op) -> str:
        return self.build_ast_node("Op", name=wrap_quotes(op.name))

    def visit_tuple_getitem_(self, op: TupleGetItem) -> str:
        return self.build_ast_node(
            "TupleGetItem", tuple_value=self.visit_expr(op.tuple_value), index=str(op.index),
            **self._annotations(op),
        )  # fmt: skip

    def visit_prim_value_(self, op: PrimValue) -> str:
        value = self.visit_prim_expr_(op.value)
        return self.build_ast_node("PrimValue", value=value, **self._annotations(op))

    def visit_string_imm_(self, op: StringImm) -> str:
        value = wrap_quotes(op.value)
        return self.build_ast_node("StringImm", value=value, **self._annotations(op))

    def visit_data_type_imm_(self, op: DataTypeImm) -> str:
        return self.build_ast_node("DataTypeImm", value=str(op.value), **self._annotations(op))

    def visit_prim_expr_(self, value: PrimExpr) -> str:
        """An expression of numbers, as text."""
        text = f"{value.name}: {value.dtype}" if isinstance(value, TirVar) else str(value)
        return self.build_ast_node("PrimExpr", value=f"`{text}`")

    # ---- bindings

    def visit_var_binding_(self, binding: VarBinding) -> str:
        return self.build_ast_node(
            "VarBinding", var=self.visit_expr(binding.var), value=self.visit_expr(binding.value)
        )

    def visit_match_cast_(self, binding: MatchCast) -> str:
        return self.build_ast_node(
            "MatchCast", var=self.visit_expr(binding.var), value=self.visit_expr(binding.value),
            struct_info=self.visit_struct_info_(binding.struct_info),
        )  # fmt: skip

    def _block(self, name: str, block: BindingBlock) -> str:
        bindings = self.build_list([self.visit_binding(binding) for binding in block.bindings])
        return self.build_ast_node(name, bindings=bindings)

    def visit_binding_block_(self, block: BindingBlock) -> str:
        return self._block("BindingBlock", block)

    def visit_dataflow_block_(self, block: BindingBlock) -> str:
        return self._block("DataflowBlock", block)

    # ---- struct info and types

    def visit_struct_info_(self, info: StructInfo) -> str:
        """Struct info as a tree."""
        fields: dict[str, str] = {}
        if isinstance(info, ShapeStructInfo):
            fields["ndim"] = str(info.ndim)
            if info.values is not None:
                fields["values"] = self.build_list([self.visit_prim_expr_(v) for v in info.values])
        elif isinstance(info, TensorStructInfo):
            fields["dtype"] = str(info.dtype)
            if info.shape is not None:
                fields["shape"] = self.visit_expr(info.shape)
            else:
                fields["ndim"] = str(info.ndim)
        elif isinstance(info, TupleStructInfo):
            fields["fields"] = self.build_list([self.visit_struct_info_(f) for f in info.fields])
        elif isinstance(info, PrimStructInfo):
            fields["dtype"] = str(info.dtype)
            if info.value is not None:
                fields["value"] = self.visit_prim_expr_(info.value)
        elif isinstance(info, FuncStructInfo):
            if info.params is not None:
                params = [self.visit_struct_info_(param) for param in info.params]
                fields["params"] = self.build_list(params)
            fields["ret"] = self.visit_struct_info_(info.ret)
            fields["purity"] = str(bool(info.purity))
        else:
            assert isinstance(info, ObjectStructInfo)
        return self.build_ast_node(type(info).__name__, **fields)

    def visit_type_(self, ty: Type) -> str:
        """A type as a tree."""
        fields: dict[str, str] = {}
        if isinstance(ty, ShapeType):
            fields["ndim"] = str(ty.ndim)
        elif isinstance(ty, DynTensorType):
            fields.update(ndim=str(ty.ndim), dtype=str(ty.dtype))
        elif isinstance(ty, TupleType):
            fields["fields"] = self.build_list([self.visit_type_(field) for field in ty.fields])
        elif isinstance(ty, FuncType):
            fields["arg_types"] = self.build_list([self.visit_type_(t) for t in ty.arg_types])
            fields["ret_type"] = self.visit_type_(ty.ret_type)
        elif not isinstance(ty, (ObjectType, PackedFuncType)):
            return str(ty)
        return self.build_ast_node(type(ty).__name__, **fields)


def _plain(value: Any) -> str:
    return wrap_quotes(value) if isinstance(value, str) else str(value)


def dump_ast(
    exp: RelayExpr | Binding | BindingBlock,
    indent_str: str = "    ",
    include_struct_info_annotations: bool = True,
    include_type_annotations: bool = False,
    include_call_attrs: bool = True,
) -> str:
    """An expression, a binding or a block as a tree.

    Parameters
    ----------
    exp : Expr, Binding or BindingBlock
    indent_str, include_struct_info_annotations, include_type_annotations, include_call_attrs
        As of `ASTPrinter`.
    """
    printer = ASTPrinter(
        indent_str, include_struct_info_annotations, include_type_annotations, include_call_attrs
    )
    if isinstance(exp, Binding):
        return str(printer.visit_binding(exp))
    if isinstance(exp, BindingBlock):
        return str(printer.visit_binding_block(exp))
    return str(printer.visit_expr(exp))
