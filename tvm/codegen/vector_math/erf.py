"""The error function: a polynomial below 0.93, above it 1 - Q(x)**4, of float64 1 - exp(-Q(x))."""

from __future__ import annotations

from . import double
from .bits import Lanes, at_most, copysign, fabs, fma, number, polynomial, select

BORDER = 0.93
# erf rounds to 1 from here on
ONE = 3.95
# erf(x) / x - 1 in x**2
SMALL = (0.12837916612625122, -0.3761262893676758, 0.11283625662326813, -0.02685573138296604,
         0.005192405078560114, -0.0008049769676290452, 7.996649947017431e-05)  # fmt: skip
# (1 - erf(x))**(1/4) in x: its fourth power has few errors left where it is added to 1
LARGE = (0.9998061060905457, -0.2806982696056366, -0.12380938231945038, 0.023686382919549942,
         0.008820938877761364, 0.006638977210968733, -0.006225049961358309, 0.0017657659482210875,
         -0.00022746656031813473, 1.1510947842907626e-05)  # fmt: skip

DOUBLE_ONE = 5.925
DOUBLE_SMALL = (0.1283791670955126, -0.37612638903183754, 0.11283791670955073,
                -0.02686617064511775, 0.005223977625263319, -0.0008548327009338428,
                0.00012055332266323158, -1.4925626015914435e-05, 1.646154617333177e-06,
                -1.635670439296975e-07, 1.470722977904933e-08, -1.1575189562988292e-09,
                6.334603468852535e-11)  # fmt: skip
# -log(1 - erf(x)) in x - CENTRE: the sum cancels least where the result needs most digits
CENTRE = 1.25
DOUBLE_LARGE = (2.5626536619221256, 3.0677239416692395, 0.8708101640587786, 0.0326870086826278,
                -0.007791961611589037, 0.0016069509617081853, -0.00024678399405643676,
                1.0041688349979707e-05, 1.0830876233181958e-05, -5.166531974176257e-06,
                1.4457704077827109e-06, -2.5085578674647444e-07, 1.6232484611487207e-09,
                1.865266614529324e-08, -8.608662360304942e-09, 2.530839053061035e-09,
                -5.462650726667347e-10, 8.699100748472727e-11, -9.721306470197845e-12,
                6.802546535999799e-13, -2.2360090669965577e-14)  # fmt: skip


def erf(x: Lanes) -> Lanes:
    root = polynomial(at_most(fabs(x), ONE), LARGE)
    square = root * root
    return _joined(x, fma(-square, square, 1.0), SMALL)


def erf_of_double(x: Lanes) -> Lanes:
    size = at_most(fabs(x), DOUBLE_ONE)
    rest = double.exp_within(-polynomial(size - number(x, CENTRE), DOUBLE_LARGE), -40.0, 0.0)
    return _joined(x, number(x, 1.0) - rest, DOUBLE_SMALL)


def _joined(x: Lanes, large: Lanes, coefficients: tuple[float, ...]) -> Lanes:
    """``large`` = erf(|x|) where it holds, below it the polynomial of x**2."""
    square = x * x
    small = fma(x, polynomial(square, coefficients), x)
    return select(fabs(x) < number(x, BORDER), small, copysign(large, x))
