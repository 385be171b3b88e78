// What the tests generated from the documentation's examples share (examples.py).
#pragma once

#include <cenote/cenote.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <iostream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

/// Runs the example and compares what it prints with the page. `expected` is null where the page shows no output.
void check_example(const std::string& page, int number, int line, void (*run)(), const char* expected);
