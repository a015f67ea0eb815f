"""What importers that programs write themselves build on: attributes, names, tables.

convert = {"Activation": AttrCvt("leaky_relu", transforms={"slope": ("alpha", 0.01)}),
           "Mul": Renamer("multiply")}
expr = convert[node.op](inputs, attrs)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

import tvm.runtime.ndarray as nd
from tvm.error import OpNotImplemented
from tvm.ir.expr import RelayExpr
from tvm.ir.op import has_op
from tvm.relay import op as _op
from tvm.relay.expr import Var, var
from tvm.runtime.ndarray import NDArray

logger = logging.getLogger("Common")
# attributes that say nothing about the operator
_IGNORED = (
    "_output_shapes", "_input_shapes", "T", "use_cudnn_on_gpu", "_node_name", "is_training",
    "_target_layout", "tvm_custom",
)  # fmt: skip
T = TypeVar("T")
Check = tuple[Callable[[Mapping[str, Any]], bool], str]


class DuplicateFilter:
    """A filter of logs that lets a message pass once."""

    def __init__(self) -> None:
        self.msgs: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the message is new."""
        is_new = record.msg not in self.msgs
        self.msgs.add(record.msg)
        return is_new


class RequiredAttr:
    """Stands for the default of an attribute that has none."""


REQUIRED = RequiredAttr()


class StrAttrsDict:
    """Attributes that are texts, read as what they stand for; a missing one needs a default."""

    def __init__(self, attrs: Mapping[str, str]) -> None:
        self.attrs = attrs

    def has_attr(self, key: str) -> bool:
        """Whether the attribute is there."""
        return key in self.attrs

    def _get(self, key: str, default: Any, read: Callable[[str], T]) -> T:
        if key in self.attrs:
            return read(self.attrs[key])
        if isinstance(default, RequiredAttr):
            raise AttributeError(f"Required attribute {key} not found.")
        fallback: T = default
        return fallback

    def get_float(self, key: str, default: Any = REQUIRED) -> float:
        """A number."""
        return self._get(key, default, float)

    def get_int(self, key: str, default: Any = REQUIRED) -> int | None:
        """An integer; None for the text `None`."""
        return self._get(key, default, lambda text: None if text == "None" else int(text))

    def get_str(self, key: str, default: Any = REQUIRED) -> str:
        """The text."""
        return self._get(key, default, str)

    def get_int_tuple(self, key: str, default: Any = REQUIRED) -> tuple[int | None, ...]:
        """`(1, 2)`; `None` stands for itself."""
        return self._get(
            key, default,
            lambda text: tuple([None if x == "None" else int(x) for x in _items(text)]),
        )  # fmt: skip

    def get_float_tuple(self, key: str, default: Any = REQUIRED) -> tuple[float, ...]:
        """`(0.1, 0.2)`."""
        return self._get(key, default, lambda text: tuple([float(x) for x in _items(text)]))

    def get_tuple_tuple_int(self, key: str, default: Any = REQUIRED) -> tuple[tuple[int, ...], ...]:
        """`((1, 2), (3, 4))`."""
        return self._get(key, default, _nested)

    def get_int_list(self, key: str, default: Any = REQUIRED) -> tuple[int, ...]:
        """`[1, 2]`."""
        return self._get(key, default, lambda text: tuple([int(x) for x in _items(text)]))

    def get_bool(self, key: str, default: Any = REQUIRED) -> bool:
        """Whether the text says yes."""
        return self._get(
            key, default, lambda text: text.strip().lower() in ("true", "1", "t", "y", "yes")
        )


def _items(text: str) -> list[str]:
    return [part.strip() for part in text.strip("()[] ").split(",") if part.strip()]


def _nested(text: str) -> tuple[tuple[int, ...], ...]:
    groups = [group for group in text.strip("()[] ").replace("[", "(").split("(") if group]
    return tuple([tuple([int(x) for x in _items(group.rstrip(", "))]) for group in groups])


def get_relay_op(op_name: str) -> Callable[..., Any]:
    """The function that builds calls of an operator: of `relay.op`, `nn`, `image`, `vision`, ..."""
    if "." in op_name:
        found: Any = _op
        for part in op_name.split("."):
            found = getattr(found, part, None)
        if found is None and has_op(op_name):
            found = _op.get(op_name)
    else:
        namespaces = (_op, _op.nn, _op.image, _op.vision, getattr(_op, "contrib", None))
        candidates = [
            getattr(namespace, op_name, None) for namespace in namespaces if namespace is not None
        ]
        found = next((f for f in candidates if callable(f)), None)
    if found is None:
        raise OpNotImplemented(f"Unable to map op_name {op_name} to relay")
    build: Callable[..., Any] = found
    return build


def get_name(node: RelayExpr) -> str:
    """The name of a variable; an empty text for what has none."""
    return str(getattr(node, "name_hint", ""))


def new_var(
    name_hint: str, type_annotation: Any = None, shape: Any = None, dtype: str = "float32"
) -> Var:
    """A variable.

    Parameters
    ----------
    name_hint : str
        The name.
    type_annotation : Type, optional
        The type.
    shape : sequence of int, optional
        The shape of a tensor, in place of a type.
    dtype : str
        Its element type.
    """
    return var(name_hint, type_annotation, shape, dtype)


def to_int_list(np_array: np.ndarray) -> list[int]:
    """The elements as Python numbers."""
    return [int(x) for x in np_array]


class ExprTable:
    """The expressions of an importer by name, and the arrays of its parameters."""

    def __init__(self) -> None:
        self.exprs: dict[str, RelayExpr] = {}
        self.params: dict[str, NDArray] = {}
        self.const_ctr = 1
        self.in_padding = False
        self.paddings: Any = []

    def new_const(
        self, value: Any, shape: Any = None, dtype: str = "float32", source_name: str | None = None
    ) -> Var:
        """A parameter of that value."""
        name = f"_param_{self.const_ctr}"
        if source_name is not None:
            name = f"{source_name}{name}"
        value = value.numpy() if hasattr(value, "numpy") else np.asarray(value)
        self.const_ctr += 1
        self.params[name] = nd.array(value.astype(dtype))
        param = new_var(name, shape=value.shape if shape is None else shape, dtype=dtype)
        self.exprs[name] = param
        return param

    def get_expr(self, name: str) -> RelayExpr:
        """The expression of that name."""
        return self.exprs[name]

    def set_expr(self, name: str, expr: RelayExpr, force_override: bool = False) -> None:
        """Keep an expression; one that is there stays, unless it is to be replaced."""
        if not isinstance(expr, RelayExpr):
            raise TypeError(f"set_expr requires a relay.Expr, got {type(expr).__name__}")
        if name not in self.exprs or force_override:
            self.exprs[name] = expr

    def has_expr(self, name: str) -> bool:
        """Whether there is an expression of that name."""
        return name in self.exprs

    def set_padding(self, paddings: Any) -> None:
        """Keep the paddings that the next layer takes over."""
        self.paddings = paddings
        self.in_padding = True

    def clear_padding(self) -> None:
        """Forget them."""
        self.in_padding = False


class AttrCvt:
    """Converts a node to a call of a relay operator.

    Parameters
    ----------
    op_name : str or callable
        The operator, or a function of the attributes that gives it.
    transforms : dict of str to str or tuple, optional
        For an attribute its new name, or `(name, default)`, or `(name, default, function)`.
    excludes, disables, ignores : list of str, optional
        Attributes that are refused, and that are dropped.
    extras : dict, optional
        Attributes to add.
    custom_check : tuple of function and text, optional
        What must hold of the attributes, and what to say if it does not.
    """

    def __init__(
        self,
        op_name: str | Callable[[Mapping[str, Any]], str],
        transforms: Mapping[str, Any] | None = None,
        excludes: Sequence[str] | None = None,
        disables: Sequence[str] | None = None,
        ignores: Sequence[str] | None = None,
        extras: Mapping[str, Any] | None = None,
        custom_check: Check | None = None,
    ) -> None:
        self._op_name = op_name
        self._transforms = dict(transforms or {})
        self._excludes = list(excludes or ())
        self._dropped = (*(disables or ()), *(ignores or ()), *_IGNORED)
        self._extras = dict(extras or {})
        self._custom_check = custom_check

    def __call__(self, inputs: Sequence[RelayExpr], attrs: Mapping[str, Any], *args: Any) -> Any:
        if self._custom_check is not None and not self._custom_check[0](attrs):
            raise RuntimeError(f"Check failed: {self._custom_check[1]}")
        op_name = self._op_name if isinstance(self._op_name, str) else self._op_name(attrs)
        converted: dict[str, Any] = {}
        for key, value in attrs.items():
            if key in self._excludes:
                raise NotImplementedError(
                    f"Attribute {key} in operator {op_name} is not supported."
                )
            if key in self._dropped:
                logger.debug("Attribute %s is ignored in relay.%s", key, op_name)
            elif key in self._transforms:
                name, default, transform = _parse_default(self._transforms[key])
                converted[name] = default if value is None else transform(value)
            else:
                converted[key] = value
        for key, target in self._transforms.items():
            name, default, _ = _parse_default(target)
            if key not in attrs and default is not None:
                converted.setdefault(name, default)
        return get_relay_op(op_name)(*inputs, **{**converted, **self._extras})


def _parse_default(target: Any) -> tuple[str, Any, Callable[[Any], Any]]:
    """A transform as new name, default and function."""
    parts = list(target) if isinstance(target, (list, tuple)) else [target]
    if not parts or not isinstance(parts[0], str):
        raise ValueError(f"{target} is not a valid target")
    function = parts[2] if len(parts) > 2 and callable(parts[2]) else lambda value: value
    return parts[0], parts[1] if len(parts) > 1 else None, function


class Renamer:
    """Converts a node to a call of a relay operator that has the same attributes."""

    def __init__(self, new_name: str) -> None:
        self._new_name = new_name

    def __call__(self, inputs: Sequence[RelayExpr], attrs: Mapping[str, Any], *args: Any) -> Any:
        kept = {key: value for key, value in attrs.items() if key != "tvm_custom"}
        return get_relay_op(self._new_name)(*inputs, **kept)
