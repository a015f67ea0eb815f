"""Parameters as files that a browser loads in pieces: shards of bytes, and a list of them.

    dump_ndarray_cache({"weight": array}, "cache")     ->    cache/params_shard_0.bin
                                                             cache/ndarray-cache.json
    params, meta = load_ndarray_cache("cache", tvm.cpu())

An array that is larger than a shard has one of its own; float32 may be kept as bfloat16.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tvm._ffi.runtime_ctypes import Device
from tvm.error import TVMError
from tvm.runtime import ndarray as nd
from tvm.runtime.ndarray import NDArray
from tvm.support.dtype import dtype as as_dtype
from tvm.support.files import write_bytes, write_text

LIST = "ndarray-cache.json"
_FORMATS = ("f32-to-bf16", "raw")

Arrays = Mapping[str, Any] | Iterable[tuple[str, Any]]
Record = dict[str, Any]


def dump_ndarray_cache(
    params: Arrays,
    cache_dir: str,
    encode_format: str = "f32-to-bf16",
    meta_data: Mapping[str, Any] | Any = None,
    shard_cap_mb: int = 32,
    show_progress: bool = True,
    update_if_exists: bool = False,
) -> None:
    """Write parameters as shards.

    Parameters
    ----------
    params : dict of str to NDArray, or pairs of both
        The parameters; numpy's arrays too.
    cache_dir : str
        The folder, which is made.
    encode_format : str
        "f32-to-bf16" keeps float32 in half the bytes, "raw" everything as it is.
    meta_data : dict, optional
        More of what the list says; or a function that makes it, called behind the last array.
    shard_cap_mb : int
        The size of a shard, in mebibytes.
    show_progress : bool
        Print each shard.
    update_if_exists : bool
        Keep what the list has of other names; their shards stay.
    """
    if encode_format not in _FORMATS:
        raise TVMError(
            f"dump_ndarray_cache requires {' or '.join(_FORMATS)}, got {encode_format!r}"
        )
    folder = Path(cache_dir)
    folder.mkdir(parents=True, exist_ok=True)
    pairs = params.items() if isinstance(params, Mapping) else params
    encoded = (_encoded(name, value, encode_format) for name, value in pairs)
    before = _list_of(folder) if update_if_exists and (folder / LIST).exists() else {}
    kept = list(before.get("records", []))
    taken = {shard["dataPath"] for shard in kept}
    numbered = (f"params_shard_{number}.bin" for number in itertools.count())
    names = (name for name in numbered if name not in taken)
    shards = []
    for name, group in zip(names, _shards(encoded, shard_cap_mb << 20), strict=False):
        shards.append(_write_shard(folder / name, group))
        if show_progress:
            print(f"{name}: {len(group)} arrays, {shards[-1]['nbytes']} bytes")
    written = {record["name"] for shard in shards for record in shard["records"]}
    extra = meta_data() if callable(meta_data) else meta_data
    metadata = {**before.get("metadata", {}), **(extra or {})}
    records = [*_without(kept, written), *shards]
    write_text(folder / LIST, json.dumps({"metadata": metadata, "records": records}, indent=4))


def load_ndarray_cache(
    cachepath: str, device: Device
) -> tuple[dict[str, NDArray], Mapping[str, Any]]:
    """The parameters of a folder, and what its list says of them.

    Parameters
    ----------
    cachepath : str
        The folder, or the list in it.
    device : Device
        Where the arrays shall be.
    """
    path = Path(cachepath)
    folder = path if path.is_dir() else path.parent
    found = json.loads((path / LIST if path.is_dir() else path).read_text())
    params: dict[str, NDArray] = {}
    for shard in found["records"]:
        content = (folder / shard["dataPath"]).read_bytes()
        if shard["format"] != "raw-shard" or len(content) != shard["nbytes"]:
            raise TVMError(
                f"load_ndarray_cache requires {shard['nbytes']} bytes of raw-shard in "
                f"{shard['dataPath']}, got {len(content)} of {shard['format']}"
            )
        digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
        if shard.get("md5sum", digest) != digest:
            raise TVMError(f"load_ndarray_cache found {shard['dataPath']} damaged: its sum differs")
        for record in shard["records"]:
            params[record["name"]] = _array_of(record, content, device)
    return params, found["metadata"]


def _encoded(name: str, value: Any, encode_format: str) -> tuple[Record, bytes]:
    array = value if isinstance(value, np.ndarray) else value.numpy()
    dtype = str(as_dtype(str(array.dtype if isinstance(value, np.ndarray) else value.dtype)))
    form = "raw"
    if encode_format == "f32-to-bf16" and dtype == "float32":
        array, form = _convert_f32_to_bf16(array), "f32-to-bf16"
    record = {"name": name, "shape": list(array.shape), "dtype": dtype, "format": form}
    return record, np.ascontiguousarray(array).tobytes()


def _shards(
    arrays: Iterable[tuple[Record, bytes]], most: int
) -> Iterator[list[tuple[Record, bytes]]]:
    """Neighbours that fit into one shard together."""
    group: list[tuple[Record, bytes]] = []
    size = 0
    for record, data in arrays:
        if len(data) > most:
            yield [(record, data)]
            continue
        if group and size + len(data) > most:
            yield group
            group, size = [], 0
        group.append((record, data))
        size += len(data)
    if group:
        yield group


def _write_shard(path: Path, group: list[tuple[Record, bytes]]) -> Record:
    content, records = bytearray(), []
    for record, data in group:
        records.append({**record, "nbytes": len(data), "byteOffset": len(content)})
        content += data
    write_bytes(path, bytes(content))
    return {
        "dataPath": path.name,
        "format": "raw-shard",
        "nbytes": len(content),
        "records": records,
        "md5sum": hashlib.md5(content, usedforsecurity=False).hexdigest(),
    }


def _without(shards: list[Record], names: set[str]) -> list[Record]:
    """Shards without the arrays that were written anew."""
    reduced = [
        {**shard, "records": [r for r in shard["records"] if r["name"] not in names]}
        for shard in shards
    ]
    return [shard for shard in reduced if shard["records"]]


def _list_of(folder: Path) -> Record:
    found: Record = json.loads((folder / LIST).read_text())
    return found


def _array_of(record: Record, content: bytes, device: Device) -> NDArray:
    data = content[record["byteOffset"] : record["byteOffset"] + record["nbytes"]]
    if record["format"] == "f32-to-bf16" and record["dtype"] == "float32":
        values = _convert_bf16_to_f32(np.frombuffer(data, "uint16"))
        return nd.array(values.reshape(record["shape"]), device)
    kind = as_dtype(record["dtype"])
    array = nd.empty(tuple(record["shape"]), kind, device)
    array.copyfrom(np.frombuffer(data, kind.numpy).reshape(record["shape"]))
    return array


def _convert_f32_to_bf16(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The nearest bfloat16, ties to even; NaN stays NaN."""
    bits = value.astype(np.float32).view(np.uint32)
    rounded = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) >> 16
    quiet = (bits >> 16) | np.uint32(0x0040)
    found: np.ndarray[Any, Any] = np.where(np.isnan(value), quiet, rounded).astype(np.uint16)
    return found


def _convert_bf16_to_f32(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """bfloat16, given as its bits, in float32."""
    bits = value.astype(np.uint32) << 16
    return bits.view(np.float32)
