"""Loop programs of operators in other layouts, and transforms between them that undo each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relax, te
from tvm.error import TVMError
from tvm.relax.transform import (
    AlterOpImpl,
    DeadCodeElimination,
    FuseTransposeMatmul,
    OptimizeLayoutTransform,
)


def _prim(extents: tuple[int, ...], count: int = 1) -> tvm.tir.PrimFunc:
    """Sums and, as a second result, differences."""
    a, b = [te.placeholder(extents, "float32", name) for name in "ab"]
    total = te.compute(extents, lambda *i: a(*i) + b(*i), "total")
    rest = te.compute(extents, lambda *i: a(*i) - b(*i), "rest")
    func = te.create_prim_func([a, b, total, rest][: 2 + count])
    return func.without_attr("global_symbol")


def _module(extent: int, count: int = 1) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    info = relax.TensorStructInfo((extent,), "float32")
    x, y = relax.Var("x", info), relax.Var("y", info)
    infos = [info] * count if count > 1 else info
    prim = _prim((extent,), count).with_attr("operator_name", "relax.add")
    gvar = builder.add_func(prim, "add")
    with builder.function("main", [x, y]):
        with builder.dataflow():
            first = builder.emit(relax.call_tir(gvar, (x, y), infos))
            value = first if count == 1 else relax.op.multiply(first[0], first[1])
            value = builder.emit(value)
            if count == 1:
                value = builder.emit(relax.call_tir(gvar, (value, y), info))
            result = builder.emit_output(value)
        builder.emit_func_output(result)
    return builder.get()


def _run(mod: tvm.IRModule, extent: int) -> np.ndarray:
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    rng = np.random.default_rng(0)
    arrays = [tvm.nd.array(rng.normal(size=extent).astype("float32")) for _ in range(2)]
    return vm["main"](*arrays).numpy()


def _count(mod: tvm.IRModule, name: str) -> int:
    return str(mod["main"]).count(f"R.{name}(")


def _altered(mod: tvm.IRModule, index_map: Any, prim: Any, count: int) -> tvm.IRModule:
    maps = [index_map] * count
    altered = AlterOpImpl({"relax.add": prim}, {"relax.add": maps}, {"relax.add": None}, {})(mod)
    return DeadCodeElimination()(altered)


def test_replaced_programs_compute_the_same_in_their_layouts() -> None:
    mod = _module(16)
    altered = _altered(mod, lambda i: (i // 4, i % 4), _prim((4, 4)), 3)
    assert relax.analysis.well_formed(altered)
    names = [g.name_hint for g in altered.functions]
    assert sorted(names) == ["main", "relax_add_replacement"]
    assert _count(altered, "layout_transform") == 6
    np.testing.assert_allclose(_run(altered, 16), _run(mod, 16), 1e-6)
    optimized = OptimizeLayoutTransform()(altered)
    assert _count(optimized, "layout_transform") == 3
    np.testing.assert_allclose(_run(optimized, 16), _run(mod, 16), 1e-6)


def test_padding_is_taken_off() -> None:
    mod = _module(14)
    altered = _altered(mod, lambda i: (i // 4, i % 4), _prim((4, 4)), 3)
    assert "remove_pad" in [g.name_hint for g in altered.functions]
    np.testing.assert_allclose(_run(altered, 14), _run(mod, 14), 1e-6)
    optimized = OptimizeLayoutTransform()(altered)
    assert _count(optimized, "layout_transform") < _count(altered, "layout_transform")
    np.testing.assert_allclose(_run(optimized, 14), _run(mod, 14), 1e-6)


def test_several_results_are_brought_back() -> None:
    mod = _module(16, 2)
    altered = _altered(mod, lambda i: (i // 4, i % 4), _prim((4, 4), 2), 4)
    assert _count(altered, "layout_transform") == 4
    np.testing.assert_allclose(_run(altered, 16), _run(mod, 16), 1e-6)


def test_programs_in_the_same_layout_need_no_transforms() -> None:
    mod = _module(16)
    altered = _altered(mod, None, _prim((16,)), 0)
    assert _count(altered, "layout_transform") == 0
    np.testing.assert_allclose(_run(altered, 16), _run(mod, 16), 1e-6)
    with pytest.raises(TVMError, match="requires layouts of 3 tensors of relax.add, got 1"):
        _altered(mod, lambda i: (i,), _prim((16,)), 1)


def test_transforms_that_move_elements_stay() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4, 4), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.layout_transform(x, lambda i, j: (j, i)))
            z = builder.emit_output(relax.op.layout_transform(y, lambda i, j: (i, j)))
        builder.emit_func_output(z)
    mod = OptimizeLayoutTransform()(builder.get())
    assert _count(mod, "layout_transform") == 2


def test_transposed_matrices_are_read_where_they_are() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2, 3, 4), "float32"))
    w = relax.Var("w", relax.TensorStructInfo((5, 4), "float32"))
    with builder.function("main", [x, w]):
        with builder.dataflow():
            result = builder.emit_output(relax.op.matmul(x, relax.op.permute_dims(w)))
        builder.emit_func_output(result)
    mod = builder.get()
    fused = FuseTransposeMatmul()(mod)
    assert _count(fused, "permute_dims") == _count(fused, "matmul") == 0
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype("float32") for shape in ((2, 3, 4), (5, 4))]
    vm = relax.VirtualMachine(relax.build(fused, "llvm"), tvm.cpu())
    found = vm["main"](*[tvm.nd.array(a) for a in arrays]).numpy()
    np.testing.assert_allclose(found, arrays[0] @ arrays[1].T, 1e-5)
