"""Arrays that live for a call only, and memory that may only be read."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest
import torch

import tvm
import tvm.runtime.ndarray as nd
from tvm import relay, te
from tvm.contrib.graph_executor import GraphModule
from tvm.runtime.vm import VirtualMachine


def kernel_that_calls(name: str) -> tvm.runtime.Module:
    a = te.placeholder((2,), name="a")
    b = te.extern(a.shape, [a], lambda i, o: tvm.tir.call_packed(name, i[0], o[0]))
    return tvm.build(te.create_schedule(b.op), [a, b], "llvm")


def test_an_array_that_a_callback_has_kept_says_that_its_call_is_over() -> None:
    kept: list[nd.NDArray] = []

    @tvm.register_func("tests.keep_arrays", override=True)
    def keep(x: nd.NDArray, out: nd.NDArray) -> None:
        assert x.is_view
        kept.extend([x, out, x.copyto(tvm.cpu())])
        out[:] = x.numpy() + 1

    x, y = nd.array(np.array([1, 2], "float32")), nd.empty((2,))
    kernel_that_calls("tests.keep_arrays")(x, y)
    assert y.numpy().tolist() == [2, 3] and kept[2].numpy().tolist() == [1, 2]
    for array in kept[:2]:
        for use in (
            array.numpy, lambda a=array: a.shape, lambda a=array: a.dtype, lambda a=array: a.handle,
            lambda a=array: a.copyto(tvm.cpu()), lambda a=array: x.copyto(a), array.to_dlpack,
            lambda a=array: a.view((2,)), lambda a=array: tvm.get_global_func("testing.echo")(a),
        ):  # fmt: skip
            with pytest.raises(ValueError, match="only valid during the call it was passed to"):
                use()


def test_an_array_of_a_call_that_goes_through_other_functions_is_copied() -> None:
    echo = tvm.get_global_func("testing.echo")
    kept: list[nd.NDArray] = []

    @tvm.register_func("tests.pass_arrays_on", override=True)
    def pass_on(x: nd.NDArray, out: nd.NDArray) -> nd.NDArray:
        kept.append(echo(x))
        with pytest.raises(ValueError, match="borrowed for a call cannot be shared"):
            x.view((2,))
        x.copyto(out)
        return x

    x, y = nd.array(np.array([1, 2], "float32")), nd.empty((2,))
    kernel_that_calls("tests.pass_arrays_on")(x, y)
    assert kept[0].numpy().tolist() == [1, 2]


def test_what_a_callback_returns_outlives_what_it_was_given() -> None:
    give_back = tvm.runtime.convert(lambda array: array)
    wrapped = tvm.get_global_func("testing.test_wrap_callback")
    assert wrapped is not None
    values = nd.array(np.arange(3.0))
    result = give_back(values)
    del values
    assert result.numpy().tolist() == [0, 1, 2]


def test_outputs_outlive_their_executor() -> None:
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    module = GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
    module.run(x=np.array([-1, 2], "float32"))
    output, shared = module.get_output(0), np.from_dlpack(module.get_output(0))
    del module
    assert output.numpy().tolist() == [0, 2] and shared.tolist() == [0, 2]


def read_only(values: np.ndarray) -> np.ndarray:
    values.flags.writeable = False
    return values


def test_memory_that_may_only_be_read_is_copied_and_stays_as_it_is() -> None:
    values = read_only(np.arange(3, dtype="float32"))
    array = nd.from_dlpack(values)
    assert array.is_readonly and array.numpy().tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="memory that may only be read"):
        array[:] = 7
    with pytest.raises(ValueError, match="memory that may only be read"):
        nd.array(np.ones(3, "float32")).copyto(array)
    with pytest.raises(ValueError, match="memory that may only be read"):
        array.view((3,)).copyfrom(np.ones(3, "float32"))
    a = te.placeholder((3,), name="a")
    b = te.compute((3,), lambda i: a[i] + 5)
    tvm.build(te.create_schedule(b.op), [a, b], "llvm")(nd.empty((3,)), array)
    assert values.tolist() == [0, 1, 2]
    copy = array.copyto(tvm.cpu())
    copy[:] = 7
    assert not copy.is_readonly


def test_pages_of_a_file_that_may_only_be_read_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "values"
    path.write_bytes(np.arange(2, dtype="float32").tobytes())
    with path.open("rb") as file:
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    array = nd.from_dlpack(np.frombuffer(pages, "float32"))
    a = te.placeholder((2,), name="a")
    b = te.compute((2,), lambda i: a[i] + 5)
    # a write into the pages would end the process
    tvm.build(te.create_schedule(b.op), [a, b], "llvm")(nd.empty((2,)), array)


def test_readers_learn_that_an_array_may_only_be_read() -> None:
    array = nd.from_dlpack(read_only(np.arange(3, dtype="float32")))
    again = np.from_dlpack(array)
    assert not again.flags.writeable and again.tolist() == [0, 1, 2]
    assert nd.from_dlpack(array).is_readonly
    with pytest.raises(BufferError, match="DLPack 1.0 and later"):
        array.to_dlpack()
    assert np.from_dlpack(nd.array(np.ones(3))).flags.writeable


def test_outputs_are_not_left_in_memory_that_may_only_be_read() -> None:
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    target = nd.from_dlpack(read_only(np.zeros(2, "float32")))
    module = GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
    with pytest.raises(ValueError, match="output 0 needs an array that may be written"):
        module.set_output_zero_copy(0, target)
    machine = VirtualMachine(relay.vm.compile(mod, "llvm"), tvm.cpu())
    with pytest.raises(ValueError, match="output 0 needs an array that may be written"):
        machine.set_outputs("main", target)
    with pytest.raises(ValueError, match="numpyasarray needs a writable array"):
        nd.numpyasarray(read_only(np.zeros(2)))


def test_inputs_may_be_memory_that_may_only_be_read() -> None:
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    module = GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
    values = read_only(np.array([-1, 2], "float32"))
    module.run(x=values)
    assert module.get_output(0).numpy().tolist() == [0, 2]
    module.run(x=nd.from_dlpack(values))
    module.set_input_zero_copy("x", nd.from_dlpack(values))
    module.run()
    assert module.get_output(0).numpy().tolist() == [0, 2]


def test_writable_memory_of_others_is_shared() -> None:
    tensor = torch.zeros(3)
    array = nd.from_dlpack(tensor)
    array[:] = 4
    assert not array.is_readonly and tensor.tolist() == [4, 4, 4]
