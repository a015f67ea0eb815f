"""Target kinds: the code generators that exist in the classic API, with their options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from tvm._ffi.runtime_ctypes import Device
from tvm.error import InternalError, TVMError, suggest


class TargetError(TVMError, ValueError):
    """A target text, dictionary or option is wrong."""


class MissingTargetError(TargetError, InternalError):
    """There is no current target; classic programs catch it as an InternalError."""


class OptionType(Enum):
    """What the value of a target option is."""

    STRING = "runtime::String"
    INT = "runtime::Int"
    BOOL = "runtime::Bool"
    STRINGS = "Array<String>"
    TARGET = "Target"
    TARGETS = "Array<Target>"


# options that every kind has
COMMON_OPTIONS = {
    "keys": OptionType.STRINGS,
    "tag": OptionType.STRING,
    "device": OptionType.STRING,
    "model": OptionType.STRING,
    "libs": OptionType.STRINGS,
    "host": OptionType.TARGET,
    "from_device": OptionType.INT,
    "target_device_type": OptionType.INT,
}


@dataclass(frozen=True, repr=False)
class TargetKind:
    """One code generator: its name, device type, default keys, options and their defaults."""

    name: str
    device_type: int
    default_keys: tuple[str, ...] = ()
    own_options: Mapping[str, OptionType] = field(default_factory=dict, compare=False)
    defaults: Mapping[str, object] = field(default_factory=dict, compare=False)
    # what other parts of the compiler know about the kind: "RelayToTIR", "TIRToRuntime", ...
    attrs: Mapping[str, object] = field(default_factory=dict, compare=False)

    @staticmethod
    def get(name: str) -> TargetKind:
        """The kind of that name."""
        if (kind := TARGET_KINDS.get(name)) is None:
            raise TargetError(
                f"Target requires a known kind, got {name!r}",
                hint=suggest(name, TARGET_KINDS) or f"kinds: {', '.join(TARGET_KINDS)}",
            )
        return kind

    @property
    def structural_name(self) -> str:
        """What structural hashes are made of."""
        return self.name

    def option_type(self, option: str) -> OptionType:
        """The type of an option; an error with a suggestion if the kind has no such option."""
        found = self.own_options.get(option) or COMMON_OPTIONS.get(option)
        if found is None:
            known = [*self.own_options, *COMMON_OPTIONS]
            raise TargetError(
                f"target kind {self.name} has no option {option!r}",
                hint=suggest(option, known) or f"options: {', '.join(known)}",
            )
        return found

    @property
    def options(self) -> dict[str, str]:
        """Names of the options and their types."""
        return {k: t.value for k, t in {**COMMON_OPTIONS, **self.own_options}.items()}

    @staticmethod
    def options_from_name(kind_name: str) -> dict[str, str]:
        """The options of the kind with that name."""
        return TargetKind.get(kind_name).options

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    def __reduce__(self) -> tuple[object, ...]:
        return TargetKind.get, (self.name,)


def _options(text: str) -> dict[str, OptionType]:
    """``"mcpu mattr:strings num-cores:int"`` -> option types; a bare name is a string."""
    pairs = [item.partition(":") for item in text.split()]
    return {name: OptionType[kind.upper() or "STRING"] for name, _, kind in pairs}


_LLVM = _options(
    "mattr:strings mcpu mtriple mfloat-abi mabi num-cores:int fast-math:bool fast-math-nnan:bool "
    "fast-math-ninf:bool fast-math-nsz:bool fast-math-arcp:bool fast-math-contract:bool "
    "fast-math-reassoc:bool opt-level:int cl-opt:strings jit vector-width:int versions:strings"
)
_GPU_LIMITS = "max_num_threads:int thread_warp_size:int max_threads_per_block:int "
_SHARED = "max_shared_memory_per_block:int "
_VULKAN = _options(
    _GPU_LIMITS
    + _SHARED
    + "mattr:strings "
    + " ".join(
        f"supports_{feature}:bool"
        for feature in [
            "float16",
            "float32",
            "float64",
            "int8",
            "int16",
            "int32",
            "int64",
            "8bit_buffer",
            "16bit_buffer",
            "storage_buffer_storage_class",
            "push_descriptor",
            "dedicated_allocation",
            "integer_dot_product",
            "cooperative_matrix",
        ]
    )
    + " supported_subgroup_operations:int max_block_size_x:int max_block_size_y:int "
    "max_block_size_z:int max_push_constants_size:int max_uniform_buffer_range:int "
    "max_storage_buffer_range:int max_per_stage_descriptor_storage_buffer:int device_type "
    "device_name driver_name driver_version:int vulkan_api_version:int max_spirv_version:int"
)

# DLPack device types: cpu 1, cuda 2, opencl 4, aocl 5, vulkan 7, metal 8, rocm 10, ext_dev 12,
# hexagon 14, webgpu 15
_KINDS = (
    TargetKind("llvm", 1, ("cpu",), _LLVM),
    TargetKind(
        "c",
        1,
        ("cpu",),
        _options("mcpu march workspace-byte-alignment:int constants-byte-alignment:int"),
    ),
    TargetKind(
        "cuda",
        2,
        ("cuda", "gpu"),
        _options(
            _GPU_LIMITS + _SHARED + "mcpu arch registers_per_block:int l2_cache_size_bytes:int"
        ),
        {"arch": "sm_50", "max_num_threads": 1024, "thread_warp_size": 32},
    ),
    TargetKind(
        "nvptx",
        2,
        ("cuda", "gpu"),
        _options("mcpu mtriple mattr:strings max_num_threads:int thread_warp_size:int"),
        {
            "max_num_threads": 1024,
            "mcpu": "sm_50",
            "mtriple": "nvptx64-nvidia-cuda",
            "thread_warp_size": 32,
        },
    ),
    TargetKind(
        "rocm",
        10,
        ("rocm", "gpu"),
        _options(_GPU_LIMITS + _SHARED + "mcpu mtriple mattr:strings"),
        {"max_num_threads": 256, "max_shared_memory_per_block": 65536, "thread_warp_size": 64},
    ),
    TargetKind(
        "opencl",
        4,
        ("opencl", "gpu"),
        _options(_GPU_LIMITS + _SHARED + "texture_spatial_limit:int max_function_args:int"),
        {
            "max_function_args": 128,
            "max_num_threads": 256,
            "max_shared_memory_per_block": 16384,
            "max_threads_per_block": 256,
            "texture_spatial_limit": 16384,
            "thread_warp_size": 1,
        },
    ),
    TargetKind(
        "metal",
        8,
        ("metal", "gpu"),
        _options(_GPU_LIMITS + _SHARED + "max_function_args:int"),
        {
            "max_function_args": 31,
            "max_num_threads": 256,
            "max_shared_memory_per_block": 32768,
            "thread_warp_size": 16,
        },
    ),
    TargetKind(
        "vulkan",
        7,
        ("vulkan", "gpu"),
        _VULKAN,
        {
            "max_num_threads": 256,
            "max_shared_memory_per_block": 32768,
            "max_threads_per_block": 256,
            "supports_float32": True,
            "supports_int32": True,
            "thread_warp_size": 1,
        },
    ),
    TargetKind(
        "webgpu", 15, ("webgpu", "gpu"), _options("max_num_threads:int"), {"max_num_threads": 256}
    ),
    TargetKind("sdaccel", 4, ("sdaccel", "hls")),
    TargetKind("aocl", 5, ("aocl", "hls")),
    TargetKind("aocl_sw_emu", 5, ("aocl", "hls")),
    TargetKind(
        "hexagon",
        14,
        ("hexagon", "cpu"),
        _options("mattr:strings mcpu mtriple llvm-options:strings num-cores:int vtcm-capacity:int"),
    ),
    TargetKind("stackvm", 1, ("cpu",)),
    TargetKind("ext_dev", 12, (), _LLVM),  # see ext_dev.py
    TargetKind("hybrid", 1),
    TargetKind("composite", 1, (), _options("devices:targets")),
    TargetKind("test", 1),
)
_BY_NAME = {kind.name: kind for kind in _KINDS}
TARGET_KINDS: Mapping[str, TargetKind] = MappingProxyType(_BY_NAME)


def register_target_kind(
    name: str,
    device_type: str | int = "cpu",
    *,
    default_keys: Sequence[str] = (),
    options: Mapping[str, OptionType | str] | None = None,
    defaults: Mapping[str, object] | None = None,
    attrs: Mapping[str, object] | None = None,
    override: bool = False,
) -> TargetKind:
    """Make a kind of target of one's own.

    Parameters
    ----------
    name : str
        Its name: `Target(name)` is a target of it.
    device_type : str or int
        Where its code runs.
    default_keys : sequence of str
        The keys of targets that name none.
    options : mapping of str to OptionType
        Its options; a type may be written ``"int"``, ``"bool"``, ``"string"``, ``"strings"``.
    defaults : mapping
        Values of options that a target leaves out.
    attrs : mapping
        Facts about the kind. ``"RelayToTIR"``, a pass on modules, replaces the functions with
        ``Compiler=name`` by loop-level ones; ``"TIRToRuntime"``, a function of a module of these
        and a Target, makes a runtime module of them.
    override : bool
        Whether a kind of that name may be replaced.
    """
    if name in _BY_NAME and not override:
        raise TargetError(f"there is a target kind {name!r} already", hint="override=True")
    types = {
        option: kind if isinstance(kind, OptionType) else OptionType[kind.upper()]
        for option, kind in (options or {}).items()
    }
    if isinstance(device_type, str):
        devices = Device.DEVICE_NAME_TO_TYPE
        if device_type not in devices:
            raise TargetError(
                f"target kind {name} requires a known device, got {device_type!r}",
                hint=suggest(device_type, devices) or f"devices: {', '.join(devices)}",
            )
        device_type = devices[device_type]
    kind = TargetKind(
        name, int(device_type), tuple(default_keys), types, defaults or {}, attrs or {}
    )
    _BY_NAME[name] = kind
    return kind
