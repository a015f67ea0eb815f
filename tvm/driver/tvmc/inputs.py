"""Inputs of runs: given ones, which are checked, and made ones."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from tvm.driver.tvmc.errors import TVMCException, similar_or_all
from tvm.runtime.params import load_param_dict
from tvm.support.dtype import dtype as as_dtype

Arrays = dict[str, np.ndarray[Any, Any]]
Shapes = Mapping[str, Sequence[int]]

FILL_MODES = ("zeros", "ones", "random")


def read_inputs(path: str) -> Arrays:
    """The arrays of a file of numpy, by name."""
    if not Path(path).is_file():
        raise TVMCException(f"--inputs requires a file of numpy, there is no {path}")
    try:
        found = np.load(path)
    except (ValueError, BadZipFile, EOFError, OSError, TypeError):
        raise TVMCException(
            f"--inputs requires a file of numpy (.npz), {path} is none: "
            "np.savez(path, name=array) writes them"
        ) from None
    if not isinstance(found, np.lib.npyio.NpzFile):
        raise TVMCException(
            f"--inputs requires arrays with names, {path} holds one array: "
            "np.savez(path, name=array) writes them"
        )
    with found:
        return {name: _array(found, name, path) for name in found}


def _array(file: Any, name: str, path: str) -> np.ndarray[Any, Any]:
    try:
        found: np.ndarray[Any, Any] = file[name]
        return found
    except (ValueError, BadZipFile, EOFError, OSError, TypeError, zlib.error) as error:
        raise TVMCException(
            f"--inputs requires plain arrays, {name!r} of {path} cannot be read: "
            f"{str(error).partition(' (object)')[0]}"
        ) from None


def get_input_info(
    graph_str: str, params: bytes | bytearray
) -> tuple[dict[str, list[int]], dict[str, str]]:
    """Shapes and dtypes of a graph's inputs that are not parameters, by name."""
    graph = json.loads(graph_str)
    given = set(load_param_dict(params)) if params else set()
    shapes, dtypes = {}, {}
    for node_id in graph["arg_nodes"]:
        name = graph["nodes"][node_id]["name"]
        if name not in given:
            entry = graph["node_row_ptr"][node_id]
            shapes[name] = graph["attrs"]["shape"][1][entry]
            dtypes[name] = graph["attrs"]["dltype"][1][entry]
    return shapes, dtypes


def generate_tensor_data(shape: Sequence[int], dtype: str, fill_mode: str) -> np.ndarray[Any, Any]:
    """An array of zeros, ones or random numbers, the same ones each time.

    Random integers are small, so that they are places in most tables of embeddings; random floats
    lie between 0 and 1.
    """
    found = as_dtype(dtype).numpy
    if fill_mode in ("zeros", "ones"):
        return np.full(shape, fill_mode == "ones", found)
    if fill_mode != "random":
        raise TVMCException(f"unknown fill-mode: {fill_mode}, use {', '.join(FILL_MODES)}")
    random = np.random.default_rng(0)
    if found.kind in "iu":
        return random.integers(0, 128, shape).astype(found)
    if found.kind == "b":
        return random.integers(0, 2, shape).astype(found)
    return random.uniform(0, 1, shape).astype(found)


def make_inputs_dict(
    shape_dict: Mapping[str, Sequence[int]],
    dtype_dict: Mapping[str, str],
    inputs: Mapping[str, Any] | None = None,
    fill_mode: str = "random",
) -> Arrays:
    """All inputs: the given ones, and others as ``fill_mode`` says.

    Raises
    ------
    TVMCException
        If an input has another shape, or a type that cannot become the input's.
    """
    given = dict(inputs or {})
    if unknown := [name for name in given if name not in shape_dict]:
        raise TVMCException(
            f"the model has no input {unknown[0]!r}: {similar_or_all(unknown[0], shape_dict)}"
        )
    return {
        name: checked_input(name, given[name], shape, dtype_dict[name])
        if name in given
        else generate_tensor_data(shape, dtype_dict[name], fill_mode)
        for name, shape in shape_dict.items()
    }


def checked_input(name: str, value: Any, shape: Sequence[int], dtype: str) -> np.ndarray[Any, Any]:
    found, wanted = np.asarray(value), as_dtype(dtype).numpy
    if found.shape != tuple(shape):
        raise TVMCException(
            f"the input {name!r} has the shape {tuple(shape)}, got one of {found.shape}"
        )
    if not np.can_cast(found.dtype, wanted, "same_kind"):
        raise TVMCException(f"the input {name!r} has the type {dtype}, got {found.dtype}")
    return found.astype(wanted, copy=False)


def check_shapes(asked: Shapes, known: Mapping[str, Sequence[int]]) -> None:
    """Reject shapes that are not those of the model."""
    for name, shape in asked.items():
        if name not in known:
            raise TVMCException(f"the model has no input {name!r}: {similar_or_all(name, known)}")
        if list(shape) != list(known[name]):
            raise TVMCException(
                f"the input {name!r} was compiled with the shape {list(known[name])}, got {shape}"
            )


def completed(dims: Sequence[int | None], extents: Sequence[int]) -> list[int]:
    """The dimensions, with extents where they are open."""
    sizes = [*extents, *[dim or 0 for dim in dims[len(extents) :]]]
    return [size if dim is None else dim for dim, size in zip(dims, sizes, strict=False)]
