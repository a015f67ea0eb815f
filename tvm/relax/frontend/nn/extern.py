"""Functions of other languages in models: objects, and sources that are compiled.

    source = nn.SourceModule({"ext_add": infer}, source_code=Path("add.cc"), source_format="cpp")
    nn.add_extern(source)              # within a method that is exported
    y = source["ext_add"](a, b)        # calls the function that TVM_DLL_EXPORT_TYPED_FUNC names

The functions take tensors and numbers, and write their result to their last parameters.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tvm._ffi.libinfo import find_include_path
from tvm.contrib import cc, utils
from tvm.runtime import Module, load_static_library
from tvm.support.files import replacing

from . import op


class ExternModule(ABC):
    """The functions of a module, and the shapes of their results.

    Parameters
    ----------
    symbols : dict of str to callable
        For each function what makes a placeholder of its result from its arguments.
    """

    def __init__(self, symbols: Mapping[str, Callable[..., Any]]) -> None:
        self._symbols = dict(symbols)

    def __getitem__(self, func_name: str) -> Callable[..., Any]:
        infer = self._symbols.get(func_name)
        if infer is None:
            raise ValueError(
                f"the module has no function {func_name!r}, there are {list(self._symbols)}"
            )

        def call(*args: Any) -> Any:
            return op.extern(func_name, list(args), out=infer(*args))

        call.__name__ = func_name
        return call

    @abstractmethod
    def load(self) -> Module:
        """The code, to be linked with a model.

        Returns
        -------
        Module
        """


class ObjectModule(ExternModule):
    """A file of object code.

    Parameters
    ----------
    symbols : dict of str to callable
        As of `ExternModule`.
    filepath : str or Path
        The file.
    """

    def __init__(self, symbols: Mapping[str, Callable[..., Any]], filepath: str | Path) -> None:
        super().__init__(symbols)
        self.filepath = Path(filepath)
        if not self.filepath.is_file():
            raise ValueError(f"ObjectModule requires a file, got {filepath}")

    def load(self) -> Module:
        return load_static_library(str(self.filepath), func_names=list(self._symbols))


class SourceModule(ExternModule):
    """A program in C++, which is compiled when it is loaded.

    Parameters
    ----------
    symbols : dict of str to callable
        As of `ExternModule`.
    source_code : str or Path
        The program, or its file.
    source_format : str
        ``"cpp"``; programs in CUDA are compiled by nvcc and given as an `ObjectModule`.
    compile_options : list of str, optional
        Of the compiler; by default `get_compile_options`.
    compiler : str, optional
        By default the C++ compiler that is found.
    output_format : str
        ``"obj"``, or ``"wasm"``, which needs an Emscripten compiler as `compiler`.
    """

    def __init__(
        self,
        symbols: Mapping[str, Callable[..., Any]],
        source_code: str | Path,
        source_format: str,
        compile_options: Sequence[str] | None = None,
        compiler: str | None = None,
        output_format: str = "obj",
    ) -> None:
        super().__init__(symbols)
        _check_format(source_format)
        if output_format not in ("obj", "wasm"):
            raise ValueError(f'output_format must be "obj" or "wasm", got {output_format!r}')
        if output_format == "wasm" and compiler is None:
            raise ValueError("output_format 'wasm' requires a compiler, such as emcc, got none")
        self.source_code = _text_of(source_code)
        self.source_format = source_format
        self.compile_options = (
            self.get_compile_options(source_format)
            if compile_options is None
            else list(compile_options)
        )
        self.compiler = compiler
        self.output_format = output_format

    @staticmethod
    def tvm_home() -> Path:
        """The folder in which the package's headers are.

        Returns
        -------
        Path
        """
        return Path(find_include_path()[0]).parent

    @staticmethod
    def get_includes(tvm_pkg: Sequence[str] | None = None) -> list[Path]:
        """The folders of headers.

        Parameters
        ----------
        tvm_pkg : list of str, optional
            More folders, below ``3rdparty`` of the classic sources; here they must be below
            `tvm_home`.

        Returns
        -------
        list of Path
        """
        more = [SourceModule.tvm_home() / "3rdparty" / name for name in tvm_pkg or ()]
        missing = [str(path) for path in more if not path.exists()]
        if missing:
            raise ValueError(f"get_includes requires folders, got {', '.join(missing)}")
        return [*[Path(path) for path in find_include_path()], *more]

    @staticmethod
    def get_compile_options(source_format: str, tvm_pkg: Sequence[str] | None = None) -> list[str]:
        """The options for a program.

        Parameters
        ----------
        source_format : str
            ``"cpp"``.
        tvm_pkg : list of str, optional
            As of `get_includes`.

        Returns
        -------
        list of str
        """
        _check_format(source_format)
        includes = [f"-I{path}" for path in SourceModule.get_includes(tvm_pkg)]
        return ["-O3", "-std=c++17", "-fPIC", *includes]

    def compile(self, output_path: Path) -> None:
        """Write the object code.

        Parameters
        ----------
        output_path : Path
            The file.
        """
        with utils.tempdir() as folder:
            source = Path(folder.relpath(f"main.{self.source_format}"))
            built = folder.relpath("main.o")
            source.write_text(self.source_code, encoding="utf-8")
            cc.create_object(built, [str(source)], self.compile_options, cc=self.compiler)
            with replacing(output_path) as new:
                shutil.copyfile(built, new)

    def load(self) -> Module:
        with utils.tempdir() as folder:
            path = folder.relpath("main.o")
            self.compile(Path(path))
            return load_static_library(path, func_names=list(self._symbols))


def _check_format(source_format: str) -> None:
    if source_format != "cpp":
        hint = ": compile it with nvcc, for an ObjectModule" if source_format == "cu" else ""
        raise ValueError(f'source_format must be "cpp", got {source_format!r}{hint}')


def _text_of(source: str | Path) -> str:
    """A program; the name of a file that exists stands for it."""
    is_name = isinstance(source, Path) or "\n" not in source
    if is_name and Path(source).is_file():
        return Path(source).read_text(encoding="utf-8")
    if isinstance(source, Path):
        raise ValueError(f"SourceModule requires a file, got {source}")
    return source


__all__ = ["ExternModule", "ObjectModule", "SourceModule"]
