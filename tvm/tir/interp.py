"""The reference semantics of loop-level programs, on numpy.

    interpret(func, a, b, c)     # runs the PrimFunc on arrays, in place

Every back end must agree with it. It takes programs of every stage: blocks, realized buffers,
flattened allocations, vectors. All loops run in order, and so do threads, but for those that share
memory or wait for each other (`interp_threads`). Each access is checked against the bounds of its buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm.error import TVMError
from tvm.ir.visitor import Visitor
from tvm.support import DType, ScalableLanes, deep

from . import expr as e
from . import stmt as s
from .buffer import Buffer, BufferType, allocation_shape
from .function import PrimFunc
from .interp_matrix_units import MatrixUnits
from .interp_values import (
    BINARY,
    ON_INTS,
    as_numpy,
    as_value,
    call_intrinsic,
    cast,
    constant,
    reinterpret,
    wrapped,
)


@deep
def interpret(func: PrimFunc, *args: Any) -> Any:
    """Run ``func`` on numpy arrays and Python scalars; output arrays are written in place.

    Parameters
    ----------
    func : PrimFunc
        A function of any lowering stage before the packed calling convention.
    args : numpy arrays, runtime arrays and scalars, one a parameter

    Returns
    -------
    The value of ``T.ret`` if the function returns one.

    Raises
    ------
    TVMError
        On a wrong number of arguments, a shape that does not fit, or an access out of bounds.
    """
    if len(args) != len(func.params):
        raise TVMError(f"the function requires {len(func.params)} arguments, got {len(args)}")
    machine = Interpreter()
    arrays = [(arg, arg.numpy()) for arg in args if hasattr(arg, "numpy")]
    by_id = {id(arg): array for arg, array in arrays}
    for param, arg in zip(func.params, args, strict=True):
        buffer = func.buffer_map.get(param)
        if buffer is None:
            machine.env[param] = constant(arg, param.dtype) if not param.dtype.is_handle else arg
        else:
            machine.bind_argument(buffer, by_id.get(id(arg), arg))
    machine.check_shapes()
    try:
        with np.errstate(all="ignore"):
            machine.visit(func.body)
    except _Return as returned:
        return returned.value
    finally:
        for arg, array in arrays:
            arg.copyfrom(array)
    return None


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class _Memory:
    """One-dimensional storage; ``origin`` is the first index of a realized region."""

    def __init__(self, data: Any, origin: tuple[int, ...] = (), extents: Any = ()) -> None:
        self.data = data
        self.origin = origin
        self.extents = extents

    def of_type(self, dtype: DType) -> Any:
        """The elements; where memory of another type is shared, its bytes as this one."""
        data, wanted = self.data, dtype.numpy
        if data.dtype == wanted or dtype.is_handle or data.dtype.kind == "O":
            return data
        bytes_ = data.view(np.uint8)
        return bytes_[: bytes_.size // wanted.itemsize * wanted.itemsize].view(wanted)


class Interpreter(MatrixUnits, Visitor):
    """Evaluates expressions to values and executes statements; inside of kernels, those of one thread."""

    def __init__(self) -> None:
        self.env: dict[e.Var, Any] = {}
        self.memory: dict[e.Var, _Memory] = {}
        self.views: dict[Buffer, tuple[Buffer, list[int]]] = {}
        self.strides: dict[Buffer, list[int]] = {}  # of buffers of constant shape
        self._arguments: list[tuple[Buffer, Any]] = []
        self._fragments: dict[e.Var, tuple[int, int, int]] = {}  # their products: m, n and k

    # ---- arguments

    def bind_argument(self, buffer: Buffer, array: Any) -> None:
        """Let ``buffer`` view ``array``, and bind the symbols of its shape."""
        array = np.asarray(array)
        if array.ndim != len(buffer.shape):
            raise TVMError(
                f"buffer {buffer.name} requires {len(buffer.shape)} dimensions, got {array.ndim}"
            )
        for dim, size in zip(buffer.shape, array.shape, strict=True):
            if isinstance(dim, e.Var) and dim not in self.env:
                self.env[dim] = constant(size, dim.dtype)
        for stride, size, step in zip(buffer.strides, array.shape, array.strides, strict=False):
            if isinstance(stride, e.Var) and stride not in self.env:
                is_repeated = size == 1 and buffer.buffer_type is BufferType.AUTO_BROADCAST
                steps = 0 if is_repeated else step // array.itemsize
                self.env[stride] = constant(steps, stride.dtype)
        if isinstance(buffer.elem_offset, e.Var):
            self.env.setdefault(buffer.elem_offset, constant(0, buffer.elem_offset.dtype))
        self.memory[buffer.data] = _Memory(_flat_view(array))
        self._arguments.append((buffer, array))

    def check_shapes(self) -> None:
        """Compare the arguments' shapes with what the function declares."""
        for buffer, array in self._arguments:
            shape = tuple([int(self.visit(dim)) for dim in buffer.shape])
            if shape != array.shape or buffer.dtype.numpy != array.dtype:
                raise TVMError(
                    f"buffer {buffer.name} requires {buffer.dtype}{list(shape)}, "
                    f"got {array.dtype}{list(array.shape)}"
                )

    # ---- expressions

    def visit_var(self, var: e.Var) -> Any:
        if var in self.env:
            return self.env[var]
        if var in self.memory:
            return self.memory[var]
        raise TVMError(f"variable {var.name} has no value here")

    def visit_iter_var(self, iter_var: e.IterVar) -> Any:
        return self.visit_var(iter_var.var)

    def visit_int_imm(self, imm: e.IntImm) -> Any:
        return constant(imm.value, imm.dtype)

    def visit_float_imm(self, imm: e.FloatImm) -> Any:
        return imm.dtype.numpy.type(imm.value)

    def visit_string_imm(self, imm: e.StringImm) -> Any:
        return imm.value

    def visit_cast(self, node: e.Cast) -> Any:
        return cast(self.visit(node.value), node.dtype)

    def visit_binary_op_expr(self, node: e.BinaryOpExpr) -> Any:
        a, b = self.visit(node.a), self.visit(node.b)
        if type(a) is int and type(b) is int:
            return wrapped(ON_INTS[type(node)](a, b), node.dtype)
        return BINARY[type(node)](as_numpy(a, node.dtype), as_numpy(b, node.dtype))

    def visit_cmp_expr(self, node: e.CmpExpr) -> Any:
        a, b = self.visit(node.a), self.visit(node.b)
        if type(a) is int and type(b) is int:
            return ON_INTS[type(node)](a, b)
        return BINARY[type(node)](a, b)

    def visit_and(self, node: e.And) -> Any:
        a = self.visit(node.a)
        return a & self.visit(node.b) if _holds(np.any, a) else a

    def visit_or(self, node: e.Or) -> Any:
        a = self.visit(node.a)
        return a if _holds(np.all, a) else a | self.visit(node.b)

    def visit_not(self, node: e.Not) -> Any:
        return np.logical_not(self.visit(node.a))

    def visit_select(self, node: e.Select) -> Any:
        return self._choose(self.visit(node.condition), node.true_value, node.false_value)

    def _choose(self, condition: Any, true_value: Any, false_value: Any) -> Any:
        """Only what is chosen is evaluated, unless the lanes differ."""
        if _holds(np.all, condition):
            return self.visit(true_value)
        if not _holds(np.any, condition):
            return self.visit(false_value)
        return np.where(condition, self.visit(true_value), self.visit(false_value))

    def visit_ramp(self, node: e.Ramp) -> Any:
        base, stride = self.visit(node.base), self.visit(node.stride)
        steps = np.arange(_count(node.lanes), dtype=node.dtype.numpy)
        strides = np.broadcast_to(stride, np.shape(base))  # of a vector base, one for each lane
        return (np.multiply.outer(steps, strides) + base).reshape(-1).astype(node.dtype.numpy)

    def visit_broadcast(self, node: e.Broadcast) -> Any:
        value = as_numpy(self.visit(node.value), node.value.dtype)
        return np.tile(np.atleast_1d(np.asarray(value)), _count(node.lanes))

    def visit_shuffle(self, node: e.Shuffle) -> Any:
        parts = [as_numpy(self.visit(vector), vector.dtype) for vector in node.vectors]
        lanes = np.concatenate([np.atleast_1d(part) for part in parts])
        chosen = lanes[[int(self.visit(index)) for index in node.indices]]
        return chosen if len(chosen) > 1 else as_value(chosen[0])

    def visit_let(self, node: e.Let) -> Any:
        self.env[node.var] = self.visit(node.value)
        return self.visit(node.body)

    def visit_buffer_load(self, node: e.BufferLoad) -> Any:
        memory, address = self._address(node.buffer, node.indices)
        data = memory.of_type(node.buffer.dtype)
        if node.predicate is not None:
            active = np.asarray(self.visit(node.predicate), bool)
            lanes = data[np.where(active, address, 0)]
            return np.where(active, lanes, np.zeros_like(lanes))
        self._check_bounds(node.buffer, data, address)
        self.note_read(node.buffer, data, address)
        return as_value(data[address])

    def visit_call(self, node: e.Call) -> Any:
        name = getattr(node.op, "name", "")
        special: Callable[[e.Call], Any] | None = getattr(
            self, "_call_" + name.removeprefix("tir."), None
        )
        if special is not None:
            return special(node)
        return call_intrinsic(
            name.removeprefix("tir."),
            node.dtype,
            [as_numpy(self.visit(arg), arg.dtype) for arg in node.args],
        )

    def _call_if_then_else(self, node: e.Call) -> Any:
        return self._choose(self.visit(node.args[0]), node.args[1], node.args[2])

    def _call_reinterpret(self, node: e.Call) -> Any:
        source = node.args[0]
        return reinterpret(as_numpy(self.visit(source), source.dtype), node.dtype)

    def _call_vscale(self, node: e.Call) -> Any:
        """Vectors are as short as a processor's may be: programs must not count on more."""
        return 1

    def _call_get_active_lane_mask(self, node: e.Call) -> Any:
        base, limit = [int(self.visit(arg)) for arg in node.args]
        return base + np.arange(_count(node.dtype.lanes)) < limit

    def _call_prefetch(self, node: e.Call) -> Any:
        """Has no effect on values; what it names may lie behind the end of the memory."""
        return 0

    def _call_dma_copy(self, node: e.Call) -> Any:
        """Copies at once: a program that waits where it must sees the same."""
        _, *ends, size, _ = node.args
        target, source = [self._bytes_from(end) for end in ends]
        count = int(self.visit(size))
        if count > min(target.size, source.size):
            raise TVMError(f"dma_copy of {count} bytes goes beyond the end of its memory")
        target[:count] = source[:count]
        return 0

    def _bytes_from(self, address: Any) -> Any:
        """The bytes from an element on, whose address is taken."""
        load = address.args[0]
        memory, first = self._address(load.buffer, load.indices)
        data = memory.of_type(load.buffer.dtype)
        return data.view(np.uint8)[first * data.itemsize :]

    def _call_dma_wait(self, node: e.Call) -> Any:
        """Nothing is under way."""
        return 0

    _call_dma_start_group = _call_dma_end_group = _call_dma_wait

    def _call_ret(self, node: e.Call) -> Any:
        raise _Return(self.visit(node.args[0]))

    def _call_large_uint_imm(self, node: e.Call) -> Any:
        low, high = [int(self.visit(arg)) for arg in node.args]
        return constant(high << 32 | low, node.dtype)

    # ---- statements

    def visit_let_stmt(self, node: s.LetStmt) -> None:
        self.env[node.var] = self.visit(node.value)
        self.visit(node.body)

    def visit_attr_stmt(self, node: s.AttrStmt) -> None:
        if node.attr_key in ("thread_extent", "virtual_thread"):
            var = getattr(node.node, "var", node.node)
            if var not in self.env and not self._is_thread(var, node):
                if not self.starts_kernel(node):
                    self._repeat(var, 0, int(self.visit(node.value)), node.body)
                return
        self.visit(node.body)

    def _is_thread(self, var: e.Var, node: s.AttrStmt) -> bool:
        """Whether the variable is the index of the thread at hand, which it then has."""
        index = self.thread_index(getattr(node.node, "thread_tag", ""))
        if node.attr_key != "thread_extent" or index is None:
            return False
        self.env[var] = index
        return True

    def visit_assert_stmt(self, node: s.AssertStmt) -> None:
        if not self.visit(node.condition):
            raise TVMError(f"assertion failed: {self.visit(node.message)}")
        self.visit(node.body)

    def visit_for(self, node: s.For) -> None:
        if node.kind is s.ForKind.THREAD_BINDING and self._runs_as_thread(node):
            return
        first, extent = int(self.visit(node.min)), int(self.visit(node.extent))
        self._repeat(node.loop_var, first, extent, node.body)

    def _runs_as_thread(self, node: s.For) -> bool:
        axis = node.thread_binding
        tag = axis.thread_tag if isinstance(axis, e.IterVar) else ""
        if not tag.startswith(("blockIdx", "threadIdx")):
            return False
        index = self.thread_index(tag)
        if index is None:
            return self.starts_kernel(node)
        self.env[node.loop_var] = index
        self.visit(node.body)
        return True

    def _repeat(self, var: e.Var, first: int, extent: int, body: s.Stmt) -> None:
        for value in range(first, first + extent):
            self.env[var] = value
            self.visit(body)
        self.env.pop(var, None)

    def visit_while(self, node: s.While) -> None:
        while self.visit(node.condition):
            self.visit(node.body)

    def visit_if_then_else(self, node: s.IfThenElse) -> None:
        if self.visit(node.condition):
            self.visit(node.then_case)
        elif node.else_case is not None:
            self.visit(node.else_case)

    def visit_buffer_store(self, node: s.BufferStore) -> None:
        value = self.visit(node.value)
        memory, address = self._address(node.buffer, node.indices)
        data = memory.of_type(node.buffer.dtype)
        if node.predicate is not None:
            active = np.asarray(self.visit(node.predicate), bool)
            lanes = np.broadcast_to(value, active.shape)
            data[np.asarray(address)[active]] = lanes[active]
            return
        self._check_bounds(node.buffer, data, address)
        self.note_write(node.buffer, data, address, value)
        data[address] = value

    def visit_buffer_realize(self, node: s.BufferRealize) -> None:
        origin = tuple([int(self.visit(bound.min)) for bound in node.bounds])
        extents = [int(self.visit(bound.extent)) for bound in node.bounds]
        self._allocate(node.buffer.data, node.buffer.dtype, extents, origin)
        self.visit(node.body)

    def visit_allocate(self, node: s.Allocate) -> None:
        extents = [int(self.visit(extent)) for extent in node.extents]
        self._allocate(node.buffer_var, node.dtype, extents)
        self.visit(node.body)

    def visit_allocate_const(self, node: s.AllocateConst) -> None:
        array = node.data.numpy() if hasattr(node.data, "numpy") else np.asarray(node.data)
        self.memory[node.buffer_var] = _Memory(array.reshape(-1).copy())
        self.visit(node.body)

    def _allocate(
        self, var: e.Var, dtype: DType, extents: list[int], origin: tuple[int, ...] = ()
    ) -> None:
        extents = [max(extent, 0) for extent in extents]  # of a part of something empty
        size = int(np.prod(extents, dtype=np.int64)) * _count(dtype.lanes)
        data = self.shared_data(var, size, lambda: _unwritten(size, dtype))
        self.memory[var] = _Memory(data, origin, tuple(extents) if origin else ())

    def visit_block_realize(self, node: s.BlockRealize) -> None:
        if not self.visit(node.predicate):
            return
        block = node.block
        values = [self.visit(value) for value in node.iter_values]
        for iter_var, value in zip(block.iter_vars, values, strict=True):
            self.env[iter_var.var] = value
        for buffer in block.alloc_buffers:
            extents = [int(self.visit(dim)) for dim in allocation_shape(buffer)]
            self._allocate(buffer.data, buffer.dtype, extents)
        for match in block.match_buffers:
            self._bind_view(match)
        if block.init is not None and self._starts_reduction(block):
            self.visit(block.init)
        self.visit(block.body)

    def _starts_reduction(self, block: s.Block) -> bool:
        reductions = [v for v in block.iter_vars if v.iter_type == e.IterVar.CommReduce]
        return all([v.dom is None or self.env[v.var] == self.visit(v.dom.min) for v in reductions])

    def _bind_view(self, match: s.MatchBufferRegion) -> None:
        """Let the matched buffer index into its source, leading dimensions of extent 1 dropped."""
        region = match.source.region
        start = [int(self.visit(r.min)) for r in region]
        for dim, r in zip(match.buffer.shape, region[-len(match.buffer.shape) :], strict=True):
            if isinstance(dim, e.Var):
                self.env[dim] = self.visit(r.extent)
        self._bind_pointer(match, start)
        self.views[match.buffer] = (match.source.buffer, start)

    def _bind_pointer(self, match: s.MatchBufferRegion, start: list[int]) -> None:
        """The variables of a view for code that takes its pointer: where it begins, and its strides."""
        view, source = match.buffer, match.source.buffer
        memory, first = self._address_at(source, start)
        self.memory[view.data] = memory
        if isinstance(view.elem_offset, e.Var):
            self.env[view.elem_offset] = first
        while source in self.views:
            source, _ = self.views[source]
        strides = self._strides(source, memory)[-len(view.strides) :] if view.strides else []
        for wanted, stride in zip(view.strides, strides, strict=True):
            if isinstance(wanted, e.Var):
                self.env[wanted] = stride

    def visit_prefetch(self, node: s.Prefetch) -> None:
        """Has no effect on values."""

    # ---- memory

    def _address(self, buffer: Buffer, indices: tuple[Any, ...]) -> tuple[_Memory, Any]:
        """Where elements lie; an array of addresses for a vector of elements."""
        return self._address_at(buffer, [self.visit(index) for index in indices])

    def _address_at(self, buffer: Buffer, values: list[Any]) -> tuple[_Memory, Any]:
        while buffer in self.views:
            buffer, start = self.views[buffer]
            values = [0] * (len(start) - len(values)) + values
            values = [value + first for value, first in zip(values, start, strict=True)]
        memory = self.memory.get(buffer.data)
        if memory is None:
            raise TVMError(f"buffer {buffer.name} has no memory here")
        strides = self._strides(buffer, memory)
        if memory.origin:
            self._check_indices(buffer, memory, values)
        address: Any = int(self.visit(buffer.elem_offset)) if not memory.origin else 0
        origin = memory.origin or (0,) * len(values)
        for value, first, stride in zip(values, origin, strides, strict=True):
            index = value if type(value) is int else np.asarray(value, np.int64)
            address = address + (index - first) * stride
        return memory, address if buffer.dtype.lanes == 1 else _lanes_of(address, buffer.dtype)

    def _strides(self, buffer: Buffer, memory: _Memory) -> list[int]:
        if memory.extents:
            return _compact_strides(memory.extents)
        known = self.strides.get(buffer)
        if known is None:
            constant_dims = all([type(d) is e.IntImm for d in (*buffer.shape, *buffer.strides)])
            if buffer.strides:
                known = [int(self.visit(stride)) for stride in buffer.strides]
            else:
                known = _compact_strides([int(self.visit(dim)) for dim in buffer.shape])
            if constant_dims:
                self.strides[buffer] = known
        return known

    def _check_indices(self, buffer: Buffer, memory: _Memory, values: list[Any]) -> None:
        """Each index of a realized region lies in its own bound, not only their combination."""
        for value, first, extent in zip(values, memory.origin, memory.extents, strict=False):
            if type(value) is int:
                outside = not first <= value < first + extent
            else:
                outside = bool(np.any(np.less(value, first) | (value >= first + extent)))
            if outside:
                raise TVMError(
                    f"buffer {buffer.name} is realized from {first} with extent {extent}, "
                    f"got index {value}"
                )

    def _check_bounds(self, buffer: Buffer, data: Any, address: Any) -> None:
        size = len(data)
        if type(address) is int:
            inside = 0 <= address < size
        else:
            inside = address.size == 0 or bool(address.min() >= 0 and address.max() < size)
        if not inside:
            raise TVMError(f"buffer {buffer.name} has {size} elements, got element {address}")


def _unwritten(size: int, dtype: DType) -> Any:
    """New elements; a read of what was never written shows up in the result."""
    data = np.zeros(size, dtype.numpy)
    if data.dtype.kind == "f":
        data.fill(np.nan)
    return data


def _holds(quantifier: Callable[[Any], Any], condition: Any) -> bool:
    """Whether a condition holds: of lanes, for any or all of them."""
    return condition if type(condition) is bool else bool(quantifier(condition))


def _compact_strides(shape: Sequence[int]) -> list[int]:
    strides = [1]
    for dim in reversed(shape[1:]):
        strides.insert(0, strides[0] * dim)
    return strides[: len(shape)]


def _flat_view(array: Any) -> Any:
    """The memory of an array from its first element on, without a copy."""
    if array.flags.c_contiguous:
        return array.reshape(-1)
    steps = [(size - 1) * step // array.itemsize for size, step in zip(array.shape, array.strides)]  # noqa: B905
    return np.lib.stride_tricks.as_strided(array, (sum(steps) + 1,), (array.itemsize,))


def _count(lanes: int) -> int:
    return lanes.factor if isinstance(lanes, ScalableLanes) else lanes


def _lanes_of(address: Any, dtype: DType) -> Any:
    """The addresses of all lanes of an element of a buffer of vectors."""
    count = _count(dtype.lanes)
    return (np.multiply.outer(address, count)[..., None] + np.arange(count)).reshape(-1)
