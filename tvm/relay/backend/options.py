"""A kind with options, checked: what Executor and Runtime have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tvm.error import TVMError, suggest

_TYPE_KEYS = {bool: "runtime.BoxBool", int: "runtime.BoxInt", str: "runtime.String"}


def _type_key(kind: type) -> str:
    """The classic name of a type."""
    return _TYPE_KEYS.get(kind, kind.__name__)


class Configured:
    """A registered name and its options."""

    what: ClassVar[str] = "kind"
    kinds: ClassVar[Mapping[str, Mapping[str, type]]] = {}
    defaults: ClassVar[Mapping[str, Mapping[str, object]]] = {}

    def __init__(self, name: str, options: Mapping[str, object] | None = None) -> None:
        if not isinstance(name, str) or name not in self.kinds:
            raise TVMError(
                f'{self.what} "{name}" is not defined, there are {", ".join(self.kinds)}',
                hint=suggest(str(name), self.kinds),
            )
        if not isinstance(options or {}, Mapping):
            raise TypeError(f"{self.what} requires a dictionary of options, got {options!r}")
        known = self.kinds[name]
        for key, value in (options or {}).items():
            if key not in known:
                raise TVMError(
                    f'Attribute "{key}" is not available on this {self.what}, "{name}"',
                    hint=suggest(key, known),
                )
            if not isinstance(value, known[key]):
                raise TVMError(
                    f'Attribute "{key}" should have type "{_type_key(known[key])}" but instead '
                    f'found "{_type_key(type(value))}", for {self.what} "{name}"'
                )
        self.name = name
        self.attrs = {**self.defaults.get(name, {}), **(options or {})}

    @classmethod
    def options_of(cls, kind: Any) -> dict[str, str]:
        """The options of one kind, given by its name or an object of it, with their types."""
        name = kind.name if isinstance(kind, cls) else cls(kind).name
        return {option: _type_key(type_) for option, type_ in cls.kinds[name].items()}

    def flag(self, option: str) -> bool:
        """Whether a boolean option is set."""
        return bool(self.attrs.get(option, False))

    def __getitem__(self, name: str) -> object:
        return self.attrs[name]

    def __contains__(self, name: object) -> bool:
        return name in self.attrs

    def __eq__(self, other: object) -> bool:
        return (
            type(self) is type(other)
            and isinstance(other, Configured)
            and self.name == other.name
            and self.attrs == other.attrs
        )

    def __hash__(self) -> int:
        return hash((type(self), self.name, tuple(sorted(self.attrs))))

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.attrs!r})"
