"""What is damaged: bytes of each kind, and what reads them."""

from __future__ import annotations

import json
import pickle
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

import tvm
from tvm import auto_scheduler, autotvm, relay, te
from tvm.contrib import cc, graph_executor
from tvm.script import tir as T

PROMISED = (tvm.error.TVMError, ValueError, TypeError)
LINKING = (*PROMISED, RuntimeError)  # the linker rejects what it gets


@dataclass(frozen=True)
class Target:
    """Something that reads bytes."""

    content: bytes
    read: Callable[[bytes], object]
    first: int = 0  # the bytes that are damaged
    last: int | None = None
    left_out: range = range(0)
    promised: tuple[type[Exception], ...] = PROMISED


def params(folder: Path) -> Target:
    """Parameters."""
    arrays = {
        "weight": np.arange(12, dtype="float32").reshape(3, 4),
        "bias": np.zeros(0, "int8"),
        "scale": np.array(2.5, "float64"),
    }
    blob = tvm.runtime.save_param_dict({n: tvm.nd.array(a) for n, a in arrays.items()})
    return Target(bytes(blob), tvm.runtime.load_param_dict)


def _model() -> tvm.runtime.Module:
    x = relay.var("x", shape=(4,))
    w = relay.const(np.arange(4, dtype="float32"))
    body = relay.reshape(relay.nn.relu(relay.add(x, w)), (2, 2))
    return relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), "llvm")


def graph(folder: Path) -> Target:
    """Graphs for the executor."""
    model = _model()
    library = model.get_lib()

    def create(content: bytes) -> object:
        return graph_executor.create(content.decode("latin-1"), library, tvm.cpu())

    return Target(model.get_graph_json().encode(), create)


def _exported(folder: Path) -> bytes:
    path = folder / "model.so"
    _model().export_library(str(path))
    return path.read_bytes()


def _loader(folder: Path) -> Callable[[bytes], object]:
    path = folder / "damaged.so"

    def load(content: bytes) -> object:
        path.unlink(missing_ok=True)  # the loader may still have the last one
        path.write_bytes(content)
        module = tvm.runtime.load_module(str(path))
        # the name of the model may be what was damaged
        return module["default"](tvm.cpu()) if module.implements_function("default") else None

    return load


def library(folder: Path) -> Target:
    """Exported libraries, anywhere but in what they embed."""
    content = _exported(folder)
    return Target(content, _loader(folder), last=content.index(b"GraphExecutorFactory") - 24)


def embedded(folder: Path) -> Target:
    """Graphs and parameters in exported libraries."""
    content = _exported(folder)
    start = content.index(b"GraphExecutorFactory") - 8
    length = int.from_bytes(content[start - 16 : start - 8], "little")
    return Target(content, _loader(folder), start - 8, start - 8 + length)


def _plain_object(folder: Path) -> str:
    a = te.placeholder((64,), name="a")
    b = te.compute((64,), lambda i: te.exp(a[i]) + 1)
    path = folder / "plain.o"
    tvm.build(te.create_schedule(b.op), [a, b], "llvm").save(str(path))
    return str(path)


def linked(folder: Path) -> Target:
    """Libraries that we have linked, anywhere."""
    path = folder / "plain.so"
    cc.create_shared(str(path), _plain_object(folder))
    return Target(path.read_bytes(), _loader(folder))


def foreign(folder: Path) -> Target:
    """Libraries of other linkers: all but code, which may be anything."""
    path = folder / "plain.so"
    subprocess.run(
        [cc.get_cc() or "c++", "-shared", "-o", str(path), _plain_object(folder)], check=True
    )
    content = path.read_bytes()
    return Target(content, _loader(folder), left_out=_code_of(content))


def _code_of(library: bytes) -> range:
    start, size = struct.unpack_from("<Q8xH", library, 32)[0], 56
    for index in range(struct.unpack_from("<H", library, 56)[0]):
        kind, flags, offset, _, _, length = struct.unpack_from(
            "<2I4Q", library, start + index * size
        )
        if kind == 1 and flags & 1:
            return range(offset - 8, offset + length)  # a change has up to eight bytes
    raise ValueError("a library without code")


def objects(folder: Path) -> Target:
    """Objects that are linked when they are loaded."""
    content = Path(_plain_object(folder)).read_bytes()
    damaged = folder / "damaged.o"

    def load(content: bytes) -> object:
        damaged.write_bytes(content)
        return tvm.runtime.load_module(str(damaged))

    return Target(content, load, promised=LINKING)


def static_library(folder: Path) -> Target:
    """Objects that become part of a library."""
    content = Path(_plain_object(folder)).read_bytes()
    damaged = folder / "damaged.o"

    def load(content: bytes) -> object:
        damaged.write_bytes(content)
        return tvm.runtime.load_static_library(str(damaged), ["default_function"])

    return Target(content, load)


def pickled(folder: Path) -> Target:
    """Arrays in pickles: what is damaged may be any other program for the unpickler."""
    array = tvm.nd.array(np.arange(12, dtype="float32").reshape(3, 4))
    return Target(pickle.dumps(array), pickle.loads, promised=(Exception,))


def script(folder: Path) -> Target:
    """Programs in TVMScript."""

    @T.prim_func
    def add_one(a: T.Buffer((16,), "float32"), b: T.Buffer((16,), "float32")):
        for i in T.parallel(16):
            with T.block("b"):
                v = T.axis.spatial(16, i)
                if v < 8:
                    b[v] = a[v] + T.float32(1)

    return Target(
        add_one.script().encode(), lambda content: tvm.script.from_source(content.decode("latin-1"))
    )


def ir_json(folder: Path) -> Target:
    """Programs as JSON."""
    a = te.placeholder((te.var("n"),), name="a")
    b = te.compute(a.shape, lambda i: a[i] + 1)
    functions = {"main": te.create_prim_func([a, b])}
    x = relay.var("x", shape=(4,))
    constant = relay.const(np.arange(4, dtype="float32"))
    functions["add"] = relay.Function([x], relay.add(x, constant))
    text = tvm.ir.save_json(tvm.IRModule(functions))
    return Target(text.encode(), lambda content: tvm.ir.load_json(content.decode("latin-1")))


def relay_text(folder: Path) -> Target:
    """Programs of relay as text."""
    x = relay.var("x", shape=(1, 3, 8, 8))
    w = relay.var("w", shape=(4, 3, 3, 3))
    body = relay.nn.relu(relay.nn.conv2d(x, w, padding=(1, 1)))
    text = tvm.IRModule.from_expr(relay.Function([x, w], body)).astext()
    return Target(text.encode(), lambda content: relay.fromtext(content.decode("latin-1")))


def archive(folder: Path) -> Target:
    """Exported archives."""
    path = folder / "model.tar"
    _model().export_library(str(path))
    damaged = folder / "damaged.tar"

    def load(content: bytes) -> object:
        damaged.write_bytes(content)
        return tvm.runtime.load_module(str(damaged))

    return Target(path.read_bytes(), load, promised=LINKING)


def onnx_model(folder: Path) -> Target:
    """Models of ONNX: what the checker of the onnx package lets through."""
    weights = np.arange(54, dtype="float32").reshape(2, 3, 3, 3) / 54
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("Reshape", ["r", "shape"], ["y"], name="flat"),
        helper.make_node("Softmax", ["y"], ["z"], name="soft", axis=1),
    ]
    graph = helper.make_graph(
        nodes, "model",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 4, 4])],
        [helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [1, 32])],
        [
            numpy_helper.from_array(weights, "w"),
            numpy_helper.from_array(np.array([1, 32], "int64"), "shape"),
        ],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def read(content: bytes) -> object:
        try:
            found = onnx.load_model_from_string(content)
        except Exception as error:
            raise ValueError("no message of ONNX") from error
        return relay.frontend.from_onnx(found)

    return Target(model.SerializeToString(), read)


def tuning_log(folder: Path) -> Target:
    """Records of AutoTVM."""
    entity = [["tile_y", "sp", [-1, 8]], ["tile_x", "sp", [-1, 4]], ["unroll", "ot", True]]
    row = {
        "input": ["llvm -keys=cpu ", "matmul", [["TENSOR", [64, 64], "float32"], 16], {}],
        "config": {"index": 3, "code_hash": None, "entity": entity},
        "result": [[0.0002], 0, 1.2, 1600000000.0],
        "version": 0.2,
        "tvm_version": "0.18.0",
    }
    damaged = folder / "tuning.log"

    def read(content: bytes) -> object:
        damaged.write_bytes(content)
        return autotvm.apply_history_best(str(damaged))

    return Target((json.dumps(row) + "\n").encode() * 2, read)


def _vector_add(extent: int) -> list[te.Tensor]:
    a = te.placeholder((extent,), name="a")
    return [a, te.compute((extent,), lambda i: a[i] + 1, name="b")]


def search_log(folder: Path) -> Target:
    """Records of the auto-scheduler."""
    auto_scheduler.register_workload(_vector_add, override=True)
    task = auto_scheduler.SearchTask(func=_vector_add, args=(64,), target="llvm")
    state = task.compute_dag.get_init_state()
    state.split(state.stage_ops[1], state[state.stage_ops[1]].iters[0], [8])
    inputs = [auto_scheduler.MeasureInput(task, state)]
    results = [auto_scheduler.MeasureResult([0.1], 0, "", 0.2, 1.0)]
    log, damaged = str(folder / "sound.json"), folder / "search.json"
    auto_scheduler.save_records(log, inputs, results)

    def read(content: bytes) -> object:
        damaged.write_bytes(content)
        records = list(auto_scheduler.load_records(str(damaged)))
        if not records:
            raise ValueError("the line is left out")
        for found, _ in records:
            task.compute_dag.apply_steps_from_state(found.state)
            task.compute_dag.print_python_code_from_state(found.state)
            task.compute_dag.infer_bound_from_state(found.state)
        return None

    return Target(Path(log).read_bytes(), read)


KINDS = {
    kind.__name__: kind
    for kind in (
        params,
        graph,
        library,
        embedded,
        linked,
        foreign,
        objects,
        static_library,
        archive,
        ir_json,
        relay_text,
        script,
        pickled,
        onnx_model,
        tuning_log,
        search_log,
    )
}
