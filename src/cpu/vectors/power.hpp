// Which exponents of Lp pooling are computed how.
#pragma once

namespace cenote::simd {

enum PowerKind : int {
  kPowerGeneral,
  kPowerZero,
  kPowerOne,
  kPowerTwo,
  kPowerThree,
  kPowerFour,
  kPowerHalf,
  kPowerMinusHalf,
  kPowerMinusOne,
  kPowerMinusTwo,
};

constexpr int power_kind_of(double exponent) {
  if (exponent == 0) return kPowerZero;
  if (exponent == 1) return kPowerOne;
  if (exponent == 2) return kPowerTwo;
  if (exponent == 3) return kPowerThree;
  if (exponent == 4) return kPowerFour;
  if (exponent == 0.5) return kPowerHalf;
  if (exponent == -0.5) return kPowerMinusHalf;
  if (exponent == -1) return kPowerMinusOne;
  if (exponent == -2) return kPowerMinusTwo;
  return kPowerGeneral;
}

}  // namespace cenote::simd
