"""Threefry as operators: each takes a key and gives the next one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np

from tvm import te, topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.expr import Constant, TupleWrapper
from tvm.runtime import ndarray as nd
from tvm.support.docstrings import described_by

from ..attributes import as_expr, as_int, as_ints, names_arguments, reject
from ..computes import computed_by
from ..operator import Attribute, Expr, Operand, OperatorFunction, P, R, operator
from ..registry import Precision
from ..types import expect, expect_tensor, shape_of_type, tensor

OutShape = Annotated[Sequence[int], Attribute("tuple[int, ...]", as_ints, field="out_shape")]
Parameter = Annotated[Any, Operand()]  # a number, or an expression
OutDtype = Annotated[str, Attribute("str", str, field="out_dtype")]
_WORDS = 10


def _expect_key(ty: Type, who: str, argument: str = "key") -> TensorType:
    key = expect_tensor(ty, who, argument, 1)
    expect(
        key.dtype == "uint64" and shape_of_type(key) == (_WORDS,),
        f"{who} requires a key of {_WORDS} uint64, got {key}",
        hint="make one with relay.random.threefry_key(seed)",
    )
    return key


Key: TypeAlias = Annotated[TensorType, _expect_key]


def _generate_type(attrs: Any, key: Key) -> Type:
    return TupleType((key, tensor(attrs.out_shape, "uint64")))


def _split_type(attrs: Any, key: Key) -> Type:
    """Two keys."""
    return TupleType((key, key))


def _distribution_type(who: str, bounds: Sequence[str]) -> Callable[..., Type]:
    def relation(attrs: Any, arg_types: Sequence[Type]) -> Type:
        key = _expect_key(arg_types[0], who)
        for name, ty in zip(bounds, arg_types[1:], strict=True):
            expect_tensor(ty, who, name, 0)
        expect(
            attrs.out_dtype in ("float32", "float64"),
            f"{who} gives float32 or float64, not {attrs.out_dtype!r}",
        )
        return TupleType((key, tensor(attrs.out_shape, attrs.out_dtype)))

    return relation


def _multinomial_type(attrs: Any, key: Key, probs: TensorType) -> Type:
    shape = shape_of_type(probs)
    expect(
        len(shape) > 0,
        "random.multinomial requires probabilities of rank 1 or more, got a scalar",
    )
    return TupleType((key, tensor((*shape[:-1], attrs.num_samples), "int32")))


def _schedule(attrs: Any, outs: Sequence[te.Tensor], target: object) -> te.Schedule:
    return topi.generic.default_schedule(outs, True)


def _drawing(
    name: str, infer_type: Callable[..., Type], compute: Callable[..., Any], *attributes: str
) -> Callable[[Callable[P, R | None]], OperatorFunction[P, R]]:
    """An operator that gives the next key and numbers, computed with attributes of the call."""
    return operator(
        name,
        results=2,
        infer_type=infer_type,
        compute=computed_by(compute, *attributes),
        schedules={"generic": _schedule, "cpu": _schedule},
        precision=Precision.KEEP_FLOAT32,
    )


@names_arguments
def threefry_key(seed: int) -> Constant:
    """A key for random numbers.

    Parameters
    ----------
    seed : int
        The same seed gives the same numbers; 0 to 2**256 - 1.
    """
    number = as_int(seed)
    if not 0 <= number < 2**256:
        reject(seed, "an integer in [0, 2**256)")
    words = np.frombuffer(number.to_bytes(32, byteorder="little"), dtype="uint64")
    rest = np.array([0, 0, 0, 0, 1 << 63, 0], dtype="uint64")
    return Constant(nd.array(np.concatenate([words, rest])))


@_drawing("random.threefry_generate", _generate_type, topi.random.threefry_generate, "out_shape")
def threefry_generate(key: Expr, shape: OutShape) -> TupleWrapper:
    """Random words of 64 bits.

    Parameters
    ----------
    key : relay.Expr
        A key that was not used before.
    shape : sequence of int
        How many words.

    Returns
    -------
    tuple of relay.Expr
        The next key, and the words (uint64).
    """


@_drawing("random.threefry_split", _split_type, topi.random.threefry_split)
def threefry_split(key: Expr) -> TupleWrapper:
    """Two keys for independent random numbers.

    Parameters
    ----------
    key : relay.Expr
        A key that was not used before, and must not be used again.
    """


@_drawing(
    "random.uniform",
    _distribution_type("random.uniform", ("low", "high")),
    topi.random.uniform,
    "out_shape",
    "out_dtype",
)
def uniform(
    key: Expr,
    shape: OutShape,
    dtype: OutDtype = "float32",
    low: Parameter = 0.0,
    high: Parameter = 1.0,
) -> TupleWrapper | None:
    """Numbers that are equally likely anywhere between two bounds.

    Parameters
    ----------
    key : relay.Expr
        A key that was not used before.
    shape : sequence of int
        How many.
    dtype : str
        "float32" or "float64".

    Returns
    -------
    tuple of relay.Expr
        The next key, and the numbers.
    """
    if isinstance(low, RelayExpr) and isinstance(high, RelayExpr):
        return None
    low, high = [as_expr(limit, dtype) for limit in (low, high)]
    found: TupleWrapper = uniform(key, shape, dtype, low, high)
    return found


@_drawing(
    "random.normal",
    _distribution_type("random.normal", ("mean", "scale")),
    topi.random.normal,
    "out_shape",
    "out_dtype",
)
@described_by(uniform)
def normal(
    key: Expr,
    shape: OutShape,
    dtype: OutDtype = "float32",
    mean: Parameter = 0.0,
    scale: Parameter = 1.0,
) -> TupleWrapper | None:
    """Numbers of the normal distribution.

    Returns
    -------
    tuple of relay.Expr
        The next key, and the numbers.
    """
    if isinstance(mean, RelayExpr) and isinstance(scale, RelayExpr):
        return None
    mean, scale = [as_expr(moment, dtype) for moment in (mean, scale)]
    found: TupleWrapper = normal(key, shape, dtype, mean, scale)
    return found


@_drawing("random.multinomial", _multinomial_type, topi.random.multinomial, "num_samples")
def multinomial(key: Expr, probs: Expr, num_samples: int) -> TupleWrapper:
    """Indices, each as likely as its probability says.

    Parameters
    ----------
    key : relay.Expr
        A key that was not used before.

    Returns
    -------
    tuple of relay.Expr
        The next key, and the indices (int32).
    """
