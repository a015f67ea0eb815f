"""An operator attribute that is replaced for a while."""

from __future__ import annotations

from typing import Any

from tvm.relay import op as _op


class TempOpAttr:
    """`with TempOpAttr(name, key, value)`: the operator's attribute is `value` inside the block."""

    def __init__(self, op_name: str, attr_key: str, attr_value: Any) -> None:
        self.op = _op.get(op_name)
        self.attr_key = attr_key
        self.attr_value = attr_value

    def __enter__(self) -> TempOpAttr:
        self.older_attr = self.op.get_attr(self.attr_key)
        self.op.reset_attr(self.attr_key)
        self.op.set_attr(self.attr_key, self.attr_value)
        return self

    def __exit__(self, *error: Any) -> None:
        self.op.reset_attr(self.attr_key)
        if self.older_attr is not None:
            self.op.set_attr(self.attr_key, self.older_attr)
