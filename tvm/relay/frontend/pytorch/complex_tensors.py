"""Complex tensors: pairs of real ones.

Relay has no complex element types. A complex input or output of a model is a real tensor with one
axis of two more, as ``torch.view_as_real`` gives it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.expr import Call
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape
from tvm.relay.frontend.composites import whole_power

from .registry import (
    CONVERTERS,
    Converter,
    as_dtype,
    as_float,
    as_number,
    is_tensor,
    result_dtype,
    torch_op,
    torch_ops,
)
from .tree import leaves, mapped

# torch's numbers for complex element types, and the types of the parts
COMPLEX_DTYPES = {9: "float32", 10: "float64"}


@dataclass(frozen=True)
class Complex:
    """``real + i imag``."""

    real: RelayExpr
    imag: RelayExpr

    @property
    def parts(self) -> list[RelayExpr]:
        """Both parts in order."""
        return [self.real, self.imag]

    def map(self, apply: Callable[[RelayExpr], RelayExpr]) -> Complex:
        """The same function of each part."""
        return Complex(apply(self.real), apply(self.imag))


def as_complex(x: Any) -> Complex:
    """A tensor or number as a complex one."""
    if isinstance(x, Complex):
        return x
    if isinstance(x, complex):
        return Complex(constant(x.real, "float32"), constant(x.imag, "float32"))
    real = as_float(x)
    return Complex(real, _op.zeros_like(real))


def from_pairs(x: RelayExpr) -> Complex:
    """The last axis holds real and imaginary part."""
    return Complex(*[_op.take(x, constant(i, "int64"), -1, mode="fast") for i in range(2)])


def pairs_of(z: Complex) -> Any:
    """The tensor that `from_pairs` split."""
    assert isinstance(z.real, Call)
    return z.real.args[0]


def as_pairs(z: Complex) -> RelayExpr:
    """Real and imaginary part along a new last axis."""
    return _op.stack(z.parts, -1)


def complex_constant(array: np.ndarray[Any, Any]) -> Complex:
    """A constant of a complex array."""
    return Complex(constant(array.real.copy()), constant(array.imag.copy()))


def has_complex(values: Any) -> bool:
    """Whether a complex tensor is among arguments."""
    return any(isinstance(leaf, (Complex, complex)) for leaf in leaves(values))


def accept_complex(converters: MutableMapping[str, Converter]) -> None:
    """Let the converters of operators that treat both parts alike take complex tensors."""
    for kind, convert in list(converters.items()):
        converters[kind] = _accepting(kind, convert)


def _accepting(kind: str, convert: Converter) -> Converter:
    name = kind.removeprefix("aten::").partition(".")[0].rstrip("_")

    def accepting(*args: Any) -> Any:
        if name in _AWARE or not has_complex(args):
            return convert(*args)
        if name in _COMPLEX:
            return _COMPLEX[name](*args)
        if name in _BY_PARTS:
            return _joined(*[convert(*_part(args, i, zero=False)) for i in range(2)])
        if name.startswith(("fft_", "_fft_")):
            return convert(*args)
        if name in _LINEAR:
            return _joined(*[convert(*_part(args, i, zero=True)) for i in range(2)])
        raise OpAttributeUnImplemented(f"{kind} does not support complex tensors")

    return accepting


def _part(values: Any, index: int, zero: bool) -> Any:
    """The real or the imaginary parts; with ``zero``, the latter are zeros of what is real."""

    def of_leaf(value: Any) -> Any:
        if isinstance(value, complex):
            return value.imag if index else value.real
        if isinstance(value, Complex):
            return value.parts[index]
        if zero and index and is_tensor(value):
            return _op.zeros_like(as_float(value))
        return value

    return mapped(values, of_leaf)


def _joined(real: Any, imag: Any) -> Any:
    if hasattr(real, "astuple"):  # a TupleWrapper
        real, imag = [[part[i] for i in range(part.size)] for part in (real, imag)]
    if isinstance(real, (list, tuple)):
        return [_joined(a, b) for a, b in zip(real, imag, strict=True)]
    return Complex(real, imag) if is_tensor(real) else real


# ---- operators that make or read complex tensors

_AWARE = {
    "complex", "polar", "view_as_complex", "view_as_real", "real", "imag", "conj", "conj_physical",
    "_conj", "_conj_physical", "is_complex", "istft", "stft",
}  # fmt: skip


@torch_op("complex")
def _complex(real: RelayExpr, imag: RelayExpr) -> Complex:
    shape = np.broadcast_shapes(infer_shape(real), infer_shape(imag))
    return Complex(real, imag).map(lambda part: _op.broadcast_to(part, shape))


@torch_op("polar")
def _polar(size: RelayExpr, angle: RelayExpr) -> Complex:
    return Complex(size * _op.cos(angle), size * _op.sin(angle))


torch_ops({
    "view_as_complex": lambda x: from_pairs(x),
    "view_as_real": lambda z: as_pairs(z),
    "real": lambda x: x.real if isinstance(x, Complex) else x,
    "imag": lambda z: z.imag,
    "is_complex": lambda x: isinstance(x, Complex),
})  # fmt: skip


@torch_op("conj", "conj_physical", "_conj", "_conj_physical")
def conjugate(x: Any) -> Any:
    """The imaginary part turned."""
    return Complex(x.real, _op.negative(x.imag)) if isinstance(x, Complex) else x


# ---- arithmetic


def scaled(z: Complex, factor: float) -> Complex:
    """A complex tensor times a number."""
    if factor == 1:
        return z
    return z.map(lambda part: part * constant(factor, infer_dtype(part)))


def _promoted(a: Any, b: Any) -> tuple[Complex, Complex]:
    x, y = as_complex(a), as_complex(b)
    dtype = result_dtype(x.real, y.real)
    return x.map(lambda part: as_dtype(part, dtype)), y.map(lambda part: as_dtype(part, dtype))


def times(a: Any, b: Any) -> Complex:
    """The product."""
    if not isinstance(a, Complex) and isinstance(b, Complex):
        a, b = b, a
    if not isinstance(b, (Complex, complex)):
        multiply = CONVERTERS["aten::mul"]
        return as_complex(a).map(lambda part: multiply(part, b))
    x, y = _promoted(a, b)
    return Complex(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)


def _matmul(a: Any, b: Any, *_: Any) -> Complex:
    x, y = _promoted(a, b)
    multiply = CONVERTERS["aten::matmul"]
    return Complex(
        multiply(x.real, y.real) - multiply(x.imag, y.imag),
        multiply(x.real, y.imag) + multiply(x.imag, y.real),
    )


def _einsum(equation: str, operands: Sequence[Any], *_: Any) -> Complex:
    """The sum over products of one part of each operand: i, -1 and -i for 1, 2 and 3 imaginary."""
    sums: list[Any] = [None, None]
    multiply = CONVERTERS["aten::einsum"]
    kinds = [z.parts if isinstance(z, Complex) else [z] for z in operands]
    for chosen in itertools.product(*[range(len(parts)) for parts in kinds]):
        term = multiply(equation, [parts[i] for parts, i in zip(kinds, chosen, strict=True)])
        turns = sum(chosen) % 4
        term = _op.negative(term) if turns > 1 else term
        sums[turns % 2] = term if sums[turns % 2] is None else sums[turns % 2] + term
    return Complex(*sums)


def _squared_size(z: Complex) -> RelayExpr:
    return z.real * z.real + z.imag * z.imag


def _reciprocal(x: Complex) -> Complex:
    size = _squared_size(x)
    return Complex(x.real / size, _op.negative(x.imag) / size)


def _divided(a: Any, b: Any, *_: Any) -> Complex:
    if not isinstance(b, (Complex, complex)):
        divide = CONVERTERS["aten::div"]
        return as_complex(a).map(lambda part: divide(part, b))
    return times(a, _reciprocal(as_complex(b)))


def _size(x: Complex) -> RelayExpr:
    """The absolute value, scaled by the larger part so that no square overflows."""
    large = _op.maximum(_op.abs(x.real), _op.abs(x.imag))
    safe = _op.where(_op.equal(large, constant(0, infer_dtype(large))), _op.ones_like(large), large)
    return large * _op.sqrt(_squared_size(x.map(lambda part: part / safe)))


def _angle(x: Complex) -> RelayExpr:
    angle: RelayExpr = CONVERTERS["aten::atan2"](x.imag, x.real)
    return angle


def _exp(x: Complex) -> Complex:
    return _polar(_op.exp(x.real), x.imag)


def _log(x: Complex) -> Complex:
    return Complex(_op.log(_size(x)), _angle(x))


def _pow(x: Any, power: Any) -> Complex:
    """Whole powers by multiplication, others by the logarithm."""
    number = as_number(power)
    if isinstance(number, int) and 0 < number <= 16:
        result: Complex = whole_power(x, number, times)
        return result
    return _exp(times(_log(as_complex(x)), power))


def _sqrt(x: Complex) -> Complex:
    size = _op.sqrt(_size(x))
    half = _angle(x) * constant(0.5, infer_dtype(x.real))
    return _polar(size, half)


def _equal(a: Any, b: Any) -> RelayExpr:
    x, y = _promoted(a, b)
    return _op.logical_and(_op.equal(x.real, y.real), _op.equal(x.imag, y.imag))


def _converted(x: Complex, *args: Any) -> Any:
    """To another complex type; to a real one, torch drops the imaginary part."""
    for arg in args[:2]:
        if isinstance(arg, Complex):
            return _cast(x, infer_dtype(arg.real))
        if isinstance(arg, int) and not isinstance(arg, bool):
            if arg in COMPLEX_DTYPES:
                return _cast(x, COMPLEX_DTYPES[arg])
            return CONVERTERS["aten::to"](x.real, *args)
    return x


def _cast(x: Complex, dtype: str) -> Complex:
    return x.map(lambda part: _op.cast(part, dtype))


_COMPLEX: dict[str, Callable[..., Any]] = {
    "mul": times, "multiply": times, "div": _divided, "divide": _divided, "true_divide": _divided,
    "reciprocal": _reciprocal, "abs": _size, "angle": _angle, "exp": _exp, "log": _log,
    "pow": _pow, "square": lambda x: times(x, x), "sqrt": _sqrt, "eq": _equal,
    "ne": lambda a, b: _op.logical_not(_equal(a, b)),
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot"), _matmul),
    "einsum": _einsum,
    **dict.fromkeys(("to", "_to_copy", "type_as", "convert_element_type"), _converted),
    "size": lambda x, *args: CONVERTERS["aten::size"](x.real, *args),
    "dim": lambda x: len(infer_shape(x.real)),
    "numel": lambda x: CONVERTERS["aten::numel"](x.real),
    "dtype": lambda x: 9 if infer_dtype(x.real) == "float32" else 10,
    "where": lambda c, a, b: Complex(*[
        _op.where(c, p, q) for p, q in zip(as_complex(a).parts, as_complex(b).parts, strict=True)
    ]),
}  # fmt: skip
# data first, then numbers and indices
_BY_PARTS = {
    "view", "reshape", "_unsafe_view", "view_as", "reshape_as", "flatten", "unflatten", "permute",
    "transpose", "swapaxes", "t", "numpy_T", "unsqueeze", "squeeze", "expand",
    "expand_as", "repeat", "slice", "narrow", "select", "index", "index_select", "gather", "split",
    "split_with_sizes", "chunk", "unbind", "tensor_split", "flip", "roll", "clone", "contiguous",
    "detach", "alias", "lift_fresh_copy", "resolve_conj", "resolve_neg", "cpu", "neg", "sum",
    "mean", "cumsum", "tril", "triu", "diagonal", "zeros_like", "pad", "constant_pad_nd",
    "broadcast_to", "as_strided", "positive", "T", "mT",
}  # fmt: skip
# sums: what is real has an imaginary part of zeros
_LINEAR = {
    "add", "sub", "subtract", "rsub", "cat", "concat", "stack", "copy",
    "select_scatter", "slice_scatter", "index_add",
}  # fmt: skip


def accept_complex_types(converters: MutableMapping[str, Converter]) -> None:
    """Let ``to`` make real tensors complex."""
    for name in ("aten::to", "aten::_to_copy", "prims::convert_element_type"):
        if name in converters:
            converters[name] = _making_complex(converters[name])


def _making_complex(convert: Converter) -> Converter:
    def converted(x: Any, *args: Any) -> Any:
        wanted: Sequence[Any] = [
            a for a in args[:2] if a in COMPLEX_DTYPES and type(a) is int
        ] if not isinstance(x, Complex) else []  # fmt: skip
        if wanted:
            return as_complex(_op.cast(x, COMPLEX_DTYPES[wanted[0]]))
        return convert(x, *args)

    return converted
