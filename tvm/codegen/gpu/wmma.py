"""Fragments of matrix units in CUDA C++: tiles that the threads of a warp hold together.

    nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, half, nvcuda::wmma::row_major> A[2];
    nvcuda::wmma::load_matrix_sync(A[0], (half*)A_shared, 32);

The toolkit's header ``mma.h`` defines them. NVRTC comes without headers: there, the text defines what it uses of them
itself, by the instructions of PTX.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tvm.codegen.c.arithmetic import bare
from tvm.error import LoweringError
from tvm.tir.expr import Call, StringImm, Var
from tvm.tir.interp_matrix_units import fragment_extents

from .language import WriteCall
from .ptx import Registers, constraints_of

if TYPE_CHECKING:
    from .kernel import KernelWriter

# the type of elements in C++, and in PTX
_ELEMENTS = {
    "float16": ("half", "f16"), "bfloat16": ("__nv_bfloat16", "bf16"), "float32": ("float", "f32"),
    "float64": ("double", "f64"), "int8": ("signed char", "s8"), "uint8": ("unsigned char", "u8"),
    "int32": ("int", "s32"),
}  # fmt: skip
_MATRICES = {"wmma.matrix_a": "a", "wmma.matrix_b": "b", "wmma.accumulator": "c"}
WARP = 32

_HEADER = """\
#ifdef __has_include
#if __has_include(<mma.h>)
#define TVM_HAS_MMA_HEADER
#include <mma.h>
#include <cuda_bf16.h>
#endif
#endif
#ifndef TVM_HAS_MMA_HEADER
struct half { uint16_t bits; };
struct __nv_bfloat16 { uint16_t bits; };
namespace nvcuda { namespace wmma {
struct matrix_a; struct matrix_b; struct accumulator; struct row_major; struct col_major;
enum layout_t { mem_row_major, mem_col_major };
template <class Use, int M, int N, int K, class T, class Layout = void> struct fragment;
} }
#endif
"""


@dataclass(frozen=True, slots=True)
class Fragment:
    """The kind of a fragment."""

    scope: str
    shape: tuple[int, int, int]
    dtype: str
    layout: str  # row_major or col_major, of factors

    @staticmethod
    def of(var: Var, dtype: str, shape: str, layout: str) -> Fragment:
        """What the attributes of an allocation tell."""
        m, n, k = [int(extent) for extent in shape.split(",")]
        scope = str(getattr(var.type_annotation, "storage_scope", ""))
        if dtype not in _ELEMENTS or scope not in _MATRICES:
            raise LoweringError(
                f"cuda has fragments of {', '.join(_ELEMENTS)}, got {dtype} in scope {scope}",
                at=var,
            )
        return Fragment(scope, (m, n, k), dtype, layout)

    @property
    def elements(self) -> int:
        """How many elements it has."""
        rows, columns = fragment_extents(self.scope, self.shape)
        return rows * columns

    @property
    def element(self) -> str:
        """The type of its elements in C++."""
        return _ELEMENTS[self.dtype][0]

    @property
    def letter(self) -> str:
        """The operand that it is, in PTX."""
        return _MATRICES[self.scope]

    @property
    def instruction(self) -> tuple[str, str]:
        """Its shape and type, as PTX names them."""
        return "m{}n{}k{}".format(*self.shape), _ELEMENTS[self.dtype][1]

    @property
    def registers(self) -> Registers:
        """The registers of each thread; factors of float16 are there twice."""
        kind = _ELEMENTS[self.dtype][1]
        if self.letter != "c" and kind == "f16":
            return Registers("b32", 8)
        bits = {"f64": 64, "f32": 32, "s32": 32, "f16": 16, "bf16": 16}.get(kind, 8)
        return Registers.of(self.elements // WARP, kind, bits)

    def text(self) -> str:
        """The type in C++."""
        extents = ", ".join([str(extent) for extent in self.shape])
        layout = "" if self.letter == "c" else f", nvcuda::wmma::{self.layout}"
        use = self.scope.removeprefix("wmma.")
        return f"nvcuda::wmma::fragment<nvcuda::wmma::{use}, {extents}, {self.element}{layout}>"


def _operands(count: int, first: int = 0) -> str:
    return "{" + ", ".join([f"%{place}" for place in range(first, first + count)]) + "}"


def _own(text: str) -> str:
    """A definition for compilers without the header."""
    return (
        f"#ifndef TVM_HAS_MMA_HEADER\nnamespace nvcuda {{ namespace wmma {{\n{text}}} }}\n#endif\n"
    )


def _function(head: str, body: str) -> str:
    return f"static __device__ __forceinline__ void {head} {{\n  {body}\n}}\n"


def _struct(fragment: Fragment) -> str:
    registers = fragment.registers
    return _own(
        f"template <> struct {fragment.text().removeprefix('nvcuda::wmma::')} "
        f"{{ {registers.c_type} x[{registers.count}]; }};\n"
    )


def _fill_function(fragment: Fragment) -> str:
    """Of float16, the registers are pairs of the value."""
    count = fragment.registers.count
    value = "value"
    convert = ""
    if fragment.registers.kind == "b32" and fragment.dtype == "float16":
        value = "pair"
        convert = 'uint32_t pair; asm("cvt.rn.f16x2.f32 %0, %1, %1;" : "=r"(pair) : "f"(value)); '
    given = "float" if fragment.dtype == "float16" else fragment.element
    body = f"{convert}for (int i = 0; i < {count}; ++i) f.x[i] = {value};"
    return _own(_function(f"fill_fragment({fragment.text()}& f, {given} value)", body))


def _load_assembly(fragment: Fragment, layout: str) -> str:
    shape, kind = fragment.instruction
    registers = fragment.registers
    count = registers.count
    text = (
        f"wmma.load.{fragment.letter}.sync.aligned.{layout}.{shape}.{kind} "
        f"{_operands(count)}, [%{count}], %{count + 1};"
    )
    outputs = ", ".join(constraints_of("f.x", registers, "="))
    return f'asm volatile("{text}" : {outputs} : "l"(from), "r"(stride) : "memory");'


def _load_function(fragment: Fragment) -> str:
    head = f"load_matrix_sync({fragment.text()}& f, const {fragment.element}* from, unsigned stride"
    if fragment.letter != "c":
        return _own(
            _function(f"{head})", _load_assembly(fragment, fragment.layout.removesuffix("_major")))
        )
    both = [_load_assembly(fragment, layout) for layout in ("row", "col")]
    body = f"if (layout == mem_row_major) {{ {both[0]} }} else {{ {both[1]} }}"
    return _own(_function(f"{head}, layout_t layout)", body))


def _store_function(fragment: Fragment) -> str:
    shape, kind = fragment.instruction
    registers = fragment.registers
    inputs = ", ".join(constraints_of("f.x", registers))
    both = [
        f'asm volatile("wmma.store.d.sync.aligned.{layout}.{shape}.{kind} [%0], '
        f'{_operands(registers.count, 2)}, %1;" : : "l"(to), "r"(stride), {inputs} : "memory");'
        for layout in ("row", "col")
    ]
    head = (
        f"store_matrix_sync({fragment.element}* to, const {fragment.text()}& f, unsigned stride, "
        "layout_t layout)"
    )
    body = f"if (layout == mem_row_major) {{ {both[0]} }} else {{ {both[1]} }}"
    return _own(_function(head, body))


def _product_function(d: Fragment, a: Fragment, b: Fragment, c: Fragment) -> str:
    shape, a_type = a.instruction
    d_type, c_type = d.instruction[1], c.instruction[1]
    b_type = b.instruction[1]
    layouts = ".".join([part.layout.removesuffix("_major") for part in (a, b)])
    types = f"{d_type}.{c_type}" if a_type == "f16" else f"{d_type}.{a_type}.{b_type}.{c_type}"
    names, first = [], 0
    for part in (d, a, b, c):
        names.append(_operands(part.registers.count, first))
        first += part.registers.count
    text = f"wmma.mma.sync.aligned.{layouts}.{shape}.{types} {', '.join(names)};"
    outputs = ", ".join(constraints_of("d.x", d.registers, "="))
    inputs = ", ".join(
        [
            operand
            for name, part in (("a", a), ("b", b), ("c", c))
            for operand in constraints_of(f"{name}.x", part.registers)
        ]
    )
    params = ", ".join(
        [
            f"{d.text()}& d",
            *[f"const {part.text()}& {name}" for name, part in (("a", a), ("b", b), ("c", c))],
        ]
    )
    return _own(_function(f"mma_sync({params})", f'asm("{text}" : {outputs} : {inputs});'))


# ---- calls


def _fragment(w: KernelWriter, call: Call, at: int, index: int) -> tuple[Fragment, str]:
    """The kind of a fragment, and its name in the text."""
    var = call.args[at]
    kind = w.fragments.get(var) if isinstance(var, Var) else None
    if kind is None:
        raise LoweringError(
            "matrix units need fragments in memory of a wmma scope", at=call,
            hint="run tir.transform.InferFragment, which build does for GPUs",
        )  # fmt: skip
    with w.wrapping(False):
        place = bare(w.visit(call.args[index]))
    return kind, f"{w.values[var]}[{place}]"  # type: ignore[index]


def declare(w: KernelWriter, name: str, kind: Fragment, elements: int) -> None:
    """Write the declaration of an allocation of a wmma scope."""
    if elements % kind.elements:
        raise LoweringError(
            f"memory of scope {kind.scope} needs a multiple of {kind.elements} elements, got {elements}"
        )
    w.module.define(_HEADER)
    w.module.define(_struct(kind))
    w.code.do(f"{kind.text()} {name}[{elements // kind.elements}]")


def _fill(w: KernelWriter, call: Call) -> str:
    kind, name = _fragment(w, call, 0, 4)
    w.module.define(_fill_function(kind))
    value = w.visit(call.args[5])
    given = "float" if kind.dtype == "float16" else kind.element
    w.code.do(f"nvcuda::wmma::fill_fragment({name}, ({given}){value})")
    return "0"


def _memory(w: KernelWriter, call: Call, kind: Fragment) -> tuple[str, str, str]:
    """The address, stride and layout of a tile in memory."""
    layout = call.args[7]
    assert isinstance(layout, StringImm)
    with w.wrapping(False):
        pointer, stride = w.visit(call.args[5]), bare(w.visit(call.args[6]))
    return f"({kind.element}*){pointer}", stride, f"nvcuda::wmma::mem_{layout.value}"


def _load(w: KernelWriter, call: Call) -> str:
    kind, name = _fragment(w, call, 0, 4)
    w.module.define(_load_function(kind))
    pointer, stride, layout = _memory(w, call, kind)
    last = f", {layout}" if kind.letter == "c" else ""
    w.code.do(f"nvcuda::wmma::load_matrix_sync({name}, {pointer}, {stride}{last})")
    return "0"


def _store(w: KernelWriter, call: Call) -> str:
    kind, name = _fragment(w, call, 0, 4)
    w.module.define(_store_function(kind))
    pointer, stride, layout = _memory(w, call, kind)
    w.code.do(f"nvcuda::wmma::store_matrix_sync({pointer}, {name}, {stride}, {layout})")
    return "0"


def _multiply(w: KernelWriter, call: Call) -> str:
    parts = [_fragment(w, call, at, at + 1) for at in (0, 2, 4, 6)]
    w.module.define(_product_function(*[kind for kind, _ in parts]))
    w.code.do(f"nvcuda::wmma::mma_sync({', '.join([name for _, name in parts])})")
    return "0"


WMMA: dict[str, WriteCall] = {
    "tir.tvm_fill_fragment": _fill,
    "tir.tvm_load_matrix_sync": _load,
    "tir.tvm_store_matrix_sync": _store,
    "tir.tvm_mma_sync": _multiply,
}
