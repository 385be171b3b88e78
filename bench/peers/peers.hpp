// Other libraries that pool. Each is one file here, built where its library is found.
#pragma once

#include "common/competitor.hpp"

#include <memory>
#include <string>
#include <vector>

namespace cenote::bench {

std::unique_ptr<Competitor> make_torch();
std::unique_ptr<Competitor> make_onednn();
/// Loads the library when called; throws std::runtime_error that says where it was looked for.
std::unique_ptr<Competitor> make_onnxruntime();

/// The peers asked for (comma-separated; empty: all) that this build and this machine have. `missing` gets a line for each other one.
/// Throws std::runtime_error for a name that is no peer's.
std::vector<std::unique_ptr<Competitor>> find_peers(const std::string& names, std::vector<std::string>& missing);

}  // namespace cenote::bench
