"""Functions in C that generated code calls; a module contains those that it uses.

    HELPERS["tvm_float_of_half"].text

They are C99 and C++ at once, and rely on two's complement numbers alone.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Helper:
    """The definition of one function, and the functions that it calls itself."""

    text: str
    needs: tuple[str, ...] = ()


def _bits_of(integer: str, floating: str) -> dict[str, Helper]:
    """Functions between numbers and their bits."""
    return {
        f"tvm_bits_of_{floating}": Helper(f"""\
static inline {integer} tvm_bits_of_{floating}({floating} x) {{
  {integer} bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}}
"""),
        f"tvm_{floating}_of_bits": Helper(f"""\
static inline {floating} tvm_{floating}_of_bits({integer} bits) {{
  {floating} x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}}
"""),
    }


def _access(type_: str) -> dict[str, Helper]:
    """Loads and stores of memory that is declared with another type."""
    return {
        f"tvm_load_{type_}": Helper(f"""\
static inline {type_} tvm_load_{type_}(const {type_}* from) {{
  {type_} x;
  memcpy(&x, (const void*)from, sizeof(x));
  return x;
}}
"""),
        f"tvm_store_{type_}": Helper(f"""\
static inline void tvm_store_{type_}({type_}* to, {type_} x) {{
  memcpy((void*)to, &x, sizeof(x));
}}
"""),
    }


_FLOAT_BITS = ("tvm_bits_of_float", "tvm_float_of_bits")


def _float8(name: str, mantissa: int, bias: int, limit: str, overflow: int, nan: int) -> Helper:
    """A float rounded to an 8-bit float; results among the denormals by adding a number of the right size."""
    drop = 23 - mantissa
    exponent = 127 - bias + 1 + drop
    return Helper(
        f"""\
static inline uint8_t tvm_{name}_of_float(float x) {{
  const uint32_t bits = tvm_bits_of_float(x);
  const uint32_t size = bits & 0x7fffffffU;
  const uint8_t sign = (uint8_t)(bits >> 24 & 0x80U);
  const float magnitude = tvm_float_of_bits(size);
  if (size > 0x7f800000U) return (uint8_t)(sign | 0x{nan:x}U);
  if (magnitude {limit}) return (uint8_t)(sign | 0x{overflow:x}U);
  if (size < 0x{(127 - bias + 1) << 23:x}U) {{
    const float adder = tvm_float_of_bits(0x{exponent << 23:x}U);
    return (uint8_t)(sign | (tvm_bits_of_float(magnitude + adder) - 0x{exponent << 23:x}U));
  }}
  return (uint8_t)(sign | (((size + 0x{(1 << (drop - 1)) - 1:x}U + (size >> {drop} & 1U)) >> {drop}) - 0x{(127 - bias) << mantissa:x}U));
}}
""",
        _FLOAT_BITS,
    )


_NARROW = {
    "tvm_float_of_half": Helper(
        """\
static inline float tvm_float_of_half(uint16_t x) {
  const uint32_t sign = (uint32_t)(x & 0x8000U) << 16;
  const uint32_t size = (uint32_t)(x & 0x7fffU) << 13;
  if (size >= 0x0f800000U) return tvm_float_of_bits(sign | (size + 0x70000000U));
  return tvm_float_of_bits(sign | tvm_bits_of_float(tvm_float_of_bits(size) * 0x1p112f));
}
""",
        _FLOAT_BITS,
    ),
    "tvm_half_of_float": Helper(
        """\
static inline uint16_t tvm_half_of_float(float x) {
  const uint32_t bits = tvm_bits_of_float(x);
  const uint32_t size = bits & 0x7fffffffU;
  const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000U);
  if (size > 0x7f800000U) return (uint16_t)(sign | 0x7e00U);
  if (size >= 0x477ff000U) return (uint16_t)(sign | 0x7c00U);
  if (size < 0x38800000U) {
    return (uint16_t)(sign | (tvm_bits_of_float(tvm_float_of_bits(size) + 0.5f) - 0x3f000000U));
  }
  return (uint16_t)(sign | ((size + 0xfffU + (size >> 13 & 1U) - 0x38000000U) >> 13));
}
""",
        _FLOAT_BITS,
    ),
    "tvm_float_of_bfloat16": Helper(
        """\
static inline float tvm_float_of_bfloat16(uint16_t x) {
  return tvm_float_of_bits((uint32_t)x << 16);
}
""",
        _FLOAT_BITS,
    ),
    "tvm_bfloat16_of_float": Helper(
        """\
static inline uint16_t tvm_bfloat16_of_float(float x) {
  const uint32_t bits = tvm_bits_of_float(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return (uint16_t)(bits >> 16 | 0x40U);
  return (uint16_t)((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}
""",
        _FLOAT_BITS,
    ),
    "tvm_float_of_e4m3": Helper(
        """\
static inline float tvm_float_of_e4m3(uint8_t x) {
  const uint32_t sign = (uint32_t)(x & 0x80U) << 24;
  const uint32_t size = x & 0x7fU;
  if (size == 0x7fU) return tvm_float_of_bits(sign | 0x7fc00000U);
  return tvm_float_of_bits(sign | tvm_bits_of_float(tvm_float_of_bits(size << 20) * 0x1p120f));
}
""",
        _FLOAT_BITS,
    ),
    "tvm_e4m3_of_float": _float8("e4m3", 3, 7, "> 464.0f", 0x7F, 0x7F),
    "tvm_float_of_e5m2": Helper(
        """\
static inline float tvm_float_of_e5m2(uint8_t x) {
  return tvm_float_of_half((uint16_t)(x << 8));
}
""",
        ("tvm_float_of_half",),
    ),
    "tvm_e5m2_of_float": _float8("e5m2", 2, 15, ">= 61440.0f", 0x7C, 0x7E),
    # rounding to odd distinguishes what a second rounding must not confuse
    "tvm_sticky_float": Helper(
        """\
static inline float tvm_sticky_float(double x) {
  const float near = (float)x;
  uint32_t bits = tvm_bits_of_float(near);
  if ((double)near == x || x != x || isinf(near)) return near;
  if (fabs((double)near) > fabs(x)) bits -= 1U;
  return tvm_float_of_bits(bits | 1U);
}
""",
        _FLOAT_BITS,
    ),
}

_BIT_COUNTS = {
    "tvm_popcount": Helper("""\
static inline int32_t tvm_popcount(uint64_t x) {
  x -= x >> 1 & 0x5555555555555555ULL;
  x = (x & 0x3333333333333333ULL) + (x >> 2 & 0x3333333333333333ULL);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
  return (int32_t)((x * 0x0101010101010101ULL) >> 56);
}
"""),
    "tvm_bit_length": Helper("""\
static inline int32_t tvm_bit_length(uint64_t x) {
  int32_t length = 0;
  for (int32_t step = 32; step > 0; step /= 2) {
    if (x >> step != 0) {
      length += step;
      x >>= step;
    }
  }
  return length + (x != 0 ? 1 : 0);
}
"""),
}


def _divisions(bits: int, signed: bool) -> dict[str, Helper]:
    """Divisions for every divisor: by zero everything is zero, and -1 turns the least number into itself."""
    name = f"{'' if signed else 'u'}int{bits}"
    unsigned = f"uint{max(bits, 32)}_t"
    negated = f"  if (b == -1) return ({name}_t)(0U - ({unsigned})a);\n" if signed else ""
    nothing = "b == 0 || b == -1" if signed else "b == 0"
    head = f"static inline {name}_t tvm_"
    operands = f"_{name}({name}_t a, {name}_t b) {{\n"
    return {
        f"tvm_div_{name}": Helper(
            f"{head}div{operands}{negated}  return b == 0 ? 0 : ({name}_t)(a / b);\n}}\n"
        ),
        f"tvm_mod_{name}": Helper(
            f"{head}mod{operands}  return {nothing} ? 0 : ({name}_t)(a % b);\n}}\n"
        ),
    }


def _shifts(bits: int, signed: bool) -> dict[str, Helper]:
    """Shifts by any distance: one by the number of bits, or more, leaves no bit but the sign's."""
    name = f"{'' if signed else 'u'}int{bits}"
    unsigned = f"uint{max(bits, 32)}_t"
    head = f"static inline {name}_t tvm_shift_"
    operands = f"_{name}({name}_t a, {name}_t b) {{\n"
    inside = f"(uint{bits}_t)b < {bits}U"
    rest = "(a < 0 ? -1 : 0)" if signed else "0"
    return {
        f"tvm_shift_left_{name}": Helper(
            f"{head}left{operands}  return {inside} ? ({name}_t)(({unsigned})a << b) : 0;\n}}\n"
        ),
        f"tvm_shift_right_{name}": Helper(
            f"{head}right{operands}  return {inside} ? ({name}_t)(a >> b) : {rest};\n}}\n"
        ),
    }


def _truncations(floating: str) -> dict[str, Helper]:
    """Floats as integers, towards zero; what has no place becomes the least number."""
    suffix = "f" if floating == "float" else ""
    above = "x >= -2147483648.0f" if floating == "float" else "x > -2147483649.0"
    return {
        f"tvm_int32_of_{floating}": Helper(f"""\
static inline int32_t tvm_int32_of_{floating}({floating} x) {{
  return {above} && x < 2147483648.0{suffix} ? (int32_t)x : (-2147483647 - 1);
}}
"""),
        f"tvm_int64_of_{floating}": Helper(f"""\
static inline int64_t tvm_int64_of_{floating}({floating} x) {{
  return x >= -0x1p63{suffix} && x < 0x1p63{suffix} ? (int64_t)x : (-9223372036854775807LL - 1);
}}
"""),
        f"tvm_uint64_of_{floating}": Helper(
            f"""\
static inline uint64_t tvm_uint64_of_{floating}({floating} x) {{
  if (x < 0x1p63{suffix}) return (uint64_t)tvm_int64_of_{floating}(x);
  return (uint64_t)tvm_int64_of_{floating}(x - 0x1p63{suffix}) ^ 0x8000000000000000ULL;
}}
""",
            (f"tvm_int64_of_{floating}",),
        ),
    }


def _atomic(name: str, type_: str) -> dict[str, Helper]:
    return {
        f"tvm_atomic_add_{name}": Helper(f"""\
static inline {type_} tvm_atomic_add_{name}({type_}* at, {type_} x) {{
#if defined(__GNUC__)
  {type_} before, after;
  __atomic_load(at, &before, __ATOMIC_RELAXED);
  do {{
    after = ({type_})(before + x);
  }} while (!__atomic_compare_exchange(at, &before, &after, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return before;
#else
#error "atomic additions need a compiler with the __atomic built-in functions"
#endif
}}
""")
    }


_REPORTS = {
    "tvm_report": Helper("""\
static void tvm_report(const char* format, ...) {
  char text[512];
  va_list values;
  va_start(values, format);
  (void)vsnprintf(text, sizeof(text), format, values);
  va_end(values);
  __TVMAPISetLastError(text);
}
"""),
}

_INTEGERS = [f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_SCALARS = [*_INTEGERS, "float", "double"]

HELPERS: dict[str, Helper] = {
    **_bits_of("uint32_t", "float"),
    **{name: helper for type_ in _SCALARS for name, helper in _access(type_).items()},
    **_NARROW,
    **_BIT_COUNTS,
    **{
        name: helper
        for family in (_divisions, _shifts)
        for bits in (8, 16, 32, 64)
        for signed in (True, False)
        for name, helper in family(bits, signed).items()
    },
    **_truncations("float"),
    **_truncations("double"),
    **{n: h for t in _SCALARS for n, h in _atomic(t.removesuffix("_t"), t).items()},
    **_REPORTS,
}
