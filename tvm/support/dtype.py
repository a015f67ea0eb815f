"""Data types: interned strings that know their code, bits and lanes."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

# DLPack type codes; bool is uint with one bit, handle is the classic opaque pointer
TYPE_CODES = {
    "int": 0,
    "uint": 1,
    "bool": 1,
    "float": 2,
    "handle": 3,
    "bfloat": 4,
    "e4m3_float": 6,
    "e5m2_float": 7,
}
CODE_NAMES = {code: name for name, code in TYPE_CODES.items() if name != "bool"}
_DEFAULT_BITS = {"int": 32, "uint": 32, "float": 32, "bfloat": 16, "handle": 64, "bool": 1}
_FLOAT_BITS = {"float": (8, 16, 32, 64, 80, 128), "bfloat": (16,)}
_ALIASES = {"": "void", "float": "float32", "int": "int32", "uint": "uint32", "uint1": "bool"}
# names that end in digits or carry their bits in another place; the later ones are numpy's
_FLOAT8 = {
    "e4m3_float8": ("e4m3_float", 8),
    "e5m2_float8": ("e5m2_float", 8),
    "float8_e4m3fn": ("e4m3_float", 8),
    "float8_e5m2": ("e5m2_float", 8),
}
_FROM_NUMPY = {"float8_e4m3fn": "e4m3_float8", "float8_e5m2": "e5m2_float8", "bool_": "bool"}
_NUMPY_NAMES = {
    **{ours: theirs for theirs, ours in _FROM_NUMPY.items()},
    "handle": "object",
    **{f"{sign}int{bits}": f"{sign}int8" for sign in ("", "u") for bits in (2, 4)},
}
_PATTERN = re.compile(r"^(int|uint|bfloat|float|handle|bool)(\d*)(?:x((?:vscalex)?\d+))?$")
# types of users: numbers whose arithmetic is calls of their functions
FIRST_CUSTOM_CODE = 129
_CUSTOM_PATTERN = re.compile(r"^(custom\[\w+\])(\d+)(?:x(\d+))?$")
# what precedes the factor in the name of a scalable vector type, float32xvscalex4
_SCALABLE = "vscalex"
_LANES_CODES = 1 << 16  # lanes are 16 bits in DLPack's types


class ByteCount(int):
    """A number of bytes; classic programs call it, ``DataType("int8").itemsize()``."""

    __slots__ = ()

    def __call__(self) -> int:
        return int(self)


class ScalableLanes(int):
    """The lanes of a scalable vector: ``factor`` times what the processor calls vscale.

    As an integer it is DLPack's code, 2**16 - factor: not 1, above the lanes of any other vector, and an upper bound
    of the lanes that any processor has.

    Parameters
    ----------
    factor : int
        The lanes where vscale is 1.
    """

    factor: int

    def __new__(cls, factor: int) -> ScalableLanes:
        if not 0 < factor < _LANES_CODES // 2:
            raise ValueError(
                f"a scalable vector requires 1 to 32767 lanes for vscale, got {factor}"
            )
        new = super().__new__(cls, _LANES_CODES - factor)
        new.factor = int(factor)
        return new

    def __mul__(self, other: int) -> ScalableLanes:
        if not isinstance(other, int):
            return NotImplemented
        if isinstance(other, ScalableLanes):
            raise TypeError("lanes cannot be scaled by vscale twice")
        return ScalableLanes(self.factor * other)

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> int:
        if isinstance(other, ScalableLanes):
            return self.factor // other.factor
        return ScalableLanes(self.factor // other)

    def __mod__(self, other: int) -> int:
        return self.factor % (other.factor if isinstance(other, ScalableLanes) else other)

    def __str__(self) -> str:
        return f"{_SCALABLE}{self.factor}"

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return ScalableLanes, (self.factor,)


def lanes_from_code(code: int) -> int:
    """The lanes that DLPack's 16 bits say."""
    return code if code < _LANES_CODES // 2 else ScalableLanes(_LANES_CODES - code)


class DType(str):
    """A data type such as ``float32``, ``int8x4`` or, of a scalable vector, ``int32xvscalex4``.

    Compares equal to its text, and is interned: equal types are the same object.
    """

    __slots__ = (
        "bits",
        "code",
        "element",
        "is_bool",
        "is_float",
        "is_handle",
        "is_int",
        "is_narrow_integer",
        "is_scalable",
        "is_uint",
        "is_vector",
        "is_void",
        "lanes",
    )  # fmt: skip

    code: str
    bits: int
    lanes: int
    element: DType
    is_int: bool
    is_uint: bool
    is_float: bool
    is_bool: bool
    is_narrow_integer: bool
    is_handle: bool
    is_scalable: bool
    is_vector: bool
    is_void: bool

    def __new__(cls, text: Any) -> DType:
        return dtype(text)

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype, (str(self),)

    @property
    def type_code(self) -> int:
        """DLPack's code of the element type."""
        return TYPE_CODES[self.code]

    @property
    def is_custom(self) -> bool:
        """Whether the type was registered by a user."""
        return self.code.startswith("custom[")

    @property
    def itemsize(self) -> ByteCount:
        """Bytes of one value, all lanes together."""
        if self.is_scalable:
            raise ValueError(
                f"a data type of known size is required, got the scalable vector {self}"
            )
        return ByteCount((self.bits * self.lanes + 7) // 8)

    @property
    def numpy(self) -> Any:
        """The numpy type of one element; integers of 2 or 4 bits are held in a byte each."""
        return _numpy_type(self.element)

    def with_lanes(self, lanes: int) -> DType:
        """The vector type with this element type and ``lanes`` lanes."""
        found = _VECTORS.get((self.element, lanes)) if type(lanes) is int else None
        return found or _vector(self.element, lanes)

    def with_bits(self, bits: int) -> DType:
        """The type with the same code and lanes, and ``bits`` bits."""
        return dtype(f"{self.code}{bits}").with_lanes(self.lanes)


@cache
def _numpy_type(element: DType) -> Any:
    import ml_dtypes
    import numpy

    if element.is_custom:
        return numpy.dtype(f"uint{element.bits}")
    name = _NUMPY_NAMES.get(element, str(element))
    return numpy.dtype(getattr(ml_dtypes, name, name) if "float" in name else name)


_INTERNED: dict[Any, DType] = {}
_VECTORS: dict[tuple[DType, int], DType] = {}


def _vector(element: DType, lanes: int) -> DType:
    found = element if lanes == 1 else dtype(f"{element}x{lanes}")
    _VECTORS[element, int(lanes)] = found
    return found


def dtype(value: Any) -> DType:
    """The interned data type that ``value`` names.

    Parameters
    ----------
    value : str, DType, numpy dtype or Python scalar type
        ``"float32"``, ``np.int64``, ``bool``, ``"int8x4"`` ...

    Raises
    ------
    ValueError
        If the text names no data type.
    """
    if type(value) is DType:
        return value
    try:
        found = _INTERNED.get(value)
    except TypeError:
        found = None
    if found is None:
        found = _parse(value if isinstance(value, str) else _numpy_name(value))
        if isinstance(value, (str, type)):
            _INTERNED[value] = found
    return found


def _numpy_name(value: Any) -> str:
    if isinstance(value, type) and value in (int, float, bool):
        return {int: "int32", float: "float32", bool: "bool"}[value]
    import numpy

    try:
        name = str(numpy.dtype(value).name)
    except (TypeError, ValueError):
        raise TypeError(f"a data type such as 'float32' is required, got {value!r}") from None
    return _FROM_NUMPY.get(name, name)


def has_narrow_integers() -> bool:
    """Whether there is any integer type of fewer than 8 bits so far."""
    return any([known.is_narrow_integer for known in _INTERNED.values()])


def register_custom_code(name: str, code: int) -> None:
    """Make ``custom[name]32`` and its like data types, with a code of 129 or more."""
    if code < FIRST_CUSTOM_CODE or code > 255:
        raise ValueError(f"a custom type requires a code from 129 to 255, got {code}")
    key = f"custom[{name}]"
    if TYPE_CODES.get(key, code) != code or CODE_NAMES.get(code, key) != key:
        taken = CODE_NAMES.get(code, f"code {TYPE_CODES.get(key)}")
        raise ValueError(f"custom type {name!r} cannot have code {code}, there is {taken}")
    TYPE_CODES[key] = code
    CODE_NAMES[code] = key


def _parse_custom(text: str) -> DType:
    match = _CUSTOM_PATTERN.match(text)
    if match is None or match[1] not in TYPE_CODES:
        known = [name for name in TYPE_CODES if name.startswith("custom[")]
        raise ValueError(
            f"dtype requires a registered type such as custom[name]32, got {text!r}, there are {known}"
        )
    return _intern(match[1], int(match[2]), int(match[3] or 1))


def _parse(text: str) -> DType:
    text = _ALIASES.get(text, text)
    if text.startswith("custom["):
        return _parse_custom(text)
    if text == "void":
        return _intern("handle", 0, 0)
    element, _, lanes = text.partition("x")
    if element in _FLOAT8:
        return _intern(*_FLOAT8[element], _parse_lanes(lanes))
    match = _PATTERN.match(text)
    if match is None:
        raise ValueError(f"dtype requires a name such as float32, int8x4 or bool, got {text!r}")
    code, bits, lanes = match.groups()
    width = int(bits) if bits else _DEFAULT_BITS[code]
    if code == "uint" and width == 1:
        code = "bool"
    count = _parse_lanes(lanes)
    if width == 0 or count == 0 or (code == "bool" and width not in (1, 8)):
        raise ValueError(f"dtype requires a positive number of bits and lanes, got {text!r}")
    if width not in _FLOAT_BITS.get(code, (width,)):
        raise ValueError(f"dtype requires a float of {_FLOAT_BITS[code]} bits, got {text!r}")
    return _intern(code, 1 if code == "bool" else width, count)


def _parse_lanes(text: str | None) -> int:
    if text and text.startswith(_SCALABLE):
        return ScalableLanes(int(text.removeprefix(_SCALABLE)))
    return int(text or 1)


def _canonical_text(code: str, bits: int, lanes: int) -> str:
    if code == "handle" and bits == 0:
        return "void"
    # truth values have a name of their own, vectors of them do not
    if code == "bool" and lanes != 1:
        return f"uint1x{lanes}"
    element = code if code in ("handle", "bool") else f"{code}{bits}"
    return element if lanes == 1 else f"{element}x{lanes}"


def _intern(code: str, bits: int, lanes: int) -> DType:
    text = _canonical_text(code, bits, lanes)
    found = _INTERNED.get(text)
    if found is not None:
        return found
    new = str.__new__(DType, text)
    new.code, new.bits, new.lanes = code, bits, lanes
    new.is_int = code == "int"
    new.is_bool = code == "bool"
    new.is_uint = code in ("uint", "bool")
    # a number in less than a byte
    new.is_narrow_integer = code in ("int", "uint") and bits < 8
    new.is_float = "float" in code or code.startswith("custom[")
    new.is_void = bits == 0
    new.is_handle = code == "handle" and bits != 0
    new.is_scalable = type(lanes) is ScalableLanes
    new.is_vector = lanes > 1
    _INTERNED[text] = new
    new.element = new if lanes in (0, 1) else _intern(code, bits, 1)
    return new


def dtype_from_code(type_code: int, bits: int, lanes: int = 1) -> DType:
    """The data type of a DLPack triple."""
    code = CODE_NAMES[type_code]
    code = "bool" if code == "uint" and bits == 1 else code
    return _intern(code, bits, lanes_from_code(lanes))
