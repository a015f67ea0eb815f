"""Defaults of options from a JSON file: `tvmc --config FILE`.

{
    "targets": [{"kind": "llvm", "mcpu": "znver4"}],
    "executor": {"kind": "graph", "link-params": "1"},
    "pass-config": {"tir.disable_vectorize": "1"},
    "opt-level": "3"
}
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tvm import knobs
from tvm.driver.tvmc.errors import TVMCException


class ConfigsJsonNotFoundError(TVMCException):
    """There is no folder with configurations."""


def get_configs_json_dir() -> str:
    """The folder of the configurations that have names."""
    folder = knobs.CONFIGS_JSON_DIR.value or Path(__file__).parent / "configs"
    if not folder.is_dir():
        raise ConfigsJsonNotFoundError(
            f"there is no folder {folder} with configurations (TVM_CONFIGS_JSON_DIR)"
        )
    return str(folder)


def find_json_file(name: str, path: str) -> str:
    """The file ``name`` or ``name.json`` in a folder or below; empty if there is none."""
    wanted = {name, f"{name}.json"}
    found = [file for file in sorted(Path(path).rglob("*")) if file.name in wanted]
    return str(found[0]) if found else ""


def read_and_convert_json_into_dict(config_args: Any) -> dict[str, Any]:
    """What the file of ``--config`` holds."""
    name = config_args.config
    file = name if Path(name).is_file() else find_json_file(name, get_configs_json_dir())
    if not file:
        names = sorted(path.stem for path in Path(get_configs_json_dir()).rglob("*.json"))
        raise TVMCException(
            f"--config requires a JSON file or one of {', '.join(names)}, there is no {name!r}"
        )
    try:
        found = json.loads(Path(file).read_text(encoding="utf8"))
    except (OSError, ValueError) as error:
        raise TVMCException(f"--config requires a JSON file, {file} is none: {error}") from None
    if not isinstance(found, dict):
        raise TVMCException(f"--config requires a JSON object, {file} holds {found!r}")
    return found


def parse_target_from_json(one_target: Mapping[str, Any], command_line_list: dict[str, Any]) -> str:
    """The kind of a target; its options are put into ``command_line_list``."""
    options = dict(one_target)
    kind = options.pop("kind", None)
    if not isinstance(kind, str):
        raise TVMCException(f'a target in a configuration requires a "kind", got {one_target}')
    for name, value in options.items():
        text = ",".join(value) if isinstance(value, list) else str(value)
        command_line_list[_destination(f"target_{kind}_{name}")] = text
    return kind


def convert_config_json_to_cli(json_params: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of a configuration as the defaults of options."""
    defaults: dict[str, Any] = {}
    for key, value in json_params.items():
        if key == "targets":
            kinds = [parse_target_from_json(target, defaults) for target in value]
            defaults["target"] = ", ".join(kinds)
        elif key in ("executor", "runtime"):
            options = dict(value)
            kind = defaults[key] = options.pop("kind", {"executor": "graph", "runtime": "cpp"}[key])
            for name, option in options.items():
                defaults[_destination(f"{key}_{kind}_{name}")] = option
        elif isinstance(value, dict):
            defaults[_destination(key)] = [f"{name}={option}" for name, option in value.items()]
        else:
            defaults[_destination(key)] = value
    return defaults


def _destination(option: str) -> str:
    return option.replace("-", "_")


def set_defaults(parser: argparse.ArgumentParser, defaults: Mapping[str, Any]) -> None:
    """Give the options of a parser the defaults of a configuration."""
    known = {action.dest: action for action in parser._actions}
    for name, value in defaults.items():
        if name in known:
            # defaults that are texts are converted by argparse itself; numbers stay
            parser.set_defaults(**{name: value})
