#include "check.hpp"

#include "problems/check.hpp"

#include <ostream>

int run_check(std::string_view problem, std::ostream& out) {
  using namespace cenote::testing;
  try {
    const Problem parsed = parse_problem(problem);
    bool right = true;
    for (const Setting& setting : every_target()) {
      const std::string difference = check_problem(parsed, {setting});
      right = right && difference.empty();
      if (difference.rfind("refused: ", 0) == 0) {  // the library's answer to the call itself, the same on every target
        out << difference << '\n';
        return 1;
      }
      out << (difference.empty() ? setting.target + ": right" : difference) << '\n';
    }
    if (!right) return 1;
    // One by one they are right; together they must also agree to the bit.
    const std::string difference = check_problem(parsed, every_target());
    if (!difference.empty()) out << difference << '\n';
    return difference.empty() ? 0 : 1;
  } catch (const ProblemError& error) {
    out << "no such problem: " << error.what() << '\n';
    return 2;
  }
}
