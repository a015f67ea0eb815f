"""Executors that several threads use: answers never mix."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tvm
from tests.runtime import stress
from tests.threads import run_in_threads
from tvm import relay
from tvm.contrib.graph_executor import GraphModule
from tvm.error import TVMError
from tvm.runtime.executor import AotModule
from tvm.runtime.vm import VirtualMachine

FULL = np.ones((stress.EXTENT, stress.EXTENT), "float32")


@pytest.fixture(scope="module")
def executors() -> dict[str, stress.Run]:
    return stress.executors()


@pytest.fixture(params=["graph", "aot"])
def module(request: pytest.FixtureRequest) -> GraphModule | AotModule:
    executor = relay.backend.Executor(request.param)
    lib = relay.build(stress.program(), "llvm", executor=executor)
    return (GraphModule if request.param == "graph" else AotModule)(lib["default"](tvm.cpu()))


@pytest.fixture
def other() -> Any:
    """A thread beside this one: calls a function there and waits."""
    with ThreadPoolExecutor(1) as pool:
        yield lambda func, *args, **kwargs: pool.submit(func, *args, **kwargs).result()


@pytest.mark.parametrize(
    "kind",
    ["graph, run(x=...)", "graph, set_input", "aot, run(x=...)", "aot, set_input", "vm, run",
     "vm, set_input"],
)  # fmt: skip
def test_no_thread_gets_the_answer_of_another(executors: dict[str, stress.Run], kind: str) -> None:
    found = stress.shared_runs(executors[kind], 400)
    assert found["wrong"] == 0 and found.total() == 400
    assert kind != "vm, run" or found["right"] == 400


def test_a_run_with_inputs_that_another_thread_has_replaced_is_rejected(
    module: GraphModule | AotModule, other: Any
) -> None:
    module.set_input("x", FULL)
    other(module.set_input, "x", 2 * FULL)
    with pytest.raises(TVMError, match=r"another thread has set input 0 \('x'\)"):
        module.run()
    module.run(x=FULL)
    np.testing.assert_array_equal(module.get_output(1).numpy(), FULL + 1)


def test_outputs_that_another_run_has_replaced_are_rejected(
    module: GraphModule | AotModule, other: Any
) -> None:
    module.run(x=FULL)
    np.testing.assert_array_equal(module.get_output(0).numpy(), stress.answers(1)[0] * FULL)
    other(module.run, x=2 * FULL)
    with pytest.raises(TVMError, match="another thread has run the model.* output 1 of it is gone"):
        module.get_output(1)


def test_an_array_that_a_thread_has_got_outlives_the_runs_of_others(
    module: GraphModule | AotModule, other: Any
) -> None:
    module.run(x=FULL)
    mine = [module.get_output(i) for i in range(2)]
    other(module.run, x=2 * FULL)
    for array, wanted in zip(mine, stress.answers(1), strict=True):
        np.testing.assert_array_equal(array.numpy(), wanted * FULL)


def test_another_thread_may_run_what_this_one_has_set(
    module: GraphModule | AotModule, other: Any
) -> None:
    module.set_input("x", FULL)
    for _ in range(2):
        other(module.run)
        np.testing.assert_array_equal(module.get_output(1).numpy(), FULL + 1)


def test_a_thread_that_runs_again_finds_its_array_overwritten(
    module: GraphModule | AotModule,
) -> None:
    module.run(x=FULL)
    array = module.get_output(1)
    module.run(x=2 * FULL)
    np.testing.assert_array_equal(array.numpy(), 2 * FULL + 1)


def test_a_machine_rejects_inputs_and_results_that_another_thread_has_replaced(other: Any) -> None:
    machine = VirtualMachine(relay.vm.compile(stress.program(), "llvm"), tvm.cpu())
    machine.set_input("main", FULL)
    other(machine.set_input, "main", 2 * FULL)
    with pytest.raises(TVMError, match="another thread has set input 0"):
        machine.invoke("main")
    machine.invoke_stateful("main", FULL)
    other(machine.invoke_stateful, "main", 2 * FULL)
    with pytest.raises(TVMError, match="another thread has run"):
        machine.get_outputs()


def test_a_callback_of_a_run_may_use_the_executor() -> None:
    found: list[int] = []

    @tvm.register_func("tests.ask_executor", override=True)
    def ask(x: tvm.nd.NDArray, out: tvm.nd.NDArray) -> None:
        found.append(module.get_num_inputs())
        x.copyto(out)

    module = stress.packed_call("tests.ask_executor")
    module.run(x=np.array([1, 2], "float32"))
    assert found == [1] and module.get_output(0).numpy().tolist() == [1, 2]


def test_executors_of_one_library_run_side_by_side() -> None:
    lib = relay.build(stress.program(), "llvm")
    wrong: list[int] = []

    def work(thread: int) -> None:
        mine = GraphModule(lib["default"](tvm.cpu()))
        for i in range(30):
            mine.run(x=(thread + i) * FULL)
            if (mine.get_output(1).numpy() != thread + i + 1).any():
                wrong.append(i)

    run_in_threads(work, [(i,) for i in range(4)])
    assert not wrong
