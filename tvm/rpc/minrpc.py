"""Programs that serve one session over pipes: a library, the runtime, and a main function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tvm._ffi.libinfo import find_include_path, find_lib_path

_SERVERS = {"posix_popen_server": "popen_server.cc"}
_RUNTIMES = ("libtvm", "libtvm_runtime")


def find_minrpc_server_libpath(server: str = "posix_popen_server") -> str:
    """The source of a program's main function.

    Parameters
    ----------
    server : str
        Which: ``posix_popen_server`` serves on descriptors that its arguments tell.
    """
    if server not in _SERVERS:
        raise ValueError(f"there is no server {server!r}, only {', '.join(_SERVERS)}")
    return str(Path(__file__).parent / _SERVERS[server])


def with_minrpc(
    compile_func: Callable[..., Any],
    server: str = "posix_popen_server",
    runtime: str = "libtvm",
) -> Callable[..., Any]:
    """A linking function that adds a server to what it links.

    Parameters
    ----------
    compile_func : function
        Links a program, such as ``cc.create_executable``.
    server : str
        As of :func:`find_minrpc_server_libpath`.
    runtime : str
        Accepted for classic programs: there is one runtime.

    Examples
    --------
    >>> lib.export_library("program", fcompile=rpc.with_minrpc(cc.create_executable))
    >>> remote = rpc.PopenSession("program")
    """
    if runtime not in _RUNTIMES:
        raise ValueError(f"runtime is one of {', '.join(_RUNTIMES)}, got {runtime!r}")
    source = find_minrpc_server_libpath(server)
    library = Path(find_lib_path()[0]).resolve()

    def link(
        output: str,
        objects: str | Sequence[str],
        options: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> Any:
        files = [objects] if isinstance(objects, str) else list(objects)
        flags = [
            *(options or []),
            "-std=c++17",
            *[f"-I{folder}" for folder in find_include_path()],
            f"-Wl,-rpath,{library.parent}",
        ]
        return compile_func(output, [*files, source, str(library)], options=flags, **kwargs)

    link.need_system_lib = True  # type: ignore[attr-defined]
    link.__name__ = "with_minrpc"
    return link
