"""Target: for which machine to compile."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tvm.ir import extension
from tvm.ir.node import Node, leaf
from tvm.support.scope import Scoped

from .cpu_features import host_feature_set, named_features
from .features import TargetFeatures, is_arm
from .host import host_name, host_triple
from .kind import TARGET_KINDS, MissingTargetError, TargetError, TargetKind
from .parse import attrs_text, read_config

_CURRENT: Scoped[Target] = Scoped("target")
_NOT_ATTRS = ("kind", "keys", "tag", "host")


class Target(Node, key="Target"):
    """A kind of code generator with its options, and the host that launches its kernels.

    Parameters
    ----------
    target : str, dict or Target
        ``"llvm -mcpu=skylake"``, a tag, JSON text or a dictionary with a ``"kind"``.
    host : str, dict or Target, optional
        The target of the host side.
    """

    kind: TargetKind = leaf()
    tag: str = leaf()
    keys: tuple[str, ...] = leaf()
    attrs: dict[str, Any] = leaf()
    host: Target | None = None

    def __init__(self, target: TargetLike, host: TargetLike | None = None) -> None:
        if isinstance(target, Target):
            own_host = target.host if host is None else Target(host)
            self._init(target.kind, target.tag, target.keys, target.attrs, own_host)
            return
        if not isinstance(target, (str, Mapping)):
            raise TargetError(f"Target requires a text, dict or Target, got {target!r}")
        config = read_config(target)
        kind = TargetKind.get(config["kind"])
        given = config.get("host")
        if host is not None and given is not None:
            raise TargetError(f"Target requires one host, got {given!r} and {host!r}")
        host = given if host is None else host
        attrs = {k: v for k, v in config.items() if k not in _NOT_ATTRS}
        self._init(
            kind,
            config.get("tag", ""),
            _keys(config, kind),
            {**kind.defaults, **attrs},
            None if host is None else Target(host),
        )

    def __str__(self) -> str:
        keys = f" -keys={','.join(self.keys)}" if self.keys else ""
        attrs = attrs_text(self.attrs)
        return f"{self.kind.name}{keys}{' ' if attrs else ''}{attrs}"

    def __repr__(self) -> str:
        return str(self) if self.host is None else f"{self} (host: {self.host})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __enter__(self) -> Target:
        _CURRENT.push(self)
        return self

    def __exit__(self, *_: object) -> None:
        _CURRENT.pop()

    def export(self) -> dict[str, Any]:
        """The configuration as a dictionary, from which ``Target(...)`` builds an equal target."""
        config = {"kind": self.kind.name, "tag": self.tag, "keys": list(self.keys)}
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in self.attrs.items()}
        host = {} if self.host is None else {"host": self.host.export()}
        return {**config, **host, **plain}

    def with_host(self, host: TargetLike | None = None) -> Target:
        """This target with another host."""
        return self if host is None else Target(self, host)

    def hosted(self) -> Target:
        """With a host that launches its kernels, ``llvm`` if it has none; a processor as it is."""
        return self if self.runs_on_processor or self.host is not None else self.with_host("llvm")

    def get_target_device_type(self) -> int:
        """DLPack's device type of the machine that runs the code."""
        return int(self.attrs.get("target_device_type", self.kind.device_type))

    @property
    def runs_on_processor(self) -> bool:
        """Whether its code is the processor's own, on whichever device the arrays are."""
        return self.kind.device_type == 1

    def get_kind_attr(self, attr_name: str) -> Any:
        """A property of the kind, or None."""
        return {"is_external_codegen": False, **self.kind.attrs}.get(attr_name)

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """The target of the innermost ``with`` block."""
        found = _CURRENT.current()
        if found is None and not allow_none:
            raise MissingTargetError(
                "Target context required, got none",
                hint='with tvm.target.Target("llvm"):',
                classic="InternalError: Check failed: (allow_not_defined) is false: "
                "Target context required. Please set it by constructing a TVMTarget",
            )
        return found

    @staticmethod
    def from_device(device: Any) -> Target:
        """The target of the machine that a device stands for; ``device`` may be its name."""
        name = device if isinstance(device, str) else None
        number = None if name else int(device.device_type)
        if name == "cpu" or number == 1:
            return host_target()
        for kind in TARGET_KINDS.values():
            if number == kind.device_type or name in (kind.name, *kind.default_keys[:1]):
                return Target({"kind": kind.name})
        raise TargetError(f"Target.from_device requires a known device, got {device}")

    @staticmethod
    def list_kinds() -> list[str]:
        """The names of all kinds."""
        return list(TARGET_KINDS)

    @property
    def features(self) -> TargetFeatures:
        """What the processor can do: ``target.features.has_dotprod``."""
        return TargetFeatures(self)

    @property
    def arch(self) -> str:
        return str(self.attrs.get("arch", ""))

    @property
    def target_name(self) -> str:
        """The name of the kind, as releases before 0.7 called it."""
        return self.kind.name

    @property
    def mcpu(self) -> str:
        return str(self.attrs.get("mcpu", ""))

    @property
    def mattr(self) -> list[str]:
        return list(self.attrs.get("mattr", ()))

    @property
    def model(self) -> str:
        return str(self.attrs.get("model", "unknown"))

    @property
    def device_name(self) -> str:
        return str(self.attrs.get("device", ""))

    @property
    def libs(self) -> list[str]:
        return list(self.attrs.get("libs", ()))

    @property
    def max_num_threads(self) -> int:
        return int(self.attrs["max_num_threads"])

    @property
    def max_block_size_x(self) -> int:
        return int(self.attrs.get("max_block_size_x", self.max_num_threads))

    @property
    def max_block_size_y(self) -> int:
        return int(self.attrs.get("max_block_size_y", self.max_num_threads))

    @property
    def thread_warp_size(self) -> int:
        return int(self.attrs["thread_warp_size"])

    @property
    def max_shared_memory_per_block(self) -> int:
        return int(self.attrs["max_shared_memory_per_block"])

    @property
    def max_function_args(self) -> int:
        return int(self.attrs.get("max_function_args", 0))

    @property
    def vtcm_capacity(self) -> int:
        return int(self.attrs.get("vtcm-capacity", 0))

    @property
    def supports_integer_dot_product(self) -> bool:
        if self.attrs.get("supports_integer_dot_product"):
            return True
        found = re.fullmatch(r"sm_(\d+)a?", self.arch)
        return self.kind.name == "cuda" and found is not None and int(found[1]) >= 61

    @property
    def supports_cooperative_matrix(self) -> bool:
        return bool(self.attrs.get("supports_cooperative_matrix"))

    @property
    def l2_cache_size_bytes(self) -> int:
        return int(self.attrs.get("l2_cache_size_bytes", 0))

    @staticmethod
    def canon_target(target: Any) -> Target | None:
        """None, or the argument as a Target."""
        return target if target is None or isinstance(target, Target) else Target(target)

    @staticmethod
    def canon_target_and_host(
        target: Any, target_host: Any = None
    ) -> tuple[Target | None, Target | None]:
        """Both as Targets, the first one with the second as its host."""
        if target is None:
            if target_host is not None:
                raise TargetError(f"a target is required beside the host {target_host}, got none")
            return None, None
        found = Target.canon_target(target)
        assert found is not None
        if target_host is not None:
            found = found.with_host(target_host)
        return found, found.host

    @staticmethod
    def canon_multi_target(multi_targets: Any) -> list[Target] | None:
        """A list of Targets from one target, a list or a mapping of devices to targets."""
        if multi_targets is None:
            return None
        if isinstance(multi_targets, Mapping) and "kind" not in multi_targets:
            return [Target(t) for t in multi_targets.values()]
        if isinstance(multi_targets, (list, tuple)):
            return [Target(t) for t in multi_targets]
        return [Target(multi_targets)]

    @staticmethod
    def canon_multi_target_and_host(target: Any, target_host: Any = None) -> list[Target]:
        """As :meth:`canon_multi_target`, each with the host."""
        found = Target.canon_multi_target(target)
        if not found:
            raise TargetError("at least one target is required, got none")
        if target_host is None:
            return found
        return [t if t.host is not None else t.with_host(target_host) for t in found]

    @staticmethod
    def canon_target_map_and_host(
        target_map: Mapping[Any, Any], target_host: Any = None
    ) -> tuple[dict[Target, Any], Target | None]:
        """A mapping whose keys are targets, each with the host."""
        host = Target.canon_target(target_host)
        canonical = {Target(t).with_host(host): value for t, value in target_map.items()}
        first = next(iter(canonical), None)
        return canonical, host if host is not None or first is None else first.host

    @staticmethod
    def target_or_current(target: Any) -> Target:
        """The argument, or else the current target."""
        found = Target.canon_target(target) or Target.current()
        if found is None:
            raise TargetError("a target is required, got none, and no `with target:` is open")
        return found


TargetLike = str | Mapping[str, Any] | Target


def _keys(config: Mapping[str, Any], kind: TargetKind) -> tuple[str, ...]:
    """The given keys or the kind's, after the device's name; each once.

    Arm processors have the key of their schedules as well.
    """
    given = config.get("keys")
    if kind.name in ("llvm", "c") and is_arm(config):
        given = [*(given or ()), "arm_cpu", "cpu"]
    device = [config["device"]] if config.get("device") else []
    return tuple(dict.fromkeys([*(given or ()), *device, *(() if given else kind.default_keys)]))


def host_target() -> Target:
    """The machine this process runs on, spelled out."""
    name, ours = host_name(), host_feature_set()
    # virtual machines hide features that the processor's name implies
    hidden = named_features(host_triple(), name) - ours
    features = [*[f"+{f}" for f in sorted(ours)], *[f"-{f}" for f in sorted(hidden)]]
    return Target({"kind": "llvm", "mcpu": name, "mattr": features})


extension.as_target.provide(Target)
extension.current_target.provide(Target.current)
