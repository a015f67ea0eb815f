"""PyTorch's functions of elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te
from tvm.ir.expr import PrimExpr
from tvm.relax import op as _op
from tvm.relax.expr import PrimValue, const
from tvm.relay.frontend.composites import whole_power
from tvm.relay.frontend.pytorch.registry import category, promote_dtypes

from .base_fx_graph_translator import (
    EMITTERS,
    BaseFXGraphImporter,
    Emitter,
    NoEmitter,
    dtype_name,
    emitter,
    is_tensor,
)

Importer = BaseFXGraphImporter


def as_float(e: Importer, x: Any) -> Any:
    """Integers become float32, as PyTorch has it for functions of real numbers."""
    return x if category(e.dtype_of(x)) == 2 else e.emit(_op.astype(x, "float32"))


def _unary(function: Callable[..., Any], of_reals: bool = False) -> Emitter:
    def emit(e: Importer, x: Any, **options: Any) -> Any:
        if any(options.values()):
            raise NoEmitter(f"options {options} are not those of relax")
        return e.emit(function(as_float(e, x) if of_reals else x))

    return emit


_REALS = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "log", "rsqrt",
    "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh",
)  # fmt: skip
EMITTERS.update({name: _unary(getattr(_op, name), True) for name in _REALS})
EMITTERS.update(
    {
        "abs": _unary(_op.abs),
        "bitwise_not": _unary(_op.bitwise_not),
        "ceil": _unary(_op.ceil),
        "floor": _unary(_op.floor),
        "invert": _unary(_op.bitwise_not),
        "isfinite": _unary(_op.isfinite),
        "isinf": _unary(_op.isinf),
        "isnan": _unary(_op.isnan),
        "neg": _unary(_op.negative),
        "relu": _unary(_op.nn.relu),
        "silu": _unary(_op.nn.silu),
        "square": _unary(_op.square),
    }
)


# ---- two operands


def _is_wider(a: str, b: str) -> bool:
    """Whether a number of category b makes a tensor of dtype a one of another category."""
    return category(b) > category(a)


def _number_dtype(value: Any) -> str:
    if isinstance(value, PrimExpr):
        return "float32" if value.dtype.is_float else "int64"
    if isinstance(value, bool):
        return "bool"
    return "float32" if isinstance(value, float) else "int64"


def promoted(e: Importer, a: Any, b: Any) -> tuple[Any, Any]:
    """Two operands, at least one of them a tensor, of one element type."""
    if is_tensor(a) and is_tensor(b):
        kinds = e.dtype_of(a), e.dtype_of(b)
        if kinds[0] == kinds[1]:
            return a, b
        ranks = [len(e.shape_of(x)) for x in (a, b)]
        kind = promote_dtypes(*kinds)
        # a tensor without axes counts only if its category is higher
        if category(kinds[0]) == category(kinds[1]) and (ranks[0] == 0) != (ranks[1] == 0):
            kind = kinds[0] if ranks[0] else kinds[1]
        for this, other in ((0, 1), (1, 0)):
            is_lower = category(kinds[this]) < category(kinds[other])
            if is_lower and ranks[other] == 0 and ranks[this]:
                kind = kinds[other]
        left, right = [
            x if k == kind else e.emit(_op.astype(x, kind))
            for x, k in zip((a, b), kinds, strict=True)
        ]
        return left, right
    tensor, number = (a, b) if is_tensor(a) else (b, a)
    kind = e.dtype_of(tensor)
    if _is_wider(kind, _number_dtype(number)):
        kind = _number_dtype(number)
        tensor = e.emit(_op.astype(tensor, kind))
    value = size_tensor(e, number, kind)
    return (tensor, value) if is_tensor(a) else (value, tensor)


def size_tensor(e: Importer, value: Any, dtype: str) -> Any:
    """A number, or an expression of symbolic sizes, as a tensor without axes."""
    if not isinstance(value, PrimExpr):
        return const(value, dtype)

    def element(number: PrimExpr) -> te.Tensor:
        return te.compute((), lambda: number.astype(dtype), name="size")

    return e.block_builder.emit_te(element, value, primfunc_name_hint="size")


def _binary(function: Callable[..., Any], of_reals: bool = False) -> Emitter:
    def emit(e: Importer, a: Any, b: Any, **options: Any) -> Any:
        if any([value not in (None, 1) for value in options.values()]):
            raise NoEmitter(f"options {options} are not those of relax")
        left, right = promoted(e, a, b)
        if of_reals and category(e.dtype_of(left)) != 2:
            left, right = as_float(e, left), as_float(e, right)
        return e.emit(function(left, right))

    return emit


_BINARY = {
    ("add", "iadd"): _op.add,
    ("sub", "isub", "subtract"): _op.subtract,
    ("mul", "imul", "multiply"): _op.multiply,
    ("eq",): _op.equal,
    ("ne",): _op.not_equal,
    ("lt",): _op.less,
    ("le",): _op.less_equal,
    ("gt",): _op.greater,
    ("ge",): _op.greater_equal,
    ("maximum",): _op.maximum,
    ("minimum",): _op.minimum,
    ("floordiv", "floor_divide", "ifloordiv"): _op.floor_divide,
    ("mod", "remainder"): _op.floor_mod,
    ("and_", "bitwise_and", "__and__"): _op.bitwise_and,
    ("or_", "bitwise_or", "__or__"): _op.bitwise_or,
    ("xor", "bitwise_xor", "__xor__"): _op.bitwise_xor,
    ("lshift", "bitwise_left_shift"): _op.left_shift,
    ("rshift", "bitwise_right_shift"): _op.right_shift,
}
for _names, _function in _BINARY.items():
    emitter(*_names)(_binary(_function))
emitter("truediv", "div", "itruediv", "divide", "true_divide")(_binary(_op.divide, True))


@emitter("pow", "ipow")
def _power(e: Importer, a: Any, b: Any) -> Any:
    """A power; of integers by products where the exponent is known, else in float64."""
    left, right = promoted(e, a, b)
    kind = e.dtype_of(left)
    if category(kind) == 2:
        return e.emit(_op.power(left, right))
    if isinstance(b, int) and b > 0:
        return whole_power(left, b, lambda x, y: e.emit(_op.multiply(x, y)))
    wide = [e.emit(_op.astype(x, "float64")) for x in (left, right)]
    return e.emit(_op.astype(e.emit(_op.power(*wide)), kind))


@emitter("rsub")
def _rsub(e: Importer, a: Any, b: Any, alpha: Any = 1) -> Any:
    if alpha != 1:
        raise NoEmitter("rsub with alpha")
    return EMITTERS["sub"](e, b, a)


def _best_of_two(name: str) -> Emitter:
    def emit(e: Importer, a: Any, b: Any = None, **options: Any) -> Any:
        if not is_tensor(b) or options:
            raise NoEmitter(f"{name} along an axis gives values and indices")
        return EMITTERS[f"{name}imum"](e, a, b)

    return emit


EMITTERS.update({name: _best_of_two(name) for name in ("max", "min")})


@emitter("where")
def _where(e: Importer, condition: Any, x: Any = None, y: Any = None) -> Any:
    if not is_tensor(x) and not is_tensor(y):
        raise NoEmitter("where of two numbers, or of a condition alone")
    left, right = promoted(e, x, y)
    return e.emit(_op.where(condition, left, right))


# ---- activations


@emitter("clamp", "clip")
def _clamp(e: Importer, x: Any, min: Any = None, max: Any = None) -> Any:
    if min is None and max is None:
        raise ValueError("torch.clamp requires min or max")
    if isinstance(min, (int, float)) and isinstance(max, (int, float)):
        return e.emit(_op.clip(x, PrimValue(min), PrimValue(max)))
    # the upper bound counts where the lower one is above it
    raised = x if min is None else EMITTERS["maximum"](e, x, min)
    return raised if max is None else EMITTERS["minimum"](e, raised, max)


@emitter("clamp_min")
def _clamp_min(e: Importer, x: Any, min: Any) -> Any:
    return EMITTERS["maximum"](e, x, min)


@emitter("clamp_max")
def _clamp_max(e: Importer, x: Any, max: Any) -> Any:
    return EMITTERS["minimum"](e, x, max)


@emitter("hardtanh")
def _hardtanh(
    e: Importer, x: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Any:
    return e.emit(_op.clip(x, PrimValue(min_val), PrimValue(max_val)))


@emitter("relu6")
def _relu6(e: Importer, x: Any, inplace: bool = False) -> Any:
    return e.emit(_op.clip(x, PrimValue(0), PrimValue(6)))


@emitter("gelu")
def _gelu(e: Importer, x: Any, approximate: str = "none") -> Any:
    functions = {"none": _op.nn.gelu, "tanh": _op.nn.gelu_tanh}
    if approximate not in functions:
        raise KeyError(f"Unregonized approximate algorithm for gelu: {approximate}.")
    return e.emit(functions[approximate](x))


@emitter("hardsigmoid")
def _hardsigmoid(e: Importer, x: Any, inplace: bool = False) -> Any:
    kind = e.dtype_of(x)
    moved = e.emit(_op.add(x, const(3, kind)))
    bounded = e.emit(_op.clip(moved, PrimValue(0), PrimValue(6)))
    return e.emit(_op.divide(bounded, const(6, kind)))


@emitter("hardswish")
def _hardswish(e: Importer, x: Any, inplace: bool = False) -> Any:
    return e.emit(_op.multiply(x, _hardsigmoid(e, x)))


@emitter("leaky_relu")
def _leaky_relu(e: Importer, x: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    return e.emit(_op.nn.leakyrelu(x, negative_slope))


def _softmax(function: Callable[..., Any]) -> Emitter:
    def emit(e: Importer, x: Any, dim: Any = -1, dtype: Any = None, **options: Any) -> Any:
        if isinstance(dtype, (bool, int)) and dtype:  # _softmax(x, dim, half_to_float)
            raise NoEmitter("softmax of half floats to floats")
        if dtype not in (None, False):
            x = e.emit(_op.astype(x, dtype_name(dtype)))
        return e.emit(function(as_float(e, x), -1 if dim is None else dim))

    return emit


emitter("softmax", "_softmax")(_softmax(_op.nn.softmax))
emitter("log_softmax", "_log_softmax")(_softmax(_op.nn.log_softmax))


@emitter("round")
def _round(e: Importer, x: Any, decimals: int = 0) -> Any:
    if not decimals:
        return e.emit(_op.round(x))
    # scaled by a power that is a whole number, which is exact, as PyTorch does
    power = const(10.0 ** abs(decimals), e.dtype_of(x))
    up, down = (_op.multiply, _op.divide) if decimals > 0 else (_op.divide, _op.multiply)
    return e.emit(down(e.emit(_op.round(e.emit(up(x, power)))), power))


def _triangle(function: Callable[..., Any]) -> Emitter:
    return lambda e, x, diagonal=0: e.emit(function(x, diagonal))


EMITTERS.update({"tril": _triangle(_op.tril), "triu": _triangle(_op.triu)})


# ---- element types, and what leaves elements as they are


def _cast(dtype: str) -> Emitter:
    def emit(e: Importer, x: Any, **options: Any) -> Any:
        return e.emit(_op.astype(x, dtype))

    return emit


EMITTERS.update(
    {
        "float": _cast("float32"), "half": _cast("float16"), "double": _cast("float64"),
        "int": _cast("int32"), "long": _cast("int64"), "bool": _cast("bool"),
        "bfloat16": _cast("bfloat16"),
    }
)  # fmt: skip


def _is_dtype(value: Any) -> bool:
    return type(value).__module__ == "torch" and type(value).__name__ == "dtype"


@emitter("to", "type", "_to_copy")
def _to(e: Importer, x: Any, *args: Any, dtype: Any = None, **options: Any) -> Any:
    kinds = [a for a in (*args, dtype) if _is_dtype(a)]
    like = [e.dtype_of(a) for a in args if is_tensor(a)]
    if not kinds and not like:
        return x
    return e.emit(_op.astype(x, dtype_name(kinds[0]) if kinds else like[0]))


@emitter("type_as")
def _type_as(e: Importer, x: Any, other: Any) -> Any:
    return e.emit(_op.astype(x, e.dtype_of(other)))


@emitter("clone", "contiguous", "detach", "alias", "lift_fresh_copy", "cpu")
def _same(e: Importer, x: Any, **options: Any) -> Any:
    return x


@emitter("dropout", "alpha_dropout", "feature_dropout", "stochastic_depth")
def _dropout(e: Importer, x: Any, *options: Any, **named: Any) -> Any:
    """Of inference, whatever the graph was traced for."""
    return x
