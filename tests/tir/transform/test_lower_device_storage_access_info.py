from __future__ import annotations

from typing import Any

import pytest

import tvm
from tvm import tir
from tvm.error import LoweringError
from tvm.tir.stmt import Allocate, Evaluate, LetStmt, SeqStmt
from tvm.tir.transform import LowerDeviceStorageAccessInfo

from .checks import apply, assert_unchanged
from .programs import function


def describe(scope: str, **changes: Any) -> None:
    rows = {"unit_bits": 128, "max_num_bits": 4096, "max_simd_bits": 128, "head_address": None}

    @tvm.register_func(f"tvm.info.mem.{scope}", override=True)
    def info() -> Any:
        return tvm.ir.make_node("MemoryInfo", **{**rows, **changes})


def using(scope: str, size: int, ptr_type: str = "int32", offset: int = 32) -> tir.PrimFunc:
    memory = tir.decl_buffer((size,), "int8", "M", scope=scope)
    pointer = memory.access_ptr("r", ptr_type=ptr_type, offset=offset)
    body = Evaluate(tir.call_extern("int32", "load", pointer))
    return function([], Allocate(memory.data, "int8", [size], True, body))


def test_addresses_count_the_units_of_the_memory() -> None:
    describe("local.te_units")
    body = apply(LowerDeviceStorageAccessInfo(), using("local.te_units", 64)).body
    assert isinstance(body, Evaluate) and str(body.value.args[1]) == "2"


def test_memory_with_an_address_is_pointed_into() -> None:
    describe("local.te_head", head_address=tir.reinterpret("handle", tir.const(4096, "uint64")))
    body = apply(LowerDeviceStorageAccessInfo(), using("local.te_head", 64, "handle")).body
    assert isinstance(body, LetStmt) and body.body.value.args[1].op.name == "tir.address_of"


@pytest.mark.parametrize("changes, size, message", [
    ({"unit_bits": 12}, 64, "an address counts 12 bits"),
    ({"max_num_bits": 64}, 64, "has 64 bits"),
])  # fmt: skip
def test_what_does_not_fit_the_unit_is_rejected(
    changes: dict[str, int], size: int, message: str
) -> None:
    describe("local.te_wrong", **changes)
    with pytest.raises(LoweringError, match=message):
        apply(LowerDeviceStorageAccessInfo(), using("local.te_wrong", size))


def test_memory_is_allocated_once() -> None:
    describe("local.te_once")
    twice = SeqStmt([using("local.te_once", 64).body for _ in range(2)])
    with pytest.raises(LoweringError, match="allocated once only"):
        apply(LowerDeviceStorageAccessInfo(), function([], twice))


def test_memory_without_a_description_stays() -> None:
    assert_unchanged(LowerDeviceStorageAccessInfo(), using("local.te_unknown", 64, "handle"))
    assert_unchanged(LowerDeviceStorageAccessInfo(), using("local", 64, "handle"))
