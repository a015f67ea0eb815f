"""From files to models: the importers by name and suffix."""

from __future__ import annotations

import argparse
import importlib
import logging
import warnings
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from tvm.driver.tvmc.errors import (
    TVMCException,
    TVMCImportError,
    UnsupportedFormatError,
    similar_or_all,
)
from tvm.driver.tvmc.model import TVMCModel
from tvm.driver.tvmc.shape_parser import parse_shape_string
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.relay import frontend, parser
from tvm.runtime.ndarray import NDArray

logger = logging.getLogger("TVMC")

Shapes = Mapping[str, Sequence[Any]]
Loaded = tuple[IRModule, dict[str, NDArray]]


class InputFileNotFoundError(TVMCException, FileNotFoundError):
    """There is no file of a model under that path."""


class Frontend(ABC):
    """The importer of one format."""

    needs: ClassVar[tuple[str, ...]] = ()  # packages

    @staticmethod
    @abstractmethod
    def name() -> str:
        """Its name for ``--model-format``."""

    @staticmethod
    @abstractmethod
    def suffixes() -> list[str]:
        """The suffixes of its files."""

    def check_packages(self) -> None:
        """Reject a format without the packages that its importer needs."""
        for package in self.needs:
            lazy_import(package)

    @abstractmethod
    def load(self, path: str, shape_dict: Shapes | None = None, **kwargs: Any) -> Loaded:
        """The module of a file, and its parameters."""


def lazy_import(pkg_name: str, from_pkg_name: str | None = None, hide_stderr: bool = False) -> Any:
    """A package that a format needs.

    Raises
    ------
    TVMCImportError
        If it is not installed.
    """
    del hide_stderr  # nothing that is imported here writes there
    try:
        return importlib.import_module(pkg_name, package=from_pkg_name)
    except ImportError:
        raise TVMCImportError(pkg_name) from None


class OnnxFrontend(Frontend):
    """ONNX models."""

    needs = ("onnx",)

    @staticmethod
    def name() -> str:
        return "onnx"

    @staticmethod
    def suffixes() -> list[str]:
        return ["onnx"]

    def load(self, path: str, shape_dict: Shapes | None = None, **kwargs: Any) -> Loaded:
        loaded: Loaded = frontend.from_onnx(path, shape=shape_dict, **kwargs)
        return loaded


class PyTorchFrontend(Frontend):
    """PyTorch: TorchScript files (``torch.jit.save``) and exported programs (``torch.export.save``)."""

    needs = ("torch",)

    @staticmethod
    def name() -> str:
        return "pytorch"

    @staticmethod
    def suffixes() -> list[str]:
        return ["pth", "zip", "pt", "pt2"]

    def load(self, path: str, shape_dict: Shapes | None = None, **kwargs: Any) -> Loaded:
        torch = lazy_import("torch")
        members = _zip_members(path)
        if members.intersection(_EXPORTED):
            if shape_dict:
                raise TVMCException("an exported program has shapes of its own: no --input-shapes")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # torch warns of its own ways
                exported: Loaded = frontend.from_exported_program(
                    _load_exported(torch, path), **kwargs
                )
            return exported
        if "constants.pkl" not in members:
            found = "a pickled module or its weights" if "data.pkl" in members else "neither"
            raise TVMCException(
                f"pytorch takes TorchScript files and exported programs, {path} holds {found}: "
                "write one with torch.jit.trace(model, example_inputs).save(path) or "
                "torch.export.save(torch.export.export(model, example_inputs), path)"
            )
        if not shape_dict:
            raise TVMCException("--input-shapes must be specified for pytorch")
        try:
            module = torch.jit.load(path, map_location="cpu").eval()
        except (RuntimeError, ValueError) as error:
            reason = str(error).splitlines()[0].partition(". ")[0]
            raise TVMCException(f"{path} cannot be loaded: {reason}") from None
        traced: Loaded = frontend.from_pytorch(module, list(shape_dict.items()), **kwargs)
        return traced


# one of these is in each archive of an exported program
_EXPORTED = ("archive_format", "serialized_exported_program.json")


def _zip_members(path: str) -> set[str]:
    """The names of an archive's members without the folder they lie in; none if it is no archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.rpartition("/")[2] for name in archive.namelist()}
    except zipfile.BadZipFile:
        return set()


def _load_exported(torch: Any, path: str) -> Any:
    try:
        return torch.export.load(path)
    except (RuntimeError, ValueError, KeyError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TVMCException(f"{path} cannot be loaded: {reason}") from None


class RelayFrontend(Frontend):
    """Relay's own text."""

    @staticmethod
    def name() -> str:
        return "relay"

    @staticmethod
    def suffixes() -> list[str]:
        return ["relay"]

    def load(self, path: str, shape_dict: Shapes | None = None, **kwargs: Any) -> Loaded:
        try:
            text = Path(path).read_text(encoding="utf8")
        except UnicodeDecodeError:
            raise TVMCException(f"{path} is no text in relay's language") from None
        if kwargs:
            raise TVMCException(f"relay's own text is read without {', '.join(kwargs)}")
        mod = parser.fromtext(text)
        _check_shapes(mod, shape_dict or {})
        return mod, {}


def _check_shapes(mod: IRModule, shapes: Shapes) -> None:
    declared = {p.name_hint: p.type_annotation for p in mod["main"].params}
    for name, shape in shapes.items():
        if name not in declared:
            raise TVMCException(f"the model has no input {name!r}, it has {list(declared)}")
        found = [int(dim) for dim in declared[name].shape]
        if found != list(shape):
            raise TVMCException(f"the input {name!r} has the shape {found}, got {list(shape)}")


class _ConvertedFrontend(Frontend):
    """A format that has to be converted to ONNX first."""

    def check_packages(self) -> NoReturn:
        raise UnsupportedFormatError(
            f"models of {self.name()} cannot be imported yet, with {self.needs[0]} or without it: "
            "convert them to ONNX"
        )

    def load(self, path: str, shape_dict: Shapes | None = None, **kwargs: Any) -> NoReturn:
        self.check_packages()


class KerasFrontend(_ConvertedFrontend):
    """Keras models."""

    needs = ("tensorflow",)

    @staticmethod
    def name() -> str:
        return "keras"

    @staticmethod
    def suffixes() -> list[str]:
        return ["h5", "keras"]


class TensorflowFrontend(_ConvertedFrontend):
    """Frozen graphs of TensorFlow."""

    needs = ("tensorflow",)

    @staticmethod
    def name() -> str:
        return "pb"

    @staticmethod
    def suffixes() -> list[str]:
        return ["pb"]


class TFLiteFrontend(_ConvertedFrontend):
    """TensorFlow Lite models."""

    needs = ("tflite.Model",)

    @staticmethod
    def name() -> str:
        return "tflite"

    @staticmethod
    def suffixes() -> list[str]:
        return ["tflite"]


class PaddleFrontend(_ConvertedFrontend):
    """PaddlePaddle models."""

    needs = ("paddle",)

    @staticmethod
    def name() -> str:
        return "paddle"

    @staticmethod
    def suffixes() -> list[str]:
        return ["pdmodel"]


ALL_FRONTENDS: tuple[type[Frontend], ...] = (
    OnnxFrontend, PyTorchFrontend, RelayFrontend, KerasFrontend, TensorflowFrontend,
    TFLiteFrontend, PaddleFrontend,
)  # fmt: skip


def get_frontend_names() -> list[str]:
    """The names of all formats."""
    return [each.name() for each in ALL_FRONTENDS]


def get_frontend_by_name(name: str) -> Frontend:
    """The importer of that name."""
    for each in ALL_FRONTENDS:
        if name == each.name():
            return each()
    raise TVMCException(
        f'unrecognized frontend "{name}": {similar_or_all(name, get_frontend_names())}'
    )


def guess_frontend(path: str) -> Frontend:
    """The importer for the suffix of a file."""
    suffix = Path(path).suffix.removeprefix(".").lower()
    for each in ALL_FRONTENDS:
        if suffix in each.suffixes():
            return each()
    raise TVMCException(
        f"failed to infer the model format of {path} from its suffix. "
        f"Please specify --model-format: {', '.join(get_frontend_names())}"
    )


def add_model_args(parser: argparse.ArgumentParser) -> None:
    """Add the file of a model, and what is said about it."""
    parser.add_argument("FILE", help="path to the model: .onnx, .pt, .pth, .pt2, .relay")
    parser.add_argument(
        "--model-format", choices=get_frontend_names(),
        help="the model's format, if its suffix does not tell",
    )  # fmt: skip
    parser.add_argument(
        "--input-shapes", type=parse_shape_string, metavar="SHAPES",
        help='shapes of inputs: "a:[1,3,224,224] b:[1,-1]", -1 if not known',
    )  # fmt: skip
    add_fallback_arg(parser)


def add_fallback_arg(parser: argparse.ArgumentParser) -> None:
    """Add ``--fallback``."""
    parser.add_argument(
        "--fallback", action="store_true",
        help="leave operators that are not supported to the model's framework, which its runs need "
        "then",
    )  # fmt: skip


def load_from_arguments(args: argparse.Namespace) -> TVMCModel:
    """The model that the arguments name."""
    check_file(args.FILE)
    options = {"fallback": True} if args.fallback else {}
    return load_model(args.FILE, args.model_format, args.input_shapes, **options)


def check_file(path: str) -> None:
    """Reject what is no file."""
    if not Path(path).is_file():
        raise InputFileNotFoundError(
            f"Input file '{path}' doesn't exist, is a broken symbolic link, or a directory."
        )


def load_model(
    path: str,
    model_format: str | None = None,
    shape_dict: Shapes | None = None,
    **kwargs: Any,
) -> TVMCModel:
    """Import a model.

    Parameters
    ----------
    path : str
        The file.
    model_format : str, optional
        The format; by default told from the suffix.
    shape_dict : dict of str to list of int, optional
        Shapes of inputs.
    kwargs : dict
        Passed to the importer.
    """
    path = str(path)
    importer = get_frontend_by_name(model_format) if model_format else guess_frontend(path)
    importer.check_packages()
    check_file(path)
    logger.debug("importing %s with %s", path, importer.name())
    try:
        mod, params = importer.load(path, shape_dict, **kwargs)
    except TVMError as error:
        raise TVMCException(f"cannot import {path}: {error}") from error
    return TVMCModel(mod, params)
