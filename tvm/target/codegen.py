"""What LLVM knows: the classic queries of ``tvm.target.codegen``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from tvm._ffi import get_global_func
from tvm._ffi.registry import register_func
from tvm.support.llvm_intrinsics import intrinsic_of_number
from tvm.support.llvm_intrinsics import llvm_lookup_intrinsic_id as llvm_lookup_intrinsic_id

from .cpu import cpu_info, llvm_features, named_processors
from .cpu_features import CHECKED
from .host import host_features, host_name, host_triple
from .kind import TargetError
from .llvm_tables import known_processors, known_targets
from .target_node import Target


def build_module(mod: Any, target: Any) -> Any:
    """Generate code for a lowered module."""
    target = Target.canon_target(target)
    assert target is not None
    return get_global_func(f"target.build.{target.kind}")(mod, target)


def target_has_features(cpu_features: str | Iterable[str], target: Any = None) -> bool:
    """Whether the processor of a target, of the current one by default, has all of the features.

    Parameters
    ----------
    cpu_features : str or list of str
        LLVM's names of features, such as ``"avx512vnni"``.
    target : Target or str, optional
        The target.
    """
    wanted = [cpu_features] if isinstance(cpu_features, str) else list(cpu_features)
    found = Target.canon_target(target) or Target.current(allow_none=False)
    assert found is not None
    info = cpu_info(found)
    if info.name in named_processors() and set(wanted) <= set(CHECKED.get(info.arch, ())):
        return info.features.issuperset(wanted)
    return llvm_features(found).issuperset(wanted)


def llvm_cpu_has_features(cpu_features: str | Iterable[str], target: Any = None) -> bool:
    """The same as :func:`target_has_features`."""
    return target_has_features(cpu_features, target)


def llvm_get_cpu_features(target: Any = None) -> dict[str, str]:
    """The features of the processor of a target, of the current one or this machine by default."""
    found = Target.canon_target(target) or Target.current() or Target("llvm")
    info = cpu_info(found)
    if info.name and info.name != host_name() and info.name not in known_processors(info.triple):
        print(
            f"Error: Using LLVM {llvm_version_major()} with `-mcpu={info.name}` is not valid in "
            f"`-mtriple={found.attrs.get('mtriple', info.triple)}`, using default `-mcpu=generic`",
            file=sys.stderr,
        )
        found = Target({**found.export(), "mcpu": "generic"})
    return dict.fromkeys(sorted(llvm_features(found)), "")


_IN_TRIPLES = {"x86": "i386", "x86-64": "x86_64"}


def llvm_get_targets() -> list[str]:
    """The names of LLVM's back ends, as triples begin with them."""
    return [_IN_TRIPLES.get(name, name) for name in known_targets()]


def llvm_get_cpu_archlist(target: Any = None) -> list[str]:
    """The names of the processors that LLVM has for the target's triple."""
    return list(known_processors(cpu_info(Target.canon_target(target)).triple))


def llvm_get_system_triple() -> str:
    """The triple of this process."""
    return host_triple()


def llvm_get_system_cpu() -> str:
    """LLVM's name of this processor."""
    return host_name()


def llvm_get_system_x86_vendor() -> str:
    """The maker of this processor, or an empty text."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("vendor_id"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return ""


def llvm_version_major(allow_none: bool = False) -> int:
    """The major version of LLVM; there always is one, so that ``allow_none`` makes no difference."""
    import llvmlite.binding as llvm

    del allow_none
    return int(llvm.llvm_version_info[0])


def llvm_get_intrinsic_name(intrin_id: int) -> str:
    """The name behind a number of :func:`llvm_lookup_intrinsic_id`."""
    found = intrinsic_of_number(int(intrin_id))
    if found is None:
        raise TargetError(
            f"llvm_get_intrinsic_name requires a number from llvm_lookup_intrinsic_id, got {intrin_id}"
        )
    return found


def _is_enabled(text: str) -> bool:
    """Whether LLVM has a back end for the target."""
    arch = cpu_info(Target(text)).triple.split("-")[0]
    return arch.replace("_", "-") in known_targets() or arch.startswith(("arm", "thumb", "i"))


_QUERIES: dict[str, Callable[..., Any]] = {
    "codegen.llvm_target_enabled": _is_enabled,
    "tvm.codegen.llvm.GetDefaultTargetTriple": host_triple,
    "tvm.codegen.llvm.GetProcessTriple": host_triple,
    "tvm.codegen.llvm.GetHostCPUName": host_name,
    "tvm.codegen.llvm.GetHostCPUFeatures": lambda: {
        feature[1:]: feature[0] == "+" for feature in host_features()
    },
    "target.target_has_feature": target_has_features,
    "target.llvm_lookup_intrinsic_id": llvm_lookup_intrinsic_id,
    "target.llvm_get_intrinsic_name": llvm_get_intrinsic_name,
    "target.llvm_get_system_x86_vendor": llvm_get_system_x86_vendor,
    "target.llvm_get_system_triple": llvm_get_system_triple,
    "target.llvm_get_system_cpu": llvm_get_system_cpu,
    "target.llvm_get_targets": llvm_get_targets,
    "target.llvm_get_cpu_archlist": llvm_get_cpu_archlist,
    "target.llvm_get_cpu_features": llvm_get_cpu_features,
    "target.llvm_cpu_has_feature": llvm_cpu_has_features,
    "target.llvm_get_vector_width": lambda target=None: (
        cpu_info(Target.canon_target(target)).vector_bits
    ),
    "target.llvm_version_major": llvm_version_major,
}
for _name, _query in _QUERIES.items():
    register_func(_name, _query, override=True)
