"""Loads and stores: contiguous vectors as vectors, others lane by lane, masked ones as such."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tvm.codegen.flat_index import flat_index
from tvm.codegen.undefined import undefined_variable
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.support.dtype import DType, ScalableLanes
from tvm.tir.buffer import Buffer
from tvm.tir.expr import (
    Add,
    BinaryOpExpr,
    Broadcast,
    BufferLoad,
    Cast,
    IntImm,
    Mul,
    Ramp,
    Shuffle,
    Sub,
    Var,
)
from tvm.tir.scalable import is_vscale
from tvm.tir.stmt import BufferStore

from .alias import AliasScopes
from .arithmetic import ArithmeticWriter
from .strided_access import StridedAccess, find_strided_access
from .types import BOOL, INT64, TYPES, LLVMType, mask_type, splat, vector_text

if TYPE_CHECKING:
    from .module import ModuleWriter


class MemoryWriter(ArithmeticWriter):
    """Adds vectors, variables and buffers."""

    values: dict[Var, str]
    wide_values: dict[Var, str]  # loop variables as i64
    alignment: dict[Var, int]  # bytes that the memory behind a pointer is known to be aligned to
    volatile: set[Var]  # pointers to memory that others change
    aliases: AliasScopes
    module: ModuleWriter

    def visit_var(self, var: Var) -> str:
        found = self.values.get(var)
        if found is None:
            raise undefined_variable(var)
        return found

    # ---- vectors

    def visit_broadcast(self, node: Broadcast) -> str:
        require_vectors(self.module, node)
        value = self.visit(node.value)
        if node.value.dtype.lanes == 1:
            return self.broadcast(value, node.dtype)
        return self.shuffle(
            node.value.dtype, value, value, list(range(node.value.dtype.lanes)) * node.lanes
        )

    def visit_ramp(self, node: Ramp) -> str:
        type_ = TYPES[node.dtype]
        if node.base.dtype.lanes > 1:
            raise LoweringError(
                "a ramp of vectors must be flattened before code generation", at=node
            )
        require_vectors(self.module, node)
        base = self.broadcast(self.visit(node.base), node.dtype)
        stride = node.stride
        item = type_.scalar
        if node.dtype.is_scalable:
            return self._scalable_ramp(node, base)
        if type(stride) is IntImm:
            steps = ", ".join([f"{item} {lane * stride.value}" for lane in range(type_.lanes)])
            steps = f"<{steps}>"
        else:
            count = ", ".join([f"{item} {lane}" for lane in range(type_.lanes)])
            wide = self.broadcast(self.visit(stride), node.dtype)
            steps = self.code.pure(f"mul{self.no_wrap} {type_.text} {wide}, <{count}>")
        return self.code.pure(f"add{self.no_wrap} {type_.text} {base}, {steps}")

    def _scalable_ramp(self, node: Ramp, base: str) -> str:
        text = TYPES[node.dtype].text
        lanes = self.code.pure(f"call {text} @llvm.stepvector()")
        stride = self.broadcast(self.visit(node.stride), node.dtype)
        steps = self.code.pure(f"mul{self.no_wrap} {text} {lanes}, {stride}")
        return self.code.pure(f"add{self.no_wrap} {text} {base}, {steps}")

    def visit_shuffle(self, node: Shuffle) -> str:
        vectors = [(self.visit(v), v.dtype) for v in node.vectors]
        indices = [_constant(i, node) for i in node.indices]
        lanes = vectors[0][1].lanes
        if len(vectors) <= 2 and lanes > 1 and len(indices) > 1 and vectors[-1][1] is vectors[0][1]:
            return self.shuffle(vectors[0][1], vectors[0][0], vectors[-1][0], indices)
        return self._pick(vectors, indices, node.dtype)

    def _pick(self, vectors: list[tuple[str, DType]], indices: list[int], dtype: DType) -> str:
        sources = [(o, t, lane) for o, t in vectors for lane in range(t.lanes)]
        picked = [
            operand if source.lanes == 1 else self.lane(operand, TYPES[source], lane)
            for operand, source, lane in [sources[i] for i in indices]
        ]
        return picked[0] if dtype.lanes == 1 else self.vector_of(picked, dtype)

    def shuffle(self, dtype: DType, a: str, b: str, indices: list[int]) -> str:
        """Lanes of two vectors of one type."""
        text = TYPES[dtype].text
        mask = ", ".join([f"i32 {index}" for index in indices])
        return self.code.pure(
            f"shufflevector {text} {a}, {text} {b}, <{len(indices)} x i32> <{mask}>"
        )

    def lane(self, operand: str, type_: LLVMType, lane: int) -> str:
        """One lane of a vector."""
        if isinstance(type_.lanes, ScalableLanes):
            raise LoweringError(
                f"an operation without a vector form is done lane by lane, got {type_.text}",
                hint="use vectors of constant length for it",
            )
        return self.code.pure(f"extractelement {type_.text} {operand}, i64 {lane}")

    def vector_of(self, operands: list[str], dtype: DType) -> str:
        """A vector of scalars."""
        type_ = TYPES[dtype]
        vector = "poison"
        for lane, operand in enumerate(operands):
            vector = self.code.pure(
                f"insertelement {type_.text} {vector}, {type_.scalar} {operand}, i64 {lane}"
            )
        return vector

    # ---- loads

    def visit_buffer_load(self, load: BufferLoad) -> str:
        buffer = load.buffer
        index = flat_index(buffer, load.indices)
        type_ = TYPES[load.dtype]
        if load.predicate is not None:
            return self._from_memory(type_, self._masked_load(load, index, type_))
        if index.dtype.lanes == 1:
            pointer = self.element(buffer, index)
            return self._load(type_, buffer, pointer, self._align(buffer, index))
        if type(index) is Broadcast and index.value.dtype.lanes == 1:
            scalar = load.dtype.with_lanes(load.dtype.lanes // index.lanes)
            pointer = self.element(buffer, index.value)
            value = self._load(TYPES[scalar], buffer, pointer, self._align(buffer, index.value))
            if scalar.lanes == 1:
                return self.broadcast(value, load.dtype)
            return self.shuffle(scalar, value, value, list(range(scalar.lanes)) * index.lanes)
        if (stride := _constant_stride(index)) is not None:
            assert isinstance(index, Ramp)
            if stride == 1:
                pointer = self.element(buffer, index.base)
                return self._load(type_, buffer, pointer, self._align(buffer, index.base))
            if stride == -1 and buffer.dtype.lanes == 1 and not load.dtype.is_scalable:
                return self._load_reversed(load, index)
        if buffer.dtype.lanes == 1 and (access := find_strided_access(index)) is not None:
            return self._load_strided(load, access)
        return self._gather(load, index)

    def _load(self, type_: LLVMType, buffer: Buffer, pointer: str, align: int) -> str:
        scope = self.aliases.metadata(buffer.data)
        volatile = "volatile " if buffer.data in self.volatile else ""
        loaded = self.code.value(
            f"load {volatile}{type_.memory}, ptr {pointer}, align {align}{scope}"
        )
        return self._from_memory(type_, loaded)

    def _load_reversed(self, load: BufferLoad, index: Ramp) -> str:
        last = self.element(load.buffer, index.base)
        pointer = self._offset(load.buffer, last, 1 - index.lanes)
        value = self._load(TYPES[load.dtype], load.buffer, pointer, self._item_bytes(load.buffer))
        return self.shuffle(load.dtype, value, value, list(range(index.lanes))[::-1])

    def _load_strided(self, load: BufferLoad, access: StridedAccess) -> str:
        buffer, align = load.buffer, self._item_bytes(load.buffer)
        part = buffer.dtype.with_lanes(access.width)
        base = self.element(buffer, access.base)
        starts = dict.fromkeys([access.first, access.second])
        parts = [
            self._load(TYPES[part], buffer, self._offset(buffer, base, start), align)
            for start in starts
        ]
        return self.shuffle(part, parts[0], parts[-1], access.order())

    def _gather(self, load: BufferLoad, index: PrimExpr) -> str:
        item = TYPES[load.buffer.dtype]
        if item.lanes > 1:
            raise LoweringError("vector elements can only be read contiguously", at=load)
        if load.dtype.is_scalable:
            type_ = TYPES[load.dtype]
            every = splat(TYPES[BOOL.with_lanes(type_.lanes)], "true")
            return self._from_memory(type_, self._masked_gather(load, index, type_, every))
        align = self._item_bytes(load.buffer)
        return self.vector_of(
            [self._load(item, load.buffer, p, align) for p in self._elements(load.buffer, index)],
            load.dtype,
        )

    def _masked_load(self, load: BufferLoad, index: PrimExpr, type_: LLVMType) -> str:
        assert load.predicate is not None
        self._require_ordinary(load.buffer, "load")
        mask = self.visit(load.predicate)
        if type_.lanes == 1:
            raise LoweringError("a predicate needs a vector load", at=load)
        masks, scope = mask_type(type_.lanes), self.aliases.metadata(load.buffer.data)
        if _constant_stride(index) == 1:
            assert isinstance(index, Ramp)
            pointer = self.element(load.buffer, index.base)
            align = self._align(load.buffer, index.base)
            return self.code.value(
                f"call {type_.memory} @llvm.masked.load(ptr align {align} {pointer}, "
                f"{masks} {mask}, {type_.memory} zeroinitializer){scope}"
            )
        is_fixed = not load.dtype.is_scalable
        if _constant_stride(index) == -1 and load.buffer.dtype.lanes == 1 and is_fixed:
            return self._masked_load_reversed(load, index, type_, mask)
        return self._masked_gather(load, index, type_, mask)

    def _masked_gather(self, load: BufferLoad, index: PrimExpr, type_: LLVMType, mask: str) -> str:
        masks, scope = mask_type(type_.lanes), self.aliases.metadata(load.buffer.data)
        pointers = self._pointers(load.buffer, index)
        align = self._item_bytes(load.buffer)
        return self.code.value(
            f"call {type_.memory} @llvm.masked.gather({vector_text(type_.lanes, 'ptr')} align {align} {pointers}, "
            f"{masks} {mask}, {type_.memory} zeroinitializer){scope}"
        )

    def _masked_load_reversed(
        self, load: BufferLoad, index: PrimExpr, type_: LLVMType, mask: str
    ) -> str:
        assert isinstance(index, Ramp)
        order = ", ".join([f"i32 {lane}" for lane in range(type_.lanes)][::-1])
        order = f"<{type_.lanes} x i32> <{order}>"
        masks, scope = mask_type(type_.lanes), self.aliases.metadata(load.buffer.data)
        turned = self.code.pure(f"shufflevector {masks} {mask}, {masks} poison, {order}")
        last = self.element(load.buffer, index.base)
        pointer = self._offset(load.buffer, last, 1 - type_.lanes)
        value = self.code.value(
            f"call {type_.memory} @llvm.masked.load(ptr align {self._item_bytes(load.buffer)} "
            f"{pointer}, {masks} {turned}, {type_.memory} zeroinitializer){scope}"
        )
        return self.code.pure(
            f"shufflevector {type_.memory} {value}, {type_.memory} poison, {order}"
        )

    def _from_memory(self, type_: LLVMType, loaded: str) -> str:
        if type_.kind != "bool":
            return loaded
        zero = "0" if type_.lanes == 1 else "zeroinitializer"
        return self.code.pure(f"icmp ne {type_.memory} {loaded}, {zero}")

    def _to_memory(self, type_: LLVMType, value: str) -> str:
        if type_.kind != "bool":
            return value
        return self.code.pure(f"zext {type_.text} {value} to {type_.memory}")

    # ---- stores

    def visit_buffer_store(self, store: BufferStore) -> None:
        buffer = store.buffer
        index = flat_index(buffer, store.indices)
        no_wrap, self.no_wrap = self.no_wrap, ""
        value = self.visit(store.value)
        self.no_wrap = no_wrap
        dtype = store.value.dtype
        if dtype.element is not buffer.dtype.element and not (
            dtype.is_handle and buffer.dtype.is_handle
        ):
            value = self.convert(value, dtype, buffer.dtype.element.with_lanes(dtype.lanes))
            dtype = buffer.dtype.element.with_lanes(dtype.lanes)
        type_ = TYPES[dtype]
        if store.predicate is not None:
            self._masked_store(store, index, type_, self._to_memory(type_, value))
        elif index.dtype.lanes == 1:
            self._store(
                type_, buffer, value, self.element(buffer, index), self._align(buffer, index)
            )
        elif _constant_stride(index) == 1:
            assert isinstance(index, Ramp)
            pointer = self.element(buffer, index.base)
            self._store(type_, buffer, value, pointer, self._align(buffer, index.base))
        else:
            self._scatter(buffer, index, value, dtype)

    def _store(self, type_: LLVMType, buffer: Buffer, value: str, pointer: str, align: int) -> None:
        scope = self.aliases.metadata(buffer.data)
        stored = self._to_memory(type_, value)
        volatile = "volatile " if buffer.data in self.volatile else ""
        self.code.do(
            f"store {volatile}{type_.memory} {stored}, ptr {pointer}, align {align}{scope}"
        )

    def _scatter(self, buffer: Buffer, index: PrimExpr, value: str, dtype: DType) -> None:
        item = TYPES[buffer.dtype]
        align = self._item_bytes(buffer)
        if dtype.is_scalable:
            type_, pointers = TYPES[dtype], self._pointers(buffer, index)
            mask = TYPES[BOOL.with_lanes(dtype.lanes)]
            self.code.do(
                f"call void @llvm.masked.scatter({type_.memory} {self._to_memory(type_, value)}, "
                f"{vector_text(dtype.lanes, 'ptr')} align {align} {pointers}, "
                f"{mask.text} {splat(mask, 'true')}){self.aliases.metadata(buffer.data)}"
            )
            return
        for lane, pointer in enumerate(self._elements(buffer, index)):
            self._store(item, buffer, self.lane(value, TYPES[dtype], lane), pointer, align)

    def _masked_store(
        self, store: BufferStore, index: PrimExpr, type_: LLVMType, value: str
    ) -> None:
        assert store.predicate is not None
        self._require_ordinary(store.buffer, "store")
        mask, masks = self.visit(store.predicate), mask_type(type_.lanes)
        scope = self.aliases.metadata(store.buffer.data)
        if _constant_stride(index) == 1:
            assert isinstance(index, Ramp)
            pointer = self.element(store.buffer, index.base)
            align = self._align(store.buffer, index.base)
            name, pointers = "llvm.masked.store", f"ptr align {align} {pointer}"
            mask = self._stored_mask(type_, mask, masks)
        else:
            align = self._item_bytes(store.buffer)
            found = self._pointers(store.buffer, index)
            name, pointers = (
                "llvm.masked.scatter",
                f"{vector_text(type_.lanes, 'ptr')} align {align} {found}",
            )
        self.code.do(
            f"call void @{name}({type_.memory} {value}, {pointers}, {masks} {mask}){scope}"
        )

    def _require_ordinary(self, buffer: Buffer, access: str) -> None:
        if buffer.data in self.volatile:
            raise LoweringError(
                f"The masked {access} intrinsic does not support declaring {access} as volatile.",
                hint=f"leave out the attribute volatile_scope of {buffer.data.name}, or the predicate",
            )

    def _stored_mask(self, type_: LLVMType, mask: str, masks: str) -> str:
        """The mask in a form that never turns out constant, where LLVM would go wrong.

        With AVX-512 it stores too much of narrowed integers if the mask is one lane, known.
        """
        is_narrow = " x i" in type_.memory and not type_.memory.endswith(" i64>")
        if not (is_narrow and self.module.options.cpu.has_avx512f):
            return mask
        one = self.code.pure('call i32 asm "", "=r,0"(i32 1)')
        bit = self.code.pure(f"trunc i32 {one} to i1")
        first = self.code.pure(f"insertelement {masks} poison, i1 {bit}, i64 0")
        zeros = f"{vector_text(type_.lanes, 'i32')} zeroinitializer"
        every = self.code.pure(f"shufflevector {masks} {first}, {masks} poison, {zeros}")
        return str(self.code.pure(f"and {masks} {mask}, {every}"))

    # ---- addresses

    def element(self, buffer: Buffer, index: PrimExpr) -> str:
        """The address of the element at a scalar index."""
        data = str(self.visit(buffer.data))
        if type(index) is IntImm and index.value == 0:
            return data
        item = TYPES[buffer.dtype].memory
        return self.code.pure(f"getelementptr inbounds {item}, ptr {data}, i64 {self.wide(index)}")

    def index(self, index: PrimExpr) -> str:
        """The operand of an index, of its own type."""
        no_wrap, self.no_wrap = self.no_wrap, " nsw"
        found = self.visit(index)
        self.no_wrap = no_wrap
        return str(found)

    def wide(self, index: PrimExpr) -> str:
        """The operand of a scalar index as i64, the type of addresses.

        Indices do not overflow, so sums and products may be computed with more bits: LLVM need not prove it.
        """
        if type(index) is IntImm:
            return str(index.value)
        if isinstance(index, BinaryOpExpr) and index.dtype.is_int:
            if (name := _WIDE_OPERATIONS.get(type(index))) is not None:
                a, b = self.wide(index.a), self.wide(index.b)
                return self.code.pure(f"{name} nsw i64 {a}, {b}")
        if type(index) is Var and (found := self.wide_values.get(index)) is not None:
            return str(found)
        if type(index) is Cast and index.dtype.is_int and index.value.dtype.is_int:
            if index.value.dtype.bits <= index.dtype.bits:
                return self.wide(index.value)
        return self.convert(self.index(index), index.dtype, INT64)

    def _elements(self, buffer: Buffer, index: PrimExpr) -> list[str]:
        """The address of each lane."""
        if (stride := _constant_stride(index)) is not None:
            assert isinstance(index, Ramp)
            first = self.element(buffer, index.base)
            return [self._offset(buffer, first, lane * stride) for lane in range(index.lanes)]
        data, item = self.visit(buffer.data), TYPES[buffer.dtype].memory
        positions, type_ = self._positions(index)
        lanes = [self.lane(positions, type_, lane) for lane in range(type_.lanes)]
        return [
            self.code.pure(f"getelementptr inbounds {item}, ptr {data}, {type_.scalar} {lane}")
            for lane in lanes
        ]

    def _pointers(self, buffer: Buffer, index: PrimExpr) -> str:
        """A vector of addresses."""
        data, item = self.visit(buffer.data), TYPES[buffer.dtype].memory
        positions, type_ = self._positions(index)
        return self.code.pure(
            f"getelementptr inbounds {item}, ptr {data}, {type_.text} {positions}"
        )

    def _positions(self, index: PrimExpr) -> tuple[str, LLVMType]:
        """The operand of a vector of indices, whose sign LLVM will extend."""
        found, dtype = self.index(index), index.dtype
        if not dtype.is_uint:
            return found, TYPES[dtype]
        wide = INT64.with_lanes(dtype.lanes)
        return self.convert(found, dtype, wide), TYPES[wide]

    def _offset(self, buffer: Buffer, pointer: str, items: int) -> str:
        if items == 0:
            return pointer
        item = TYPES[buffer.dtype].memory
        return self.code.pure(f"getelementptr inbounds {item}, ptr {pointer}, i64 {items}")

    def _item_bytes(self, buffer: Buffer) -> int:
        return TYPES[buffer.dtype].item_bytes

    def _align(self, buffer: Buffer, index: PrimExpr) -> int:
        """Bytes that the element at the index is known to be aligned to."""
        type_ = TYPES[buffer.dtype]
        base = self.alignment.get(buffer.data, type_.item_bytes)
        size = type_.item_bytes * type_.lanes
        step = known_factor(index) * (size & -size)
        return min(base, step, 64) if step else min(base, 64)


def require_vectors(module: ModuleWriter, node: PrimExpr) -> None:
    """Reject scalable vectors of a processor that has none."""
    is_scalable = node.dtype.is_scalable or is_vscale(node)
    if is_scalable and module.options.cpu.features.isdisjoint(("sve", "v")):
        raise LoweringError(
            f"{'tir.vscale' if is_vscale(node) else node.dtype} requires scalable vectors",
            at=node,
            hint="-mattr=+sve on AArch64, -mattr=+v on RISC-V",
        )


_WIDE_OPERATIONS: dict[type, str] = {Add: "add", Sub: "sub", Mul: "mul"}


def known_factor(node: PrimExpr) -> int:
    """A power of two that divides the expression whatever its variables are; 0 for zero."""
    if isinstance(node, IntImm):
        return node.value & -node.value
    if isinstance(node, Mul):
        return known_factor(node.a) * known_factor(node.b)
    if isinstance(node, (Add, Sub)):
        left, right = known_factor(node.a), known_factor(node.b)
        return min(left, right) if left and right else left or right
    if isinstance(node, Cast) and node.dtype.is_int:
        return known_factor(node.value)
    return 1


def _constant_stride(index: PrimExpr) -> int | None:
    """The stride of a ramp over scalars, if it is constant."""
    if type(index) is Ramp and type(index.stride) is IntImm and index.base.dtype.lanes == 1:
        return index.stride.value
    return None


def _constant(index: PrimExpr, node: Shuffle) -> int:
    if type(index) is not IntImm:
        raise LoweringError(f"shuffle needs constant indices, got {index}", at=node)
    return index.value
