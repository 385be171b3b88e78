#!/usr/bin/env bash
# clang-tidy over the sources of a configured build folder.
#
#   scripts/tidy.sh build/release [REGEX]
#
# The CPU kernels are left out unless asked for (REGEX): each is compiled once for every instruction set, which takes minutes a file.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:?the build folder}
files=${2:-'/(src/(geometry|plan|tensor|nn|capi)|tools)/.*\.cpp$'}
run-clang-tidy -quiet -p "$build" -j "$(nproc)" "$files"
