"""`--target "dnnl, llvm -mcpu=znver4"` and `--target-llvm-mcpu=znver4`."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tvm.codegen import GENERATORS
from tvm.driver.tvmc import composite_target
from tvm.driver.tvmc.errors import TVMCException, similar_or_all
from tvm.driver.tvmc.registry import switch
from tvm.error import TVMError, suggest
from tvm.target import Target
from tvm.target.kind import OptionType, TargetKind
from tvm.target.tag import list_tags

TargetOptions = Mapping[str, Mapping[str, Any]]  # by kind, then by option

# what these say is said by --target itself
_NOT_AN_OPTION = ("from_device", "target_device_type", "tag", "host", "devices")
_TYPES: dict[OptionType, Any] = {
    OptionType.STRING: str,
    OptionType.INT: int,
    OptionType.BOOL: switch,
    OptionType.STRINGS: lambda text: [part.strip() for part in text.split(",")],
}
_METAVARS = {OptionType.BOOL: "0|1", OptionType.STRINGS: "a,b,..."}
_TOKEN = re.compile(
    r"""(?:-[\w-]+(?:=(?:"[^"]*"|'[^']*'|\[[^\]]*\]|\{[^}]*\}|[^\s,"'\[{]+(?:,[^\s,]+)*)?)?"""
    r"""|[^\s,"'=]+|,)"""
)


def generate_target_args(parser: argparse.ArgumentParser) -> None:
    """Add ``--target`` and an option for each option of each kind."""
    parser.add_argument(
        "--target",
        help='"llvm -mcpu=znver4", "c", "dnnl, llvm", JSON or a file of it (llvm)',
    )
    group = parser.add_argument_group(
        "options of targets",
        "the other kinds have options in the same form, --target-cuda-arch=sm_80",
    )
    for kind in Target.list_kinds():
        for option, option_type in _options_of(kind).items():
            metavar = _METAVARS.get(option_type, option_type.name.lower())
            shown = f"target {kind} {option}" if kind in GENERATORS else argparse.SUPPRESS
            group.add_argument(
                f"--target-{kind}-{option}", type=_TYPES[option_type], metavar=metavar, help=shown
            )


def _options_of(kind: str) -> dict[str, OptionType]:
    found = {
        option: TargetKind.get(kind).option_type(option) for option in TargetKind.get(kind).options
    }
    return {o: t for o, t in found.items() if t in _TYPES and o not in _NOT_AN_OPTION}


def reconstruct_target_args(args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The options that were given, by kind and name."""
    found: dict[str, dict[str, Any]] = {}
    for kind in Target.list_kinds():
        for option in _options_of(kind):
            value = getattr(args, f"target_{kind}_{option}".replace("-", "_"), None)
            if value is not None:
                found.setdefault(kind, {})[option] = value
    return found


def tokenize_target(target: str) -> list[str]:
    """Names, options and commas of a target's text."""
    return _TOKEN.findall(target)


def parse_target(target: str) -> list[dict[str, Any]]:
    """The parts of a target.

    Returns
    -------
    One dictionary for each part: ``name``; ``opts``, texts by name; ``raw``, the part's text; and
    ``is_tvm_target``, whether it is one of our own code generators.
    """
    groups: list[list[str]] = [[]]
    for token in tokenize_target(target):
        if token == ",":
            groups.append([])
        else:
            groups[-1].append(token)
    if not all(groups):
        raise TVMCException(f"a target requires a name between commas, got {target!r}")
    return [_parse_part(group) for group in groups]


def _parse_part(tokens: Sequence[str]) -> dict[str, Any]:
    name, *options = tokens
    if name.startswith("-"):
        raise TVMCException(f"a target starts with its kind, got {' '.join(tokens)!r}")
    is_ours = name in Target.list_kinds() or name in list_tags()
    opts = {}
    for option in options:
        if not option.startswith("-"):
            raise TVMCException(f'target "{name}" has options such as -name=value, got {option!r}')
        key, equals, value = option.lstrip("-").partition("=")
        opts[key] = value.strip("\"'") if equals else ""
    return {"name": name, "opts": opts, "raw": " ".join(tokens), "is_tvm_target": is_ours}


def validate_targets(
    parse_targets: Sequence[Mapping[str, Any]],
    additional_target_options: TargetOptions | None = None,
) -> None:
    """Reject targets in an order, and options of targets, that make no sense."""
    ours = [part for part in parse_targets if part["is_tvm_target"]]
    names = [part["name"] for part in parse_targets]
    if len(set(names)) != len(names):
        raise TVMCException(f"Duplicate target kinds are not allowed, got {', '.join(names)}")
    if not parse_targets or not parse_targets[-1]["is_tvm_target"]:
        _check_is_known(names[-1] if names else "")
        raise TVMCException(
            "The last target needs to be a TVM target, such as llvm, got " + ", ".join(names)
        )
    if len(ours) > 2:
        raise TVMCException(
            "Only two TVM targets can be used at a time, the second for the host. "
            f"Found: {', '.join(part['name'] for part in ours)}."
        )
    for kind in additional_target_options or {}:
        if kind not in [_kind_of(part) for part in parse_targets]:
            option = next(iter((additional_target_options or {})[kind]))
            raise TVMCException(
                f"Passed --target-{kind}-{option} but did not specify {kind} target"
            )


def _check_is_known(name: str) -> None:
    """Reject a name that is none of a target or a code generator."""
    codegens = composite_target.get_codegen_names()
    if name not in codegens:
        raise TVMCException(
            f'target kind "{name}" is not defined: '
            + (
                suggest(name, list_tags())
                or similar_or_all(name, [*Target.list_kinds(), *codegens])
            )
        )


def _kind_of(part: Mapping[str, Any]) -> str:
    return str(Target(part["name"]).kind) if part["name"] in list_tags() else part["name"]


def is_inline_json(target: str) -> bool:
    """Whether a target is given as JSON."""
    try:
        json.loads(target)
    except ValueError:
        return False
    return True


def target_from_cli(
    target: str | Target, additional_target_options: TargetOptions | None = None
) -> tuple[Target, list[dict[str, Any]]]:
    """The target of the model, and the code generators that come before it.

    Parameters
    ----------
    target : str or Target
        A text such as ``"dnnl, llvm -mcpu=native"``, JSON, or the path of a JSON file.
    additional_target_options : dict
        More options by kind and name.
    """
    if isinstance(target, Target):
        return target, []
    if not isinstance(target, str):
        raise TVMCException(f'a target is a text such as "llvm -mcpu=native", got {target!r}')
    try:
        if Path(target).is_file():
            return Target(json.loads(Path(target).read_text(encoding="utf8"))), []
        if is_inline_json(target):
            return Target(json.loads(target)), []
        parts = parse_target(target)
        validate_targets(parts, additional_target_options)
        more = additional_target_options or {}
        ours = [_target_of(part, more) for part in parts if part["is_tvm_target"]]
        found = Target(*ours) if len(ours) == 2 else ours[0]
    except (TVMError, ValueError) as error:
        raise TVMCException(
            f"Error parsing target string '{target}'.\nThe error was: {error}"
        ) from None
    return found, [part for part in parts if not part["is_tvm_target"]]


def _target_of(part: Mapping[str, Any], more: TargetOptions) -> Target:
    options = more.get(_kind_of(part), {})
    if not options:
        return Target(part["raw"])
    return Target({**Target(part["raw"]).export(), **options})
