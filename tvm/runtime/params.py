"""Parameters of models as bytes."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tvm._ffi.registry import get_global_func
from tvm.runtime.ndarray import NDArray, array, share_numpy
from tvm.support.files import replacing

_LIST_MAGIC = 0xF7E58D4F05049CB7
# what stands before the only array of a list
_LONE_ARRAY = struct.pack("<4QcQ", _LIST_MAGIC, 0, 1, 1, b"x", 1)

BytesLike = bytes | bytearray | memoryview | mmap.mmap


def save_param_dict(params: Mapping[str, Any]) -> bytearray:
    """The parameters as bytes, which any runtime of this family reads.

    Parameters
    ----------
    params : mapping of str to NDArray or array_like
        The arrays by name.
    """
    named = _named_arrays(params)
    blob = bytearray(get_global_func("runtime.ParamsSize")(*named))
    get_global_func("runtime.SaveParamsTo")(share_bytes(blob), *named)
    return blob


def save_param_dict_to_file(params: Mapping[str, Any], path: str | Path) -> None:
    """Write the parameters to a file, which is replaced at once when all is on the disk.

    Parameters
    ----------
    params : mapping of str to NDArray or array_like
        The arrays by name.
    path : str or Path
        The file.
    """
    named = _named_arrays(params)
    with replacing(path) as new, new.open("wb") as file:
        get_global_func("runtime.WriteParams")(file.fileno(), *named)


def load_param_dict(param_bytes: BytesLike) -> dict[str, NDArray]:
    """The parameters that :func:`save_param_dict` has written.

    Parameters
    ----------
    param_bytes : bytes, bytearray or another buffer
        The blob.
    """
    return _load(share_bytes(param_bytes), share=False)


def load_array(blob: BytesLike) -> NDArray:
    """The array that a release wrote into text or a file by itself.

    Parameters
    ----------
    blob : bytes, bytearray or another buffer
        One of the arrays of a blob of parameters.
    """
    return load_param_dict(_LONE_ARRAY + bytes(blob))["x"]


def save_array(array: Any) -> bytes:
    """What ``load_array`` reads.

    Parameters
    ----------
    array : NDArray or numpy.ndarray
        The array.
    """
    return bytes(save_param_dict({"x": array})[len(_LONE_ARRAY) :])


def load_param_dict_from_file(path: str | Path, *, memory_map: bool = False) -> dict[str, NDArray]:
    """The parameters of a file.

    Parameters
    ----------
    path : str or Path
        The file.
    memory_map : bool
        Let arrays that are aligned in the file live in its pages, which are read when they are
        used, rather than in memory of their own. The file must not be changed while they live;
        what is written into the arrays does not reach it.
    """
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        blob: BytesLike = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if size else b""
    return _load(share_bytes(blob), share=memory_map)


def share_bytes(blob: BytesLike) -> NDArray:
    """An array of bytes over the memory of a buffer."""
    try:
        values = np.frombuffer(blob, "uint8") if len(memoryview(blob)) else np.empty(0, "uint8")
    except TypeError:
        raise TypeError(f"params must be bytes, got {type(blob).__name__}") from None
    return share_numpy(values)


def _load(blob: NDArray, *, share: bool) -> dict[str, NDArray]:
    params: dict[str, NDArray] = {}
    get_global_func("runtime.LoadParams")(blob, params.__setitem__, share)
    return params


def _named_arrays(params: Mapping[str, Any]) -> list[Any]:
    if not isinstance(params, Mapping):
        raise TypeError(f"parameters are a dictionary by name, got {type(params).__name__}")
    named: list[Any] = []
    for name, value in params.items():
        if not isinstance(name, str):
            raise TypeError(f"parameters have names, got {name!r} as one")
        named += [name, value if isinstance(value, NDArray) else array(value)]
    return named
