"""Passes over the structure of programs: order, signatures, devices, compound operators."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tests.relax.agreement import assert_computes_the_same, run
from tvm import relax
from tvm.error import TVMError
from tvm.ir import VDevice, assert_structural_equal
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Norms:
    @R.function
    def main(
        x: R.Tensor((2, 3, 4), "float32"),
        g: R.Tensor((3,), "float32"),
        b: R.Tensor((3,), "float32"),
        m: R.Tensor((3,), "float32"),
        v: R.Tensor((3,), "float32"),
    ) -> R.Tensor((2, 3, 4), "float32"):
        with R.dataflow():
            t = R.nn.batch_norm(x, g, b, m, v, axis=1)
            y = t[0]
            R.output(y)
        return y


def test_batch_norm_uses_running_statistics_for_inference() -> None:
    mod = transform.DecomposeOpsForInference()(Norms)
    assert relax.analysis.well_formed(mod)
    rng = np.random.default_rng(0)
    x, g, b, m, v = [rng.random(s, "float32") + 0.5 for s in ((2, 3, 4), 3, 3, 3, 3)]
    c = [a.reshape(1, 3, 1) for a in (g, b, m, v)]
    expected = (x - c[2]) / np.sqrt(c[3] + 1e-5) * c[0] + c[1]
    np.testing.assert_allclose(run(mod, x, g, b, m, v), expected, rtol=1e-4, atol=1e-5)


def test_layer_norm_is_decomposed_for_training_alone() -> None:
    @I.ir_module
    class Layer:
        @R.function
        def main(
            x: R.Tensor((2, 4), "float32"),
            g: R.Tensor((4,), "float32"),
            b: R.Tensor((4,), "float32"),
        ) -> R.Tensor((2, 4), "float32"):
            with R.dataflow():
                y = R.nn.layer_norm(x, g, b, axes=[-1])
                R.output(y)
            return y

    assert_structural_equal(transform.DecomposeOpsForInference("main")(Layer), Layer)
    after = transform.DecomposeOpsForTraining("main")(Layer)
    assert len(after["main"].body.blocks[0].bindings) == 8
    assert_computes_the_same(Layer, after, rtol=1e-4)


@I.ir_module
class Diamond:
    @R.function
    def main(x: R.Tensor((4,), "float32"), z: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.sin(x)
            c = R.add(a, z)
            d = R.multiply(b, z)
            unused = R.add(d, d)
            e = R.add(c, d)
            R.output(e, d)
        return (d, e)


@pytest.mark.parametrize("order", ["depth-first", "breadth-first"])
@pytest.mark.parametrize("direction", ["from-inputs", "from-outputs"])
def test_sorted_bindings_compute_the_same(order: str, direction: str) -> None:
    after = transform.TopologicalSort(order, direction)(Diamond)
    names = [b.var.name_hint for b in after["main"].body.blocks[0].bindings]
    assert sorted(names) == ["a", "b", "c", "d", "e", "unused"]
    if (order, direction) == ("depth-first", "from-outputs"):
        assert names == ["b", "d", "unused", "a", "c", "e"]
    assert_computes_the_same(Diamond, after)


def test_checks_come_before_what_uses_their_dimensions() -> None:
    @I.ir_module
    class Checked:
        @R.function
        def main(x: R.Tensor(ndim=1, dtype="float32")) -> R.Tensor(ndim=1, dtype="float32"):
            n = T.int64()
            with R.dataflow():
                c = R.match_cast(x, R.Tensor((n,), "float32"))
                o = R.ones((n,), "float32")
                y = R.add(c, o)
                R.output(y)
            return y

    for direction in ("from-inputs", "from-outputs"):
        assert relax.analysis.well_formed(transform.TopologicalSort(direction=direction)(Checked))
    with pytest.raises(ValueError, match="order must be"):
        transform.TopologicalSort("sideways")


def test_parameters_of_models_become_a_tuple() -> None:
    @I.ir_module
    class Model:
        @R.function
        def main(
            x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32"), b: R.Tensor((4,), "float32")
        ):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                y = R.add(R.multiply(x, w), b)
                R.output(y)
            return y

    after = transform.BundleModelParams("weights")(Model)
    assert [p.name_hint for p in after["main"].params] == ["x", "weights"]
    x, w, b = [np.full(4, i, "float32") for i in (1, 2, 3)]
    pair = tvm.runtime.container.ADT(0, [tvm.nd.array(a) for a in (w, b)])
    np.testing.assert_allclose(run(after, x, pair), x * w + b)
    known = relax.analysis.computable_at_compile_time(Model["main"])
    assert [v.name_hint for v in known] == ["w", "b"]


def test_results_that_nobody_reads_are_not_returned() -> None:
    @I.ir_module
    class Unread:
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            with R.dataflow():
                t = Unread.parts(x)
                y = t[2]
                z = R.add(t[0], y)
                R.output(z)
            return z

        @R.function(private=True)
        def parts(x: R.Tensor((4,), "float32")) -> R.Tuple(
            R.Tensor((4,), "float32"), R.Tensor((4,), "float32"), R.Tensor((4,), "float32")
        ):
            with R.dataflow():
                a = R.exp(x)
                b = R.sin(x)
                c = R.negative(x)
                R.output(a, b, c)
            return (a, b, c)

    after = transform.RemoveUnusedOutputs()(Unread)
    assert len(after["parts"].ret_struct_info.fields) == 2
    assert "sin" not in after.script()
    assert_computes_the_same(Unread, after)


def test_a_device_is_replaced_everywhere() -> None:
    @I.ir_module
    class Placed:
        I.module_global_infos({"vdevice": [I.vdevice("llvm"), I.vdevice("cuda", 0)]})

        @R.function
        def main(x: R.Tensor((4,), "float32", "llvm")) -> R.Tensor((4,), "float32", "cuda"):
            with R.dataflow():
                y = R.to_vdevice(x, "cuda")
                z = R.add(y, y)
                R.output(z)
            return z

    mod = transform.UpdateVDevice(VDevice("metal"), 1)(Placed)
    assert str(mod["main"].ret_struct_info.vdevice.target.kind.name) == "metal"
    assert "cuda" not in mod.script()
    with pytest.raises(TVMError, match="requires a device of 2"):
        transform.UpdateVDevice(VDevice("metal"), 2)(Placed)


def test_programs_read_the_descriptors_of_tensors() -> None:
    @I.ir_module
    class Inspect:
        @R.function
        def main(x: R.Tensor, axis: R.Prim("int64")):
            with R.dataflow():
                a = x.shape[axis]
                b = x.strides[axis]
                c = x.ndim
                d = x.dtype.bits
                e = x.dtype.type_code
                f = x.byte_offset
                out = (a, b, c, d, e, f)
                R.output(out)
            return out

    vm = relax.VirtualMachine(relax.build(Inspect, "llvm"), tvm.cpu())
    x = tvm.nd.empty([2, 3, 5], "float16")
    assert [[int(v) for v in vm["main"](x, axis)] for axis in range(3)] == [
        [2, 15, 3, 16, 2, 0], [3, 5, 3, 16, 2, 0], [5, 1, 3, 16, 2, 0],
    ]  # fmt: skip
    with pytest.raises(TVMError, match="below the rank"):
        vm["main"](x, 3)


def test_copies_in_the_order_of_memory_are_views() -> None:
    @I.ir_module
    class Views:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
            n = T.int64()
            with R.dataflow():
                a = R.reshape(x, (n * 4,))
                b = R.reshape(R.exp(a), (n, 1, 4))
                c = R.permute_dims(b, [1, 0, 2])
                d = R.reshape(c, (n, 4))
                R.output(d)
            return d

    legal = transform.LegalizeOps()(Views)
    after = transform.RewriteDataflowReshape()(legal)
    names = [
        b.value.op.name for b in after["main"].body.blocks[0].bindings if hasattr(b.value, "op")
    ]
    # so is the exchange of a dimension of one; the result of the block is memory of its own
    assert names.count("relax.reshape") == 3 and names[-1] == "relax.call_tir"
    x = np.random.default_rng(0).random((3, 4), "float32")
    np.testing.assert_allclose(run(after, x), np.exp(x), rtol=1e-5)
    np.testing.assert_allclose(run(Views, x), np.exp(x), rtol=1e-5)


def test_fused_functions_name_no_shapes_outside() -> None:
    @R.function
    def main(x: R.Tensor(("n", 3), "float32"), y: R.Tensor(("n", 3), "float32")):
        n = T.int64()
        with R.dataflow():
            s = R.shape_of(x)
            flat = R.reshape(y, R.shape([n * 3]))
            again = R.reshape(flat, s)
            out = R.match_cast(again, R.Tensor((n, 3), "float32"))
            R.output(out)
        return out

    after = relax.get_pipeline("zero")(tvm.IRModule({"main": main}))
    y = np.arange(6, dtype="float32").reshape(2, 3)
    vm = relax.VirtualMachine(relax.build(after, "llvm"), tvm.cpu())
    np.testing.assert_array_equal(vm["main"](tvm.nd.array(y), tvm.nd.array(y)).numpy(), y)


@pytest.mark.parametrize("direction", ["from-inputs", "from-outputs"])
@pytest.mark.parametrize("order", ["depth-first", "breadth-first"])
def test_checks_of_known_symbols_define_none(order: str, direction: str) -> None:
    @R.function
    def main(x: R.Tensor(("n", 3), "float32")):
        n = T.int64()
        with R.dataflow():
            flat = R.reshape(x, R.shape([n * 3]))
            again = R.reshape(flat, R.shape([n, 3]))
            out = R.match_cast(again, R.Tensor((n, 3), "float32"))
            R.output(out)
        return out

    mod = tvm.IRModule({"main": main})
    assert_structural_equal(transform.TopologicalSort(order, direction)(mod), mod)


def test_symbols_of_removed_parameters_become_numbers() -> None:
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor(("m", "n"), "float32")) -> R.Tensor(("m", "n"), "float32"):
            cls = Before
            return cls.zeros(x)

        @R.function(private=True)
        def zeros(x: R.Tensor(("m", "n"), "float32")) -> R.Tensor(("m", "n"), "float32"):
            m, n = T.int64(), T.int64()
            return R.zeros(R.shape([m, n]), dtype="float32")

    after = transform.RemoveUnusedParameters()(Before)
    assert [p.name_hint for p in after["zeros"].params] == ["param_n", "param_m"]
    assert all([isinstance(p.struct_info, relax.PrimStructInfo) for p in after["zeros"].params])
    for mode in ("bytecode", "compiled"):
        vm = relax.VirtualMachine(relax.build(after, "llvm", exec_mode=mode), tvm.cpu())
        found = vm["main"](tvm.nd.array(np.ones((2, 3), "float32"))).numpy()
        np.testing.assert_array_equal(found, np.zeros((2, 3), "float32"))
