"""Programs that use one executor from many threads, fork under load, or call functions with anything.

    python -m tests.runtime.stress runs 16000
    python -m tests.runtime.stress forks 500
    python -m tests.runtime.stress functions 200

Tests run them for moments; each prints what it has counted.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import random
import resource
import select
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import torch  # noqa: F401  # which some functions import, once for all children

import tvm
from tvm import auto_scheduler, relay, te  # noqa: F401  # which registers functions
from tvm._ffi.registry import list_global_func_names
from tvm.contrib.debugger.debug_executor import GraphModuleDebug
from tvm.contrib.graph_executor import GraphModule
from tvm.error import TVMError
from tvm.runtime.executor import AotModule
from tvm.runtime.vm import VirtualMachine

EXTENT = 64
# functions that wait as long as they are told, and one that sends the process a signal
TOLD = ("testing.sleep_in_ffi", "testing.run_check_signal", "rpc.test.kill_self")
Run = Callable[[float], Any]  # of an input that is filled with one number


def program() -> tvm.IRModule:
    """Some operators, so that runs overlap: y = relu(x @ w) + x, and x + 1."""
    x = relay.var("x", shape=(EXTENT, EXTENT))
    weight = relay.const(np.eye(EXTENT, dtype="float32") * 2)
    body = x
    for _ in range(3):
        body = relay.nn.relu(relay.nn.dense(body, weight)) + x
    return tvm.IRModule.from_expr(
        relay.Function([x], relay.Tuple([body, x + relay.const(1.0, "float32")]))
    )


def answers(number: float) -> tuple[float, float]:
    """What the program makes of an input filled with a positive number."""
    found = number
    for _ in range(3):
        found = 2 * found + number
    return found, number + 1


def executors() -> dict[str, Run]:
    """Each kind, as a function that gives both outputs as numpy arrays."""
    graph = GraphModule(relay.build(program(), "llvm")["default"](tvm.cpu()))
    aot_lib = relay.build(program(), "llvm", executor=relay.backend.Executor("aot"))
    aot = AotModule(aot_lib["default"](tvm.cpu()))
    machine = VirtualMachine(relay.vm.compile(program(), "llvm"), tvm.cpu())
    return {
        "graph, run(x=...)": lambda number: _at_once(graph, number),
        "graph, set_input": lambda number: _step_by_step(graph, number),
        "aot, run(x=...)": lambda number: _at_once(aot, number),
        "aot, set_input": lambda number: _step_by_step(aot, number),
        "vm, run": lambda number: [out.numpy() for out in machine.run(_filled(number))],
        "vm, set_input": lambda number: _machine_step_by_step(machine, number),
    }


def _filled(number: float) -> tvm.nd.NDArray:
    return tvm.nd.array(np.full((EXTENT, EXTENT), number, "float32"))


def _at_once(module: GraphModule | AotModule, number: float) -> list[Any]:
    module.run(x=_filled(number))
    return [module.get_output(i).numpy() for i in range(2)]


def _step_by_step(module: GraphModule | AotModule, number: float) -> list[Any]:
    module.set_input("x", _filled(number))
    module.run()
    return [module.get_output(i).numpy() for i in range(2)]


def _machine_step_by_step(machine: VirtualMachine, number: float) -> list[Any]:
    machine.set_input("main", _filled(number))
    machine.invoke_stateful("main")
    return [out.numpy() for out in machine.get_outputs()]


def shared_runs(run: Run, count: int, threads: int = 4) -> Counter[str]:
    """Let threads share an executor: how many runs were right, wrong, or rejected."""
    found: Counter[str] = Counter()
    lock = threading.Lock()

    def work(thread: int) -> None:
        mine: Counter[str] = Counter()
        for i in range(count // threads):
            number = 1.0 + thread + threads * (i % 50)
            try:
                outputs = run(number)
            except TVMError as error:
                assert "another thread" in str(error), error
                mine["rejected"] += 1
                continue
            is_right = all(
                (out == want).all() for out, want in zip(outputs, answers(number), strict=True)
            )
            mine["right" if is_right else "wrong"] += 1
        with lock:
            found.update(mine)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(before)
    return found


@contextmanager
def load(runs: dict[str, Run]) -> Iterator[None]:
    """Threads that run the executors, look up functions and allocate meanwhile."""
    stop = threading.Event()

    def work(run: Run) -> None:
        while not stop.is_set():
            with suppress(TVMError):
                run(2.0)
            tvm.get_global_func("testing.echo")
            tvm.nd.empty((3, 3))

    workers = [threading.Thread(target=work, args=(run,), daemon=True) for run in runs.values()]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        stop.set()
        for worker in workers:
            worker.join()


def forks(runs: dict[str, Run], count: int, seconds: float = 60) -> Counter[str]:
    """Fork while other threads run models: children that ran each model too, failed, or hung."""
    found: Counter[str] = Counter()
    with load(runs):
        for _ in range(count):
            child = os.fork()
            if child == 0:
                _run_in_child(runs)
            found[_outcome(child, seconds)] += 1
    return found


def _run_in_child(runs: dict[str, Run]) -> None:
    status = 1
    try:
        wanted = answers(3.0)
        for run in runs.values():
            outputs = run(3.0)
            assert all((out == want).all() for out, want in zip(outputs, wanted, strict=True))
        assert "testing.echo" in list_global_func_names()
        status = 0
    finally:
        os._exit(status)


def _outcome(child: int, seconds: float) -> str:
    """How the child ended; one that does not end in time is killed."""
    watch = os.pidfd_open(child)
    try:
        is_over = bool(select.select([watch], [], [], seconds)[0])
    finally:
        os.close(watch)
    if not is_over:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not is_over:
        return "hung"
    if os.WIFSIGNALED(status):
        return f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return "ran" if status == 0 else "failed"


def any_values() -> list[Any]:
    """Arguments of each kind that can cross, and numbers that nobody expects."""
    array = tvm.nd.array(np.arange(6, dtype="float32").reshape(2, 3))
    return [
        None, 0, 1, -1, 7, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63), 2**40, 1.5, -1e300, True,
        float("nan"), float("inf"), "", "llvm", "float32", "x", "/nowhere", "a" * 5000,
        b"", b"\xff\x00bytes", bytearray(b"abc"), array, tvm.nd.array(np.arange(4)),
        tvm.nd.empty((0, 3)), tvm.nd.array(np.float32(1)), tvm.cpu(), tvm.cpu(5), tvm.cuda(7),
        tvm.runtime.Device(77, -4), tvm.DataType("int8x4"), tvm.DataType("handle"),
        [], [1, 2], [array, array], (), {}, {"a": 1}, object(), int, len,
        tvm.get_global_func("testing.echo"), tvm.get_global_func("testing.FrontendTestModule")(),
        tvm.runtime.ShapeTuple([1, 2]), ctypes.c_void_p(0), tvm.tir.Var("x", "int32"),
        te.placeholder((2,)), np.zeros(3, "float32"),
    ]  # fmt: skip


def argument_lists(drawn: random.Random, rounds: int) -> list[tuple[Any, ...]]:
    values = any_values()
    return [
        (), (None,), (None, None), (None, None, None), (None,) * 8,
        *[(value,) for value in values], *[(value,) * 3 for value in values],
        *[tuple(drawn.choices(values, k=drawn.randint(1, 9))) for _ in range(rounds)],
    ]  # fmt: skip


def functions() -> dict[str, Callable[..., Any]]:
    """The global functions, and those of executors, executables and factories."""
    names = [name for name in list_global_func_names() if name not in TOLD]
    found = {name: tvm.get_global_func(name) for name in names}
    lib = relay.build(program(), "llvm")
    aot_lib = relay.build(program(), "llvm", executor=relay.backend.Executor("aot"))
    exe = relay.vm.compile(program(), "llvm")
    machine = VirtualMachine(exe, tvm.cpu()).module
    executor = [
        "run", "set_input", "get_output", "get_input", "set_input_zero_copy", "get_num_inputs",
        "set_output_zero_copy", "get_num_outputs", "get_input_index", "run_from_inputs",
        "run_with_inputs", "get_input_info_json", "get_unset_inputs_json",
    ]  # fmt: skip
    graph = [*executor, "load_params", "share_params", "get_output_index", "get_input_info"]
    debug = [
        "execute_node", "get_node_output", "debug_get_output", "run_individual", "profile",
        "run_individual_node", "profile_rpc",
    ]  # fmt: skip
    modules: list[tuple[str, Any, list[str]]] = [
        ("graph", lib["default"](tvm.cpu()), graph),
        ("debug", GraphModuleDebug(
            lib["debug_create"]("default", tvm.cpu()), [tvm.cpu()], lib.get_graph_json(), None
        ).module, [*graph, *debug]),
        ("graph factory", lib.module, [
            "default", "debug_create", "remove_params", "get_graph_json", "get_params",
        ]),
        ("aot", aot_lib["default"](tvm.cpu()), [
            *executor, "get_input_name", "get_output_name", "get_output_info_json",
        ]),
        ("aot factory", aot_lib.module, ["default", "remove_params", "list_module_names"]),
        ("machine", machine, [
            "init", "set_input", "set_one_input", "set_outputs", "invoke", "invoke_stateful",
            "invoke_with", "invoke_stateful_with", "invoke_with_outputs", "get_output",
            "invoke_return_to_device", "get_num_outputs", "get_input_index",
            "load_late_bound_consts", "load_late_bound_consts_from_map",
        ]),
        ("executable", exe.mod, [
            "get_bytecode", "get_constants", "get_primitives", "get_lib", "get_function_name",
            "get_primitive_name", "get_function_arity", "get_function_param_name", "save",
            "vm_load_executable", "vm_profiler_load_executable", "move_late_bound_consts",
            "get_late_bound_consts", "load_late_bound_consts", "load_late_bound_consts_from_map",
        ]),
    ]  # fmt: skip
    for kind, module, names in modules:
        found |= {f"{name} of {kind}": module[name] for name in names}
    return found


def crashes(seed: int, rounds: int, seconds: int = 60) -> dict[str, str]:
    """Call each function with anything, in a process of its own: those that end or hang it."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, function in functions().items():
            child = os.fork()
            if child == 0:
                _call_in_child(function, random.Random(f"{seed} {name}"), rounds, folder)
            outcome = _outcome(child, seconds)
            if outcome != "ran":
                found[name] = outcome
    return found


def _call_in_child(
    function: Callable[..., Any], drawn: random.Random, rounds: int, folder: str
) -> None:
    faulthandler.disable()  # the parent tells what happened
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nowhere, descriptor)
    os.chdir(folder)  # some write files
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 24, 1 << 24))
    for arguments in argument_lists(drawn, rounds):
        with suppress(Exception, SystemExit, KeyboardInterrupt):
            result = function(*arguments)
            if isinstance(result, tvm.runtime.PackedFunc):
                result(*drawn.choices(arguments, k=3) if arguments else ())
            elif isinstance(result, tvm.nd.NDArray) and result.size < 1000:
                result.numpy()
    os._exit(0)


def main() -> None:
    """Count as many as the command line says."""
    kind, count = sys.argv[1], int(sys.argv[2])
    start = time.monotonic()
    if kind == "runs":
        for name, run in executors().items():
            print(name, dict(shared_runs(run, count)), flush=True)
    elif kind == "forks":
        runs = {name: run for name, run in executors().items() if "run" in name}
        print(dict(forks(runs, count)))
    else:
        print(crashes(seed=count, rounds=count), "of", len(functions()))
    print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()


def packed_call(name: str) -> GraphModule:
    """An executor of a graph whose one kernel is a packed function, called with `x` and the result."""
    a = te.placeholder((2,), name="a")
    b = te.extern(a.shape, [a], lambda i, o: tvm.tir.call_packed(name, i[0], o[0]))
    kernels = tvm.build(te.create_schedule(b.op), [a, b], "llvm", name="copy")
    graph = (
        '{"nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "tvm_op", "name": "y",'
        ' "attrs": {"func_name": "copy", "num_inputs": "1", "num_outputs": "1",'
        ' "flatten_data": "0"}, "inputs": [[0, 0, 0]]}], "arg_nodes": [0], "heads": [[1, 0, 0]],'
        ' "node_row_ptr": [0, 1, 2], "attrs": {"dltype": ["list_str", ["float32", "float32"]],'
        ' "storage_id": ["list_int", [0, 1]], "shape": ["list_shape", [[2], [2]]]}}'
    )
    return tvm.contrib.graph_executor.create(graph, kernels, tvm.cpu())
