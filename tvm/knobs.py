"""Every environment switch: typed, documented, scoped. The only reader of ``os.environ``.

A knob has the value of the environment variable of its name, unless a scope gives it another:

    with knobs.TIME_PASSES.scope(True):
        tvm.build(...)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from tvm.support.scope import Scoped

T = TypeVar("T")


class Knob(Generic[T]):
    """One switch: the innermost scope's value, else the environment's, else the default."""

    def __init__(self, name: str, parse: Callable[[str], T], default: T, doc: str) -> None:
        self.name = name
        self.doc = doc
        self.default = default
        self._parse = parse
        self._scoped: Scoped[T] = Scoped(name)
        KNOBS[name] = self

    @property
    def value(self) -> T:
        """The value that holds here."""
        scoped = self._scoped.current()
        if scoped is not None:
            return scoped
        text = os.environ.get(self.name)
        if text is None or text == "":
            return self.default
        try:
            return self._parse(text)
        except ValueError:
            raise ValueError(f"{self.name} got {text!r}: {self.doc}") from None

    @contextmanager
    def scope(self, value: T) -> Iterator[None]:
        """Let the knob have ``value`` inside the block."""
        with self._scoped.scope(value):
            yield


KNOBS: dict[str, Knob[Any]] = {}


def environment_text(name: str) -> str:
    """The text of any variable, for callers that are given its name; empty if it is not set."""
    return os.environ.get(name, "")


def _switch(text: str) -> bool:
    truth = {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}
    if text.lower() not in truth:
        raise ValueError(text)
    return truth[text.lower()]


def _home() -> Path | None:
    """The user's folder; None for a user whom the system does not know."""
    try:
        return Path.home()
    except RuntimeError:
        return None


_HOME = _home()

DUMP_IR = Knob[Path | None]("TVM_DUMP_IR", Path, None, "folder for the text after each pass")
DEBUG_INFO = Knob[Path | None](
    "TVM_DEBUG_INFO",
    Path,
    None,
    "folder for the programs that compiled code's line numbers refer to",
)
TIME_PASSES = Knob("TVM_TIME_PASSES", _switch, False, "1 prints the time of each pass")
STOP_AFTER = Knob("TVM_STOP_AFTER", str, "", "name of the pass after which lowering stops")
VERIFY_STAGES = Knob(
    "TVM_VERIFY_STAGES", _switch, False, "1 checks the program after each pass of lowering"
)
PYGMENTS_STYLE = Knob("TVM_PYGMENTS_STYLE", str, "", "the style of scripts that show() prints")
BLACK_FORMAT = Knob("TVM_BLACK_FORMAT", _switch, False, "1 formats what show() prints with black")
RULE_STATS = Knob("TVM_RULE_STATS", _switch, False, "1 counts tries and hits of each rule")
CACHE = Knob("TVM_CACHE", _switch, True, "0 turns the object cache off")
CONFIGS_JSON_DIR = Knob[Path | None](
    "TVM_CONFIGS_JSON_DIR", Path, None, "folder of the configurations of tvmc --config"
)
CACHES = Knob[Path | None](
    "XDG_CACHE_HOME",
    Path,
    _HOME / ".cache" if _HOME else None,
    "folder of all programs' caches",
)
CACHE_DIR = Knob[Path | None](
    "TVM_CACHE_DIR",
    Path,
    CACHES.value / "classic-tvm" if CACHES.value else None,
    "folder of the object cache; without one, memory",
)
CHECKSUM = Knob(
    "TVM_CHECKSUM", _switch, True, "0 loads files whatever their checksums say; of the environment"
)
CACHE_BYTES = Knob("TVM_CACHE_BYTES", int, 1 << 30, "largest size of the object cache")
LIBRARY_PATH = Knob[Path | None](
    "TVM_LIBRARY_PATH", Path, None, "folder with libtvm_runtime.so, if not beside the package"
)
NDK_CC = Knob("TVM_NDK_CC", str, "", "the compiler of Android's NDK, for tvm.contrib.ndk")
CXX = Knob("CXX", str, "", "the C++ compiler that export_library links with")
TEST_DATA = Knob(
    "TEST_DATA_ROOT_PATH",
    Path,
    (_HOME or Path()) / ".tvm_test_data",
    "folder of files for examples",
)
TEST_TARGETS = Knob(
    "TVM_TEST_TARGETS",
    str,
    "llvm;cuda",
    "the targets that tests written with tvm.testing run on, where they can be run: llvm;opencl",
)
KERNEL_VERSION = Knob(
    "TVM_KERNEL_VERSION",
    str,
    "",
    "the version to run of libraries that have it, if the processor can; base for their own target's",
)
STRICT_INPUTS = Knob(
    "TVM_STRICT_INPUTS", _switch, False, "1 makes a run with inputs that were never set an error"
)
QUIET = Knob(
    "TVM_QUIET", _switch, False, "1 shows no progress and not which processor is compiled for"
)
VERBOSE = Knob("TVM_VERBOSE", _switch, False, "1 prints how the kernels of a model were scheduled")

COMPILE_PROCESSES = Knob(
    "TVM_COMPILE_PROCESSES",
    int,
    0,
    "how many processes, forked from this one, compile the kernels of a model; they meet in the object cache. "
    "0: up to four on as many cores, and one where the program has other threads",
)

# those that the runtime reads itself, in programs without Python too
TRACKER_HOST = Knob("TVM_TRACKER_HOST", str, "", "host of the RPC tracker")
TRACKER_PORT = Knob("TVM_TRACKER_PORT", int, 9190, "port of the RPC tracker")
NUM_THREADS = Knob("TVM_NUM_THREADS", int, 0, "threads of a kernel; 0: one for each usable core")
OMP_NUM_THREADS = Knob("OMP_NUM_THREADS", int, 0, "the same, if TVM_NUM_THREADS is not set")
SPIN_COUNT = Knob(
    "TVM_THREAD_POOL_SPIN_COUNT",
    int,
    20000,
    "how often a thread looks for work before it sleeps",
)
WAIT_POLICY = Knob(
    "OMP_WAIT_POLICY", str, "", "how threads of oneDNN wait; PASSIVE for it alone if it is not set"
)


def table() -> str:
    """All switches with their defaults and meanings, as a table of Markdown."""
    rows = [
        f"| `{name}` | {_default_text(knob.default)} | {knob.doc.replace('|', ' or ')} |"
        for name, knob in sorted(KNOBS.items())
    ]
    return "\n".join(["| variable | default | meaning |", "|---|---|---|", *rows])


def _default_text(default: object) -> str:
    if default is None or default == "":
        return "not set"
    if isinstance(default, bool):
        return str(int(default))
    return f"`{str(default).replace(str(_HOME), '~')}`"
