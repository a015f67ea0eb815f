"""CUDA C++, for NVRTC and nvcc alike: it needs no header of the toolkit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tvm.codegen.c.arithmetic import bare
from tvm.codegen.c.helpers import Helper
from tvm.codegen.c.types import TYPES
from tvm.error import LoweringError
from tvm.support.dtype import DType
from tvm.tir.expr import Call

from .intrinsics import COMMON, atomic_target, packed_bytes
from .kernel import KernelWriter
from .language import Language, WriteCall
from .ptx import PTX
from .wmma import WMMA, Fragment, declare

_PRELUDE = """\
#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
#else
#include <stdint.h>
#endif
#ifndef NULL
#define NULL 0
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#define INFINITY __int_as_float(0x7f800000)
#endif
#define TVM_RESTRICT __restrict__
#define TVM_ALIGNED(bytes) __align__(bytes)
template <class T, int N>
struct __align__(sizeof(T) * N) tvm_vector {
  T lane[N];
};
"""


def _conversion(name: str, result: str, source: str, instruction: str, kinds: str) -> Helper:
    """One instruction that converts a number; ``kinds`` are the registers of result and operand."""
    out, given = kinds[0], kinds[1]
    return Helper(f"""\
static __device__ __forceinline__ {result} {name}({source} x) {{
  {result} y;
  asm("{instruction} %0, %1;" : "={out}"(y) : "{given}"(x));
  return y;
}}
""")


_NAMES = {
    "int8_t": "char", "uint8_t": "uchar", "int16_t": "short", "uint16_t": "ushort", "int32_t": "int",
    "uint32_t": "uint", "int64_t": "long", "uint64_t": "ulong", "float": "float", "double": "double",
}  # fmt: skip
_WIDE = "unsigned long long"
_XYZW = "xyzw"


def _shuffle(function: str) -> WriteCall:
    """The value of another thread of the warp."""

    def write(w: KernelWriter, call: Call) -> str:
        mask, value, lane, width, _ = [w.visit(arg) for arg in call.args]
        type_ = TYPES[call.dtype.element]
        if type_.bits < 32:
            value = f"(int32_t){value}"
        operands = f"(uint32_t){mask}, {value}, {bare(lane)}, {bare(width)}"
        return w.code.define(type_.text, "shuffled", f"({type_.text}){function}({operands})")

    return write


def _active_mask(w: KernelWriter, call: Call) -> str:
    return w.code.define(TYPES[call.dtype].text, "mask", "__activemask()")


def _atomic_add(w: KernelWriter, call: Call) -> str:
    pointer, _, dtype = atomic_target(w, call)
    value, type_ = w.visit(call.args[1]), TYPES[dtype]
    if type_.kind not in ("signed", "unsigned", "float") or type_.bits < 32:
        raise LoweringError(
            f"cuda has atomic additions of integers and floats of 32 and 64 bits, got {dtype}",
            at=call,
        )
    if type_.kind != "float" and type_.bits == 64:
        pointer, value = f"({_WIDE}*){pointer}", f"({_WIDE}){value}"
    return w.code.define(type_.text, "before", f"({type_.text})atomicAdd({pointer}, {value})")


def _dp4a(w: KernelWriter, call: Call) -> str:
    a, b, acc = call.args
    is_unsigned = a.dtype.is_uint and b.dtype.is_uint
    kind = "uint32_t" if is_unsigned else "int32_t"
    left, right = packed_bytes(w, a), packed_bytes(w, b)
    return f"__dp4a(({kind}){left}, ({kind}){right}, ({kind}){w.visit(acc)})"


class CUDA(Language):
    """CUDA C++."""

    name = "cuda"
    prelude = _PRELUDE
    widest_access = 16
    needs_alignment = True
    helpers: ClassVar[Mapping[str, Helper]] = {
        "tvm_bits_of_float": Helper("#define tvm_bits_of_float __float_as_uint\n"),
        "tvm_float_of_bits": Helper("#define tvm_float_of_bits __uint_as_float\n"),
        "tvm_float_of_half": _conversion(
            "tvm_float_of_half", "float", "uint16_t", "cvt.f32.f16", "fh"
        ),
        "tvm_half_of_float": _conversion(
            "tvm_half_of_float", "uint16_t", "float", "cvt.rn.f16.f32", "hf"
        ),
    }
    intrinsics: ClassVar[Mapping[str, WriteCall]] = {
        **COMMON,
        "tir.tvm_warp_shuffle": _shuffle("__shfl_sync"),
        "tir.tvm_warp_shuffle_up": _shuffle("__shfl_up_sync"),
        "tir.tvm_warp_shuffle_down": _shuffle("__shfl_down_sync"),
        "tir.tvm_warp_activemask": _active_mask,
        "tir.atomic_add": _atomic_add,
        "tir.dp4a": _dp4a,
        **PTX,
        **WMMA,
    }

    def adapted(self, text: str) -> str:
        return text.replace("static inline", "static __device__ __forceinline__")

    def signature(self, name: str, params: Sequence[str], block: Sequence[int | None]) -> str:
        bounds = ""
        if None not in block:
            threads = 1
            for extent in block:
                threads *= extent or 1
            bounds = f"__launch_bounds__({threads}) "
        return f'extern "C" __global__ void {bounds}{name}({", ".join(params)})'

    def address_space(self, scope: str) -> str:
        return ""

    def thread(self, axis: str) -> str:
        return axis

    def shared_array(self, type_: str, name: str, size: int) -> str:
        return f"__shared__ TVM_ALIGNED(16) {type_} {name}[{size}];"

    def fragments(self, w: KernelWriter, name: str, kind: Fragment, elements: int) -> None:
        declare(w, name, kind, elements)

    def dynamic_array(self, name: str) -> tuple[str, str]:
        return "", f"extern __shared__ TVM_ALIGNED(16) uint8_t {name}[];"

    def math(self, name: str, bits: int) -> str:
        return name + ("f" if bits == 32 else "")

    def barrier(self, scope: str) -> str:
        if scope.startswith("shared"):
            return "__syncthreads()"
        if scope == "warp":
            return "__syncwarp()"
        raise LoweringError(f"cuda has no barrier for memory of scope {scope}")

    def vector_type(self, element: DType, lanes: int) -> str:
        return self._vector(TYPES[element].memory, lanes)

    @staticmethod
    def _vector(type_: str, lanes: int) -> str:
        return f"{_NAMES[type_]}{lanes}" if lanes <= 4 else f"tvm_vector<{type_}, {lanes}>"

    def lane(self, vector: str, index: int, lanes: int) -> str:
        return f"{vector}.{_XYZW[index]}" if lanes <= 4 else f"{vector}.lane[{index}]"

    def vector_load(self, pointer: str, type_: str, space: str, lanes: int) -> str:
        return f"*(const {self._vector(type_, lanes)}*)({pointer})"

    def vector_store(self, pointer: str, type_: str, space: str, values: Sequence[str]) -> str:
        lanes, items = len(values), ", ".join(values)
        vector = self._vector(type_, lanes)
        value = f"make_{vector}({items})" if lanes <= 4 else f"{vector}{{{{{items}}}}}"
        return f"*({vector}*)({pointer}) = {value}"
