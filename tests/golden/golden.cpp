// cenote-golden DIR: replays a recording of PyTorch's results through the library.
#include "golden/judge.hpp"

#include <cstdio>
#include <string>
#include <string_view>

namespace {

using namespace cenote::testing;

/// The case on every instruction set of the machine: the first thing that is wrong.
std::string judge_on_every_target(const Case& recorded) {
  for (const Setting& setting : every_target()) {
    if (const std::string trouble = judge(recorded, setting); !trouble.empty()) return setting.target + ": " + trouble;
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view word = argc == 2 ? argv[1] : "";
  const bool help = word == "--help" || word == "-h";
  if (argc != 2 || word.starts_with('-')) {
    std::fputs(
        "usage: cenote-golden DIR\n\n"
        "Replays a recording of PyTorch's results (DIR holds cases.jsonl and data.bin) on every instruction set of "
        "the\nmachine. Exit code: 0 all as recorded, 1 something differs, 2 no such recording.\n",
        help ? stdout : stderr);
    return help ? 0 : 2;
  }
  try {
    int passed = 0, failed = 0;
    for (const Case& recorded : read_recording(argv[1])) {
      const std::string trouble = judge_on_every_target(recorded);
      if (trouble.empty()) {
        ++passed;
        continue;
      }
      ++failed;
      std::printf("case %lld: %s\n    %s\n", static_cast<long long>(recorded.id), to_string(recorded.problem).c_str(),
                  trouble.c_str());
    }
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
  } catch (const RecordingError& error) {
    std::fprintf(stderr, "cenote-golden: %s\n", error.what());
    return 2;
  }
}
