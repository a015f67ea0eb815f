"""Functions that processors have in the C library, as LLVM text: devices have no library.

* ``sin``, ``cos`` and ``tan`` of large arguments: x = n pi/2 + r, by a product of x with the digits of 2/pi that
  matter (Payne and Hanek, "Radian reduction for trigonometric functions", SIGNUM 1983).
* ``fmod`` by long division of the mantissas, a bit a step, which is exact.
* ``nextafter`` on the bits.

``tvm.sin.small.f32`` is the vector math function without a way out for large arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype


@dataclass(frozen=True, slots=True)
class LibraryFunction:
    """One function's text, and the functions that it calls for small arguments."""

    text: str
    dtype: DType
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Format:
    """A type of floats: its bits, and how many digits of 2/pi its largest numbers need."""

    float: str
    bits: int
    mantissa: int  # bits that are stored
    digits: int  # of 2/pi
    window: int  # digits that matter for one argument
    suffix: str

    @property
    def dtype(self) -> DType:
        return as_dtype(f"float{self.bits}")

    @property
    def values(self) -> dict[str, str | int]:
        bias = (1 << (self.bits - self.mantissa - 2)) - 1
        return {
            "float": self.float, "int": f"i{self.bits}", "bits": self.bits, "suffix": self.suffix,
            "mantissa": self.mantissa, "hidden": 1 << self.mantissa, "below": (1 << self.mantissa) - 1,
            "bias": bias, "unit": bias + self.mantissa, "guard_less_2": _GUARD - 2,
            "magnitude": (1 << (self.bits - 1)) - 1, "least_negative": 1 - (1 << (self.bits - 1)),
            "infinity": ((1 << (self.bits - self.mantissa - 1)) - 1) << self.mantissa,
            "wide": f"i{self.digits}", "two_over_pi": two_over_pi(self.digits - _GUARD),
            "dropped": self.digits - self.window, "part": f"i{self.window}", "up": self.window - 64,
            "half": 1 << (self.window - 3), "quadrants": self.window - 2,
        }  # fmt: skip


_GUARD = 64  # places for the digits in front of the point
_SINGLE = _Format("float", 32, 23, 320, 128, "f")
_DOUBLE = _Format("double", 64, 52, 1344, 192, "")


def small_symbol(name: str, dtype: DType) -> str:
    """How a math function for small arguments alone is called."""
    return f"tvm.{name}.small.f{dtype.bits}"


@cache
def two_over_pi(bits: int) -> int:
    """2/pi * 2**bits, rounded down. Machin: pi/4 = 4 atan(1/5) - atan(1/239)."""
    scale = 1 << (bits + 64)

    def arctangent_of_inverse(n: int) -> int:
        total, power, k = 0, scale // n, 0
        while power:
            total += (-1) ** k * (power // (2 * k + 1))
            power //= n * n
            k += 1
        return total

    quarter = 4 * arctangent_of_inverse(5) - arctangent_of_inverse(239)
    return (scale << bits) // (2 * quarter)


# quadrant and rest of |x| mod 2 pi: x / (2 pi) = m 2**(e - 2) 2/pi, of which whole numbers do not count
_REDUCTION = """\
  %raw = bitcast {float} %x to {int}
  %size = and {int} %raw, {magnitude}
  %biased = lshr {int} %size, {mantissa}
  %low = and {int} %size, {below}
  %m = or {int} %low, {hidden}
  %e = sub {int} %biased, {unit}
  %e2 = add {int} %e, {guard_less_2}
  %shift = zext {int} %e2 to {wide}
  %digits = shl {wide} {two_over_pi}, %shift
  %window = lshr {wide} %digits, {dropped}
  %fraction = trunc {wide} %window to {part}
  %mw = zext {int} %m to {part}
  %turns = mul {part} %fraction, %mw
  %nearest = add {part} %turns, {half}
  %q = lshr {part} %nearest, {quadrants}
  %q0 = trunc {part} %q to i32
  %rest = shl {part} %turns, 2
  %is_below = icmp slt {part} %rest, 0
  %distance = call {part} @llvm.abs.{part}({part} %rest, i1 false)
  %zeros = call {part} @llvm.ctlz.{part}({part} %distance, i1 false)
  %normal = shl {part} %distance, %zeros
  %top = lshr {part} %normal, {up}
  %word = trunc {part} %top to i64
  %number = uitofp i64 %word to double
  %zeros64 = trunc {part} %zeros to i64
  %exponent = sub i64 959, %zeros64
  %scale_bits = shl i64 %exponent, 52
  %scale = bitcast i64 %scale_bits to double
  %quadrant = fmul double %number, %scale
  %angle = fmul double %quadrant, 0x3FF921FB54442D18
  %negative = fneg double %angle
  %signed = select i1 %is_below, double %negative, double %angle
"""
_TRIGONOMETRIC = """\
define internal {float} @{name}{suffix}({float} %x) noinline nounwind {{
  %is_finite_size = call {float} @llvm.fabs({float} %x)
  %is_infinite = fcmp ueq {float} %is_finite_size, 0x7FF0000000000000
  br i1 %is_infinite, label %infinite, label %finite
infinite:
  %nan = fsub {float} %x, %x
  ret {float} %nan
finite:
{reduction}{rounded}{body}}}
"""
_BODIES = {
    "sin": """\
  %s = call {float} @tvm.sin.small.f{bits}({float} %r)
  %c = call {float} @tvm.cos.small.f{bits}({float} %r)
  %odd = trunc i32 %q0 to i1
  %value = select i1 %odd, {float} %c, {float} %s
  %second = and i32 %q0, 2
  %turned = icmp ne i32 %second, 0
  %is_negative = icmp slt {int} %raw, 0
  %flip = xor i1 %turned, %is_negative
  %minus = fneg {float} %value
  %result = select i1 %flip, {float} %minus, {float} %value
  ret {float} %result
""",
    "cos": """\
  %s = call {float} @tvm.sin.small.f{bits}({float} %r)
  %c = call {float} @tvm.cos.small.f{bits}({float} %r)
  %odd = trunc i32 %q0 to i1
  %value = select i1 %odd, {float} %s, {float} %c
  %next = add i32 %q0, 1
  %second = and i32 %next, 2
  %flip = icmp ne i32 %second, 0
  %minus = fneg {float} %value
  %result = select i1 %flip, {float} %minus, {float} %value
  ret {float} %result
""",
    "tan": """\
  %t = call {float} @tvm.tan.small.f{bits}({float} %r)
  %odd = trunc i32 %q0 to i1
  %inverse = fdiv {float} 0xBFF0000000000000, %t
  %value = select i1 %odd, {float} %inverse, {float} %t
  %is_negative = icmp slt {int} %raw, 0
  %minus = fneg {float} %value
  %result = select i1 %is_negative, {float} %minus, {float} %value
  ret {float} %result
""",
}
_ROUNDED = {
    "float": "  %r = fptrunc double %signed to float\n",
    "double": "  %r = fadd double %signed, 0x8000000000000000\n",
}
_FMOD = """\
define internal {float} @fmod{suffix}({float} %x, {float} %y) noinline nounwind {{
  %xr = bitcast {float} %x to {int}
  %yr = bitcast {float} %y to {int}
  %xs = and {int} %xr, {magnitude}
  %ys = and {int} %yr, {magnitude}
  %x_bad = icmp uge {int} %xs, {infinity}
  %y_nan = icmp ugt {int} %ys, {infinity}
  %y_zero = icmp eq {int} %ys, 0
  %bad1 = or i1 %x_bad, %y_nan
  %bad = or i1 %bad1, %y_zero
  br i1 %bad, label %invalid, label %valid
invalid:
  %product = fmul {float} %x, %y
  %nan = fdiv {float} %product, %product
  ret {float} %nan
valid:
  %is_less = icmp ult {int} %xs, %ys
  br i1 %is_less, label %unchanged, label %divide
unchanged:
  ret {float} %x
divide:
  %xe = lshr {int} %xs, {mantissa}
  %ye = lshr {int} %ys, {mantissa}
  %xl = and {int} %xs, {below}
  %yl = and {int} %ys, {below}
  %xn = icmp ne {int} %xe, 0
  %yn = icmp ne {int} %ye, 0
  %xh = or {int} %xl, {hidden}
  %yh = or {int} %yl, {hidden}
  %xm = select i1 %xn, {int} %xh, {int} %xl
  %ym = select i1 %yn, {int} %yh, {int} %yl
  %xp = call {int} @llvm.umax.{int}({int} %xe, {int} 1)
  %yp = call {int} @llvm.umax.{int}({int} %ye, {int} 1)
  %first = urem {int} %xm, %ym
  %steps = sub {int} %xp, %yp
  br label %test
test:
  %left = phi {int} [ %steps, %divide ], [ %fewer, %step ]
  %m = phi {int} [ %first, %divide ], [ %less, %step ]
  %is_done = icmp eq {int} %left, 0
  br i1 %is_done, label %done, label %step
step:
  %twice = shl {int} %m, 1
  %fits = icmp uge {int} %twice, %ym
  %minus = sub {int} %twice, %ym
  %less = select i1 %fits, {int} %minus, {int} %twice
  %fewer = sub {int} %left, 1
  br label %test
done:
  %whole = uitofp {int} %m to {float}
  %p = sub {int} %yp, {unit}
  %lower = ashr {int} %p, 1
  %upper = sub {int} %p, %lower
  %lower_biased = add {int} %lower, {bias}
  %upper_biased = add {int} %upper, {bias}
  %lower_bits = shl {int} %lower_biased, {mantissa}
  %upper_bits = shl {int} %upper_biased, {mantissa}
  %scale1 = bitcast {int} %lower_bits to {float}
  %scale2 = bitcast {int} %upper_bits to {float}
  %scaled = fmul {float} %whole, %scale1
  %rest = fmul {float} %scaled, %scale2
  %result = call {float} @llvm.copysign({float} %rest, {float} %x)
  ret {float} %result
}}
"""
_NEXTAFTER = """\
define internal {float} @nextafter{suffix}({float} %x, {float} %y) nounwind {{
  %is_nan = fcmp uno {float} %x, %y
  %sum = fadd {float} %x, %y
  %is_same = fcmp oeq {float} %x, %y
  %bits = bitcast {float} %x to {int}
  %is_up = fcmp olt {float} %x, %y
  %is_positive = icmp sge {int} %bits, 0
  %is_away = icmp eq i1 %is_up, %is_positive
  %direction = select i1 %is_away, {int} 1, {int} -1
  %moved = add {int} %bits, %direction
  %is_zero = fcmp oeq {float} %x, 0.0
  %first = select i1 %is_up, {int} 1, {int} {least_negative}
  %chosen = select i1 %is_zero, {int} %first, {int} %moved
  %number = bitcast {int} %chosen to {float}
  %other = select i1 %is_same, {float} %y, {float} %number
  %result = select i1 %is_nan, {float} %sum, {float} %other
  ret {float} %result
}}
"""


@cache
def find_library_function(name: str) -> LibraryFunction | None:
    """The text of a function of the C library, such as ``sinf``."""
    for layout in (_SINGLE, _DOUBLE):
        plain = name.removesuffix(layout.suffix) if layout.suffix else name
        if plain + layout.suffix != name:
            continue
        if plain in _BODIES:
            return _trigonometric(plain, layout)
        if plain in _OTHERS:
            return LibraryFunction(_OTHERS[plain].format(**layout.values), layout.dtype)
    return None


def _trigonometric(name: str, layout: _Format) -> LibraryFunction:
    values = {**layout.values, "name": name}
    body = _BODIES[name].format(**values)
    reduction = _REDUCTION.format(**values)
    text = _TRIGONOMETRIC.format(
        **values, reduction=reduction, rounded=_ROUNDED[layout.float], body=body
    )
    needs = ("tan",) if name == "tan" else ("sin", "cos")
    return LibraryFunction(text, layout.dtype, needs)


_OTHERS = {"fmod": _FMOD, "nextafter": _NEXTAFTER}
