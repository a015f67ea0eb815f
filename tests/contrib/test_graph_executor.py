"""The graph executor, on graphs written by hand over a library of C functions."""

from __future__ import annotations

import gc
import json
import mmap
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tvm
import tvm.runtime.ndarray as nd
from tests.runtime import native_library
from tvm import te
from tvm._ffi import get_global_func
from tvm.contrib import cc, graph_executor
from tvm.contrib.graph_executor import GraphModule
from tvm.runtime import (
    Module,
    load_module,
    module_from_symbols,
    save_param_dict,
    save_param_dict_to_file,
)

X = np.array([[1, 2], [3, 4]], "float32")
W = np.array([[10, 20], [30, 40]], "float32")


def op(name: str, func: str, *inputs: int, **attrs: str) -> dict[str, Any]:
    return {
        "op": "tvm_op",
        "name": name,
        "attrs": {
            "func_name": func, "num_inputs": str(len(inputs)), "num_outputs": "1",
            "flatten_data": "0", **attrs,
        },
        "inputs": [[i, 0, 0] for i in inputs],
    }  # fmt: skip


def graph(**changes: Any) -> str:
    """out = twice(x + w), and the sum itself under another shape."""
    nodes = [
        {"op": "null", "name": "x", "inputs": []},
        {"op": "null", "name": "w", "inputs": []},
        op("sum", "add", 0, 1),
        op("double", "twice", 2),
        op("flat", "__nop", 2),
    ]
    result = {
        "nodes": nodes,
        "arg_nodes": [0, 1],
        "heads": [[3, 0, 0], [4, 0, 0]],
        "node_row_ptr": [0, 1, 2, 3, 4, 5],
        "attrs": {
            "dltype": ["list_str", ["float32"] * 5],
            "storage_id": ["list_int", [0, 1, 2, 3, 2]],
            "shape": ["list_shape", [[2, 2], [2, 2], [2, 2], [2, 2], [4]]],
            "device_index": ["list_int", [1] * 5],
        },
    }
    result.update(changes)
    return json.dumps(result)


@pytest.fixture
def module(library: Module) -> GraphModule:
    return graph_executor.create(graph(), library, nd.cpu())


def factory(library: Module, **params: Any) -> Module:
    flat = [p for name, value in params.items() for p in (name, nd.array(value))]
    return get_global_func("tvm.graph_executor_factory.create")(graph(), library, "default", *flat)


def test_a_graph_runs(module: GraphModule) -> None:
    module.set_input("x", nd.array(X))
    module.set_input("w", W)
    module.run()
    np.testing.assert_array_equal(module.get_output(0).numpy(), 2 * (X + W))
    np.testing.assert_array_equal(module.get_output(1).numpy(), (X + W).ravel())
    module.run(x=W, w=W)
    np.testing.assert_array_equal(module.get_output(0).numpy(), 4 * W)


def test_outputs_are_zeros_before_the_first_run(library: Module) -> None:
    big = [1 << 16]
    attrs = json.loads(graph())["attrs"] | {"shape": ["list_shape", [big] * 5]}
    for _ in range(3):  # memory that was used before
        module = graph_executor.create(graph(attrs=attrs), library, nd.cpu())
        outputs = [module.get_output(i) for i in range(2)]
        assert not any(output.numpy().any() for output in outputs)
        for output in outputs:
            output.copyfrom(np.ones(big, "float32"))
        del module, outputs, output


def test_questions(module: GraphModule) -> None:
    assert (module.get_num_inputs(), module.get_num_outputs()) == (2, 2)
    assert (module.get_input_index("w"), module.get_input_index("v")) == (1, -1)
    shapes, dtypes = module.get_input_info()
    assert shapes == {"x": (2, 2), "w": (2, 2)} and dtypes == {"x": "float32", "w": "float32"}
    assert module.get_input("v") is None
    module.set_input(0, X)
    out = nd.empty((2, 2))
    np.testing.assert_array_equal(module.get_input("x", out).numpy(), X)
    assert module["run"] is not None


def test_outputs_into_given_arrays(module: GraphModule) -> None:
    module.run(x=X, w=W)
    out = nd.empty((2, 2))
    assert module.get_output(0, out) is out
    np.testing.assert_array_equal(out.numpy(), 2 * (X + W))


def test_python_numbers_and_lists_are_converted(module: GraphModule) -> None:
    module.set_input("x", [[1, 2], [3, 4]])
    np.testing.assert_array_equal(module.get_input(0).numpy(), X)
    module.set_input("x", np.asfortranarray(X))
    np.testing.assert_array_equal(module.get_input(0).numpy(), X)


def test_arrays_with_strides_are_compacted(module: GraphModule) -> None:
    module.set_input("x", nd.from_dlpack(torch.tensor(X).t()))
    np.testing.assert_array_equal(module.get_input(0).numpy(), X.T)


BAD_INPUTS = [
    ("y", X, r"no input 'y'; its inputs are 'x', 'w'"),
    ("xx", X, r"did you mean 'x'"),
    (2, X, "has 2 inputs, got index 2"),
    (-1, X, "has 2 inputs, got index -1"),
    ("x", X[0], r"input 0 \('x'\) needs \(2, 2\) float32, got \(2,\) float32"),
    ("x", X.astype("int32"), r"needs \(2, 2\) float32, got \(2, 2\) int32"),
    (
        "w",
        nd.array(X.astype("float64")),
        r"input 1 \('w'\) needs \(2, 2\) float32, got \(2, 2\) float64",
    ),
    ("x", nd.array(X.reshape(4, 1)), r"got \(4, 1\) float32"),
    ("x", "text", "input 'x' needs an array or numbers of type float32, got 'text'"),
    ("x", object(), "input 'x' needs an array or numbers"),
    ("x", [[1, 2], [3]], "input 'x' needs an array or numbers"),
    ("x", None, "input 'x' needs an array, got None"),
]


@pytest.mark.parametrize("case", range(len(BAD_INPUTS)))
def test_bad_inputs(module: GraphModule, case: int) -> None:
    key, value, message = BAD_INPUTS[case]
    with pytest.raises((ValueError, TypeError), match=message):
        module.set_input(key, value)
    module.run(x=X, w=W)  # and all is well after it
    np.testing.assert_array_equal(module.get_output(0).numpy(), 2 * (X + W))


def test_unknown_names_in_run(module: GraphModule) -> None:
    with pytest.raises(ValueError, match="no input 'wx'"):
        module.run(x=X, wx=W)
    module.set_input("w", W)
    module.run(x=X, folded_away=W)  # classic programs pass parameters that compilation has folded


def test_bad_outputs(module: GraphModule) -> None:
    with pytest.raises(ValueError, match="has 2 outputs, got index 2"):
        module.get_output(2)
    with pytest.raises(ValueError, match=r"output 0 needs \(2, 2\) float32, got \(3,\)"):
        module.get_output(0, nd.empty((3,)))
    with pytest.raises(ValueError, match=r"for output 0 needs .* got \(2, 2\) int32"):
        module.get_output(0, nd.empty((2, 2), "int32"))
    with pytest.raises(ValueError, match="has no output 'sum'"):
        module.get_output("sum")  # type: ignore[arg-type]


def test_inputs_of_every_kind(module: GraphModule) -> None:
    values = [
        X.astype("float64"), X.astype("float16"), X[:, :], torch.tensor(X),
        X.astype(">f4"), memoryview(X), nd.from_dlpack(np.asfortranarray(X)), torch.tensor(X.T).t(),
    ]  # fmt: skip
    for value in values:
        module.set_input("x", np.zeros((2, 2)))
        module.set_input("x", value)
        np.testing.assert_array_equal(module.get_input("x").numpy(), X)


def test_outputs_by_name(module: GraphModule) -> None:
    module.run(x=X, w=W)
    native = module.module
    assert (native["get_output_index"]("flat"), native["get_output_index"]("sum")) == (1, -1)
    np.testing.assert_array_equal(native["get_output"]("flat").numpy(), (X + W).ravel())
    strided = np.zeros((2, 4), "float32")
    module.get_output(0, nd.from_dlpack(strided[:, ::2]))
    np.testing.assert_array_equal(strided[:, ::2], 2 * (X + W))


def test_descriptions_of_inputs_for_programs_in_cpp(module: GraphModule) -> None:
    info = module.module["get_input_info"]()
    assert {name: list(shape) for name, shape in info["shape"].items()} == {
        "x": [2, 2],
        "w": [2, 2],
    }
    assert dict(info["dtype"].items()) == {"x": "float32", "w": "float32"}


def test_many_executors_of_one_library_on_many_threads(library: Module) -> None:
    lib = factory(library, w=W)

    def work(number: int) -> bool:
        executor = GraphModule(lib["default"](nd.cpu()))
        for step in range(50):
            x = X + number * 100 + step
            executor.run(x=x)
            if not np.array_equal(executor.get_output(0).numpy(), 2 * (x + W)):
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


def test_inputs_without_copy(module: GraphModule) -> None:
    x, w, out = nd.array(X), nd.array(W), nd.array(np.zeros((2, 2), "float32"))
    module.set_input_zero_copy("x", x)
    module.set_input_zero_copy(w=w)
    module.set_output_zero_copy(0, out)
    module.run()
    np.testing.assert_array_equal(out.numpy(), 2 * (X + W))
    x[:] = 0
    module.run()
    np.testing.assert_array_equal(out.numpy(), 2 * W)
    module.set_input("x", W)  # a copy does not touch the shared array
    assert (x.numpy() == 0).all()
    del x, w
    gc.collect()
    module.run()
    np.testing.assert_array_equal(out.numpy(), 4 * W)


def test_errors_of_zero_copy(module: GraphModule) -> None:
    with pytest.raises(ValueError, match="no input 'y'"):
        module.set_input_zero_copy("y", nd.array(X))
    with pytest.raises(ValueError, match=r"needs \(2, 2\) float32, got \(4,\) float32"):
        module.set_input_zero_copy("x", nd.array(X.ravel()))
    unaligned = np.zeros(80, "uint8")[1 + (-np.zeros(80, "uint8").ctypes.data) % 64 :][:16]
    offset = (4 - unaligned.ctypes.data) % 64
    shifted = np.zeros(200, "uint8")
    start = (4 - shifted.ctypes.data) % 64
    view = shifted[start : start + 16].view("float32").reshape(2, 2)
    assert offset is not None and view.ctypes.data % 64 == 4
    with pytest.raises(ValueError, match="aligned to 64 bytes"):
        module.set_input_zero_copy("x", nd.share_numpy(view))
    with pytest.raises(ValueError, match="input under another name"):
        module.set_output_zero_copy(1, nd.empty((4,)))


def test_params(module: GraphModule) -> None:
    module.load_params(save_param_dict({"w": W, "unused": X}))
    module.run(x=X)
    np.testing.assert_array_equal(module.get_output(0).numpy(), 2 * (X + W))
    with pytest.raises(
        ValueError, match=r"parameter 'w' needs \(2, 2\) float32, got \(2,\) float32"
    ):
        module.load_params(save_param_dict({"w": W[0]}))
    with pytest.raises(ValueError, match="truncated"):
        module.load_params(b"abc")


def test_shared_params(library: Module, module: GraphModule) -> None:
    blob = save_param_dict({"w": W})
    module.load_params(blob)
    other = graph_executor.create(graph(), library, nd.cpu())
    other.share_params(module, blob)
    other.run(x=X)
    np.testing.assert_array_equal(other.get_output(0).numpy(), 2 * (X + W))


def test_factory(library: Module) -> None:
    lib = factory(library, w=W)
    first, second = (GraphModule(lib["default"](nd.cpu())) for _ in range(2))
    first.set_input("w", X)  # its own copy: the other keeps the parameter
    first.get_input("w")[:] = 1
    for executor, w in ((first, np.ones((2, 2))), (second, W)):
        executor.run(x=X)
        np.testing.assert_array_equal(executor.get_output(0).numpy(), 2 * (X + w))
    without = GraphModule(lib["remove_params"]()["default"](nd.cpu()))
    without.run(x=X)
    np.testing.assert_array_equal(without.get_output(0).numpy(), 2 * X)
    assert json.loads(lib["get_graph_json"]()) == json.loads(graph())
    with pytest.raises(ValueError, match="needs a device"):
        lib["default"]()
    with pytest.raises(RuntimeError, match="the graph needs a device of kind cpu"):
        lib["default"](nd.cuda())


def test_the_executor_outlives_its_factory(library: Module) -> None:
    executor = GraphModule(factory(library, w=W)["default"](nd.cpu()))
    gc.collect()
    executor.run(x=X)
    output = executor.get_output(1)
    del executor
    gc.collect()
    np.testing.assert_array_equal(output.numpy(), (X + W).ravel())


def test_export_and_run_in_a_fresh_process(tmp_path: Path) -> None:
    native_library.build(tmp_path)
    includes = [f"-I{p}" for p in native_library.libinfo.find_include_path()]
    code = tmp_path / "code.o"
    cc.create_executable(str(code), str(tmp_path / "packed.cc"), options=["-c", "-fPIC", *includes])
    lib = factory(module_from_symbols("llvm", {}, object_code=code.read_bytes()), w=W)
    path = str(tmp_path / "model.so")
    lib.export_library(path)
    program = (
        "import sys, numpy as np, tvm.runtime as r, tvm.runtime.ndarray as nd\n"
        "from tvm.contrib.graph_executor import GraphModule\n"
        "m = GraphModule(r.load_module(sys.argv[1])['default'](nd.cpu()))\n"
        "m.run(x=np.array([[1, 2], [3, 4]], 'float32'))\n"
        "print(m.get_output(0).numpy().tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == (2 * (X + W)).tolist()
    loaded = load_module(path)
    assert loaded.type_key == "GraphExecutorFactory"
    archive = str(tmp_path / "model.tar")
    lib.export_library(archive)
    assert load_module(archive)["default"](nd.cpu()).type_key == "GraphExecutor"


def test_large_parameters_are_used_in_the_library_itself(tmp_path: Path) -> None:
    x = te.placeholder((4096,), name="x")
    w = te.placeholder((4096,), name="w")
    total = te.compute((4096,), lambda i: x[i] + w[i])
    library = tvm.build(te.create_schedule(total.op), [x, w, total], "llvm", name="add")
    text = json.loads(graph(heads=[[2, 0, 0]], node_row_ptr=[0, 1, 2, 3]))
    text["nodes"] = text["nodes"][:3]
    text["attrs"] = {
        "dltype": ["list_str", ["float32"] * 3],
        "storage_id": ["list_int", [0, 1, 2]],
        "shape": ["list_shape", [[4096]] * 3],
    }
    values = np.arange(4096, dtype="float32")
    create = get_global_func("tvm.graph_executor_factory.create")
    lib = create(json.dumps(text), library, "default", "small", nd.array(X), "w", nd.array(values))
    path = tmp_path / "model.so"
    lib.export_library(path)
    assert path.read_bytes().index(values.tobytes()) % 64 == 0
    loaded = load_module(path)
    first, second = (GraphModule(loaded["default"](nd.cpu())) for _ in range(2))
    names: dict[str, nd.NDArray] = {}
    loaded["get_params"](names.__setitem__)
    assert sorted(names) == ["small", "w"]
    del loaded, lib
    gc.collect()
    names["w"][:] = 0  # copies: the library cannot be written
    first.get_input("w")[:] = 1
    for executor, weights in ((first, np.ones(4096)), (second, values)):
        executor.run(x=values)
        np.testing.assert_array_equal(executor.get_output(0).numpy(), values + weights)
    second.set_input("w", np.zeros(4096, "float32"))
    second.run()
    np.testing.assert_array_equal(second.get_output(0).numpy(), values)


def test_parameters_from_a_mapped_file(module: GraphModule, tmp_path: Path) -> None:
    save_param_dict_to_file({"w": W}, tmp_path / "model.params")
    with (tmp_path / "model.params").open("rb") as file:
        module.load_params(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    module.run(x=X)
    np.testing.assert_array_equal(module.get_output(0).numpy(), 2 * (X + W))


def test_errors_of_operators_come_out(library: Module) -> None:
    nodes = json.loads(graph())["nodes"]
    nodes[3]["attrs"]["func_name"] = "fail"
    module = graph_executor.create(graph(nodes=nodes), library, nd.cpu())
    with pytest.raises(TypeError, match="fail: argument 0 needs dtype float32, got int32"):
        module.run(x=X, w=W)


def test_flattened_arguments(library: Module) -> None:
    nodes = json.loads(graph())["nodes"]
    nodes[3] = op("rank", "rank_of_first", 2, flatten_data="1")
    module = graph_executor.create(graph(nodes=nodes), library, nd.cpu())
    module.run(x=X, w=W)
    assert module.get_output(0).numpy()[0, 0] == 1


def test_benchmark(module: GraphModule) -> None:
    result = module.benchmark(nd.cpu(), repeat=3, number=2, x=X, w=W)
    assert len(result.results) == 3 and result.mean > 0
    assert isinstance(str(result), str) and result.median > 0
    both = module.benchmark(nd.cpu(), repeat=2, number=2, end_to_end=True, x=X, w=W)
    assert len(both.results) == 2
    np.testing.assert_array_equal(module.get_output(0).numpy(), 2 * (X + W))
    module.benchmark(nd.cpu(), end_to_end=True, repeat=1, number=1, x=W, folded_away=X)
    np.testing.assert_array_equal(module.get_output(0).numpy(), 2 * (W + W))
    with pytest.raises(ValueError, match=r"needs \(2, 2\) float32, got \(2,\)"):
        module.benchmark(nd.cpu(), end_to_end=True, x=X[0])


def damaged(**changes: Any) -> str:
    """The graph with parts of one node or attribute replaced."""
    value = json.loads(graph())
    for path, replacement in changes.items():
        *parents, last = path.split("__")
        target = value
        for parent in parents:
            target = target[int(parent[1:])] if parent[0] == "_" else target[parent]
        target[int(last[1:]) if last[0] == "_" else last] = replacement
    return json.dumps(value)


BAD_GRAPHS = {
    "empty": ("", "no valid JSON: line 1, column 1: expected a value, found the end"),
    "cut": (graph()[:-5], "no valid JSON"),
    "trailing": (graph() + "]", r"expected the end of the text, found '\]'"),
    "not an object": ("[]", "graph JSON must be an object"),
    "nothing": ("{}", "has no 'nodes'"),
    "deep": ("[" * 100_000, "less nesting"),
    "node kind": (damaged(nodes___0__op="tvm"), "op must be null or tvm_op, got 'tvm'"),
    "no name": (damaged(nodes___0={"op": "null"}), "node 0 has no 'name'"),
    "later input": (damaged(nodes___2__inputs=[[3, 0, 0], [1, 0, 0]]), "output 0 of node 3"),
    "no such output": (damaged(nodes___2__inputs=[[0, 5, 0], [1, 0, 0]]), "output 5 of node 0"),
    "count": (damaged(nodes___2__inputs=[[0, 0, 0]]), "says 2 inputs and lists 1"),
    "negative": (damaged(nodes___2__inputs=[[-1, 0, 0], [0, 0, 0]]), "natural number, got -1"),
    "heads": (damaged(heads=[[9, 0, 0]]), "heads refers to output 0 of node 9"),
    "arg_nodes": (damaged(arg_nodes=[2]), "arg_nodes refers to 2, which is no input"),
    "row_ptr": (damaged(node_row_ptr=[0, 1, 2]), "3 items for 5 nodes"),
    "row_ptr values": (damaged(node_row_ptr=[0, 1, 2, 3, 4, 9]), "does not fit"),
    "missing attr": (damaged(attrs={}), "attrs has no 'dltype'"),
    "short attr": (damaged(attrs__shape=["list_shape", [[1]]]), "shape has 1 items for 5 tensors"),
    "dtype": (damaged(attrs__dltype=["list_str", ["float99x"] * 5]), "float99x"),
    "shape": (damaged(attrs__shape=["list_shape", [[-2]] * 5]), "negative extent"),
    "storage": (damaged(attrs__storage_id=["list_int", [-1] * 5]), "natural numbers, got -1"),
    "function": (damaged(nodes___2__attrs__func_name="sub"), "no function 'sub'.*node 'sum'"),
    "device": (
        damaged(attrs__device_index=["list_int", [2] * 5]),
        "kind cuda, which was not given",
    ),
    "huge": (
        damaged(attrs__shape=["list_shape", [[1 << 40, 1 << 40]] * 5]),
        "too large|out of memory",
    ),
}


@pytest.mark.parametrize("case", BAD_GRAPHS)
def test_bad_graphs(library: Module, case: str) -> None:
    text, message = BAD_GRAPHS[case]
    with pytest.raises((ValueError, RuntimeError), match=message):
        graph_executor.create(text, library, nd.cpu())


def test_random_damage_never_crashes(library: Module) -> None:
    rng = np.random.default_rng(0)
    text = np.frombuffer(graph().encode(), "uint8")
    letters = np.frombuffer(b'0123456789[]{},:" -n', "uint8")
    for _ in range(500):
        copy = text.copy()
        copy[rng.integers(0, len(copy), 2)] = rng.choice(letters, 2)
        with suppress(ValueError, RuntimeError):
            graph_executor.create(copy.tobytes().decode(), library, nd.cpu())


def test_wrong_kinds_of_arguments(library: Module) -> None:
    with pytest.raises(ValueError, match="graph as JSON text, got dict"):
        graph_executor.create({}, library, nd.cpu())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a Device is needed, got str"):
        graph_executor.create(graph(), library, ["cpu"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="GraphModule needs lib"):
        GraphModule(graph())  # type: ignore[arg-type]
