#!/usr/bin/env bash
# Rewrites every C++ and CUDA source as .clang-format says. With --check it changes nothing and fails where a file differs.
set -euo pipefail
cd "$(dirname "$0")/.."

arguments=(-i)
[ "${1:-}" = --check ] && arguments=(--dry-run --Werror)
find include src tools tests bench examples fuzz -type f \
  \( -name '*.hpp' -o -name '*.cpp' -o -name '*.h' -o -name '*.c' -o -name '*.cu' -o -name '*.cuh' \) -print0 2>/dev/null |
  xargs -0 --no-run-if-empty --max-args=16 --max-procs="$(nproc)" clang-format --style=file "${arguments[@]}"
