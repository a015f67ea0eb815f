"""Bind a function's variables to what a caller passed, with a check of everything that is known.

A variable is bound where it is met first and compared where it is met again, so that buffers which share
a symbolic extent agree. Extents that are expressions are compared once all variables are bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.support.dtype import DType
from tvm.tir import op
from tvm.tir.buffer import Buffer, BufferType, decl_buffer
from tvm.tir.builtin import tvm_tuple
from tvm.tir.expr import (
    EQ,
    LT,
    Call,
    Cast,
    IntImm,
    Or,
    StringImm,
    Var,
    const,
)
from tvm.tir.stmt import AssertStmt, DeclBuffer, LetStmt, Stmt
from tvm.tir.transform.abi import (
    DTYPE_CODES,
    HANDLE,
    INT32,
    INT64,
    REINTERPRET,
    TENSORS_MATCH,
    UNKNOWN_CODE,
    StructField,
    array_field,
    is_null,
)
from tvm.tir.transform.common import IF_THEN_ELSE, is_const, variables_of

Layer = Callable[[Stmt], Stmt]


class ArgumentBinder:
    """Collects bindings and checks; :meth:`around` puts them before a body."""

    def __init__(self, function_name: str) -> None:
        self.function_name = function_name
        self.layers: list[Layer] = []
        self.late_layers: list[Layer] = []
        self.bound: dict[Var, None] = {}
        self.pending: list[tuple[PrimExpr, PrimExpr, str]] = []

    def around(self, body: Stmt) -> Stmt:
        """The body after all bindings and checks."""
        for expected, found, what in self.pending:
            self.check_equal(expected, found, what)
        for layer in reversed([*self.layers, *self.late_layers]):
            body = layer(body)
        return body

    def let(self, var: Var, value: PrimExpr) -> None:
        """Bind a variable."""
        self.bound[var] = None
        self.layers.append(lambda body: LetStmt(var, value, body))

    def declare(self, buffer: Buffer) -> None:
        """Declare a view of memory."""
        self.layers.append(lambda body: DeclBuffer(buffer, body))

    def check(self, condition: PrimExpr, error: str, what: str, *got: PrimExpr) -> None:
        """Raise an error of class ``error`` unless the condition holds, telling what was found."""
        if not is_const(condition, 1):
            found: tuple[str | PrimExpr, ...] = (", got ", *got) if got else ()
            self.layers.append(self._assertion(condition, error, what, *found))

    def bind(self, expected: PrimExpr, found: PrimExpr, what: str) -> None:
        """Make ``expected`` equal to ``found``: bind it if it is a new variable, else compare."""
        if isinstance(expected, Var):
            if expected not in self.bound:
                self.let(expected, found)
                return
            self.check_equal(expected, found, what)
        elif isinstance(expected, IntImm):
            self.check_equal(expected, found, what)
        else:
            self.pending.append((expected, found, what))

    def check_equal(self, expected: PrimExpr, found: PrimExpr, what: str) -> None:
        """Compare what was passed with an expression of bound variables."""
        if unbound := [var for var in variables_of(expected) if var not in self.bound]:
            names = ", ".join([var.name for var in unbound])
            raise LoweringError(
                f"function {self.function_name} uses {names}, which no argument determines: {what}",
                hint="pass the variable as an argument, or use it alone as an extent of one",
            )
        constant = isinstance(expected, IntImm)
        value: tuple[str | PrimExpr, ...] = () if constant else (" (", expected, ")")
        same = op.equal(expected, found)
        self.layers.append(self._assertion(same, "ValueError", what, *value, ", got ", found))

    # ---- buffers

    def match_buffers(
        self, values: Var, codes: Var, tensors: Sequence[FixedTensor], device: Device
    ) -> None:
        """Check everything about all tensors of known shape at once, and bind their pointers.

        The first one says which device the others must be on. What they must be are rows of a table
        that a function shared by the whole module reads: kernels of a model differ in the table alone.
        """
        rows = [self._row(tensor, device) for tensor in tensors]
        matches = Call("bool", TENSORS_MATCH, [values, codes, *rows])
        name = StringImm(self.function_name)
        self.layers.append(lambda body: AssertStmt(matches, name, body))
        first = tensors[0]
        number = array_field(first.array, StructField.ARRAY_DEVICE_ID)
        self.bind(device.id, number, first.label)
        for tensor in tensors:
            self._reject_rebinding(tensor.buffer)
            self.let(tensor.buffer.data, array_field(tensor.array, StructField.ARRAY_DATA))
            self.declare(tensor.buffer)

    def _row(self, tensor: FixedTensor, device: Device) -> PrimExpr:
        buffer = tensor.buffer
        assert isinstance(buffer.elem_offset, IntImm)
        nbytes = buffer.elem_offset.value * buffer.dtype.itemsize
        return tvm_tuple(
            const(tensor.position, INT32),
            StringImm(f"{self.function_name}: {tensor.label}"),
            StringImm(buffer.dtype),
            device.type,
            StringImm(device.requirement),
            const(buffer.data_alignment, INT64),
            const(nbytes, INT64),
            *[op.cast(extent, INT64) for extent in buffer.shape],
        )

    def bind_buffer(self, buffer: Buffer, array: PrimExpr, label: str, device: Device) -> None:
        """Bind a buffer's pointer, shape, strides and offset to the fields of a DLTensor."""
        self.check(op.logical_not(is_null(array)), "TypeError", f"{label} must not be null")
        self._check_type(buffer, array, label)
        shape = self._bind_shape(buffer, array, label)
        self._bind_strides(buffer, array, label)
        self._bind_offset(buffer, array, label)
        self._bind_device(array, label, device)
        self._bind_data(buffer, array, label, shape)

    def _check_type(self, buffer: Buffer, array: PrimExpr, label: str) -> None:
        ndim = array_field(array, StructField.ARRAY_NDIM)
        rank = const(len(buffer.shape), INT32)
        self.check(
            EQ(ndim, rank), "ValueError", f"{label} needs {len(buffer.shape)} dimensions", ndim
        )
        dtype = buffer.dtype
        code = array_field(array, StructField.ARRAY_TYPE_CODE)
        bits = array_field(array, StructField.ARRAY_TYPE_BITS)
        lanes = array_field(array, StructField.ARRAY_TYPE_LANES)
        same = op.all(
            EQ(code, const(dtype.type_code, code.dtype)),
            EQ(bits, const(dtype.bits, bits.dtype)),
            EQ(lanes, const(dtype.lanes, lanes.dtype)),
        )
        self.check(
            same, "TypeError", f"{label} needs dtype {dtype}", name_of(code, DTYPE_CODES), bits
        )

    def _bind_shape(self, buffer: Buffer, array: PrimExpr, label: str) -> Buffer | None:
        if not buffer.shape:
            return None
        extents = self._int64_array(f"{buffer.name}_shape", array, StructField.ARRAY_SHAPE, buffer)
        for axis, extent in enumerate(buffer.shape):
            self._bind_extent(extent, extents[axis], f"{label} needs shape[{axis}]")
        self._check_count(buffer, extents, label)
        return extents

    def _check_count(self, buffer: Buffer, found: Buffer, label: str) -> None:
        """Indices of 32 bits must reach all elements of open extents."""
        is_known = all([isinstance(extent, IntImm) for extent in buffer.shape])
        if is_known or len(buffer.shape) < 2 or any([e.dtype is INT64 for e in buffer.shape]):
            return
        count: PrimExpr = const(1, INT64)
        for axis in range(len(buffer.shape)):
            count = count * found[axis]
        self.check(
            LT(count, const(1 << 31, INT64)), "ValueError", f"{label} needs below 2**31 elements",
            count,
        )  # fmt: skip

    def _bind_extent(self, extent: PrimExpr, found: PrimExpr, what: str) -> None:
        """Compare in 64 bits; an extent that its variable cannot hold is rejected."""
        narrow = Cast(extent.dtype, found) if extent.dtype.bits < INT64.bits else found
        if isinstance(extent, Var) and extent not in self.bound:
            self.let(extent, narrow)
            if narrow is not found:
                limit = f"{what} below 2**{extent.dtype.bits - 1}"
                self.check(EQ(Cast(INT64, extent), found), "ValueError", limit, found)
            return
        self.bind(op.cast(extent, INT64), found, f"{what} == {text_of(extent)}")

    def _bind_strides(self, buffer: Buffer, array: PrimExpr, label: str) -> None:
        if not buffer.shape:
            return
        found = self._int64_array(
            f"{buffer.name}_strides", array, StructField.ARRAY_STRIDES, buffer
        )
        absent = is_null(found.data)
        if not buffer.strides:
            compact = is_compact(buffer, found)
            if compact is not None:
                what = f"{label} needs a compact layout (strides null or row-major)"
                self.late_layers.append(self._assertion(Or(absent, compact), "ValueError", what))
            return
        expected = buffer.shape[0].dtype
        step: PrimExpr = const(1, expected)
        for axis in reversed(range(len(buffer.shape))):
            extent, stride = buffer.shape[axis], buffer.strides[axis]
            given = narrowed(found[axis], stride.dtype)
            value: PrimExpr = Call(
                stride.dtype, IF_THEN_ELSE, [absent, op.cast(step, stride.dtype), given]
            )
            if buffer.buffer_type is BufferType.AUTO_BROADCAST:
                value = op.select(op.equal(extent, 1), const(0, stride.dtype), value)
            self.bind(stride, value, f"{label} needs strides[{axis}] == {text_of(stride)}")
            step = step * extent

    def _bind_offset(self, buffer: Buffer, array: PrimExpr, label: str) -> None:
        offset = array_field(array, StructField.ARRAY_BYTE_OFFSET)
        expected = buffer.elem_offset
        if isinstance(expected, IntImm):
            nbytes = expected.value * buffer.dtype.itemsize
            same = EQ(offset, const(nbytes, offset.dtype))
            self.check(same, "ValueError", f"{label} needs byte_offset == {nbytes}", offset)
            return
        elements = Cast(expected.dtype, op.truncdiv(offset, buffer.dtype.itemsize))
        self.bind(expected, elements, f"{label} needs elem_offset == {text_of(expected)}")
        if buffer.offset_factor > 1:
            multiple = op.equal(op.floormod(expected, buffer.offset_factor), 0)
            what = f"{label} needs an offset that is a multiple of {buffer.offset_factor} elements"
            self.check(multiple, "ValueError", what)

    def _bind_device(self, array: PrimExpr, label: str, device: Device) -> None:
        kind = array_field(array, StructField.ARRAY_DEVICE_TYPE)
        self.bind(device.type, kind, f"{label} needs {device.requirement}")
        number = array_field(array, StructField.ARRAY_DEVICE_ID)
        self.bind(device.id, number, f"{label} needs the device of the arguments before it")

    def _bind_data(self, buffer: Buffer, array: PrimExpr, label: str, shape: Buffer | None) -> None:
        self._reject_rebinding(buffer)
        self.let(buffer.data, array_field(array, StructField.ARRAY_DATA))
        present: PrimExpr = op.logical_not(is_null(buffer.data))
        for axis, extent in enumerate(buffer.shape):
            if shape is not None and (not isinstance(extent, IntImm) or extent.value == 0):
                present = Or(op.equal(shape[axis], 0), present)
        self.check(present, "ValueError", f"{label} has no data")
        address = Call(INT64, REINTERPRET, [buffer.data])
        alignment = buffer.data_alignment
        aligned = op.equal(op.bitwise_and(address, alignment - 1), 0)
        self.check(aligned, "ValueError", f"{label} needs data aligned to {alignment} bytes")
        self.declare(buffer)

    def _reject_rebinding(self, buffer: Buffer) -> None:
        if buffer.data in self.bound:
            raise LoweringError(
                f"function {self.function_name} binds the pointer of buffer {buffer.name} twice"
            )

    def _int64_array(
        self, name: str, array: PrimExpr, field: StructField, buffer: Buffer
    ) -> Buffer:
        view = decl_buffer((len(buffer.shape),), "int64", name)
        self.let(view.data, array_field(array, field))
        self.declare(view)
        return view

    def _assertion(self, condition: PrimExpr, error: str, *parts: str | PrimExpr) -> Layer:
        """A check; of its message, expressions are values that the running program has."""
        texts = [f"{error}: {self.function_name}: ", *parts]
        if all([isinstance(text, str) for text in texts]):
            message: PrimExpr = StringImm("".join([str(text) for text in texts]))
        else:
            message = tvm_tuple(*texts)
        return lambda body: AssertStmt(condition, message, body)


@dataclass(frozen=True)
class FixedTensor:
    """An argument of which all that the caller's tensor must be is known when compiling."""

    position: int
    array: Var
    buffer: Buffer
    label: str  # how messages call it


class Device:
    """The device that all buffers must be on; known, or bound by the first of them."""

    def __init__(self, device_type: int | None, name: str) -> None:
        self.type: PrimExpr = (
            Var("device_type", INT32) if device_type is None else const(device_type, INT32)
        )
        self.id: PrimExpr = Var("device_id", INT32)
        same = "the device type of the arguments before it"
        self.requirement = same if device_type is None else f"to be on device {name}"


def is_fixed(buffer: Buffer, device: Device) -> bool:
    """Whether all that a caller's tensor must be is known when compiling."""
    known = [*buffer.shape, buffer.elem_offset, device.type]
    return not buffer.strides and all([isinstance(e, IntImm) for e in known])


def is_compact(buffer: Buffer, strides: Buffer) -> PrimExpr | None:
    """Whether strides are those of a row-major array; None if any are. Unit axes do not count."""
    conditions: list[PrimExpr] = []
    step: PrimExpr = const(1, INT64)
    for axis in reversed(range(len(buffer.shape))):
        extent = op.cast(buffer.shape[axis], INT64)
        if not is_const(extent, 1):
            same = op.equal(strides[axis], step)
            unit = op.equal(extent, 1)
            conditions.append(same if isinstance(extent, IntImm) else Or(unit, same))
        step = step * extent
    return reduce(op.logical_and, conditions) if conditions else None


def name_of(code: PrimExpr, names: Mapping[int, str]) -> PrimExpr:
    """The name of a code, found while running."""
    name: PrimExpr = StringImm(UNKNOWN_CODE)
    for value, text in names.items():
        name = Call(
            HANDLE, IF_THEN_ELSE, [EQ(code, const(value, code.dtype)), StringImm(text), name]
        )
    return name


def text_of(e: PrimExpr) -> str:
    """An extent as messages show it."""
    if isinstance(e, IntImm):
        return str(e.value)
    return e.name if isinstance(e, Var) else str(e)


def narrowed(value: PrimExpr, dtype: DType) -> PrimExpr:
    """A 64-bit field as an index."""
    return value if value.dtype is dtype else Cast(dtype, value)
