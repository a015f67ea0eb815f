"""Operators in the layouts that a user wants, the operators around them in the same.

gv = nn.conv2d(x, w)        ->    lv = permute_dims(x, [0, 2, 3, 1])
gv2 = nn.relu(gv)                 lv1 = permute_dims(w, [0, 2, 3, 1])
                                  gv = nn.conv2d(lv, lv1, data_layout="NHWC", kernel_layout="OHWI")
                                  lv2 = nn.relu(gv)
                                  gv2 = permute_dims(lv2, [0, 3, 1, 2])

Each operator's rule says which layouts it takes (`tvm/relax/op/layouts.py`); what leaves a dataflow block
is in the layout that the program is written in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm.error import TVMError, suggest
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op, has_op
from tvm.ir.transform import Pass
from tvm.relax.expr import (
    Call,
    DataflowBlock,
    DataflowVar,
    Function,
    MatchCast,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.op.layouts import Layout, LayoutChoice, original_layout
from tvm.relax.op.manipulate import permute_dims
from tvm.relax.struct_info import ShapeExpr, TensorStructInfo

from .pass_kinds import relax_pass


def ConvertLayout(desired_layouts: Mapping[str, Sequence[str]]) -> Pass:
    """Convert operators of dataflow blocks to layouts.

    Parameters
    ----------
    desired_layouts : dict of str to list of str
        For operators such as ``"relax.nn.conv2d"`` the layouts of the data, of the kernels and, if it
        differs from the data's, of the result.
    """
    wanted = {str(name): [str(text) for text in v] for name, v in desired_layouts.items()}
    for name in wanted:
        if not has_op(name):
            raise TVMError(
                f"ConvertLayout requires operators of relax, got {name}",
                hint=suggest(name, Op.list_op_names()),
            )

    def rewrite(func: Function, mod: IRModule) -> Function:
        found: Function = _Converter(wanted).visit_expr(func)
        return found

    return relax_pass("ConvertLayout", rewrite)


class _Converter(ExprMutator):
    def __init__(self, wanted: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self.wanted = wanted
        # the layouts of variables, by identity; None outside of dataflow blocks
        self.layouts: dict[Any, Layout] | None = None

    def visit_dataflow_block_(self, block: DataflowBlock) -> Any:
        outer, self.layouts = self.layouts, {}
        new = super().visit_dataflow_block_(block)
        self.layouts = outer
        return new

    def visit_var_binding_(self, binding: VarBinding) -> Any:
        if self.layouts is None:
            super().visit_var_binding_(binding)
        elif isinstance(binding.value, Call):
            self.call(binding, binding.value)
        elif isinstance(binding.value, (Var, Tuple, TupleGetItem)):
            layout = self.layout_of(binding.value)
            self.bind(binding, self.visit_expr(binding.value), layout)
        else:
            super().visit_var_binding_(binding)

    def call(self, binding: VarBinding, call: Call) -> None:
        layouts = [self.layout_of(arg) for arg in call.args]
        rule = call.op.infer_layout if isinstance(call.op, Op) else None
        wanted = self.wanted.get(call.op.name) if isinstance(call.op, Op) else None
        originals = [original_layout(arg.struct_info_) for arg in call.args]
        choice: LayoutChoice | None = None
        if rule is not None and (wanted is not None or layouts != originals):
            choice = rule(call, wanted, layouts)
        if choice is None:
            choice = LayoutChoice(originals, original_layout(binding.var.struct_info_))
        new = [
            self.as_layout(arg, layout)
            for arg, layout in zip(call.args, choice.inputs, strict=True)
        ]
        for position, argument in (choice.arguments or {}).items():
            new[position] = argument
        changes = {k: v for k, v in (choice.changes or {}).items() if call.attrs[k] != v}
        same = all([a is b for a, b in zip(new, call.args, strict=True)])
        attrs = call.attrs.replace(**changes) if changes else call.attrs
        made = call
        if changes or not same:
            made = Call(call.op, new, attrs, call.sinfo_args, call.span)
        self.bind(binding, self.builder_.normalize(made), choice.output)

    def visit_match_cast_(self, binding: MatchCast) -> Any:
        layout = None if self.layouts is None else self.layout_of(binding.value)
        info = binding.struct_info
        original = original_layout(info)
        is_moved = isinstance(layout, tuple) and layout != original
        if not is_moved or not isinstance(info, TensorStructInfo):
            super().visit_match_cast_(binding)
            return
        assert isinstance(layout, tuple) and self.layouts is not None
        if not isinstance(binding.var, DataflowVar) or not isinstance(info.shape, ShapeExpr):
            value = self.as_layout(binding.value, original)
            self.builder_.emit_normalized(MatchCast(binding.var, value, info, binding.span))
            return
        shape = [info.shape.values[axis] for axis in layout]
        cast = TensorStructInfo(shape, info.dtype, info.vdevice)
        var = DataflowVar(binding.var.vid, cast)
        self._remap[binding.var.vid] = var
        self.layouts[var.vid] = layout
        value = self.visit_expr(binding.value)
        self.builder_.emit_normalized(MatchCast(var, value, cast, binding.span))

    def bind(self, binding: VarBinding, value: RelayExpr, layout: Layout) -> None:
        """Bind a value in a layout; what leaves the block is brought back to its own."""
        assert self.layouts is not None
        original = original_layout(binding.var.struct_info_)
        if layout != original and layout is not None:
            if isinstance(binding.var, DataflowVar):
                self.layouts[binding.var.vid] = layout
            else:
                value = self.moved(self.builder_.emit(value), layout, original)
        self.reemit_binding(binding, self.builder_.normalize(value))

    # ---- layouts

    def layout_of(self, expr: RelayExpr) -> Layout:
        """The layout that an expression has now."""
        if isinstance(expr, Tuple):
            return [self.layout_of(field) for field in expr.fields]
        if isinstance(expr, TupleGetItem):
            whole = self.layout_of(expr.tuple_value)
            return whole[expr.index] if isinstance(whole, list) else None
        original = original_layout(expr.struct_info_)
        if isinstance(expr, Var) and self.layouts is not None:
            return self.layouts.get(expr.vid, original)
        return original

    def as_layout(self, expr: RelayExpr, layout: Layout) -> Any:
        """An argument in a layout."""
        if isinstance(expr, Tuple) and isinstance(layout, list):
            fields = [self.as_layout(f, own) for f, own in zip(expr.fields, layout, strict=True)]
            same = all([a is b for a, b in zip(fields, expr.fields, strict=True)])
            return expr if same else Tuple(fields)
        return self.moved(self.visit_expr(expr), self.layout_of(expr), layout)

    def moved(self, value: RelayExpr, has: Layout, needs: Layout) -> RelayExpr:
        """A value brought from one layout to another."""
        if has == needs or has is None or needs is None:
            return value
        if isinstance(has, list) and isinstance(needs, list):
            fields = [TupleGetItem(value, i) for i in range(len(has))]
            parts = zip(fields, has, needs, strict=True)
            return Tuple([self.moved(f, a, b) for f, a, b in parts])
        assert isinstance(has, tuple) and isinstance(needs, tuple)
        found: RelayExpr = permute_dims(value, [has.index(axis) for axis in needs])
        return found
