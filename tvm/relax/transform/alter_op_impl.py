"""Loop programs of operators are replaced by others, whose tensors are in other layouts.

y = call_tir(add, (a, b), Tensor((16,)))    ->    a1 = layout_transform(a, i -> (i // 4, i % 4))
                                                  b1 = layout_transform(b, i -> (i // 4, i % 4))
                                                  y1 = call_tir(other, (a1, b1), Tensor((4, 4)))
                                                  y = layout_transform(y1, (i, j) -> i * 4 + j)

Which operator a loop program is, its attribute ``operator_name`` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te
from tvm.error import TVMError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.expr import Call, Function, Tuple, TupleGetItem
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.op.base import call_tir
from tvm.relax.op.manipulate import layout_transform
from tvm.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from tvm.te.prim_func import create_prim_func
from tvm.tir import IndexMap, IntImm, PrimFunc, Var

from .pass_kinds import whole_module_pass

_CALL_TIR = Op.get("relax.call_tir")
_OPERATOR = "operator_name"


@dataclass(frozen=True)
class _Layout:
    """How one tensor of a loop program is laid out."""

    index_map: IndexMap
    separators: Sequence[int]
    own_separators: Sequence[int]  # of the tensor as it was


@dataclass(frozen=True)
class _Replacement:
    func: PrimFunc
    layouts: list[_Layout]  # of inputs, then of outputs; none: all as they were


def AlterOpImpl(
    op_impl_map: Mapping[str, PrimFunc],
    op_buffer_transforms: Mapping[str, Sequence[Any]],
    op_buffer_axis_separators: Mapping[str, Sequence[Any] | None],
    op_buffer_input_axis_separators: Mapping[str, Sequence[Any] | None] | None = None,
) -> Pass:
    """Replace the loop programs of operators.

    Parameters
    ----------
    op_impl_map : dict of str to PrimFunc
        For operators, by the attribute ``operator_name`` of their loop programs, the new programs.
    op_buffer_transforms : dict of str to list of IndexMap or callable
        The layouts of the new program's tensors, inputs first; an empty list for the old layouts.
    op_buffer_axis_separators, op_buffer_input_axis_separators : dict of str to list of list of int
        Where axes of memory begin, of each tensor in the new layout and in the old one.
    """
    given = op_buffer_input_axis_separators or {}
    replacements = {
        kind: _replacement(
            kind, func, op_buffer_transforms.get(kind) or (),
            op_buffer_axis_separators.get(kind) or (), given.get(kind) or (),
        )
        for kind, func in op_impl_map.items()
    }  # fmt: skip

    def run(mod: IRModule) -> IRModule:
        mutator = _Replacer(mod, replacements)
        for gvar, func in mod.functions.items():
            if isinstance(func, Function):
                new = mutator.visit_expr(func)
                if new is not func:
                    mutator.builder_.update_func(gvar, new)
        return mutator.builder_.get() if mutator.added else mod

    return whole_module_pass("AlterOpImpl", run)


def _replacement(
    kind: str, func: PrimFunc, maps: Sequence[Any], after: Sequence[Any], before: Sequence[Any]
) -> _Replacement:
    for what, found in (("axis separators", after), ("input axis separators", before)):
        if found and len(found) != len(maps):
            raise TVMError(
                f"AlterOpImpl requires {what} of each of {len(maps)} tensors of {kind}, got "
                f"{len(found)}"
            )
    layouts = []
    for i, given in enumerate(maps):
        own = given
        if not isinstance(own, IndexMap):
            own = IndexMap.from_func(own, index_dtype="int64")
        ends = [list(found[i]) if found else [] for found in (after, before)]
        layouts.append(_Layout(own, ends[0], ends[1]))
    return _Replacement(func.with_attr(_OPERATOR, kind), layouts)


class _Replacer(ExprMutator):
    def __init__(self, mod: IRModule, replacements: Mapping[str, _Replacement]) -> None:
        super().__init__(mod)
        self.mod = mod
        self.replacements = replacements
        self.added: dict[str, GlobalVar] = {}

    def visit_call_(self, op: Call) -> Any:
        call = self.visit_expr_post_order(op)
        callee = call.args[0] if isinstance(call, Call) and call.op is _CALL_TIR else None
        prim = self.mod.functions.get(callee) if isinstance(callee, GlobalVar) else None
        kind = None if prim is None else prim.attrs.get(_OPERATOR)
        if kind is None or str(kind) not in self.replacements:
            return call
        return self.replaced(call, str(kind))

    def replaced(self, call: Call, kind: str) -> RelayExpr:
        new = self.replacements[kind]
        if kind not in self.added:
            name = f"{kind.replace('.', '_')}_replacement"
            self.added[kind] = self.builder_.add_func(new.func, name)
        inputs = call.args[1]
        assert isinstance(inputs, Tuple)
        info: Any = call.sinfo_args[0]
        outputs = list(info.fields) if isinstance(info, TupleStructInfo) else [info]
        if not new.layouts:
            found: RelayExpr = call_tir(self.added[kind], inputs, info, *call.args[2:])
            return found
        if len(new.layouts) != len(inputs) + len(outputs):
            raise TVMError(
                f"AlterOpImpl requires layouts of {len(inputs) + len(outputs)} tensors of {kind}, "
                f"got {len(new.layouts)}"
            )
        moved = [
            _transformed(value, layout)
            for value, layout in zip(inputs.fields, new.layouts, strict=False)
        ]
        ends = new.layouts[len(inputs) :]
        infos: Any = [_moved_info(i, layout) for i, layout in zip(outputs, ends, strict=True)]
        made = call_tir(self.added[kind], Tuple(moved), infos, *call.args[2:])
        result = self.builder_.emit(made)
        if not isinstance(info, TupleStructInfo):
            return self.back(result, outputs[0], ends[0])
        parts = [
            self.back(TupleGetItem(result, i), own, layout)
            for i, (own, layout) in enumerate(zip(outputs, ends, strict=True))
        ]
        return Tuple(parts)

    def back(self, value: RelayExpr, info: Any, layout: _Layout) -> RelayExpr:
        """A result in its own layout."""
        if _is_identity(layout.index_map):
            return value
        shape = _dimensions(info)
        inverse, padding = layout.index_map.non_surjective_inverse(shape)
        moved: RelayExpr = layout_transform(
            value,
            inverse,
            axis_separators=layout.own_separators,
            input_axis_separators=layout.separators,
        )
        if isinstance(padding, IntImm) and padding.value == 0:
            return moved
        remover = self.builder_.add_func(_remove_pad(info), "remove_pad")
        found: RelayExpr = call_tir(remover, Tuple([self.builder_.emit(moved)]), info)
        return found


def _dimensions(info: StructInfo) -> Sequence[Any]:
    dims = info.dimensions if isinstance(info, TensorStructInfo) else None
    if dims is None:
        raise TVMError(f"AlterOpImpl requires tensors of known shape, got {info}")
    return dims


def _is_identity(index_map: IndexMap) -> bool:
    before, after = index_map.initial_indices, index_map.final_indices
    return len(before) == len(after) and all([a is b for a, b in zip(before, after, strict=True)])


def _transformed(value: RelayExpr, layout: _Layout) -> RelayExpr:
    if _is_identity(layout.index_map):
        return value
    found: RelayExpr = layout_transform(
        value,
        layout.index_map,
        axis_separators=layout.separators,
        input_axis_separators=layout.own_separators,
    )
    return found


def _moved_info(info: StructInfo, layout: _Layout) -> StructInfo:
    assert isinstance(info, TensorStructInfo)
    shape = layout.index_map.map_shape(_dimensions(info))
    return TensorStructInfo(shape, info.dtype, info.vdevice)


def _remove_pad(info: StructInfo) -> PrimFunc:
    """The beginning of a tensor along each axis."""
    assert isinstance(info, TensorStructInfo)
    rank = info.ndim
    before = [Var(f"p{i}", "int64") for i in range(rank)]
    after = [Var(f"i{i}", "int64") for i in range(rank)]
    data = te.placeholder(before, info.dtype, "input")
    result = te.compute(after, lambda *i: data(*i), name="output")
    func: PrimFunc = create_prim_func([data, result])
    return func.without_attr("global_symbol").with_attr(_OPERATOR, "remove_pad")
