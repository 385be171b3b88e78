#include "tests/docs/examples.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

void check_example(const std::string& page, int number, int line, void (*run)(), const char* expected) {
  std::ostringstream captured;
  std::streambuf* const terminal = std::cout.rdbuf(captured.rdbuf());
  try {
    run();
  } catch (const std::exception& error) {
    ADD_FAILURE() << page << ":" << line << ": the example throws: " << error.what();
  }
  std::cout.rdbuf(terminal);
  if (const char* folder = std::getenv("CENOTE_DOCS_OUTPUT")) {
    std::ofstream(std::string(folder) + "/" + page + "." + std::to_string(number)) << captured.str();
  }
  if (expected != nullptr) {
    EXPECT_EQ(captured.str(), expected) << page << ":" << line
                                        << ": the page shows another output than the example prints";
  }
}
