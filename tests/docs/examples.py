"""Turns the C++ examples of the documentation into tests, and writes their output back into the pages.

    examples.py generate PAGE.md TESTS.cpp    one GoogleTest a cpp block
    examples.py update PAGE.md OUTPUT_DIR     replaces each text block by what its example printed

A ```cpp block is an example. A ```text block that follows it, before the next cpp block or heading, is what the example prints.
An example without one must still compile and run. Outputs come from running the tests with CENOTE_DOCS_OUTPUT=OUTPUT_DIR.
"""
import pathlib
import re
import sys

FENCE = re.compile(r"^```(\w*)\s*$")


class Example:
    def __init__(self, line):
        self.line = line  # of the first line of code, counted from 1
        self.code = []
        self.text = None  # (first, last) lines of the expected output, as a slice of the page's lines
        self.expected = None


def examples_of(lines):
    found, current, kind, start = [], None, None, 0
    for number, line in enumerate(lines):
        fence = FENCE.match(line)
        if kind is None:
            if fence:
                kind, start = fence.group(1) or "plain", number + 1
                if kind == "cpp":
                    current = Example(start + 1)
                    found.append(current)
            elif line.startswith("#"):
                current = None
        elif line.rstrip() == "```":
            if kind == "cpp":
                current.code = lines[start:number]
            elif kind == "text" and current is not None:
                current.text, current.expected = (start, number), lines[start:number]
                current = None
            kind = None
    if kind is not None:
        sys.exit(f"line {start}: a block is never closed")
    return found


def generate(page, target):
    lines = page.read_text().splitlines()
    examples = examples_of(lines)
    name = re.sub(r"\W", "_", page.stem)
    out = ['#include "tests/docs/examples.hpp"', ""]
    includes = sorted({line for e in examples for line in e.code if line.startswith("#include")})
    out += includes + [""]
    for number, example in enumerate(examples, 1):
        code = [" " if line.startswith("#include") else line for line in example.code]
        at = f'#line {example.line} "{page}"'
        whole_program = any(line.startswith("int main(") for line in code)
        out.append(f"namespace example_{name}_{number} {{")
        if whole_program:
            end = max(number for number, line in enumerate(code) if line.rstrip() == "}")
            code[end] = "  return 0; }"  # what main may leave out and run_main may not
            out += [at] + [line.replace("int main(", "static int run_main(") for line in code]
            out += ["static void run() { EXPECT_EQ(run_main(), 0); }"]
        else:
            out += ["static void run() {", "  namespace F = cenote::functional;", at] + code + ["}"]
        out += [f"}}  // namespace example_{name}_{number}"]
        expected = "nullptr" if example.expected is None else 'R"doc(' + "\n".join(example.expected + [""]) + ')doc"'
        out += [
            f"TEST(docs_{name}, example_{number}) {{",
            f'  check_example("{page.name}", {number}, {example.line}, example_{name}_{number}::run, {expected});',
            "}",
            "",
        ]
    target.write_text("\n".join(out))


def update(page, outputs):
    lines = page.read_text().splitlines()
    for number, example in reversed(list(enumerate(examples_of(lines), 1))):
        if example.text is not None:
            first, last = example.text
            lines[first:last] = (outputs / f"{page.name}.{number}").read_text().splitlines()
    page.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    command, page, other = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    {"generate": generate, "update": update}[command](page, other)
