"""PassContext: which passes run, with what options, watched by whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any, TypeVar

from tvm.error import TVMError, suggest
from tvm.support import Scoped

from .pass_names import PARAMETRISED_TIR_PASSES, RELAY_PASSES

T = TypeVar("T")

# key -> a type, or a frozen dataclass with the options of a pass
_CONFIG_TYPES: dict[str, Any] = {}
# key -> why it has no effect here
_UNSUPPORTED: dict[str, str] = {}


def unsupported_option(default: Any, reason: str) -> Any:
    """A field of an options record that classic programs know: only its default is taken."""
    return field(default=default, metadata={"unsupported": reason})


def register_pass_config(key: str, value_type: Any, unsupported: str | None = None) -> None:
    """Allow ``key`` in ``PassContext(config=...)``.

    Parameters
    ----------
    key : str
        Such as ``"tir.UnrollLoop"``.
    value_type : type or dataclass
        bool, int, str, list; or a dataclass, given by users as a dictionary of its fields.
    unsupported : str, optional
        Why the key takes only the value that changes nothing: False, 0, or nothing at all.
    """
    _CONFIG_TYPES[key] = value_type
    if unsupported is not None:
        _UNSUPPORTED[key] = unsupported


class PassConfigError(TVMError, AttributeError):
    """There is no option of that name."""


class OptionsTypeError(PassConfigError, TypeError):
    """The options of a pass are no dictionary."""


# names of the passes that have been declared, users' among them
_DECLARED: set[str] = set()


@dataclass(frozen=True)
class PassInfo:
    """What a context needs to know of a pass."""

    opt_level: int
    name: str
    required: tuple[str, ...] = ()
    traceable: bool = False

    def __post_init__(self) -> None:
        _DECLARED.add(self.name)

    def __str__(self) -> str:
        required = ", ".join(self.required)
        return (
            f"The meta data of the pass - pass name: {self.name}, opt_level: {self.opt_level}, "
            f"required passes: [{required}]\n"
        )


def known_passes() -> frozenset[str]:
    """The names that ``required_pass`` and ``disabled_pass`` may have."""
    return RELAY_PASSES | PARAMETRISED_TIR_PASSES | _DECLARED


class PassContext:
    """What holds for the passes run inside ``with PassContext(...):``.

    Parameters
    ----------
    opt_level : int
        Passes of a higher level are left out (0 to 4).
    required_pass, disabled_pass : list of str
        Passes by name that run, or do not, whatever their level.
    instruments : list of PassInstrument
        Watch each pass.
    config : dict
        Options by key; unknown keys and wrong types are errors.
    trace, trace_stack, make_traceable, num_evals, tuning_api_database
        Of relax's search among passes, which is not there: only their defaults are taken.

    Raises
    ------
    TVMError
        On an unknown pass, key or option, or a value of the wrong type.
    """

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Iterable[str] | None = None,
        disabled_pass: Iterable[str] | None = None,
        instruments: Iterable[Any] | None = None,
        config: Mapping[str, Any] | None = None,
        trace: Any = None,
        trace_stack: Any = None,
        make_traceable: Any = None,
        num_evals: int = 0,
        tuning_api_database: Any = None,
    ) -> None:
        _reject_tracing(
            trace=trace, trace_stack=trace_stack, make_traceable=make_traceable,
            num_evals=num_evals, tuning_api_database=tuning_api_database,
        )  # fmt: skip
        self.trace_stack = list(trace_stack or [])
        self.make_traceable = bool(make_traceable)
        self.num_evals = int(num_evals)
        if not isinstance(opt_level, (int, float)):
            raise TypeError(f"PassContext requires a number for opt_level, got {opt_level!r}")
        self.opt_level = int(opt_level)
        self.required_pass = _names(required_pass, "required_pass")
        self.disabled_pass = _names(disabled_pass, "disabled_pass")
        self.instruments = list(instruments or [])
        if not isinstance(config or {}, Mapping):
            raise TypeError(f"PassContext requires a dictionary for config, got {config!r}")
        self.config = {key: _checked(key, value) for key, value in (config or {}).items()}

    def __repr__(self) -> str:
        return (
            f"PassContext(opt_level={self.opt_level}, required_pass={list(self.required_pass)}, "
            f"disabled_pass={list(self.disabled_pass)}, config={self.config})"
        )

    def __enter__(self) -> PassContext:
        _CURRENT.push(self)
        try:
            self._enter_instruments()
        except Exception:
            _CURRENT.pop()
            raise
        return self

    def _enter_instruments(self) -> None:
        entered = []
        try:
            for instrument in self.instruments:
                instrument.enter_pass_ctx()
                entered.append(instrument)
        except Exception:
            for instrument in reversed(entered):
                instrument.exit_pass_ctx()
            self.instruments = []
            raise

    def __exit__(self, *_: object) -> None:
        try:
            self._leave_instruments()
        finally:
            _CURRENT.pop()

    def _leave_instruments(self) -> None:
        try:
            for instrument in self.instruments:
                instrument.exit_pass_ctx()
        except Exception:
            self.instruments = []
            raise

    def override_instruments(self, instruments: Iterable[Any] | None) -> None:
        """Leave the instruments there are, and enter others."""
        self._leave_instruments()
        self.instruments = list(instruments or [])
        self._enter_instruments()

    def get_tuning_api_database(self) -> None:
        """The database of a search among passes: there is none."""

    def enables(self, name: str, opt_level: int) -> bool:
        """Whether a pass of that name and level runs here."""
        if name in self.disabled_pass:
            return False
        return name in self.required_pass or self.opt_level >= opt_level

    def get(self, key: str, default: T) -> T:
        """The option of that key, or ``default``."""
        value: T = self.config.get(key, default)
        return value

    def options(self, key: str, record: type[T]) -> T:
        """The options record of a pass: the configured one, or all defaults."""
        found = self.config.get(key)
        return found if isinstance(found, record) else record()

    def fingerprint(self) -> str:
        """All that decides what passes do, as text: equal contexts have equal ones."""
        config = sorted([(key, repr(value)) for key, value in self.config.items()])
        return repr((self.opt_level, self.required_pass, self.disabled_pass, config))

    @staticmethod
    def current() -> PassContext:
        """The innermost context, or the default one."""
        return _CURRENT.current() or _DEFAULT

    @staticmethod
    def list_configs() -> dict[str, dict[str, str]]:
        """All keys with the types of their values."""
        return {key: {"type": _type_name(kind)} for key, kind in sorted(_CONFIG_TYPES.items())}


def _reject_tracing(**given: Any) -> None:
    for name, value in given.items():
        if value:
            raise TVMError(
                f"PassContext takes only the default of {name}, got {value!r}",
                hint="it belongs to relax's search among passes; "
                "instruments=[PassTimingInstrument()] tells what passes ran",
            )


def _names(names: Iterable[str] | None, parameter: str) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Iterable | None):
        raise TypeError(f"PassContext requires a list for {parameter}, got {names!r}")
    known = known_passes()
    for name in () if names is None else names:
        if not isinstance(name, str):
            raise TypeError(f"PassContext requires names of passes in {parameter}, got {name!r}")
        if name not in known:
            raise TVMError(
                f"PassContext requires names of passes in {parameter}, got {name!r}",
                hint=suggest(name, known),
            )
    return tuple(names or ())


_CLASSIC_TYPES = {
    bool: "IntImm", int: "IntImm", float: "FloatImm", str: "runtime.String",
    list: "Array", tuple: "Array", dict: "Map",
}  # fmt: skip


def _type_name(kind: Any) -> str:
    return _CLASSIC_TYPES.get(kind) or str(getattr(kind, "__name__", kind))


def _checked(key: str, value: Any) -> Any:
    if key not in _CONFIG_TYPES:
        raise PassConfigError(
            f"PassContext requires a known config key, got {key!r}",
            hint=suggest(str(key), _CONFIG_TYPES) or "PassContext.list_configs() has them all",
        )
    kind = _CONFIG_TYPES[key]
    if key in _UNSUPPORTED and getattr(value, "value", value):
        raise TVMError(f"config key {key} cannot be {value!r}", hint=_UNSUPPORTED[key])
    if is_dataclass(kind):
        return _options_record(key, kind, value)
    value = getattr(value, "value", value)
    if kind is bool and isinstance(value, int):
        return bool(value)
    if isinstance(kind, type) and not isinstance(value, kind):
        if kind in (list, tuple) and isinstance(value, (list, tuple)):
            return value
        raise TypeError(
            f"config key {key} requires {kind.__name__}, got {value!r} of {type(value).__name__}"
        )
    return value


def _options_record(key: str, record: Any, value: Any) -> Any:
    if isinstance(value, record):
        return value
    if not isinstance(value, Mapping):
        raise OptionsTypeError(
            f"config key {key} requires a dictionary of its options, got {value!r}"
        )
    known = {field.name: field for field in fields(record)}
    for name, option in value.items():
        if name not in known:
            raise PassConfigError(
                f"config key {key} has the options {list(known)}, got {name!r}",
                hint=suggest(name, known),
            )
        default = known[name].default
        reason = known[name].metadata.get("unsupported")
        if reason is not None and getattr(option, "value", option) != default:
            raise TVMError(
                f"option {name} of {key} requires its default {default!r}, got {option!r}",
                hint=reason,
            )
        if default is not MISSING and isinstance(default, (bool, int)):
            if not isinstance(getattr(option, "value", option), int):
                raise TypeError(
                    f"option {name} of {key} requires {type(default).__name__}, got {option!r}"
                )
    return record(**{name: getattr(v, "value", v) for name, v in value.items()})


_CURRENT: Scoped[PassContext] = Scoped("PassContext")
_DEFAULT = PassContext()
