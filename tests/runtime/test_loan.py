"""Packed functions take tensors of numpy, PyTorch and whatever else has DLPack."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import tvm
from tvm import relay, te
from tvm.contrib import graph_executor
from tvm.runtime.vm import VirtualMachine


@pytest.fixture(scope="module")
def add_one() -> tvm.runtime.Module:
    """B = A + 1, over a vector of any length."""
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    return tvm.build(te.create_schedule(b.op), [a, b], "llvm")


def misaligned(count: int) -> np.ndarray:
    """Zeros that do not begin at a multiple of 64 bytes."""
    memory = np.zeros(count + 32, "float32")
    start = next(i for i in range(1, 17) if memory[i:].ctypes.data % 64)
    return memory[start : start + count]


def aligned(count: int) -> np.ndarray:
    """Zeros that begin at a multiple of 64 bytes."""
    memory = np.zeros(count + 32, "float32")
    start = next(i for i in range(17) if memory[i:].ctypes.data % 64 == 0)
    return memory[start : start + count]


class Wrapped:
    """A tensor that has DLPack and nothing else."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, stream: object = None) -> object:
        return self.tensor.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()


@pytest.mark.parametrize("make", [
    aligned,
    misaligned,
    torch.zeros,
    lambda n: torch.zeros(n + 3)[3:],
    lambda n: np.zeros(2 * n, "float32")[::2],
    lambda n: torch.zeros(2 * n)[::2],
])  # fmt: skip
def test_results_are_written_in_place(add_one: tvm.runtime.Module, make: Callable) -> None:
    data, result = make(10), make(10)
    data[:] = 3
    add_one(data, result)
    assert list(result) == [4] * 10 and list(data) == [3] * 10


def test_anything_with_dlpack_is_taken(add_one: tvm.runtime.Module) -> None:
    data, result = torch.zeros(5), torch.zeros(5)
    add_one(Wrapped(data), Wrapped(result))
    assert result.tolist() == [1] * 5


def test_aligned_memory_is_not_copied() -> None:
    seen = []
    take = tvm.runtime.convert(lambda array: seen.append(array.data_address))
    data, other = aligned(4), misaligned(4)
    take(data)
    take(other)
    assert seen[0] == data.ctypes.data and seen[1] != other.ctypes.data


def test_one_tensor_given_twice_stays_one(add_one: tvm.runtime.Module) -> None:
    data = misaligned(6)
    add_one(data, data)
    assert data.tolist() == [1] * 6


def test_tensors_that_may_only_be_read_are_inputs(add_one: tvm.runtime.Module) -> None:
    data, result = np.arange(3, dtype="float32"), np.zeros(3, "float32")
    data.flags.writeable = False
    add_one(data, result)
    assert result.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="a tensor that may only be read, which stays as it was"):
        add_one(result, data)
    assert data.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.array(["text"]), "argument 0 of type ndarray: compiled code takes numbers"),
        (np.zeros(3, ">f4"), "in the machine's order"),
        (np.zeros(3, "int8"), r"argument 0 \(buffer A\)"),
        (torch.zeros(3, requires_grad=True), "argument 0 of type Tensor: .*detach"),
    ],
)
def test_wrong_tensors_are_rejected(
    add_one: tvm.runtime.Module, wrong: object, message: str
) -> None:
    with pytest.raises((TypeError, ValueError, BufferError), match=message):
        add_one(wrong, np.zeros(3, "float32"))


def dense(rows: object) -> tvm.IRModule:
    data = relay.var("data", shape=(rows, 4))
    return tvm.IRModule.from_expr(relay.Function([data], data + relay.const(1.0)))


def test_executors_take_tensors_of_pytorch() -> None:
    model = graph_executor.GraphModule(relay.build(dense(2), "llvm")["default"](tvm.cpu()))
    model.set_input("data", torch.ones(2, 4))
    model.run()
    result = np.zeros((2, 4), "float32")
    model.get_output(0, result)
    assert result.tolist() == [[2] * 4] * 2
    model.run(data=torch.full((2, 4), 2.0))
    assert model.get_output(0).numpy().tolist() == [[3] * 4] * 2


def test_zero_copy_needs_aligned_memory() -> None:
    model = graph_executor.GraphModule(relay.build(dense(1), "llvm")["default"](tvm.cpu()))
    data, result = aligned(4).reshape(1, 4), aligned(4).reshape(1, 4)
    model.set_input_zero_copy("data", data)
    model.set_output_zero_copy(0, result)
    data[:] = 5
    model.run()
    assert result.tolist() == [[6] * 4]
    with pytest.raises(ValueError, match="aligned to 64 bytes"):
        model.set_input_zero_copy("data", misaligned(4).reshape(1, 4))


def test_the_virtual_machine_takes_tensors_of_pytorch() -> None:
    machine = VirtualMachine(relay.vm.compile(dense(relay.Any()), "llvm"), tvm.cpu())
    for rows in (2, 3):
        found = machine.run(torch.ones(rows + 1, 4)[1:])
        assert found.numpy().tolist() == [[2] * 4] * rows
