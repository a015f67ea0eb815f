"""Target strings and dictionaries: ``"llvm -mcpu=skylake -keys=cpu"`` to a checked configuration and back."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from tvm.tir.expr import IntImm

from .kind import OptionType, TargetError, TargetKind
from .tag import find_tag


def read_config(target: str | Mapping[str, Any]) -> dict[str, Any]:
    """A checked configuration of plain values, with its kind under ``"kind"``."""
    config = _parse_text(target) if isinstance(target, str) else dict(target)
    tag = config.get("tag")
    if "kind" not in config and tag:
        found = find_tag(str(tag))
        if found is None:
            raise TargetError(f"Target requires a known tag, got {tag!r}", hint="list_tags()")
        config = {**found, **config}
    if "kind" not in config:
        raise TargetError(f"Target requires a kind, got {target!r}", hint='{"kind": "llvm"}')
    kind = TargetKind.get(str(config["kind"]))
    return {
        name: value if name == "kind" or _is_feature(name) else _convert(kind, name, value)
        for name, value in config.items()
    }


def attrs_text(attrs: Mapping[str, Any]) -> str:
    """The options in the classic order and form: ``-mattr=+avx2,+fma -mcpu=haswell``."""
    return " ".join([f"-{name}={_value_text(attrs[name])}" for name in sorted(attrs)])


def _is_feature(name: str) -> bool:
    return name.startswith("feature.")


def _parse_text(text: str) -> dict[str, Any]:
    text = text.strip()
    if text.startswith("{"):
        try:
            return dict(json.loads(text))
        except ValueError as error:
            raise TargetError(f"Target requires valid JSON, got {text!r}: {error}") from None
    words = _split(text)
    if not words:
        raise TargetError("Target requires a kind, got an empty text", hint='Target("llvm")')
    head, *rest = words
    if (tagged := find_tag(head)) is not None:
        config = {**tagged, "tag": head}
    elif head.startswith("-"):
        raise TargetError(f"Target requires a kind before its options, got {text!r}")
    else:
        config = {"kind": TargetKind.get(head).name}
    config.update(_parse_options(rest, TargetKind.get(config["kind"])))
    return config


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise TargetError(f"Target requires balanced quotes, got {text!r}: {error}") from None


def _parse_options(words: Sequence[str], kind: TargetKind) -> dict[str, Any]:
    """``-key=value``, ``-key value`` and, for switches, ``-key``."""
    options: dict[str, Any] = {}
    queue = list(words)
    while queue:
        word = queue.pop(0)
        if not word.startswith("-") or word.strip("-") == "":
            raise TargetError(f"Target requires options that start with '-', got {word!r}")
        name, equals, value = word.lstrip("-").partition("=")
        wanted = kind.option_type(name)
        if not equals:
            if queue and not queue[0].startswith("-"):
                value = queue.pop(0)
            elif wanted is OptionType.BOOL:
                value = "1"
            else:
                raise TargetError(f"target option -{name} requires a value, got none")
        options[name] = value
    return options


_TRUE = {"1": True, "true": True, "0": False, "false": False}


def _convert(kind: TargetKind, name: str, value: Any) -> Any:
    wanted = kind.option_type(name)
    if isinstance(value, IntImm):  # as scripts write numbers and truths
        value = value.value
    match wanted:
        case OptionType.STRINGS:
            return tuple([str(v) for v in (value.split(",") if isinstance(value, str) else value)])
        case OptionType.STRING:
            return str(value)
        case OptionType.BOOL:
            found = _TRUE.get(str(value).lower())
            if found is None:
                raise TargetError(f"target option -{name} requires true or false, got {value!r}")
            return found
        case OptionType.INT:
            try:
                return int(str(value), 0)
            except ValueError:
                raise TargetError(
                    f"target option -{name} requires an integer, got {value!r}"
                ) from None
        case OptionType.TARGET | OptionType.TARGETS:
            return value


def _value_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    text = ",".join([str(v) for v in value]) if isinstance(value, (tuple, list)) else str(value)
    return f'"{text}"' if " " in text else text
