#!/usr/bin/env bash
# Draws the pictures that README and docs show, with the tool itself. Run after a change of `cenote explain`'s drawing.
#   scripts/draw-pictures.sh [BIN_FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
cenote=${1:-build/release/bin}/cenote

"$cenote" explain --op max --kernel 3 --stride 2 --padding 1 \
  --values "3 1 4 1 5 9; 2 6 5 3 5 8; 9 7 9 3 2 3; 8 4 6 2 6 4; 3 3 8 3 2 7; 9 5 0 2 8 8" --svg assets/explain-max.svg >/dev/null
"$cenote" explain --op avg --kernel 3 --stride 2 --padding 1 --ceil-mode --size 4 --svg assets/explain-avg.svg >/dev/null
"$cenote" explain --op unpool --kernel 2 --values "6 8; 14 16" --svg assets/explain-unpool.svg >/dev/null
"$cenote" pool assets/cenote.png assets/cenote-max.png --op max --kernel 8 --quiet
"$cenote" pool assets/cenote.png assets/cenote-avg.png --op avg --kernel 8 --quiet
