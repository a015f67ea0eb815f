"""Options that come from a registry: `--executor aot --executor-aot-interface-api c`."""

from __future__ import annotations

import argparse
from typing import Any

from tvm.driver.tvmc.errors import TVMCException
from tvm.error import TVMError

_KINDS = {"BoxBool": bool, "Bool": bool, "BoxInt": int, "Int": int, "String": str}
_TRUTH = {"1": True, "true": True, "0": False, "false": False}


def switch(text: str) -> bool:
    """The value of an option that is on or off."""
    if text.lower() not in _TRUTH:
        raise argparse.ArgumentTypeError(f"1 or 0 is required, got {text!r}")
    return _TRUTH[text.lower()]


def _options(registry: Any, name: str) -> dict[str, type]:
    """The types of an entry's options that can be given on a command line."""
    listed = registry.list_registered_options(name)
    kinds = {
        option: _KINDS.get(kind.replace("::", ".").rpartition(".")[2])
        for option, kind in listed.items()
    }
    return {option: kind for option, kind in kinds.items() if kind is not None}


def generate_registry_args(
    parser: argparse.ArgumentParser, registry: Any, default: Any = None
) -> None:
    """Add options for the entries of Executor or Runtime, and for their options."""
    title = registry.__name__
    flag = title.lower()
    names = registry.list_registered()
    parser.add_argument(
        f"--{flag}", metavar=flag.upper(),
        help=f"{flag} to compile the model for: {', '.join(names)} ({default})",
        default=str(default) if default is not None else None,
    )  # fmt: skip
    for name in names:
        group = parser.add_argument_group(f"{flag} {name}")
        for option, kind in _options(registry, name).items():
            group.add_argument(
                f"--{flag}-{name}-{option}", type=switch if kind is bool else kind,
                help=f"{title} {name} {option} ({'0 or 1' if kind is bool else kind.__name__})",
            )  # fmt: skip


def reconstruct_registry_entity(args: argparse.Namespace, registry: Any) -> Any:
    """The Executor or Runtime that the arguments describe; None if they describe none."""
    title = registry.__name__
    flag = title.lower()
    chosen = getattr(args, flag)
    options: dict[str, Any] = {}
    for name in registry.list_registered():
        for option in _options(registry, name):
            value = getattr(args, f"{flag}_{name}_{option}".replace("-", "_"))
            if value is None:
                continue
            if name != chosen:
                raise TVMCException(
                    f"Passed --{flag}-{name}-{option} but did not specify {name} {flag}"
                )
            options[option] = value
    if chosen is None:
        return None
    try:
        return registry(chosen, options)
    except TVMError as error:
        raise TVMCException(str(error)) from None
