#!/usr/bin/env bash
# clang-tidy over the sources of a configured build folder.
#
#   scripts/tidy.sh build/release [REGEX]
#
# The CPU kernels are compiled once for every instruction set: a build with
# -DCENOTE_DISABLED_TARGETS='HWY_SSSE3|HWY_SSE4|HWY_AVX2|HWY_AVX3_DL' has two of them and is looked through in a minute.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:?the build folder}
files=${2:-'/(src/(geometry|plan|tensor|nn|capi|cpu)|tools)/.*\.cpp$'}

# Options that only GCC knows.
commands=$(mktemp -d)
trap 'rm -rf "$commands"' EXIT
sed -E 's/ -(ftree-loop-vectorize|fvect-cost-model=[a-z]+|Wno-restrict)//g' "$build/compile_commands.json" > "$commands/compile_commands.json"
run-clang-tidy -quiet -p "$commands" -j "$(nproc)" "$files"
