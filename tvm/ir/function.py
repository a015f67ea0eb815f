"""What functions of all levels share: attributes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, TypeVar

from .attrs import DictAttrs, as_dict_attrs
from .expr import RelayExpr
from .node import leaf
from .script_printer import ShownInNotebooks

F = TypeVar("F", bound="BaseFunc")


class CallingConv(IntEnum):
    """How a function is called from the host."""

    DEFAULT = 0
    C_PACKED_FUNC = 1
    DEVICE_KERNEL_LAUNCH = 2


class BaseFunc(ShownInNotebooks, RelayExpr):
    """A function with attributes."""

    attrs: DictAttrs = leaf(default=None, convert=as_dict_attrs, kw_only=True)

    def with_attr(self: F, attr_key_or_dict: str | Mapping[str, Any], attr_value: Any = None) -> F:
        """A copy with one attribute, or a dictionary of them, set."""
        if isinstance(attr_key_or_dict, str):
            return self.with_attrs({attr_key_or_dict: attr_value})
        return self.with_attrs(attr_key_or_dict)

    def with_attrs(self: F, attr_map: Mapping[str, Any]) -> F:
        """A copy with some attributes set."""
        return self.replace(attrs=as_dict_attrs(self.attrs).with_values(attr_map))

    def without_attr(self: F, attr_key: str) -> F:
        """A copy without one attribute."""
        return self.replace(attrs=as_dict_attrs(self.attrs).without(attr_key))

    def get_attr(self, key: str, default: Any = None) -> Any:
        """The value of an attribute, or ``default``."""
        return self.attrs.get(key, default)
