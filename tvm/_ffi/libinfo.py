"""Where the native library and its headers are."""

from __future__ import annotations

from pathlib import Path

from tvm import knobs

__version__ = "0.18.0"

PACKAGE = Path(__file__).resolve().parent.parent


def split_env_var(env_var: str, split: str) -> list[str]:
    """The parts of an environment variable, stripped; none if it is not set."""
    return [part.strip() for part in knobs.environment_text(env_var).split(split) if part.strip()]


def get_dll_directories() -> list[str]:
    """The folders in which the native library is looked for."""
    first = [str(knobs.LIBRARY_PATH.value)] if knobs.LIBRARY_PATH.value else []
    return [*first, str(PACKAGE)]


def find_lib_path(
    name: str | list[str] | None = None, search_path: str | None = None, optional: bool = False
) -> list[str]:
    """The existing paths of the native library, or of the named files."""
    names = [name] if isinstance(name, str) else name or ["libtvm_runtime.so"]
    folders = [search_path] if search_path else get_dll_directories()
    found = [str(Path(f) / n) for f in folders for n in names if (Path(f) / n).is_file()]
    if not found and not optional:
        raise RuntimeError(f"cannot find {' or '.join(names)} in {', '.join(folders)}")
    return found


def find_include_path(
    name: str | None = None, search_path: str | None = None, optional: bool = False
) -> list[str]:
    """The folders with the C and C++ headers of the runtime."""
    candidates = [PACKAGE / "include", PACKAGE.parent / "native" / "include"]
    if search_path:
        candidates.insert(0, Path(search_path))
    found = [str(path) for path in candidates if path.is_dir()]
    if not found and not optional:
        raise RuntimeError(f"cannot find the headers in {', '.join(map(str, candidates))}")
    return found
