"""Functions for other compilers: made by patterns, merged, compiled, run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm._ffi.libinfo import find_lib_path
from tvm._ffi.registry import remove_global_func
from tvm.ir import assert_structural_equal
from tvm.ir.transform import Sequential
from tvm.relax import transform
from tvm.relax.dpl import is_const, is_op, is_tuple_get_item, wildcard
from tvm.relax.transform import FuseOpsByPattern, FusionPattern, MergeCompositeFunctions, RunCodegen
from tvm.script import ir as I
from tvm.script import relax as R

needs_dnnl = pytest.mark.skipif(
    find_lib_path("libtvm_dnnl.so", optional=True) is None, reason="built without oneDNN"
)


@I.ir_module
class Convolutions:
    @R.function
    def main(
        x: R.Tensor((1, 4, 8, 8), "float32"),
        v: R.Tensor((4, 4, 3, 3), "float32"),
        w: R.Tensor((4, 4, 3, 3), "float32"),
    ):
        with R.dataflow():
            a = R.nn.conv2d(x, v, padding=(1, 1))
            b = R.nn.relu(a)
            c = R.nn.conv2d(b, w, padding=(1, 1))
            d = R.nn.relu(c)
            R.output(d)
        return d


def conv_relu() -> Any:
    return is_op("relax.nn.relu")(is_op("relax.nn.conv2d")(wildcard(), wildcard()))


def names(mod: tvm.IRModule) -> list[str]:
    return sorted([g.name_hint for g in mod.functions])


def run(mod: tvm.IRModule, *args: np.ndarray) -> np.ndarray:
    vm = relax.VirtualMachine(relax.build(mod, target="llvm"), tvm.cpu())
    found: np.ndarray = vm["main"](*[tvm.nd.array(a) for a in args]).numpy()
    return found


def run_lifted(mod: tvm.IRModule, *args: np.ndarray) -> np.ndarray:
    return run(transform.LambdaLift()(mod), *args)


def inputs(mod: tvm.IRModule) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [[int(d) for d in p.struct_info.shape] for p in mod["main"].params]
    return [rng.standard_normal(shape, "float32") for shape in shapes]


def test_equal_matches_share_a_function() -> None:
    fused = FuseOpsByPattern([("dnnl.conv2d_relu", conv_relu())])(Convolutions)
    assert relax.analysis.well_formed(fused)
    assert names(fused) == ["fused_relax_nn_conv2d_relax_nn_relu", "main"]
    func = fused["fused_relax_nn_conv2d_relax_nn_relu"]
    assert dict(func.attrs.items()) == {"Composite": "dnnl.conv2d_relu", "Primitive": True}
    args = inputs(Convolutions)
    np.testing.assert_allclose(run(fused, *args), run(Convolutions, *args), rtol=1e-4, atol=1e-4)


def test_patterns_come_in_order_and_are_checked() -> None:
    conv = is_op("relax.nn.conv2d")(wildcard(), wildcard())
    seen: list[Any] = []

    def check(context: Any) -> bool:
        seen.append(context)
        return len(seen) == 1

    both = FusionPattern("my.both", is_op("relax.nn.relu")(conv), {"root": conv}, check)
    fused = FuseOpsByPattern([both, ("my.conv", conv)])(Convolutions)
    kinds = [f.attrs.get("Composite") for f in fused.functions.values()]
    assert sorted([str(k) for k in kinds]) == ["None", "my.both", "my.conv"]
    first = seen[0]
    assert first.annotated_expr["root"].op.name == "relax.nn.conv2d"
    variables = [b.var for b in Convolutions["main"].body.blocks[0].bindings]
    assert list(first.matched_bindings) == [variables[1], variables[0]]
    assert first.value_to_bound_var[first.matched_expr] is variables[1]
    assert first.var_usages[variables[0]] == [variables[1]]


def test_attributes_of_matches() -> None:
    weight = wildcard()
    pattern = FusionPattern(
        "my.conv",
        is_op("relax.nn.conv2d")(wildcard(), weight),
        {"weight": weight},
        None,
        lambda annotated: {"rank": len(annotated["weight"].struct_info.shape)},
    )
    fused = FuseOpsByPattern([pattern])(Convolutions)
    assert fused["fused_relax_nn_conv2d"].attrs["rank"] == 4


@I.ir_module
class Between:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.negative(a)
            c = R.add(a, b)
            R.output(c)
        return c


def test_a_group_does_not_depend_on_itself() -> None:
    # negative would be computed from the group, and the group from it
    pattern = is_op("relax.add")(is_op("relax.exp")(wildcard()), wildcard())
    assert FuseOpsByPattern([("my.both", pattern)])(Between) is Between


def test_intermediate_values_may_be_used_outside() -> None:
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.negative(a)
                c = R.nn.relu(a)
                d = R.add(b, c)
                R.output(d)
            return d

    pattern = is_op("relax.nn.relu")(is_op("relax.exp")(wildcard()))
    fused = FuseOpsByPattern([("my.both", pattern)])(Before)
    assert relax.analysis.well_formed(fused)
    (x,) = inputs(Before)
    np.testing.assert_allclose(run(fused, x), np.exp(x) - np.exp(x), atol=1e-6)


def test_constants_inside_or_as_arguments() -> None:
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                a = R.multiply(x, R.const(2.0, "float32"))
                R.output(a)
            return a

    pattern = is_op("relax.multiply")(wildcard(), is_const())
    counts = []
    for bind in (True, False):
        fused = FuseOpsByPattern([("my.double", pattern)], bind_constants=bind)(Before)
        counts.append(len(fused["fused_relax_multiply"].params))
    assert counts == [1, 2]


def test_tuples_that_are_taken_apart_are_fused() -> None:
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                a = R.split(x, 2)
                b = a[0]
                c = R.exp(b)
                R.output(c)
            return c

    part = is_tuple_get_item(is_op("relax.split")(wildcard()), 0)
    fused = FuseOpsByPattern([("my.half", is_op("relax.exp")(part))])(Before)
    (binding,) = fused["main"].body.blocks[0].bindings
    assert binding.value.op.name_hint == "fused_relax_split_relax_exp"


def test_only_some_functions() -> None:
    mod = tvm.IRModule({"main": Between["main"], "other": Between["main"]})
    pattern = [("my.exp", is_op("relax.exp")(wildcard()))]
    fused = FuseOpsByPattern(pattern, entry_functions=["other"])(mod)
    assert fused["main"] is mod["main"]
    assert fused["other"] is not mod["other"]
    with pytest.raises((tvm.TVMError, ValueError), match="nothing"):
        FuseOpsByPattern(pattern, entry_functions=["nothing"])(mod)


def test_annotated_functions() -> None:
    pattern = [("dnnl.conv2d_relu", conv_relu())]
    mod = FuseOpsByPattern(pattern, annotate_codegen=True)(Convolutions)
    assert relax.analysis.well_formed(mod)
    name = "fused_relax_nn_conv2d_relax_nn_relu_dnnl"
    assert names(mod) == [name, "main"]
    assert dict(mod[name].attrs.items()) == {"Codegen": "dnnl", "global_symbol": name}
    args = inputs(Convolutions)
    assert_structural_equal(tvm.script.from_source(mod.script()), mod)
    np.testing.assert_allclose(
        run_lifted(mod, *args), run(Convolutions, *args), rtol=1e-4, atol=1e-4
    )


def test_neighbours_are_merged() -> None:
    mod = FuseOpsByPattern([("dnnl.conv2d_relu", conv_relu())])(Convolutions)
    merged = MergeCompositeFunctions()(mod)
    assert relax.analysis.well_formed(merged)
    name = "fused_relax_nn_conv2d_relax_nn_relu_relax_nn_conv2d_relax_nn_relu_dnnl"
    assert names(merged) == [name, "main"]
    assert len(merged["main"].body.blocks[0].bindings) == 1
    args = inputs(Convolutions)
    np.testing.assert_allclose(
        run_lifted(merged, *args), run(Convolutions, *args), rtol=1e-4, atol=1e-4
    )


def test_neighbours_with_something_between_stay_apart() -> None:
    patterns = [
        ("my.exp", is_op("relax.exp")(wildcard())),
        ("my.add", is_op("relax.add")(wildcard(), wildcard())),
    ]
    merged = Sequential([FuseOpsByPattern(patterns), MergeCompositeFunctions()])(Between)
    assert relax.analysis.well_formed(merged)
    assert names(merged) == ["fused_relax_add1_my", "fused_relax_exp1_my", "main"]
    with_negative = [*patterns, ("my.negative", is_op("relax.negative")(wildcard()))]
    merged = Sequential([FuseOpsByPattern(with_negative), MergeCompositeFunctions()])(Between)
    assert len(merged.functions) == 2
    other = [*patterns, ("other.negative", is_op("relax.negative")(wildcard()))]
    merged = Sequential([FuseOpsByPattern(other), MergeCompositeFunctions()])(Between)
    assert relax.analysis.well_formed(merged)
    assert len(merged.functions) == 4
    (x,) = inputs(Between)
    np.testing.assert_allclose(run_lifted(merged, x), np.zeros(4), atol=1e-6)


def test_functions_without_a_compiler() -> None:
    mod = FuseOpsByPattern([("nobody.exp", is_op("relax.exp")(wildcard()))], annotate_codegen=True)(
        Between
    )
    with pytest.raises(tvm.TVMError, match=r"relax\.ext\.nobody, there is none"):
        RunCodegen()(mod)
    cublas = FuseOpsByPattern([("cublas.exp", is_op("relax.exp")(wildcard()))], True, True)(Between)
    with pytest.raises(tvm.TVMError, match="cannot generate code for it"):
        RunCodegen()(cublas)


def test_modules_without_such_functions_stay() -> None:
    assert RunCodegen()(Between) is Between


@pytest.fixture
def c_compiler() -> Iterator[list[Any]]:
    """A compiler of exponentials, written in C."""
    calls: list[Any] = []

    @tvm.register_func("relax.ext.c_exp", override=True)
    def compile_functions(functions: Any, options: Mapping[str, Any], constants: Any) -> Any:
        calls.append((list(functions), dict(options), dict(constants)))
        texts = []
        for func in functions:
            name = str(func.attrs["global_symbol"])
            count = np.prod([int(d) for d in func.params[0].struct_info.shape])
            texts.append(
                f"""
int {name}(TVMValue* args, int* codes, int n, TVMValue* ret, int* ret_code, void* self) {{
  float* x = (float*)((DLTensor*)args[0].v_handle)->data;
  float* y = (float*)((DLTensor*)args[1].v_handle)->data;
  for (int i = 0; i < {count}; ++i) y[i] = expf(x[i]);
  return 0;
}}"""
            )
        head = "#include <math.h>\n#include <tvm/runtime/c_runtime_api.h>\n"
        create = tvm.get_global_func("runtime.CSourceModuleCreate")
        symbols = [str(f.attrs["global_symbol"]) for f in functions]
        return [create(head + "".join(texts), "c", symbols, [])]

    yield calls
    remove_global_func("relax.ext.c_exp")


def test_code_in_c(c_compiler: list[Any], tmp_path: Path) -> None:
    patterns = [("c_exp.exp", is_op("relax.exp")(wildcard()))]
    passes = [FuseOpsByPattern(patterns), MergeCompositeFunctions()]
    mod = Sequential([*passes, RunCodegen({"c_exp": {"speed": 3}})])(Between)
    ((functions, options, constants),) = c_compiler
    assert [f.attrs["Codegen"] for f in functions] == ["c_exp"]
    assert (options, constants) == ({"speed": 3}, {})
    assert names(mod) == ["main"]
    value = mod["main"].body.blocks[0].bindings[0].value
    assert value.op.name == "relax.call_dps_packed"
    assert value.args[0].global_symbol == "fused_relax_exp1_c_exp"
    path = str(tmp_path / "lib.so")
    relax.build(mod, target="llvm").export_library(path)
    vm = relax.VirtualMachine(tvm.runtime.load_module(path), tvm.cpu())
    (x,) = inputs(Between)
    np.testing.assert_allclose(vm["main"](tvm.nd.array(x)).numpy(), np.zeros(4), atol=1e-6)


def offload(mod: tvm.IRModule, patterns: list[Any]) -> tvm.IRModule:
    passes = [FuseOpsByPattern(patterns), MergeCompositeFunctions(), RunCodegen()]
    found: tvm.IRModule = Sequential(passes)(mod)
    return found


@needs_dnnl
def test_onednn_and_its_constants(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weights = {n: rng.standard_normal((4, 4, 3, 3), "float32") for n in ("v", "w")}
    bound = transform.BindParams("main", weights)(Convolutions)
    mod = offload(bound, [("dnnl.conv2d_relu", conv_relu())])
    assert len(mod.attrs["const_name_to_constant"]) == 2
    (x,) = inputs(bound)
    expected = run(bound, x)
    with tvm.transform.PassContext(config={"relax.transform.apply_legalize_ops": False}):
        executable = relax.build(mod, target="llvm")
    path = str(tmp_path / "lib.so")
    executable.export_library(path)
    for loaded in (executable, tvm.runtime.load_module(path)):
        found = relax.VirtualMachine(loaded, tvm.cpu())["main"](tvm.nd.array(x)).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@needs_dnnl
def test_onednn_dense_layers() -> None:
    @I.ir_module
    class Dense:
        @R.function
        def main(
            x: R.Tensor((2, 5), "float32"),
            w: R.Tensor((3, 5), "float32"),
            b: R.Tensor((3,), "float32"),
            y: R.Tensor((2, 3), "float32"),
            z: R.Tensor((3, 4), "float32"),
        ):
            with R.dataflow():
                wt = R.permute_dims(w)
                a = R.matmul(x, wt)
                c = R.add(a, b)
                d = R.add(c, y)
                e = R.nn.gelu(d)
                f = R.matmul(e, z)
                g = R.nn.relu(f)
                h = R.nn.softmax(g)
                i = R.maximum(h, R.const(0.25, "float32"))
                R.output(i)
            return i

    matmul = is_op("relax.matmul")
    dense = matmul(wildcard(), is_op("relax.permute_dims")(wildcard()))
    summed = is_op("relax.add")(is_op("relax.add")(dense, wildcard()), wildcard())
    patterns = [
        ("dnnl.dense", is_op("relax.nn.gelu")(summed)),
        ("dnnl.matmul", is_op("relax.nn.relu")(matmul(wildcard(), wildcard()))),
        ("dnnl.softmax", is_op("relax.nn.softmax")(wildcard())),
    ]
    mod = offload(Dense, patterns)
    assert names(mod) == ["main"]
    args = inputs(Dense)
    np.testing.assert_allclose(run(mod, *args), run(Dense, *args), rtol=1e-4, atol=1e-5)


@needs_dnnl
def test_what_onednn_has_not_is_rejected() -> None:
    with pytest.raises(tvm.TVMError, match=r"dnnl\.erf, which has relax\.erf"):
        offload(
            tvm.IRModule({"main": _erf}),
            [("dnnl.erf", is_op("relax.erf")(wildcard()))],
        )
    with pytest.raises(tvm.TVMError, match="tensors of known shapes"):
        offload(
            tvm.IRModule({"main": _open_exp}),
            [("dnnl.exp", is_op("relax.exp")(wildcard()))],
        )


@R.function
def _erf(x: R.Tensor((4,), "float32")):
    with R.dataflow():
        y = R.erf(x)
        R.output(y)
    return y


@R.function
def _open_exp(x: R.Tensor(("n",), "float32")):
    with R.dataflow():
        y = R.exp(x)
        R.output(y)
    return y
