"""OpenCL C."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from tvm.codegen.c.helpers import Helper
from tvm.codegen.c.types import TYPES
from tvm.error import LoweringError
from tvm.support.dtype import DType
from tvm.tir.expr import Call

from .intrinsics import COMMON, atomic_target, dot_of_bytes
from .kernel import KernelWriter
from .language import Language, WriteCall

_PRELUDE = """\
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
typedef char int8_t;
typedef uchar uint8_t;
typedef short int16_t;
typedef ushort uint16_t;
typedef int int32_t;
typedef uint uint32_t;
typedef long int64_t;
typedef ulong uint64_t;
#define TVM_RESTRICT restrict
#define TVM_ALIGNED(bytes) __attribute__((aligned(bytes)))
"""

_BITS = {
    "tvm_bits_of_float": Helper("#define tvm_bits_of_float as_uint\n"),
    "tvm_float_of_bits": Helper("#define tvm_float_of_bits as_float\n"),
}

_LONG = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)(U?)LL\b")
_AXES = {"x": 0, "y": 1, "z": 2}
_NAMES = {
    "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort", "int32": "int",
    "uint32": "uint", "int64": "long", "uint64": "ulong", "float32": "float", "float64": "double",
}  # fmt: skip


def _float_atomic(space: str) -> Helper:
    """An addition of floats by comparing and exchanging their bits."""
    return Helper(f"""\
static inline float tvm_atomic_add_float_{space}(volatile __{space} float* at, float x) {{
  volatile __{space} uint* bits = (volatile __{space} uint*)at;
  uint before = *bits;
  for (;;) {{
    const uint found = atomic_cmpxchg(bits, before, as_uint(as_float(before) + x));
    if (found == before) return as_float(before);
    before = found;
  }}
}}
""")


def _atomic_add(w: KernelWriter, call: Call) -> str:
    pointer, space, dtype = atomic_target(w, call)
    value = w.visit(call.args[1])
    if dtype.bits != 32 or not (dtype.is_int or dtype.is_uint or dtype.is_float):
        raise LoweringError(
            f"opencl has atomic additions of int32, uint32 and float32, got {dtype}", at=call
        )
    if dtype.is_float:
        where = "local" if space.startswith("__local") else "global"
        return w.code.define(
            "float", "before", w.helper(f"tvm_atomic_add_float_{where}", pointer, value)
        )
    return w.code.define(TYPES[dtype].text, "before", f"atomic_add({pointer}, {value})")


class OpenCL(Language):
    """OpenCL C 1.2."""

    name = "opencl"
    prelude = _PRELUDE
    widest_access = 128
    needs_alignment = False
    helpers: ClassVar[Mapping[str, Helper]] = {
        **_BITS,
        "tvm_atomic_add_float_global": _float_atomic("global"),
        "tvm_atomic_add_float_local": _float_atomic("local"),
    }
    intrinsics: ClassVar[Mapping[str, WriteCall]] = {
        **COMMON,
        "tir.atomic_add": _atomic_add,
        "tir.dp4a": dot_of_bytes,
    }

    def adapted(self, text: str) -> str:
        return _LONG.sub(r"\1\2L", text)

    def signature(self, name: str, params: Sequence[str], block: Sequence[int | None]) -> str:
        sizes = ", ".join([str(size) for size in block])
        known = f"__attribute__((reqd_work_group_size({sizes}))) " if None not in block else ""
        return f"__kernel {known}void {name}({', '.join(params)})"

    def address_space(self, scope: str) -> str:
        if scope.startswith("shared"):
            return "__local "
        return "" if scope == "local" else "__global "

    def thread(self, axis: str) -> str:
        kind, _, letter = axis.partition(".")
        function = "get_group_id" if kind == "blockIdx" else "get_local_id"
        return f"{function}({_AXES[letter]})"

    def shared_array(self, type_: str, name: str, size: int) -> str:
        return f"__local TVM_ALIGNED(16) {type_} {name}[{size}];"

    def dynamic_array(self, name: str) -> tuple[str, str]:
        return f"__local uint8_t* {name}", ""

    def math(self, name: str, bits: int) -> str:
        return name

    def barrier(self, scope: str) -> str:
        if scope.startswith("shared"):
            return "barrier(CLK_LOCAL_MEM_FENCE)"
        if scope == "warp":
            return ""
        return "barrier(CLK_GLOBAL_MEM_FENCE)"

    def vector_type(self, element: DType, lanes: int) -> str:
        return f"{self._element(element)}{lanes}"

    def _element(self, element: DType) -> str:
        memory = TYPES[element].memory
        return _NAMES.get(memory.removesuffix("_t"), memory)

    def lane(self, vector: str, index: int, lanes: int) -> str:
        return f"{vector}.s{index:x}"

    def vector_load(self, pointer: str, type_: str, space: str, lanes: int) -> str:
        return f"vload{lanes}(0, {pointer})"

    def vector_store(self, pointer: str, type_: str, space: str, values: Sequence[str]) -> str:
        vector = f"{_NAMES.get(type_.removesuffix('_t'), type_)}{len(values)}"
        return f"vstore{len(values)}(({vector})({', '.join(values)}), 0, {pointer})"
