"""Names of what is made for a program that is being built."""

from __future__ import annotations

from typing import Any

from tvm.tir.buffer import Buffer
from tvm.tir.expr import IterVar, Var

from ..base import namer


def name_var(name: str, var: Var) -> None:
    """Name a variable."""
    _set(var, name)


def name_buffer(name: str, buffer: Buffer) -> None:
    """Name a buffer, its pointer, and the strides and offset that are its own."""
    _set(buffer, name)
    _set_if_new(buffer.data, name)
    for index, stride in enumerate(buffer.strides):
        _set_if_new(stride, f"{name}_s{index}")
    _set_if_new(buffer.elem_offset, f"{name}_elem_offset")


def name_axis(name: str, axis: IterVar) -> None:
    """Name an axis by its variable."""
    _set(axis.var, name)


def is_new(value: Any) -> bool:
    """Whether a variable, buffer or axis was made without a name."""
    if isinstance(value, IterVar):
        value = value.var
    return isinstance(value, (Var, Buffer)) and not value.name


def _set(node: Any, name: str) -> None:
    # names are no part of a node's identity, and this one was made for the program
    object.__setattr__(node, "name", name)


def _set_if_new(node: Any, name: str) -> None:
    if isinstance(node, Var) and not node.name:
        _set(node, name)


namer.provide(Var, name_var)
namer.provide(Buffer, name_buffer)
namer.provide(IterVar, name_axis)
