"""Programs in the style of the classic release: modules, executors, profiling, threads."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
import tvm.testing
from tests.threads import run_in_threads
from tvm import relay, te
from tvm.contrib import cc, graph_executor, utils
from tvm.contrib.debugger import debug_executor
from tvm.runtime import profiling


def build_add(name: str = "myadd", n: Any = 16, target: Any = "llvm", amount: int = 1) -> Any:
    a = te.placeholder((te.var("n") if n is None else n,), name="A")
    b = te.compute(a.shape, lambda *i: a(*i) + amount, name="B")
    s = te.create_schedule(b.op)
    return tvm.build(s, [a, b], target, name=name)


def check_add(f: Any, n: int = 16, amount: int = 1) -> None:
    a = tvm.nd.array(np.random.uniform(size=n).astype("float32"))
    b = tvm.nd.empty((n,), "float32")
    f(a, b)
    np.testing.assert_allclose(b.numpy(), a.numpy() + amount, rtol=1e-6)


def parallel_add(n: int = 1024) -> Any:
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1, name="B")
    s = te.create_schedule(b.op)
    s[b].parallel(b.op.axis[0])
    return tvm.build(s, [a, b], "llvm", name="parallel_add")


@pytest.mark.parametrize("suffix", ["so", "tar", "o"])
def test_modules_are_exported_in_each_form(suffix: str) -> None:
    temp = utils.tempdir()
    path = temp.relpath(f"test.{suffix}")
    build_add().export_library(path)
    if suffix == "o":
        cc.create_shared(temp.relpath("linked.so"), [path])
        path = temp.relpath("linked.so")
    m = tvm.runtime.load_module(path)
    check_add(m["myadd"])
    check_add(m.entry_func)
    assert m.implements_function("myadd") and not m.implements_function("other")
    with pytest.raises(AttributeError, match="other"):
        m["other"]


def test_saved_objects_are_linked_and_run_elsewhere() -> None:
    temp = utils.tempdir()
    m = build_add(n=None)
    m.save(temp.relpath("test.o"))
    m.save(temp.relpath("test.ll"))
    m.save(temp.relpath("test.bc"))
    cc.create_shared(temp.relpath("test.so"), [temp.relpath("test.o")])
    check_add(tvm.runtime.load_module(temp.relpath("test.so"))["myadd"], 7)
    check_add(tvm.runtime.load_module(temp.relpath("test.ll"))["myadd"], 9)
    check_add(tvm.runtime.load_module(temp.relpath("test.bc")).entry_func, 3)
    program = (
        "import sys, numpy as np, tvm; f = tvm.runtime.load_module(sys.argv[1])\n"
        "a = tvm.nd.array(np.zeros(5, 'float32')); b = tvm.nd.empty((5,)); f['myadd'](a, b)\n"
        "assert (b.numpy() == 1).all()"
    )
    subprocess.run([sys.executable, "-c", program, temp.relpath("test.so")], check=True)


def test_several_functions_share_a_module() -> None:
    a = te.placeholder((10,), name="A")
    b = te.compute((10,), lambda i: a[i] + 1, name="B")
    s = te.create_schedule(b.op)
    mod1 = tvm.lower(s, [a, b], name="myadd1")
    mod2 = tvm.lower(s, [a, b], name="myadd2")
    fused = tvm.build({"llvm": tvm.IRModule({**mod1.functions, **mod2.functions})})
    temp = utils.tempdir()
    fused.export_library(temp.relpath("library.so"))
    m = tvm.runtime.load_module(temp.relpath("library.so"))
    check_add(m["myadd1"], 10)
    check_add(m["myadd2"], 10)


def test_imports_are_found_and_exported() -> None:
    outer, inner, innermost = build_add("f0"), build_add("f1", amount=2), build_add("f2", amount=3)
    outer.import_module(inner)
    inner.import_module(innermost)
    assert [m.type_key for m in outer.imported_modules] == ["llvm"]
    assert outer.imported_modules[0].same_as(inner) and outer.imported_modules[0] == inner
    with pytest.raises(AttributeError):
        outer.get_function("f1")
    check_add(outer.get_function("f1", query_imports=True), amount=2)
    check_add(outer.get_function("f2", query_imports=True), amount=3)
    assert outer.implements_function("f2", True) and not outer.implements_function("f2")
    temp = utils.tempdir()
    outer.export_library(temp.relpath("lib.so"))
    loaded = tvm.runtime.load_module(temp.relpath("lib.so"))
    for i in range(3):
        check_add(loaded.get_function(f"f{i}", query_imports=True), amount=i + 1)
    outer.clear_imports()
    assert len(outer.imported_modules) == 0


def test_properties_of_modules() -> None:
    m = build_add()
    assert m.type_key == "llvm" and m.is_runnable and m.is_dso_exportable
    assert m.get_property_mask() & tvm.runtime.ModulePropertyMask.DSO_EXPORTABLE
    assert "define" in m.get_source() and "myadd" in m.get_source("asm")
    assert (
        tvm.runtime.enabled("llvm") and tvm.runtime.enabled("cpu") and not tvm.runtime.enabled("x")
    )
    c = build_add(target="c")
    assert c.type_key == "c" and "myadd" in c.get_source() and c.format == "c"
    assert not c.is_runnable and c.is_dso_exportable


def test_c_source_is_compiled_when_it_is_exported() -> None:
    temp = utils.tempdir()
    build_add(target="c").export_library(temp.relpath("lib.so"))
    check_add(tvm.runtime.load_module(temp.relpath("lib.so"))["myadd"])
    build_add(target="c").export_library(temp.relpath("lib.tar"))
    check_add(tvm.runtime.load_module(temp.relpath("lib.tar"))["myadd"])


def test_export_takes_a_linker_and_options() -> None:
    seen: dict[str, Any] = {}

    def link(output: str, objects: list[str], **kwargs: Any) -> None:
        seen.update(objects=objects, **kwargs)
        cc.create_shared(output, objects)

    temp = utils.tempdir()
    folder = temp.relpath("work")
    Path(folder).mkdir()
    build_add().export_library(temp.relpath("a.so"), fcompile=link, workspace_dir=folder, extra=1)
    assert seen["extra"] == 1 and all(path.startswith(folder) for path in seen["objects"])
    assert Path(seen["objects"][0]).exists()
    check_add(tvm.runtime.load_module(temp.relpath("a.so"))["myadd"])
    build_add().export_library(temp.relpath("b.so"), fcompile=cc.create_shared, options=["-g"])
    check_add(tvm.runtime.load_module(temp.relpath("b.so"))["myadd"])
    build_add().export_library(temp.relpath("c.so"), fcompile=cc.cross_compiler("g++"))
    check_add(tvm.runtime.load_module(temp.relpath("c.so"))["myadd"])


def test_static_libraries_join_others() -> None:
    temp = utils.tempdir()
    build_add("myadd1").save(temp.relpath("first.o"))
    static = tvm.runtime.load_static_library(temp.relpath("first.o"), ["myadd1"])
    assert static.type_key == "static_library" and static.is_dso_exportable
    outer = build_add("myadd2")
    outer.import_module(static)
    outer.export_library(temp.relpath("both.so"))
    m = tvm.runtime.load_module(temp.relpath("both.so"))
    check_add(m["myadd1"])
    check_add(m["myadd2"])


def test_times_are_measured() -> None:
    m = parallel_add()
    a, b = tvm.nd.array(np.zeros(1024, "float32")), tvm.nd.empty((1024,))
    timer = m.time_evaluator("parallel_add", tvm.cpu(), number=3, repeat=4)
    result = timer(a, b)
    assert (
        len(result.results) == 4 and result.mean > 0 and result.min <= result.median <= result.max
    )
    assert "mean" in str(result)
    entry = m.time_evaluator(
        m.entry_name, tvm.cpu(), min_repeat_ms=1, f_preproc="cache_flush_cpu_non_first_arg"
    )
    assert entry(a, b).mean > 0
    with pytest.raises(ValueError):
        m.time_evaluator("nothing", tvm.cpu())(a, b)


def small_model() -> tuple[Any, dict[str, np.ndarray]]:
    x = relay.var("x", shape=(2, 4))
    w = relay.var("w", shape=(3, 4))
    dense = relay.nn.dense(x, w)
    out = relay.Tuple([relay.nn.softmax(dense), relay.nn.relu(dense)])
    mod = tvm.IRModule.from_expr(relay.Function([x, w], out))
    return mod, {"w": np.random.default_rng(0).random((3, 4), "float32")}


@pytest.fixture(scope="module")
def model() -> tuple[Any, dict[str, np.ndarray]]:
    mod, params = small_model()
    return relay.build(mod, target="llvm", params=params), params


X = np.random.default_rng(1).random((2, 4), "float32")


def check_outputs(gm: Any, params: dict[str, np.ndarray], x: np.ndarray = X) -> None:
    dense = x @ params["w"].T
    e = np.exp(dense - dense.max(axis=1, keepdims=True))
    np.testing.assert_allclose(gm.get_output(0).numpy(), e / e.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(gm.get_output(1).numpy(), np.maximum(dense, 0), rtol=1e-5)


def test_the_module_interface_of_a_model(model: Any) -> None:
    lib, params = model
    raw = lib["default"](tvm.cpu())
    raw["set_input"]("x", tvm.nd.array(X))
    raw["run"]()
    np.testing.assert_allclose(
        raw["get_output"](1).numpy(), np.maximum(X @ params["w"].T, 0), rtol=1e-5
    )
    gm = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    gm.set_input("x", X)
    gm.run()
    check_outputs(gm, params)
    graph, library, its_params = lib
    older = graph_executor.create(graph, library, tvm.cpu())
    older.set_input(**its_params)
    older.run(x=X)
    check_outputs(older, params)
    assert json.loads(graph)["heads"] and lib.get_graph_json() == graph
    stored = lib["get_graph_params"]()
    assert {str(name) for name in stored} == set(its_params)
    older.set_input(**{str(name): array for name, array in stored.items()})


def test_a_model_is_exported_and_loaded(model: Any) -> None:
    lib, params = model
    temp = utils.tempdir()
    for name in ("deploy.so", "deploy.tar"):
        lib.export_library(temp.relpath(name))
        loaded = tvm.runtime.load_module(temp.relpath(name))
        gm = graph_executor.GraphModule(loaded["default"](tvm.cpu(0)))
        gm.run(x=X)
        check_outputs(gm, params)
    removed = tvm.runtime.load_module(temp.relpath("deploy.so"))["remove_params"]()
    gm = graph_executor.GraphModule(removed["default"](tvm.cpu()))
    gm.load_params(tvm.runtime.save_param_dict(lib.get_params()))
    gm.run(x=X)
    check_outputs(gm, params)


def test_inputs_and_outputs_of_an_executor(model: Any) -> None:
    lib, params = model
    gm = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    assert gm.get_num_outputs() == 2 and gm.get_num_inputs() >= 1
    assert gm.get_input_index("x") == 0 and gm.get_input_index("none") == -1
    shapes, dtypes = gm.get_input_info()
    assert tuple(shapes["x"]) == (2, 4) and dtypes["x"] == "float32"
    gm.set_input(0, X)
    np.testing.assert_array_equal(gm.get_input("x").numpy(), X)
    x = tvm.nd.array(X * 2)
    out = tvm.nd.empty((2, 3))
    gm.set_input_zero_copy("x", x)
    gm.set_output_zero_copy(1, out)
    gm.run()
    np.testing.assert_allclose(out.numpy(), np.maximum(2 * X @ params["w"].T, 0), rtol=1e-5)
    into = tvm.nd.empty((2, 3))
    assert gm.get_output(0, into).same_as(into)
    with pytest.raises(ValueError, match="x"):
        gm.set_input("x", np.zeros((3, 4), "float32"))
    with pytest.raises(RuntimeError, match="nothing"):
        gm.set_input("nothing", X)
    gm.set_input(nothing=X)  # weights of parts of a model may be set on all of them
    assert gm.benchmark(tvm.cpu(), number=2, repeat=2).mean > 0
    assert gm.benchmark(tvm.cpu(), number=1, repeat=1, end_to_end=True, x=X).mean > 0


def test_executors_of_one_library_are_independent(model: Any) -> None:
    lib, params = model
    errors: list[BaseException] = []

    def run(seed: int) -> None:
        try:
            gm = graph_executor.GraphModule(lib["default"](tvm.cpu()))
            x = np.random.default_rng(seed).random((2, 4), "float32")
            for _ in range(20):
                gm.set_input("x", x)
                gm.run()
                check_outputs(gm, params, x)
        except BaseException as error:
            errors.append(error)

    run_in_threads(run, [(i,) for i in range(4)])
    assert errors == []


def test_parameters_are_shared_between_executors(model: Any) -> None:
    lib, params = model
    blob = tvm.runtime.save_param_dict(lib.get_params())
    first = graph_executor.create(lib.get_graph_json(), lib.get_lib(), tvm.cpu())
    second = graph_executor.create(lib.get_graph_json(), lib.get_lib(), tvm.cpu())
    first.load_params(blob)
    second.share_params(first, blob)
    second.run(x=X)
    check_outputs(second, params)


def test_the_debugging_executor_dumps_and_steps(model: Any, tmp_path: Path) -> None:
    lib, params = model
    m = debug_executor.create(
        lib.get_graph_json(), lib.get_lib(), tvm.cpu(0), dump_root=str(tmp_path)
    )
    m.set_input(**lib.get_params())
    m.set_input("x", X)
    m.run()
    check_outputs(m, params)
    folder = tmp_path / "_tvmdbg_device_CPU_0"
    assert {path.name for path in folder.iterdir()} >= {
        "_tvmdbg_graph_dump.json", "output_tensors.params", "_tvmdbg_execution_trace.json",
    }  # fmt: skip
    tensors = tvm.runtime.load_param_dict((folder / "output_tensors.params").read_bytes())
    assert any(name.startswith("x____topo-index:0") for name in tensors)
    nodes = json.loads(lib.get_graph_json())["nodes"]
    times = m.run_individual(number=1, repeat=2, min_repeat_ms=0)
    assert len(times) == len(nodes) and all(len(each) == 2 for each in times)
    last = len(nodes) - 1
    assert m.run_individual_node(last, number=1).mean >= 0
    m.execute_node(last)
    assert m.get_node_output(last, 0).shape == (2, 3)
    made = debug_executor.GraphModuleDebug(
        lib["debug_create"]("default", tvm.cpu()), [tvm.cpu()], lib.get_graph_json(), None
    )
    made.set_input("x", X)
    made.run()
    check_outputs(made, params)
    made.exit()


def test_raw_functions_of_the_debugging_executor(model: Any) -> None:
    lib, _ = model
    raw = lib["debug_create"]("default", tvm.cpu())
    raw["set_input"]("x", tvm.nd.array(X))
    count = len(json.loads(lib.get_graph_json())["nodes"])
    blob = raw["run_individual"](1, 3, 0, 100, 0, 1)
    assert np.frombuffer(blob[:8], "int64")[0] == count and len(blob) == 8 + 8 * 3 * count
    assert len(raw["run_individual_node"](count - 1, 1, 2, 0, 100, 0, 1)) == 16
    report = raw["profile"]([])
    assert isinstance(report, profiling.Report)
    raw["execute_node"](count - 1)
    assert raw["get_node_output"](count - 1, 0).shape == (2, 3)
    with pytest.raises(TypeError, match="run_individual takes 6 arguments, got 1"):
        raw["run_individual"](1)


def test_profiles_are_reports(model: Any) -> None:
    lib, _ = model
    m = debug_executor.create(lib.get_graph_json(), lib.get_lib(), tvm.cpu())
    m.set_input(**lib.get_params())
    report = m.profile(x=X)
    table = report.table()
    assert "softmax" in str(report) and "Total" in str(report) and "Configuration" in table
    rows = report.csv().splitlines()
    assert rows[0].split(",")[0] == "Name" and len(rows) == len(report.calls) + 1
    again = profiling.Report.from_json(report.json())
    assert [dict(call) for call in again.calls] == [dict(call) for call in report.calls]
    assert again.table() == table
    total = sum(call["Duration (us)"].microseconds for call in report.calls)
    assert 0 < total <= report.device_metrics["cpu0"]["Duration (us)"].microseconds
    assert report.configuration["Executor"] == "Graph"
    assert report.configuration["Number of threads"].value == tvm.runtime.num_threads()
    m.exit()


def test_functions_are_profiled_with_collectors() -> None:
    class Collector(profiling.MetricCollector):
        def start(self, dev: Any) -> int:
            return 5

        def stop(self, started: Any) -> dict[str, Any]:
            return {"Calls": profiling.Count(started), "Kind": "mine"}

    f = build_add()
    measure = profiling.profile_function(f, tvm.cpu(), [Collector()])
    metrics = measure(tvm.nd.empty((16,)), tvm.nd.empty((16,)))
    assert metrics["Calls"] == profiling.Count(5) and metrics["Calls"].value == 5
    assert metrics["Kind"] == "mine"


def test_threads_are_configured() -> None:
    configure = tvm.get_global_func("runtime.config_threadpool")
    before = tvm.runtime.num_threads()
    f = parallel_add()
    try:
        for mode, count in ((1, 1), (1, 2), (-1, 0), (0, 3)):
            configure(mode, count)
            check_add(f, 1024)
            assert tvm.runtime.num_threads() >= 1
        configure(-2, 1, [str(min(os.sched_getaffinity(0)))])
        check_add(f, 1024)
    finally:
        configure(0, before)
    assert tvm.runtime.num_threads() == before


def _run_in_child(path: str, queue: Any) -> None:
    check_add(tvm.runtime.load_module(path)["parallel_add"], 1024)
    queue.put("done")


def test_processes_are_forked_after_threads_ran(tmp_path: Path) -> None:
    m = parallel_add()
    check_add(m, 1024)
    path = str(tmp_path / "lib.so")
    m.export_library(path)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=_run_in_child, args=(path, queue))
    process.start()
    assert queue.get(timeout=600) == "done"
    process.join()
    check_add(m, 1024)


def test_wrong_arguments_are_named() -> None:
    f = build_add()["myadd"]
    good = tvm.nd.empty((16,))
    with pytest.raises(tvm.TVMError, match="B"):
        f(good, tvm.nd.empty((3,)))
    with pytest.raises(tvm.TVMError, match="float32"):
        f(good, tvm.nd.empty((16,), "int32"))
    with pytest.raises(TypeError, match="2 arguments"):
        f(good)
    with pytest.raises(tvm.TVMError):
        f(good, 1)
    with pytest.raises(ValueError, match="nowhere"):
        tvm.runtime.load_module("/nowhere/lib.so")


def test_libraries_of_other_machines_are_rejected(tmp_path: Path) -> None:
    shared = str(tmp_path / "lib.so")
    build_add(target="llvm -mtriple=aarch64-linux-gnu").export_library(shared)
    with pytest.raises(tvm.TVMError, match="(?i)aarch64"):
        tvm.runtime.load_module(shared)
