"""Models to try programs in C with."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np

from tvm import relay
from tvm.error import OpNotImplemented, TVMError
from tvm.ir.module import IRModule
from tvm.relay.op.nn.conv import conv2d
from tvm.relay.transform import InferType
from tvm.target import Target
from tvm.target.constructors import micro


def get_conv2d_relay_module() -> IRModule:
    """A convolution of int8 data."""
    data = relay.var("data", shape=(1, 3, 64, 64), dtype="int8")
    weight = relay.var("weight", shape=(8, 3, 5, 5), dtype="int8")
    conv = conv2d(data, weight, padding=(2, 2), kernel_size=(5, 5), channels=8, out_dtype="int32")
    mod: IRModule = InferType()(IRModule.from_expr(relay.Function([data, weight], conv)))
    return mod


def get_target(platform: str, board: str | None = None) -> Target:
    """The target of a board.

    Parameters
    ----------
    platform : str
        ``"crt"``: a program on this machine.
    board : str, optional
        Its name; ``"crt"`` has none.

    Returns
    -------
    Target
        The target.

    Raises
    ------
    ValueError
        If the platform needs a board.
    NotImplementedError
        If the platform is another one: its table of boards comes with its project template.
    """
    if platform == "crt":
        return micro("host")
    if not board:
        raise ValueError(f"`board` type is required for {platform} platform.")
    raise OpNotImplemented(
        f"get_target requires the boards of the platform {platform!r}, which are not in this package",
        hint="tvm.target.target.micro(model) makes a target for a microcontroller",
    )


def mlf_extract_workspace_size_bytes(mlf_tar_path: str | Path) -> int:
    """How much memory the models of an archive need besides their inputs and outputs.

    Parameters
    ----------
    mlf_tar_path : str or Path
        An archive in the Model Library Format.
    """
    with tarfile.open(mlf_tar_path, "r:*") as archive:
        described = next((m for m in archive if Path(m.name).name == "metadata.json"), None)
        file = None if described is None else archive.extractfile(described)
        if file is None:
            raise TVMError(f"{mlf_tar_path} is no Model Library Format: it has no metadata.json")
        models = json.load(file)["modules"].values()
    return sum(
        [model["memory"]["functions"]["main"][0]["workspace_size_bytes"] for model in models]
    )


def create_header_file(
    tensor_name: str, npy_data: np.ndarray[Any, Any], output_path: str | Path
) -> None:
    """Write a C header that defines an array and its length.

    Parameters
    ----------
    tensor_name : str
        The name of the array; the file is called ``<name>.h``, the length ``<name>_len``.
    npy_data : numpy.ndarray
        The elements: integers or float32.
    output_path : str or Path
        The folder, made if it is not there.
    """
    kind = "float" if npy_data.dtype == "float32" else f"{npy_data.dtype}_t"
    if kind != "float" and npy_data.dtype.kind not in "iu":
        raise TVMError(f"create_header_file requires integers or float32, got {npy_data.dtype}")
    items = ", ".join([str(item) for item in npy_data.reshape(-1).tolist()])
    folder = Path(output_path)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{tensor_name}.h").write_text(
        f"#include <stddef.h>\n#include <stdint.h>\n\nconst size_t {tensor_name}_len = {npy_data.size};\n"
        f"{kind} {tensor_name}[] = {{{items}}};\n"
    )
