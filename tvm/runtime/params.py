"""Parameters of models as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tvm._ffi.registry import get_global_func
from tvm.runtime.ndarray import NDArray, array


def save_param_dict(params: Mapping[str, Any]) -> bytearray:
    """The parameters as bytes, which any runtime of this family reads.

    Parameters
    ----------
    params : mapping of str to NDArray or array_like
        The arrays by name.
    """
    flat: list[Any] = []
    for name, value in params.items():
        flat += [name, value if isinstance(value, NDArray) else array(value)]
    return get_global_func("runtime.SaveParams")(*flat)  # type: ignore[no-any-return]


def save_param_dict_to_file(params: Mapping[str, Any], path: str | Path) -> None:
    """Write the parameters to a file."""
    Path(path).write_bytes(save_param_dict(params))


def load_param_dict(param_bytes: bytes | bytearray) -> dict[str, NDArray]:
    """The parameters that :func:`save_param_dict` has written."""
    if not isinstance(param_bytes, (bytes, bytearray)):
        raise TypeError(f"load_param_dict needs bytes, got {type(param_bytes).__name__}")
    load = get_global_func("runtime.LoadParams")
    params: dict[str, NDArray] = {}
    load(bytes(param_bytes), params.__setitem__)
    return params


def load_param_dict_from_file(path: str | Path) -> dict[str, NDArray]:
    """The parameters of a file."""
    return load_param_dict(Path(path).read_bytes())
