#!/usr/bin/env bash
# What `make run` shows once the tool is built: pools and explains the picture that comes with the project.
#   scripts/run-demo.sh [BIN_FOLDER] [RESULT_FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
cenote=${1:-build/release/bin}/cenote
results=${2:-build/demo}
mkdir -p "$results"

step() {  # says what happens, shows the command as one would type it, runs it
  printf '\n\033[1m%s\033[0m\n' "$1"
  shift
  printf '  $ cenote'
  for word in "${@:2}"; do case $word in *' '*) printf ' "%s"' "$word" ;; *) printf ' %s' "$word" ;; esac; done
  printf '\n'
  "$@"
}
[ -t 1 ] || step() { printf '\n%s\n  $ cenote %s\n' "$1" "${*:3}"; "${@:2}"; }

step 'What is this machine?' "$cenote" info
step 'A picture, pooled: the strongest pixel of every 4x4 block.' \
  "$cenote" pool assets/cenote.png "$results/max.png" --op max --kernel 4 --quiet
step 'The same blocks, averaged.' "$cenote" pool assets/cenote.png "$results/average.png" --op avg --kernel 4 --quiet
step 'Any size you like, with windows that fit it.' \
  "$cenote" pool assets/cenote.png "$results/thumbnail.png" --op adaptive-avg --output-size 96x144 --quiet
step 'Pool, remember where each maximum was, and put it back there: what an encoder-decoder network does.' \
  "$cenote" pool assets/cenote.png "$results/pooled.npy" --op max --kernel 2 --indices "$results/where.npy" --index-kind window --quiet
step 'And back.' \
  "$cenote" unpool "$results/pooled.npy" "$results/unpooled.png" --indices "$results/where.npy" --kernel 2 --layout nhwc --quiet
step 'What happens inside: six rows and columns of the red channel, every window, index and gradient.' \
  "$cenote" explain assets/cenote.png --op max --kernel 3 --stride 2 --padding 1 --crop 6x6+86+180 --svg "$results/explained.svg"
step 'How a network shrinks its input.' \
  "$cenote" shape 3x224x224 'conv c64 k7 s2 p3' 'max k3 s2 p1' 'conv c128 k3 s2 p1' 'adaptive-avg o1'

printf '\nThe results are in %s:\n' "$results"
for file in max.png average.png thumbnail.png unpooled.png explained.svg; do printf '  %s/%s\n' "$results" "$file"; done
printf 'More: %s explain --help, %s pool --help\n' "$cenote" "$cenote"
