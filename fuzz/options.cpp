// The command line on any words, one a line: a command comes out, or a line that says what is wrong.
#include "command_line.hpp"
#include "failure.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cenote::tool;
  std::vector<std::string> words;
  std::string word;
  for (std::size_t i = 0; i < size; ++i) {
    if (data[i] == '\n') {
      words.push_back(std::move(word));
      word.clear();
    } else if (data[i] != 0) {  // argv holds no zero bytes
      word += static_cast<char>(data[i]);
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  try {
    parse_command_line(words);
  } catch (const Failure& failure) {
    if (std::strlen(failure.what()) == 0) std::abort();
  }
  return 0;
}
