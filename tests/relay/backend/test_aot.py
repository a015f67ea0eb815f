"""Models as one function, run by the AOT executor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tvm
from tests.executors import outputs_of
from tests.relay.backend.random_graphs import RandomGraph
from tvm import relay
from tvm.contrib import graph_executor
from tvm.error import TVMError
from tvm.relay import testing
from tvm.relay.backend import Executor, Runtime
from tvm.runtime.executor import AotModule

RNG = np.random.default_rng(0)
AOT = Executor("aot")


def random(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype("float32")


def small_model() -> relay.Function:
    """Several results: a kernel's, a view, an input, a constant, one of them twice."""
    x, w = relay.var("x", shape=(2, 8)), relay.var("w", shape=(5, 8))
    y = relay.nn.dense(x, w)
    act = relay.nn.relu(y + relay.const(0.5))
    flat = relay.reshape(relay.nn.softmax(y), (10,))
    constant = relay.const(np.arange(3.0, dtype="float32"))
    return relay.Function([x, w], relay.Tuple([act, flat, x, constant, act]))


def expected(x: np.ndarray, w: np.ndarray) -> list[np.ndarray]:
    y = x @ w.T
    e = np.exp(y)
    act = np.maximum(y + 0.5, 0)
    flat = (e / e.sum(1, keepdims=True)).reshape(-1)
    return [act, flat, x, np.arange(3, dtype="float32"), act]


def build(func: relay.Function, target: str = "llvm", level: int = 3, **options: object) -> object:
    with tvm.transform.PassContext(opt_level=level):
        return relay.build(tvm.IRModule.from_expr(func), target, executor=AOT, **options)


def check(lib: object, x: np.ndarray, w: np.ndarray) -> None:
    module = AotModule(lib["default"](tvm.cpu()))  # type: ignore[index]
    module.run(x=x, w=w)  # a parameter that is bound is no input
    for found, wanted in zip(outputs_of(module), expected(x, w), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("level", [0, 3])
def test_results_of_every_kind(level: int) -> None:
    x, w = random(2, 8), random(5, 8)
    check(build(small_model(), level=level, params={"w": w}), x, w)
    check(build(small_model(), level=level), x, w)


def test_all_tensors_may_be_scalars() -> None:
    x = relay.var("x", shape=())
    call = relay.create_executor("aot").evaluate(relay.Function([x], relay.exp(x)))
    np.testing.assert_allclose(call(np.float32(1)).numpy(), np.e, rtol=1e-6)


def test_booleans_between_kernels_have_a_byte_each() -> None:
    x = relay.var("x", shape=(100,))
    body = relay.where(relay.greater(x, relay.const(0.5)), x, relay.const(0.0))
    lib = build(relay.Function([x], body), level=0)
    main = lib.lowered_ir_mods[lib.target]["tvmgen_default___tvm_main__"]  # type: ignore[attr-defined]
    assert "T.allocate([128]" in main.script() or "T.allocate([100]" in main.script()


def test_c_text_runs_once_it_is_compiled(tmp_path: Path) -> None:
    x, w = random(2, 8), random(5, 8)
    path = tmp_path / "model.so"
    build(small_model(), "c", params={"w": w}).export_library(str(path))
    check(tvm.runtime.load_module(str(path)), x, w)


def test_library_runs_in_a_fresh_process_without_the_compiler(tmp_path: Path) -> None:
    w, x = random(5, 8), random(2, 8)
    build(small_model(), params={"w": w}).export_library(str(tmp_path / "model.so"))
    np.save(tmp_path / "x.npy", x)
    program = (
        "import sys, numpy as np, tvm.runtime\n"
        "lib = tvm.runtime.load_module('model.so')\n"
        "m = tvm.runtime.executor.AotModule(lib['default'](tvm.runtime.cpu()))\n"
        "m.run(x=np.load('x.npy')); np.save('y.npy', m.get_output(0).numpy())\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, env=_import_path())
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected(x, w)[0], rtol=1e-5)


def _import_path() -> dict[str, str]:
    root = str(Path(tvm.__file__).parent.parent)
    return {"PYTHONPATH": root, "PATH": "/usr/bin:/bin"}


def test_main_function_calls_kernels_in_order() -> None:
    lib = build(small_model(), level=0, params={"w": random(5, 8)})
    name = "tvmgen_default___tvm_main__"
    main = lib.lowered_ir_mods[lib.target][name]
    text = main.script()
    order = [text.index(f'"tvmgen_default_fused_{op}"') for op in ("nn_dense", "add", "nn_relu")]
    assert order == sorted(order)
    assert [str(b.name) for b in main.buffer_map.values()][-1] == "output4"
    assert int(main.attrs["runner_function"]) == 1


def test_inputs_and_outputs_are_described() -> None:
    lib = build(small_model())
    module = AotModule(lib["default"](tvm.cpu()))
    assert module.get_num_inputs() == 2 and module.get_num_outputs() == 5
    assert module.get_input_index("w") == 1
    assert module.get_input_name(0) == "x"
    shapes, dtypes = module.get_input_info()
    assert shapes == {"x": (2, 8), "w": (5, 8)} and set(dtypes.values()) == {"float32"}
    assert module.get_input("w").shape == (5, 8) and module.get_input("v") is None
    assert module.get_output_info()[0]["output1"] == (10,)
    assert lib.executor_codegen_metadata.inputs == ["x", "w"]


def test_arrays_of_the_caller_are_used_without_copies() -> None:
    x, w = random(2, 8), random(5, 8)
    module = AotModule(build(small_model(), params={"w": w})["default"](tvm.cpu()))
    given, wanted = tvm.nd.array(x), tvm.nd.empty((2, 5))
    module.set_input_zero_copy("x", given)
    module.set_output_zero_copy(0, wanted)
    module.run()
    np.testing.assert_allclose(wanted.numpy(), expected(x, w)[0], rtol=1e-5, atol=1e-6)
    given.copyfrom(x * 2)
    module.run()
    np.testing.assert_allclose(wanted.numpy(), expected(x * 2, w)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda m: m.set_input("y", random(2, 8)), "no input 'y'; its inputs are 'x', 'w'"),
        (lambda m: m.set_input("x", random(3, 8)), r"input 0 \('x'\) needs \(2, 8\) float32"),
        (lambda m: m.set_input("x", np.zeros((2, 8), "int32")), "got .* int32"),
        (lambda m: m.set_input(7, random(2, 8)), "2 inputs, got index 7"),
        (lambda m: m.run(xx=random(2, 8), w=random(5, 8)), "no input 'xx'; .* did you mean 'x'"),
        (lambda m: m.get_output(5), "5 outputs, got index 5"),
        (lambda m: m.set_output_zero_copy(0, tvm.nd.empty((2, 6))), "output 0"),
    ],
)
def test_wrong_arguments_are_named(call: object, text: str) -> None:
    module = AotModule(build(small_model())["default"](tvm.cpu()))
    with pytest.raises(ValueError, match=text):
        call(module)  # type: ignore[operator]


def test_measured_end_to_end() -> None:
    module = AotModule(build(small_model())["default"](tvm.cpu()))
    x, w = random(2, 8), random(5, 8)
    result = module.benchmark(tvm.cpu(), repeat=2, number=3, end_to_end=True, x=x, w=w)
    assert len(result.results) == 2
    np.testing.assert_allclose(outputs_of(module)[0], expected(x, w)[0], rtol=1e-5, atol=1e-6)


def test_library_of_another_kind_is_rejected() -> None:
    lib = relay.build(small_model(), "llvm")
    with pytest.raises(ValueError, match="get_c_metadata"):
        tvm.get_global_func("tvm.aot_executor.create")(lib.lib, tvm.cpu())
    with pytest.raises(TypeError, match="AotModule needs"):
        AotModule(lib)


@pytest.mark.parametrize(
    ("options", "runtime", "text"),
    [
        ({"unpacked-api": True}, "cpp", "Need unpacked-api == false"),
        ({"interface-api": "c"}, "cpp", 'interface-api == "packed"'),
        ({"interface-api": "c"}, "crt", "Either need interface_api"),
        ({"interface-api": "rust"}, "crt", 'must be "packed" or "c"'),
        ({"workspace-byte-alignment": 12}, "crt", "powers of two"),
    ],
)
def test_options_that_do_not_go_together_are_rejected(
    options: dict[str, object], runtime: str, text: str
) -> None:
    executor = Executor("aot", options)
    with pytest.raises(TVMError, match=text):
        relay.build(small_model(), "c", executor=executor, runtime=Runtime(runtime))


def test_create_executor_evaluates_tuples() -> None:
    x, w = random(2, 8), random(5, 8)
    found = relay.create_executor("aot", device=tvm.cpu(), target="llvm").evaluate(small_model())(
        x, w
    )
    for got, wanted in zip(found, expected(x, w), strict=True):
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_large_constants_are_no_part_of_the_text(tmp_path: Path) -> None:
    x = relay.var("x", shape=(1, 100))
    weight = random(100, 100)
    twice = relay.nn.dense(relay.nn.dense(x, relay.const(weight)), relay.const(weight.copy()))
    lib = build(relay.Function([x], twice), level=0)
    assert len(lib.lib.get_source("unoptimized")) < weight.nbytes
    value = random(1, 100)
    lib.export_library(str(tmp_path / "model.so"))
    assert (tmp_path / "model.so").read_bytes().count(weight.tobytes()) == 1
    for built in (lib, tvm.runtime.load_module(str(tmp_path / "model.so"))):
        module = AotModule(built["default"](tvm.cpu()))
        module.run(x=value)
        np.testing.assert_allclose(outputs_of(module)[0], value @ weight.T @ weight.T, rtol=1e-3)


def test_functions_of_other_compilers_are_called() -> None:
    @tvm.register_func("relay.ext.aot_doubler", override=True)
    def doubler(func: relay.Function) -> tvm.runtime.Module:
        name = func.attrs["global_symbol"]
        a = tvm.te.placeholder((3,), name="a")
        b = tvm.te.compute((3,), lambda i: a[i] * 2.0, name="b")
        return tvm.build(tvm.te.create_schedule(b.op), [a, b], "llvm", name=str(name))

    p = relay.var("p", shape=(3,))
    inner = relay.Function([p], relay.add(p, p))
    inner = inner.with_attr({"Compiler": "aot_doubler", "global_symbol": "outside", "Primitive": 1})
    x = relay.var("x", shape=(3,))
    mod = tvm.IRModule()
    gvar = relay.GlobalVar("outside")
    mod[gvar] = inner
    mod["main"] = relay.Function([x], relay.tanh(relay.Call(gvar, [relay.exp(x)])))
    lib = relay.build(relay.transform.InferType()(mod), "llvm", executor=AOT)
    module = AotModule(lib["default"](tvm.cpu()))
    value = random(3)
    module.run(x=value)
    np.testing.assert_allclose(outputs_of(module)[0], np.tanh(2 * np.exp(value)), rtol=1e-5)


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_agree_with_the_graph_executor(seed: int) -> None:
    graph = RandomGraph(seed)
    mod, inputs = graph.module(), graph.inputs()
    with tvm.transform.PassContext(opt_level=seed % 4):
        lib = relay.build(mod, "llvm")
        aot = relay.build(mod, "llvm", executor=AOT)
    reference = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    reference.run(**inputs)
    module = AotModule(aot["default"](tvm.cpu()))
    module.run(**inputs)
    for number, found in enumerate(outputs_of(module)):
        np.testing.assert_array_equal(found, reference.get_output(number).numpy())


def test_a_network_agrees_with_the_graph_executor() -> None:
    mod, params = testing.mobilenet.get_workload(image_shape=(3, 32, 32))
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, "llvm", params=params)
        aot = relay.build(mod, "llvm", params=params, executor=AOT)
    image = random(1, 3, 32, 32)
    reference = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    reference.run(data=image)
    module = AotModule(aot["default"](tvm.cpu()))
    module.run(data=image)
    np.testing.assert_allclose(outputs_of(module)[0], reference.get_output(0).numpy(), rtol=1e-5)


def test_build_module_gives_the_steps_one_at_a_time() -> None:
    w = random(5, 8)
    mod = tvm.IRModule.from_expr(small_model())
    module = relay.build_module.BuildModule()
    optimized, params = module.optimize(mod, target="llvm", params={"w": w})
    assert [p.name_hint for p in optimized["main"].params] == ["x"]
    assert module.get_params() == params
    graph, lib, params = module.build(mod, target="llvm", params={"w": w})
    assert graph == module.get_graph_json() and lib == module.get_module()
    assert list(params) == list(module.get_params())
    metadata = module.get_function_metadata()
    target = next(iter(metadata["__tvm_main__"].io_sizes))
    assert metadata["__tvm_main__"].io_sizes[target] == 64 + 40 + 40 + 64 + 12 + 40
    assert metadata["__tvm_main__"].relay_primfuncs[target] is module.get_irmodule()["main"]
    assert module.get_executor_codegen_metadata() is None and module.get_devices() == []


def test_build_module_of_an_aot_model() -> None:
    module = relay.build_module.BuildModule()
    with pytest.raises(TVMError, match="nothing was built yet"):
        module.get_module()
    config, lib, params = module.build(
        tvm.IRModule.from_expr(small_model()), "llvm", executor=AOT, mod_name="tiny"
    )
    assert config is None and params == {} and lib.type_key == "llvm"
    assert module.get_executor_codegen_metadata().mod_name == "tiny"
    with pytest.raises(TVMError, match="has no graph"):
        module.get_graph_json()


def test_executors_and_runtimes_are_listed() -> None:
    assert Executor.list_registered() == ["graph", "aot"]
    assert "interface-api" in Executor.list_registered_options("aot")
    assert Runtime.list_registered() == ["cpp", "crt"]
    assert "system-lib" in Runtime.list_registered_options("crt")
    assert Executor.list_registered_options(Executor("graph")) == {"link-params": "runtime.BoxBool"}
    assert Executor("graph")["link-params"] is False and Executor("aot")["link-params"] is True
    executor = Executor("aot", {"interface-api": "c"})
    assert executor["interface-api"] == "c" and "unpacked-api" not in executor
    assert executor == Executor("aot", {"interface-api": "c"}) != Executor("aot")
    with pytest.raises(TVMError, match='Attribute "woof" is not available on this Executor'):
        Executor("aot", {"woof": True})
    with pytest.raises(
        TVMError, match='should have type "runtime.String" but instead found "runtime.BoxBool"'
    ):
        Executor("aot", {"interface-api": True})


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_parameters_may_stay_outside_of_the_code(target: str, tmp_path: Path) -> None:
    x, w = random(2, 8), random(5, 8)
    executor = Executor("aot", {"link-params": False})
    # a level that leaves weights in the layout they came in
    with tvm.transform.PassContext(opt_level=1):
        lib = relay.build(small_model(), target, params={"w": w}, executor=executor)
    params = lib.get_params()
    assert any(np.array_equal(p.numpy(), w) for p in params.values())
    assert "T.allocate_const" not in lib.lowered_ir_mods[lib.target].script()
    lib.export_library(str(tmp_path / "model.so"))
    loaded = tvm.runtime.load_module(str(tmp_path / "model.so"))
    check(loaded, x, w)
    bare = AotModule(loaded["remove_params"]()["default"](tvm.cpu()))
    assert bare.get_num_inputs() == 1 + len(params)
    bare.run(x=x, **params)
    np.testing.assert_allclose(outputs_of(bare)[0], expected(x, w)[0], rtol=1e-5, atol=1e-6)


def test_library_of_a_program_registers_the_model() -> None:
    x, w = random(2, 8), random(5, 8)
    runtime = Runtime("cpp", {"system-lib": True, "system-lib-prefix": "tiny_"})
    lib = build(small_model(), runtime=runtime, params={"w": w})
    check(lib, x, w)
    text = lib.lib.get_source("unoptimized")
    assert "tiny_get_c_metadata" in text and "tiny_tvmgen_default___tvm_main__" in text


def test_inputs_by_the_names_that_c_has() -> None:
    x = relay.var("input:0", shape=(4,))
    lib = relay.build(
        tvm.IRModule.from_expr(relay.Function([x], x + relay.const(1.0))),
        "llvm",
        executor=relay.backend.Executor("aot"),
        mod_name="named",
    )
    assert list(lib.module["list_module_names"]()) == ["named"]
    module = AotModule(lib["named"](tvm.cpu()))
    for name in ("input:0", "input_0"):
        module.set_input(**{name: np.full(4, 2.0, "float32")})
        assert module.get_input_index(name) == 0
        module.run()
        np.testing.assert_array_equal(module.get_output(0).numpy(), np.full(4, 3.0, "float32"))
    with pytest.raises(TVMError, match=r"Invalid input name\."):
        module.set_input(input1=np.zeros(4, "float32"))
    with pytest.raises(TVMError, match=r"Invalid input name\."):
        module.get_input_index("input1")


def test_a_model_in_c_is_compiled_to_be_evaluated() -> None:
    x = relay.var("x", shape=(4,))
    mod = tvm.IRModule.from_expr(relay.Function([x], x + relay.const(1.0)))
    evaluate = relay.create_executor("aot", mod, target="c").evaluate()
    np.testing.assert_array_equal(evaluate(np.zeros(4, "float32")).numpy(), np.ones(4, "float32"))
