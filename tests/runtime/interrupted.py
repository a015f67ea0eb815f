"""Calls that take minutes unless they are interrupted, each with a check of what they leave behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

import tvm
from tests.runtime import stress
from tvm import relay, te
from tvm.contrib.graph_executor import GraphModule
from tvm.runtime.executor import AotModule
from tvm.runtime.vm import VirtualMachine

Case = tuple[Callable[[], object], Callable[[], object]]
FULL = np.ones((stress.EXTENT, stress.EXTENT), "float32")


def _slow_graph() -> tvm.IRModule:
    """A hundred operators of some milliseconds each."""
    body = x = relay.var("x", shape=(256, 256))
    for _ in range(100):
        body = relay.nn.relu(relay.nn.dense(body, x))
        body = relay.tanh(body)
    return tvm.IRModule.from_expr(relay.Function([x], body))


def _repeated(module: GraphModule | AotModule) -> Case:
    x = np.eye(256, dtype="float32")
    module.set_input("x", x)
    module.run()
    wanted = module.get_output(0).numpy()

    def call() -> None:
        module.module.time_evaluator("run", tvm.cpu(), number=100_000)()

    def check() -> None:
        module.run()
        np.testing.assert_array_equal(module.get_output(0).numpy(), wanted)

    return call, check


def graph_run() -> Case:
    return _repeated(GraphModule(relay.build(_slow_graph(), "llvm")["default"](tvm.cpu())))


def aot_run() -> Case:
    lib = relay.build(_slow_graph(), "llvm", executor=relay.backend.Executor("aot"))
    return _repeated(AotModule(lib["default"](tvm.cpu())))


def machine_loop() -> Case:
    """A loop of a program, which no operator's end interrupts."""
    mod = tvm.IRModule()
    i, n = relay.var("i", shape=(), dtype="int64"), relay.var("n", shape=(), dtype="int64")
    count = relay.GlobalVar("count")
    again = relay.Call(count, [i + relay.const(1, "int64"), n])
    mod[count] = relay.Function([i, n], relay.If(relay.less(i, n), again, i), i.type_annotation)
    m = relay.var("m", shape=(), dtype="int64")
    mod["main"] = relay.Function([m], count(relay.const(0, "int64"), m))
    machine = VirtualMachine(relay.vm.compile(mod, "llvm"), tvm.cpu())

    def check() -> None:
        assert machine.run(np.int64(5)).numpy() == 5

    return lambda: machine.run(np.int64(10**9)), check


def evaluator() -> Case:
    """A function so short that nobody looks for signals between two of its calls."""
    nop = tvm.get_global_func("testing.nop")
    measure = tvm.get_global_func("runtime.TimeFunction")
    timed = measure(nop, tvm.cpu(), 2_000_000_000, 10, 0, 100, 0, 1)
    return timed, lambda: nop()


def pause() -> Case:
    """The pause between two measurements."""
    nop = tvm.get_global_func("testing.nop")
    measure = tvm.get_global_func("runtime.TimeFunction")
    timed = measure(nop, tvm.cpu(), 1, 2, 0, 100, 200_000, 1)
    return timed, lambda: nop()


def waiting() -> Case:
    """The wait for another thread's run."""
    sleeping, ended = threading.Event(), threading.Event()

    @tvm.register_func("tests.sleep", override=True)
    def sleep(x: tvm.nd.NDArray, out: tvm.nd.NDArray) -> None:
        sleeping.set()
        ended.wait(200)
        x.copyto(out)

    module = stress.packed_call("tests.sleep")
    module.set_input("x", np.ones(2, "float32"))
    runner = threading.Thread(target=module.run)
    runner.start()
    sleeping.wait(100)

    def check() -> None:
        ended.set()
        runner.join()
        module.run()
        assert module.get_output(0).numpy().tolist() == [1, 1]

    return module.run, check


def long_loops() -> Case:
    """A parallel loop of a second: once known, it is cut into parts."""
    a = te.placeholder((64,), name="a")
    k = te.reduce_axis((0, 3_000_000), name="k")
    b = te.compute((64,), lambda i: te.sum(te.sin(a[i] + k), axis=k), name="b")
    schedule = te.create_schedule(b.op)
    schedule[b].parallel(b.op.axis[0])
    func = tvm.build(schedule, [a, b], "llvm")
    x, y = tvm.nd.array(np.zeros(64, "float32")), tvm.nd.empty((64,))
    func(x, y)

    def call() -> None:
        for _ in range(300):
            start = time.perf_counter()
            func(x, y)
            assert time.perf_counter() - start < 300

    return call, lambda: None


def _sines(is_parallel: bool) -> Case:
    """One call of minutes, of a function that allocates memory."""
    a = te.placeholder((64,), name="a")
    shifted = te.compute((4096, 64), lambda j, i: a[i] + j, name="shifted")
    k = te.reduce_axis((0, 1_000_000_000), name="k")
    b = te.compute((64,), lambda i: te.sum(te.sin(shifted[k % 4096, i] + k), axis=k), name="b")
    schedule = te.create_schedule(b.op)
    if is_parallel:
        schedule[b].parallel(b.op.axis[0])
    func = tvm.build(schedule, [a, b], "llvm")
    assert "TVMBackendAllocWorkspace" in func.get_source()
    x, y = tvm.nd.array(np.zeros(64, "float32")), tvm.nd.empty((64,))

    def check() -> None:
        nop = tvm.get_global_func("testing.nop")
        nop()

    return lambda: func(x, y), check


def serial_loop() -> Case:
    """A kernel of one thread."""
    return _sines(is_parallel=False)


def unknown_parallel_loop() -> Case:
    """A parallel loop that was never run before, and is not cut into parts."""
    return _sines(is_parallel=True)
