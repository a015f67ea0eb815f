"""Parameters are read when they are needed, and results handed over when they are made."""

from __future__ import annotations

from typing import Any

import numpy as np

import tvm
from tvm import relax
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R


@I.ir_module
class Transforms:
    @R.function
    def transform_params(a: R.Tensor(("n", 4), "float32"), b: R.Tensor((4,), "float32")) -> R.Tuple(
        R.Tensor((4,), "float32"), R.Tensor((4, "n"), "float32")
    ):
        R.func_attr({"relax.force_pure": True})
        t = R.permute_dims(a, [1, 0])
        return (b, t)


def values() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.random((3, 4), "float32"), rng.random(4, "float32")]


def test_packed_functions_give_and_take_tensors() -> None:
    log: list[Any] = []
    given = values()

    def get(index: int) -> tvm.nd.NDArray:
        log.append(("get", int(index)))
        return tvm.nd.array(given[index])

    def put(index: int, value: tvm.nd.NDArray) -> None:
        log.append(("set", int(index), value.numpy()))

    tvm.register_func("test.lazy.get", get, override=True)
    tvm.register_func("test.lazy.put", put, override=True)
    mod = transform.LazyTransformParams("test.lazy.get", "test.lazy.put")(Transforms)
    assert relax.analysis.well_formed(mod)
    assert mod.script().count("kill_object") == 2 and not mod["transform_params"].params
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    vm["transform_params"]()
    assert sorted(entry[:2] for entry in log) == [("get", 0), ("get", 1), ("set", 0), ("set", 1)]
    results = {entry[1]: entry[2] for entry in log if entry[0] == "set"}
    np.testing.assert_array_equal(results[0], given[1])
    np.testing.assert_array_equal(results[1], given[0].T)


def test_functions_may_be_parameters() -> None:
    mod = transform.LazySetOutput()(transform.LazyGetInput()(Transforms))
    assert relax.analysis.well_formed(mod)
    func = mod["transform_params"]
    assert [p.name_hint for p in func.params] == ["fget_param", "fset_output"]
    given, found = values(), {}

    def get(index: int, name: str) -> tvm.nd.NDArray:
        assert name == "ab"[index]
        return tvm.nd.array(given[index])

    def put(index: int, value: tvm.nd.NDArray) -> None:
        found[int(index)] = value.numpy()

    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    vm["transform_params"](tvm.runtime.convert(get), tvm.runtime.convert(put))
    np.testing.assert_array_equal(found[1], given[0].T)
