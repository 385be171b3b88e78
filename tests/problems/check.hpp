// The checker: one problem, every way of calling it, compared with what is expected.
#pragma once

#include "problems/execute.hpp"
#include "problems/expected.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace cenote::testing {

/// The bits of every result of one check, to be compared with those of another instruction set or thread count.
using Fingerprint = std::vector<std::uint64_t>;

/// Forward without indices and with each kind, backward from each kind; results against the expectation. Returns the first
/// thing that is wrong, empty when nothing is.
template <class T>
std::string check_call(const Problem& problem, const Given<T>& given, const Expectation<T>& expectation,
                       const Setting& setting, Fingerprint* fingerprint = nullptr);

/// The problem with drawn values against the reference, under all of these settings; the bits must be the same under all.
/// "AVX2: forward with window indices: output[...]: expected ..., got ...". Throws ProblemError.
std::string check_problem(const Problem& problem, const std::vector<Setting>& settings);

/// Every instruction set of this machine, on the calling thread.
std::vector<Setting> every_target();

}  // namespace cenote::testing
