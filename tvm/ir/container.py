"""The containers of nodes, under their classic names: see :mod:`tvm.runtime.container`."""

from tvm.runtime.container import Array, Map, getitem_helper

__all__ = ["Array", "Map", "getitem_helper"]
