#include "peers.hpp"

#include <sstream>
#include <stdexcept>

namespace cenote::bench {

namespace {

struct Known {
  const char* name;
  std::unique_ptr<Competitor> (*make)();  // null: not in this build
  const char* how_to_get_it;
};

constexpr Known kPeers[] = {
#if CENOTE_BENCH_TORCH
    {"torch", make_torch, ""},
#else
    {"torch", nullptr, "libtorch was not found when this was built (Debian: libtorch-dev)"},
#endif
#if CENOTE_BENCH_ONEDNN
    {"onednn", make_onednn, ""},
#else
    {"onednn", nullptr, "oneDNN was not found when this was built (Debian: libdnnl-dev)"},
#endif
    {"onnxruntime", make_onnxruntime, ""},
};

}  // namespace

std::vector<std::unique_ptr<Competitor>> find_peers(const std::string& names, std::vector<std::string>& missing) {
  std::vector<std::string> wanted;
  std::stringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    if (!name.empty() && name != "none") wanted.push_back(name);
  }
  for (const std::string& name : wanted) {
    bool known = false;
    for (const Known& peer : kPeers) known = known || name == peer.name;
    if (!known) throw std::runtime_error("no peer is called '" + name + "': torch, onednn, onnxruntime or none");
  }
  std::vector<std::unique_ptr<Competitor>> peers;
  for (const Known& peer : kPeers) {
    bool asked = names.empty();
    for (const std::string& name : wanted) asked = asked || name == peer.name;
    if (!asked) continue;
    if (peer.make == nullptr) {
      missing.push_back(std::string(peer.name) + ": " + peer.how_to_get_it);
      continue;
    }
    try {
      peers.push_back(peer.make());
    } catch (const std::exception& error) {
      missing.push_back(std::string(peer.name) + ": " + error.what());
    }
  }
  return peers;
}

}  // namespace cenote::bench
