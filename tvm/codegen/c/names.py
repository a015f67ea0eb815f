"""Names in C: what variables and functions of a program must not be called."""

from __future__ import annotations

import re

_KEYWORDS = """
auto bool break case char const continue default do double else enum extern false float for goto if inline
int long main NULL register restrict return short signed sizeof static struct switch true typedef union
unsigned void volatile while NAN INFINITY alignas alignof and and_eq asm bitand bitor catch char8_t char16_t
char32_t class compl concept consteval constexpr constinit const_cast co_await co_return co_yield decltype I
delete dynamic_cast explicit export friend mutable namespace new noexcept not not_eq nullptr operator or or_eq
private protected public reinterpret_cast requires static_assert static_cast template this thread_local throw
try typeid typename using virtual wchar_t xor xor_eq linux unix errno stdin stdout stderr
"""
_MATH = """
acos asin atan atan2 cos sin tan cosh sinh tanh acosh asinh atanh exp exp2 expm1 frexp ilogb ldexp log log10
log1p log2 logb modf scalbn scalbln cbrt fabs hypot pow sqrt erf erfc lgamma tgamma ceil floor nearbyint rint
lrint llrint round lround llround trunc fmod remainder remquo copysign nan nextafter nexttoward fdim fmax fmin
fma
"""
_MORE_MATH = """
isnan isinf isfinite isnormal signbit fpclassify isgreater isless isunordered j0 j1 jn y0 y1 yn gamma drem
significand scalb exp10 pow10 sincos math_errhandling
"""
_LIBRARY = """
memcpy memmove memset memcmp memchr strlen strcmp strncmp strcpy strncpy strcat strchr strstr malloc calloc
realloc free abs labs llabs abort exit atexit getenv system qsort bsearch rand srand atoi atof strtol strtod
printf fprintf sprintf snprintf vprintf vfprintf vsnprintf puts putchar fopen fclose fread fwrite fflush
getchar remove rename index div ldiv
"""

MATH_FUNCTIONS = {f"{name}{suffix}" for name in _MATH.split() for suffix in ("", "f", "l")}
# declared by the headers that the text includes
DECLARED = MATH_FUNCTIONS | set(_LIBRARY.split())
RESERVED = DECLARED | set(_KEYWORDS.split()) | set(_MORE_MATH.split())

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)
_SYMBOL = re.compile(r"[A-Za-z_.$][A-Za-z0-9_.$]*\Z", re.ASCII)
_OWN = re.compile(r"(tvm|TVM|DL|kTVM|kDL|u?int(8|16|32|64|ptr)_t|_)", re.ASCII)


def is_plain(name: str) -> bool:
    """Whether a function can have that name in C as it is."""
    is_ours = name.startswith(("TVM", "DL"))
    return bool(_IDENTIFIER.match(name)) and name not in RESERVED and not is_ours


def is_symbol(name: str) -> bool:
    """Whether assemblers take the name."""
    return bool(_SYMBOL.match(name))


def identifier(name: str) -> str:
    """A C identifier that resembles the name and is none of the reserved ones."""
    text = re.sub(r"[^A-Za-z0-9_]", "_", name, flags=re.ASCII) or "v"
    could_be_macro = text.isupper() and len(text) > 2
    if text[0].isdigit() or text in RESERVED or _OWN.match(text) or could_be_macro:
        return f"v_{text}"
    return text
