"""``relax.build``: programs compiled for the virtual machine give what numpy gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relax, tir
from tvm.error import TVMError
from tvm.relax import op
from tvm.relax.transform import CallTIRRewrite, KillAfterLastUse, LowerAllocTensor, ToNonDataflow
from tvm.script import relax as R

MODES = ("bytecode", "compiled")


def tensor(name: str, *shape: Any, dtype: str = "float32") -> relax.Var:
    return relax.Var(name, relax.TensorStructInfo(shape, dtype))


def module(
    params: list[relax.Var], emit: Callable[[relax.BlockBuilder], Any], pure: bool = True
) -> tvm.IRModule:
    bb = relax.BlockBuilder()
    with bb.function("main", params, pure=pure):
        bb.emit_func_output(emit(bb))
    return bb.get()


def machine(mod: tvm.IRModule, **options: Any) -> relax.VirtualMachine:
    return relax.VirtualMachine(relax.build(mod, "llvm", **options), tvm.cpu())


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def layer(rows: Any) -> tvm.IRModule:
    x, w = tensor("x", rows, 3), tensor("w", 3, 4)

    def emit(bb: relax.BlockBuilder) -> Any:
        with bb.dataflow():
            y = bb.emit(op.nn.softmax(bb.emit(op.matmul(x, w))))
            parts = bb.emit(op.split(y, 2, axis=1))
            swapped = bb.emit_output(op.concat([parts[1], parts[0]], axis=1))
        return relax.Tuple([swapped, x])

    return module([x, w], emit)


@pytest.mark.parametrize("exec_mode", MODES)
@pytest.mark.parametrize("rows", [2, None])
def test_a_layer_of_known_and_open_length(exec_mode: str, rows: int | None) -> None:
    main = machine(layer(rows or tir.Var("n", "int64")), exec_mode=exec_mode)["main"]
    for count in (2,) if rows else (2, 1, 5):
        x, w = numbers(count, 3), numbers(3, 4, seed=1)
        y = np.exp(x @ w)
        y /= y.sum(1, keepdims=True)
        found, same = main(tvm.nd.array(x), tvm.nd.array(w))
        np.testing.assert_allclose(found.numpy(), np.roll(y, 2, 1), rtol=1e-5)
        np.testing.assert_array_equal(same.numpy(), x)


@pytest.mark.parametrize("exec_mode", MODES)
def test_dimensions_are_computed_and_checked(exec_mode: str) -> None:
    n = tir.Var("n", "int64")
    x, y = tensor("x", n, 2), tensor("y", n * 2)
    mod = module([x, y], lambda bb: bb.emit(op.add(bb.emit(op.reshape(x, (n * 2,))), y)))
    main = machine(mod, exec_mode=exec_mode)["main"]
    a, b = numbers(3, 2), numbers(6)
    found = main(tvm.nd.array(a), tvm.nd.array(b))
    np.testing.assert_allclose(found.numpy(), a.reshape(6) + b)
    with pytest.raises(RuntimeError, match=r"param=y.* axis 0 of the shape is 5, expected 6"):
        main(tvm.nd.array(a), tvm.nd.array(numbers(5)))
    with pytest.raises(ValueError, match=r"param=x.* expected a Tensor with ndim 2, got 1"):
        main(tvm.nd.array(b), tvm.nd.array(b))
    np.testing.assert_allclose(main(tvm.nd.array(a), tvm.nd.array(b)).numpy(), a.reshape(6) + b)


@pytest.mark.parametrize("exec_mode", MODES)
def test_parameters_tell_variables_in_sums_and_multiples(exec_mode: str) -> None:
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    x, y = tensor("x", n + m * 3, m * 2 + 1), tensor("y", n)
    only = tensor("x", n * 4)
    relu = machine(module([only], lambda bb: bb.emit(op.nn.relu(only))), exec_mode=exec_mode)
    assert relu["main"](tvm.nd.array(numbers(8))).shape == (8,)

    def emit(bb: relax.BlockBuilder) -> Any:
        rows = bb.emit(op.strided_slice(x, [0], [0], [m * 3]))
        return relax.Tuple([rows, bb.emit(op.full((m, n), relax.const(1.0)))])

    main = machine(module([x, y], emit), exec_mode=exec_mode)["main"]
    a = numbers(10, 5)
    rows, ones = main(tvm.nd.array(a), tvm.nd.array(numbers(4)))
    np.testing.assert_array_equal(rows.numpy(), a[:6])
    assert ones.shape == (2, 4)
    with pytest.raises(RuntimeError, match=r"param=x.* axis 1 of the shape is 6, expected 5"):
        main(tvm.nd.array(numbers(10, 6)), tvm.nd.array(numbers(4)))


def test_variables_that_no_parameter_tells_are_named() -> None:
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    x = tensor("x", n * m)
    with pytest.raises(TVMError, match=r"n \* m has no value where it is checked"):
        machine(module([x], lambda bb: bb.emit(op.nn.relu(x))))


@pytest.mark.parametrize("parts", [1, []])
@pytest.mark.parametrize("extent", [4, tir.Var("n", "int64")])
def test_a_split_into_one_part_is_a_tuple(parts: Any, extent: Any) -> None:
    x = tensor("x", extent, 2)

    def emit(bb: relax.BlockBuilder) -> Any:
        with bb.dataflow():
            whole = bb.emit(op.split(x, parts))
            return bb.emit_output(op.negative(bb.emit(whole[0])))

    a = numbers(4, 2)
    found = machine(module([x], emit))["main"](tvm.nd.array(a))
    np.testing.assert_array_equal(found.numpy(), -a)


@pytest.mark.parametrize("exec_mode", MODES)
def test_branches_choose_at_run_time(exec_mode: str) -> None:
    x, cond = tensor("x", 2), tensor("cond", dtype="bool")

    def branch(bb: relax.BlockBuilder, function: Any) -> relax.SeqExpr:
        bb.begin_scope([x])
        bb.begin_block(is_dataflow=False)
        y = bb.emit(function(x, x))
        seq = bb.normalize(relax.SeqExpr([bb.end_block()], y))
        bb.end_scope()
        return seq

    def emit(bb: relax.BlockBuilder) -> Any:
        return bb.emit(relax.If(cond, branch(bb, op.add), branch(bb, op.multiply)))

    main = machine(module([cond, x], emit), exec_mode=exec_mode)["main"]
    a = numbers(2)
    for flag, wanted in ((True, a + a), (False, a * a)):
        found = main(tvm.nd.array(np.array(flag)), tvm.nd.array(a))
        np.testing.assert_allclose(found.numpy(), wanted)


@pytest.mark.parametrize("exec_mode", MODES)
def test_a_cast_defines_dimensions(exec_mode: str) -> None:
    x = relax.Var("x", relax.ObjectStructInfo())
    n = tir.Var("n", "int64")

    def emit(bb: relax.BlockBuilder) -> Any:
        y = bb.match_cast(x, relax.TensorStructInfo((n, 3), "float32"))
        return relax.Tuple([bb.emit(op.exp(y)), relax.ShapeExpr([n + 1])])

    main = machine(module([x], emit), exec_mode=exec_mode)["main"]
    found, shape = main(tvm.nd.array(numbers(4, 3)))
    np.testing.assert_allclose(found.numpy(), np.exp(numbers(4, 3)), rtol=1e-6)
    assert shape == (5,)
    with pytest.raises(RuntimeError, match="axis 1 of the shape is 2, expected 3"):
        main(tvm.nd.array(numbers(4, 2)))


@pytest.mark.parametrize("exec_mode", MODES)
def test_numbers_are_expressions_over_dimensions(exec_mode: str) -> None:
    n = tir.Var("n", "int64")
    x = tensor("x", n)

    def emit(bb: relax.BlockBuilder) -> Any:
        bb.emit(op.assert_op(relax.PrimValue(n % 4 == 0), format="odd length"))
        return bb.emit(op.exp(x))

    main = machine(module([x], emit, pure=False), exec_mode=exec_mode)["main"]
    assert main(tvm.nd.array(numbers(8))).shape == (8,)
    with pytest.raises(AssertionError, match="odd length"):
        main(tvm.nd.array(numbers(6)))


@pytest.mark.parametrize("exec_mode", MODES)
def test_functions_call_packed_ones_and_each_other(exec_mode: str) -> None:
    import tvm.relax.testing.vm

    x = tensor("x", 3)
    bb = relax.BlockBuilder()
    y = tensor("y", 3)
    info = relax.TensorStructInfo((3,), "float32")
    with bb.function("twice", [y], pure=False):
        call = relax.Call(relax.ExternFunc("test.vm.add"), [y, y], None, [info])
        bb.emit_func_output(bb.emit(call))
    twice = bb.get().get_global_var("twice")
    with bb.function("main", [x], pure=False):
        bb.emit_func_output(bb.emit(relax.Call(twice, [bb.emit(relax.Call(twice, [x]))])))
    found = machine(bb.get(), exec_mode=exec_mode)["main"](tvm.nd.array(numbers(3)))
    np.testing.assert_allclose(found.numpy(), 4 * numbers(3))


@pytest.mark.parametrize("exec_mode", MODES)
def test_a_library_runs_after_it_was_exported(tmp_path: Path, exec_mode: str) -> None:
    path = tmp_path / "layer.so"
    relax.build(layer(tir.Var("n", "int64")), "llvm", exec_mode=exec_mode).export_library(path)
    vm = relax.VirtualMachine(tvm.runtime.load_module(str(path)), tvm.cpu())
    x, w = tvm.nd.array(numbers(2, 3)), tvm.nd.array(numbers(3, 4))
    wanted = machine(layer(2))["main"](x, w)[0].numpy()
    np.testing.assert_allclose(vm["main"](x, w)[0].numpy(), wanted, rtol=1e-6)


def perceptron() -> tuple[tvm.IRModule, np.ndarray]:
    x = tensor("x", 5, 16)
    weights = [numbers(16, 16, seed=i) for i in range(2)]

    def emit(bb: relax.BlockBuilder) -> Any:
        with bb.dataflow():
            y: Any = x
            for weight in weights:
                y = bb.emit(op.nn.relu(bb.emit(op.matmul(y, relax.const(weight)))))
            return bb.emit_output(op.add(y, relax.const(np.ones(16, "float32"))))

    a = numbers(5, 16, seed=7)
    for weight in weights:
        a = np.maximum(a @ weight, 0)
    return module([x], emit), a + 1


def test_runs_of_operators_are_fused_kernels() -> None:
    mod, wanted = perceptron()
    executable = relax.build(mod, "llvm")
    calls = [line.split()[1] for line in executable.as_text().splitlines() if "call" in line]
    kernels = [name for name in calls if not name.startswith("vm.builtin")]
    assert len(kernels) == 2
    assert all("dense_pack" in name and "relu" in name for name in kernels)
    vm = relax.VirtualMachine(executable, tvm.cpu())
    found = vm["main"](tvm.nd.array(numbers(5, 16, seed=7)))
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-4)


def test_kernels_survive_export(tmp_path: Path) -> None:
    mod, wanted = perceptron()
    path = tmp_path / "perceptron.so"
    relax.build(mod, "llvm").export_library(path)
    vm = relax.VirtualMachine(tvm.runtime.load_module(str(path)), tvm.cpu())
    found = vm["main"](tvm.nd.array(numbers(5, 16, seed=7)))
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-4)


def test_parameters_are_bound() -> None:
    w = numbers(3, 4)
    main = machine(layer(2), params={"w": tvm.nd.array(w)})["main"]
    wanted = machine(layer(2))["main"](tvm.nd.array(numbers(2, 3)), tvm.nd.array(w))
    found = main(tvm.nd.array(numbers(2, 3)))
    np.testing.assert_allclose(found[0].numpy(), wanted[0].numpy(), rtol=1e-6)
    with pytest.raises(tvm.TVMError, match="no parameters of main"):
        machine(layer(2), params={"v": tvm.nd.array(w)})


def operators(mod: tvm.IRModule) -> list[str]:
    bindings = [b for block in mod["main"].body.blocks for b in block.bindings]
    calls = [b.value for b in bindings if isinstance(b.value, relax.Call)]
    return [getattr(c.op, "name", getattr(c.op, "name_hint", "")).split(".")[-1] for c in calls]


def test_results_are_written_into_memory_that_is_let_go_of() -> None:
    x = tensor("x", 4)
    mod = module([x], lambda bb: bb.emit(op.exp(bb.emit(op.negative(x)))))
    mod = relax.transform.LegalizeOps()(mod)
    assert operators(mod) == ["call_tir", "call_tir"]
    mod = CallTIRRewrite()(ToNonDataflow()(mod))
    assert operators(mod) == ["alloc_tensor", "tir_negative", "alloc_tensor", "tir_exp"]
    mod = KillAfterLastUse()(LowerAllocTensor()(mod))
    one = ["alloc_storage", "alloc_tensor", "kill_storage"]
    assert operators(mod) == [*one, "tir_negative", *one, "tir_exp", "kill_tensor"]


def test_names_of_pipelines_are_checked() -> None:
    with pytest.raises(ValueError, match="no pipeline 'other'; there are zero, default_build"):
        relax.get_pipeline("other")
    with pytest.raises(ValueError, match='must be "bytecode" or "compiled"'):
        relax.build(layer(2), "llvm", exec_mode="other")


def test_packed_operators_stay_pure() -> None:
    x = tensor("x", 5)
    mod = module([x], lambda bb: bb.emit(op.shape_to_tensor(bb.emit(op.shape_of(x)))))
    legal = relax.transform.LegalizeOps()(mod)
    assert operators(legal) == ["shape_of", "call_pure_packed"]
    assert machine(mod)["main"](tvm.nd.array(numbers(5))).numpy().tolist() == [5]


@pytest.mark.parametrize("pad_value", [None, 7.0])
def test_layout_transform_moves_and_pads(pad_value: float | None) -> None:
    x = relax.Var("x", relax.TensorStructInfo([5], "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(
            bb.emit(relax.op.layout_transform(x, lambda i: [i % 2, i // 2], pad_value=pad_value))
        )
    vm = relax.VirtualMachine(relax.build(bb.get(), "llvm"), tvm.cpu())
    found = vm["main"](tvm.nd.array(np.arange(5, dtype="float32"))).numpy()
    expected = np.array([[0, 2, 4], [1, 3, pad_value or 0]], "float32")
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("extent", [5, 6, 7])
@pytest.mark.parametrize("is_symbolic", [False, True])
def test_split_into_parts_of_which_the_last_is_smaller(extent: int, is_symbolic: bool) -> None:
    x = tensor("x", tir.Var("n", "int64") if is_symbolic else extent)

    def emit(bb: relax.BlockBuilder) -> Any:
        return bb.emit(op.split(x, 3))

    machine = relax.VirtualMachine(relax.build(module([x], emit), "llvm"), tvm.cpu())
    data = np.arange(extent, dtype="float32")
    step = -(-extent // 3)
    parts = machine["main"](tvm.nd.array(data))
    for part, expected in zip(parts, np.split(data, [step, 2 * step]), strict=True):
        np.testing.assert_array_equal(part.numpy(), expected)


def test_extents_that_the_run_decides_are_known_behind() -> None:
    @R.function
    def main(
        x: R.Tensor((8, 9), "float32"),
        b: R.Tensor((2,), "int64"),
        e: R.Tensor((2,), "int64"),
        s: R.Tensor((2,), "int64"),
    ) -> R.Tensor("float32", ndim=2):
        y: R.Tensor("float32", ndim=2) = R.dynamic_strided_slice(x, b, e, s)
        return R.negative(y)

    machine = relax.VirtualMachine(relax.build(tvm.IRModule({"main": main}), "llvm"), tvm.cpu())
    x = np.random.rand(8, 9).astype("float32")
    bounds = [np.array(v) for v in ([1, 8], [8, 0], [3, -2])]
    result = machine["main"](*[tvm.nd.array(v) for v in (x, *bounds)]).numpy()
    np.testing.assert_array_equal(result, -x[1:8:3, 8:0:-2])
