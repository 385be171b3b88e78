// What a recorded case demands of cenote: the recorded numbers, each with both sides' rounding errors around it.
#pragma once

#include "golden/recording.hpp"
#include "problems/check.hpp"

#include <string>

namespace cenote::testing {

/// What the case hands to the call. T is double for floating-point dtypes, std::int64_t for integers.
template <class T>
Given<T> given_by(const Case& recorded);

/// What it must answer. The max family: the recorded bits. Sums: the recorded value, within the error that cenote's roundings and
/// the recording's own may add up to.
template <class T>
Expectation<T> expected_by(const Case& recorded, const Pool& pool, const Given<T>& given);

/// Runs the case through the library: the first thing that is wrong, empty when nothing is.
std::string judge(const Case& recorded, const Setting& setting = {});

}  // namespace cenote::testing
