"""One kernel as text: statements, memory and threads of a PrimFunc that a device launches.

Scalars are written as in C. A vector is written lane by lane; only neighbouring elements in memory are moved at
once, so that the text is the same for languages with and without arithmetic on vectors:

    B[ramp(4*tx, 1, 4)] = A[ramp(4*tx, 1, 4)] + 1

    const float4 loaded = *(const float4*)(A + tx*4);
    *(float4*)(B + tx*4) = make_float4(loaded.x + 1, loaded.y + 1, loaded.z + 1, loaded.w + 1);
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tvm.tir.stmt as stmts
from tvm.arith import Analyzer
from tvm.codegen.c import intrinsics as c_intrinsics
from tvm.codegen.c.arithmetic import bare
from tvm.codegen.c.code import Code
from tvm.codegen.c.memory import loads_in
from tvm.codegen.c.module import Alignment, ModuleWriter
from tvm.codegen.c.statements import FunctionWriter
from tvm.codegen.c.types import TYPES, float_text
from tvm.codegen.flat_index import flat_index
from tvm.error import LoweringError
from tvm.ir.expr import GlobalVar, PrimExpr
from tvm.support.dtype import DType
from tvm.tir.buffer import Buffer
from tvm.tir.expr import (
    Broadcast,
    BufferLoad,
    Call,
    CmpExpr,
    FloatImm,
    IntImm,
    IterVar,
    Ramp,
    StringImm,
    Var,
)

from .language import Language
from .wmma import Fragment

FRAGMENT_KEYS = ("fragment_shape", "fragment_layout")


class KernelModule(ModuleWriter):
    """The parts of one kernel's text."""

    def __init__(self, language: Language) -> None:
        super().__init__(Alignment())
        self.language = language
        self.needs: dict[str, None] = {}
        self._definitions: dict[str, None] = {}

    def define(self, text: str) -> None:
        """Put a definition in front of the kernels, once."""
        self._definitions[text] = None

    def use(self, helper: str) -> None:
        if helper in self.needs or not self.language.has_helper(helper):
            return
        for name in self.language.helper(helper).needs:
            self.use(name)
        self.needs[helper] = None

    def declare(self, name: str, result: str, params: Sequence[str]) -> str:
        """Functions of a kernel are the language's own, or in text that the program imports."""
        return name

    def parts(self) -> list[str]:
        """What stands before the kernel."""
        helpers = [self.language.helper(name).text for name in self.needs]
        return [*self._imports, *helpers, *self._definitions, *self._constants]


def _comparison(write: Callable[[Any, Any], str]) -> Callable[[Any, Any], str]:
    """A comparison, whose operands do not overflow unless they are data."""

    def visit(self: KernelWriter, node: CmpExpr) -> str:
        is_data = bool(loads_in(node.a) or loads_in(node.b)) or not node.a.dtype.is_int
        with self.wrapping(self.wraps and is_data):
            return write(self, node)

    return visit


class KernelWriter(FunctionWriter):
    """Writes the body of one kernel."""

    module: KernelModule
    longest = 600  # compilers of devices take deeper expressions than C promises
    visit_eq = _comparison(FunctionWriter.visit_eq)
    visit_ne = _comparison(FunctionWriter.visit_ne)
    visit_lt = _comparison(FunctionWriter.visit_lt)
    visit_le = _comparison(FunctionWriter.visit_le)
    visit_gt = _comparison(FunctionWriter.visit_gt)
    visit_ge = _comparison(FunctionWriter.visit_ge)

    def __init__(self, module: KernelModule, language: Language, name: str, code: Code) -> None:
        super().__init__(module, name, code, "void", ())
        self.language = language
        self.analyzer = Analyzer()
        self.block: dict[str, int | None] = {}  # the extents of thread axes
        self.head: list[str] = []  # declarations at the kernel's beginning
        self._threads: dict[tuple[str, str], str] = {}
        self.dynamic: str | None = None  # the parameter for dynamic shared memory
        self.noalias = True
        self.not_constant: set[Var] = set()  # pointers through which memory may be written
        self._loaded: dict[tuple[int, int], tuple[Any, str]] = {}
        self.fragments: dict[Var, Fragment] = {}
        self._told: dict[tuple[Any, str], str] = {}  # what attributes say of fragments

    # ---- threads

    def visit_attr_stmt(self, stmt: stmts.AttrStmt) -> None:
        axis = stmt.node
        if stmt.attr_key == "virtual_thread":
            raise LoweringError("virtual threads must be lowered before code generation", at=stmt)
        if stmt.attr_key == "thread_extent" and isinstance(axis, IterVar):
            extent = stmt.value.value if isinstance(stmt.value, IntImm) else None
            self.block[axis.thread_tag] = extent
            self.values[axis.var] = self._thread(axis)
            self.visit(stmt.body)
            return
        if stmt.attr_key in FRAGMENT_KEYS and isinstance(stmt.value, StringImm):
            self._told[axis, stmt.attr_key] = stmt.value.value
        if stmt.attr_key == "pragma_import_c" and isinstance(stmt.value, StringImm):
            self.module.add_import(stmt.value.value)
        self.visit(stmt.body)

    def _thread(self, axis: IterVar) -> str:
        """The name of the index along an axis, which the kernel's head defines."""
        type_ = TYPES[axis.var.dtype].text
        key = (axis.thread_tag, type_)
        if key not in self._threads:
            name = self._threads[key] = self.code.name(axis.thread_tag)
            index = self.language.thread(axis.thread_tag)
            self.head.append(f"const {type_} {name} = ({type_}){index};")
        return self._threads[key]

    # ---- variables

    def pointer_type(self, var: Var) -> str:
        text = super().pointer_type(var)
        return f"{self.space(var)}{text}" if var.dtype.is_handle else text

    def parameter_type(self, var: Var) -> str:
        """The type of one of the kernel's parameters, once its body is written."""
        text = self.declared_type(var)
        is_read = var.dtype.is_handle and var not in self.not_constant and var in self.pointees
        return f"const {text}" if is_read else text

    def visit_var(self, var: Var) -> str:
        self.not_constant.add(var)
        return super().visit_var(var)

    def space(self, var: Var) -> str:
        """What stands before the type of a pointer to the memory of a variable."""
        scope = str(getattr(var.type_annotation, "storage_scope", "")) or "global"
        return self.language.address_space(scope)

    def visit_int_imm(self, node: IntImm) -> str:
        return self.language.adapted(super().visit_int_imm(node))

    def visit_float_imm(self, node: FloatImm) -> str:
        return float_text(node.dtype, node.value)

    def library(self, name: str, dtype: DType) -> str:
        return self.language.math(name, TYPES[dtype.element].bits)

    # ---- statements

    def visit_allocate(self, stmt: stmts.Allocate) -> None:
        scope = str(getattr(stmt.buffer_var.type_annotation, "storage_scope", "")) or "global"
        type_ = TYPES[stmt.dtype.element]
        self.pointees[stmt.buffer_var] = type_.memory
        name = self.define(stmt.buffer_var)
        if scope == "shared.dyn":
            self._declare_dynamic(stmt, name, type_.memory)
        else:
            size = stmt.constant_size()
            if size is None:
                raise LoweringError(
                    f"memory of scope {scope} in a kernel needs a constant size", at=stmt.buffer_var
                )
            count = max(size * stmt.dtype.lanes, 1)
            self._declare_array(scope, type_.memory, name, count, stmt)
        self.visit(stmt.body)

    def _declare_array(
        self, scope: str, type_: str, name: str, count: int, stmt: stmts.Allocate
    ) -> None:
        if scope == "shared":
            self.head.append(self.language.shared_array(type_, name, count))
        elif scope in ("local", "global"):
            self.code.do(f"TVM_ALIGNED(16) {type_} {name}[{count}]")
        elif scope.startswith("wmma."):
            shape, layout = [self._told.get((stmt.buffer_var, key), "") for key in FRAGMENT_KEYS]
            if not shape:
                return  # nothing fills, loads or multiplies it
            kind = Fragment.of(stmt.buffer_var, str(stmt.dtype), shape, layout)
            self.fragments[stmt.buffer_var] = kind
            self.language.fragments(self, name, kind, count)
        else:
            raise LoweringError(
                f"{self.language.name} has no memory of scope {scope}", at=stmt.buffer_var,
                hint="local, shared and shared.dyn are there",
            )  # fmt: skip

    def _declare_dynamic(self, stmt: stmts.Allocate, name: str, type_: str) -> None:
        parameter, declaration = self.language.dynamic_array(f"{name}_memory")
        self.dynamic = parameter
        if declaration:
            self.head.append(declaration)
        space = self.language.address_space("shared.dyn")
        self.head.append(f"{space}{type_}* {name} = ({space}{type_}*){name}_memory;")

    def visit_for(self, loop: stmts.For) -> None:
        if loop.kind is stmts.ForKind.THREAD_BINDING:
            raise LoweringError(
                "loops over threads must be lowered before code generation", at=loop
            )
        if loop.kind is stmts.ForKind.UNROLLED:
            self.code.lines.append("#pragma unroll")
        self._serial(loop)

    def visit_evaluate(self, stmt: stmts.Evaluate) -> None:
        lanes = stmt.value.dtype.lanes
        if lanes <= 1:  # none: a call without a result
            super().visit_evaluate(stmt)
            return
        for text in self.lane_texts(stmt.value, lanes):
            self.code.do(f"(void){text}")

    def visit_assert_stmt(self, stmt: stmts.AssertStmt) -> None:
        """A kernel has nobody to report to: the host checks what it was given."""
        self.visit(stmt.body)

    # ---- vectors

    @contextmanager
    def in_front(self) -> Iterator[None]:
        outer, self.lane = self.lane, None
        try:
            yield
        finally:
            self.lane = outer

    def lane_texts(self, node: PrimExpr, lanes: int) -> list[str]:
        """The lanes of an expression; those of a scalar are all alike."""
        texts = []
        for lane in range(lanes):
            with self.at_lane(str(lane)):
                texts.append(str(self.visit(node)))
        return texts

    def _fill(self, name: str, node: PrimExpr) -> None:
        for lane, text in enumerate(self.lane_texts(node, node.dtype.lanes)):
            self.code.do(f"{name}[{lane}] = {bare(text)}")

    def visit_broadcast(self, node: Broadcast) -> str:
        with self.at_lane(str(int(self.lane or 0) % node.value.dtype.lanes)):
            return str(self.visit(node.value))

    def visit_ramp(self, node: Ramp) -> str:
        inner = node.base.dtype.lanes
        step, lane = divmod(int(self.lane or 0), inner)
        with self.at_lane(str(lane)):
            base = self.visit(node.base)
            if step == 0:
                return str(base)
            if isinstance(node.stride, IntImm):
                distance = self.visit(IntImm(node.dtype.element, step * node.stride.value))
            else:
                distance = f"{self.visit(node.stride)} * {step}"
        type_ = TYPES[node.dtype.element].text
        text = f"({base} + {distance})"
        return text if node.dtype.bits >= 32 else f"(({type_}){text})"

    # ---- memory

    def visit_buffer_load(self, load: BufferLoad) -> str:
        if self.lane is not None and load.predicate is None:
            index, lanes = flat_index(load.buffer, load.indices), load.dtype.lanes
            width = self._width(load.buffer, index, lanes)
            if width > 1:
                return self._lane_of_load(load, index, width)
        return super().visit_buffer_load(load)

    def _lane_of_load(self, load: BufferLoad, index: PrimExpr, width: int) -> str:
        """The lane at hand of elements that are loaded ``width`` at a time, once in a block."""
        part, lane = divmod(int(self.lane or 0), width)
        lines = self.code.lines
        key = (id(load), id(lines) * 16 + part)
        found = self._loaded.get(key)
        if found is None or found[0] is not lines:
            type_ = TYPES[load.buffer.dtype.element].memory
            with self.in_front():
                pointer = self._address(load.buffer, index, part * width)
                self.read.add(load.buffer.data)
                vector = self.language.vector_type(load.buffer.dtype.element, width)
                value = self.language.vector_load(
                    pointer, type_, self.space(load.buffer.data), width
                )
                found = self._loaded[key] = (lines, self.code.define(vector, "loaded", value))
        text = self.language.lane(found[1], lane, width)
        return f"({text} != 0)" if load.buffer.dtype.is_bool else text

    def visit_buffer_store(self, store: stmts.BufferStore) -> None:
        index = flat_index(store.buffer, store.indices)
        lanes = max(store.value.dtype.lanes, index.dtype.lanes * store.buffer.dtype.lanes)
        self._loaded.clear()
        self.not_constant.add(store.buffer.data)
        if lanes == 1:
            self._store_scalar(store)
        elif store.predicate is None and (width := self._width(store.buffer, index, lanes)) > 1:
            self._store_vectors(store, index, lanes, width)
        else:
            self._store_lanes(store, lanes)
        self._loaded.clear()

    def _store_scalar(self, store: stmts.BufferStore) -> None:
        mask = None if store.predicate is None else str(self.visit(store.predicate))
        with self.code.collected() as steps:
            value = self.visit(store.value)
            self._store(store, self._element_index(store.buffer, store.indices), value)
        self._masked(mask, steps)

    def _store_vectors(
        self, store: stmts.BufferStore, index: PrimExpr, lanes: int, width: int
    ) -> None:
        dtype = store.buffer.dtype
        texts = [
            bare(self.convert(text, store.value.dtype, dtype))
            for text in self.lane_texts(store.value, lanes)
        ]
        if lanes > width:  # all are computed before the first is stored
            texts = [self.named(text, dtype.element) for text in texts]
        type_, space = TYPES[dtype.element].memory, self.space(store.buffer.data)
        for first in range(0, lanes, width):
            pointer = self._address(store.buffer, index, first)
            self.code.do(
                self.language.vector_store(pointer, type_, space, texts[first : first + width])
            )

    def _store_lanes(self, store: stmts.BufferStore, lanes: int) -> None:
        """Each lane by itself, all computed before the first is stored."""
        dtype, predicate = store.value.dtype.element, store.predicate
        masks = [] if predicate is None else self.lane_texts(predicate, lanes)
        masks = [self.code.define("bool", "is_active", bare(mask)) for mask in masks]
        values = [self.named(text, dtype) for text in self.lane_texts(store.value, lanes)]
        places = []
        for lane in range(lanes):
            with self.at_lane(str(lane)):
                places.append(self._element_index(store.buffer, store.indices))
        for lane, (place, value) in enumerate(zip(places, values, strict=True)):
            with self.code.collected() as steps:
                self._store(store, place, value)
            self._masked(masks[lane] if masks else None, steps)

    def _width(self, buffer: Buffer, index: PrimExpr, lanes: int) -> int:
        """How many elements one access moves, 1 if each is on its own."""
        element = buffer.dtype.element.itemsize
        base = _base_of_neighbours(index, buffer.dtype.lanes)
        if base is None or buffer.dtype.is_bool:
            return 1
        width = min(lanes, 16)
        while width > 1 and (lanes % width or width & (width - 1)):
            width -= 1
        width = min(width, max(self.language.widest_access // element, 1))
        start = buffer.dtype.lanes
        while width > 1 and self.language.needs_alignment and start % width:
            if self.analyzer.modular_set(base).coeff * start % width == 0 and self._begins_at(
                base, start, width
            ):
                break
            width //= 2
        return width

    def _begins_at(self, base: PrimExpr, lanes: int, width: int) -> bool:
        found = self.analyzer.modular_set(base)
        return int(found.base) * lanes % width == 0

    def _address(self, buffer: Buffer, index: PrimExpr, first: int) -> str:
        """The address of the element ``first`` behind the start of a run of neighbours."""
        base = _base_of_neighbours(index, buffer.dtype.lanes)
        assert base is not None
        with self.wrapping(False), self.in_front():
            place = self.visit(base)
        if buffer.dtype.lanes > 1:
            place = f"{place} * {buffer.dtype.lanes}"
        pointer, _ = self._pointer(buffer)
        return f"{pointer} + {place}" + (f" + {first}" if first else "")

    def element(self, buffer: Buffer, index: PrimExpr) -> str:
        self.not_constant.add(buffer.data)
        return super().element(buffer, index)

    def address_of_run(self, load: BufferLoad, lanes: int) -> str | None:
        """The address of that many neighbours that one access can load, if they are such."""
        index = flat_index(load.buffer, load.indices)
        is_run = load.predicate is None and self._width(load.buffer, index, lanes) == lanes
        if not is_run:
            return None
        self.read.add(load.buffer.data)
        return self._address(load.buffer, index, 0)

    def _element_index(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> str:
        lanes = buffer.dtype.lanes
        index = flat_index(buffer, indices)
        with self.wrapping(False):
            if lanes == 1:
                return str(self.visit(index))
            outer, inner = divmod(int(self.lane or 0), lanes)
            with self.at_lane(str(outer)):
                return f"({self.visit(index)} * {lanes} + {inner})"

    def _item(self, buffer: Buffer, indices: tuple[PrimExpr, ...], load: BufferLoad) -> str:
        place = self._element_index(buffer, indices)
        pointer, _ = self._pointer(buffer)
        self.read.add(buffer.data)
        item = f"{pointer}[{bare(place)}]"
        return f"({item} != 0)" if buffer.dtype.is_bool else item

    def _pointer(self, buffer: Buffer) -> tuple[str, bool]:
        wanted = TYPES[buffer.dtype.element].memory
        if buffer.data in self.fragments:
            raise LoweringError(
                "the elements of a fragment are not accessed one by one", at=buffer.data,
                hint="store it to shared memory first",
            )  # fmt: skip
        if self.pointees.get(buffer.data) == wanted:
            self.used.add(buffer.data)
            return self.values[buffer.data], True
        return f"(({self.space(buffer.data)}{wanted}*){self.visit(buffer.data)})", True

    # ---- calls

    def visit_call(self, call: Call) -> Any:
        name = getattr(call.op, "name_hint" if isinstance(call.op, GlobalVar) else "name")
        own = self.language.intrinsics.get(name)
        write = own or c_intrinsics.INTRINSICS.get(name)
        if write is None or name in _HOST_ONLY:
            raise LoweringError(
                f"{self.language.name} has no code for the intrinsic {name}", at=call
            )
        return write(self, call)


# what kernels cannot do
_HOST_ONLY = {
    f"tir.{name}"
    for name in [
        "tvm_call_packed_lowered",
        "tvm_call_cpacked_lowered",
        "tvm_call_packed",
        "tvm_call_cpacked",
        "tvm_struct_get",
        "tvm_struct_set",
        "tvm_stack_alloca",
        "tvm_stack_make_shape",
        "tvm_throw_last_error",
        "tvm_static_handle",
        "call_llvm_intrin",
        "call_llvm_pure_intrin",
        "TVMBackendAllocWorkspace",
        "TVMBackendFreeWorkspace",
    ]
}


def _base_of_neighbours(index: PrimExpr, lanes: int) -> PrimExpr | None:
    """The first index of a run of neighbouring elements; None for others."""
    if index.dtype.lanes == 1:
        return index if lanes > 1 else None
    if not isinstance(index, Ramp) or index.base.dtype.lanes > 1:
        return None
    is_step = isinstance(index.stride, IntImm) and index.stride.value == 1
    return index.base if is_step else None
