#!/usr/bin/env bash
# Re-measures the thresholds of src/cpu/thresholds.hpp on this machine: builds the library with other values of one number at a
# time, in build/thresholds, and prints the share of the copy bandwidth that the rows it decides reach.
#
#   scripts/measure-thresholds.sh [NAME...]        some of the names below; all of them takes an hour on two cores
set -euo pipefail
cd "$(dirname "$0")/.."

# name | values | rows of bench/suite.json that it decides
thresholds='
kTileBytes|8192 16384 32768|(resnet50-stem|photo|audio-4).*f32.*forward$
kWideTileBytes|16384 98304 262144|(yolo-spp-13|morphology).*f32.*forward$
kDoublingTaps|5 7 12|(yolo-spp|avg-box).*f32.*forward$
kTallTaps|6 10 16|(yolo-spp|avg-box).*f32.*forward$
kShortRowBytes|64 192 256 512|(vgg16-5|alexnet|densenet|resnet50).*f32 planar forward$
kBlockBytes|262144 524288 1048576|(densenet|adaptive-max).*f32 planar forward$
kStoreAndLoad|0 2 4|(resnet50|densenet|avg-7|unet3d).*f32 channels_last forward$
kBandBytes|65536 262144 1048576|(vgg16-1|squeezenet|photo).*f32.*backward$
kSegment|256 512 2048|(vgg16-1|audio-4|photo).*f32 planar backward$
kComparedTaps|0 4 12 30|(vgg16|googlenet|yolo-spp-5).*f32 channels_last backward$
kPrefetchBytes|0 512 4096|(vgg16-1|audio-4|photo).*f32.*backward$
kFetchBytes|2048 8192 32768|(vgg16-1|squeezenet|photo).*f32 planar forward$
kFetchedBytes|1048576 4194304 33554432|(resnet50|alexnet|unet3d).*planar forward$
kStreamIndexBytes|10485760 20971520 33554432|(resnet50|googlenet|unet3d).*forward_indices$
kStreamSmallBytes|8388608 16777216 33554432|(resnet50|densenet|avg-7|unet3d|avg3d).*channels_last forward$
kStreamGradientBytes|20971520 31457280 41943040|(densenet|avg3d|vgg16-1).*channels_last backward$
kSharedVectors|16 24 64|(resnet50|alexnet|squeezenet|inception).*channels_last forward$
kStraightTileBytes|12288 24576 98304|(inception-avg|pspnet|avg).*channels_last forward$
kApartBytes|16384 32768 262144|(adaptive-max|global-max).*planar backward$
kLeastOverlapping|16 24 40|(googlenet|yolo-spp-5|alexnet).*planar backward$
kLeastExpanded|8 12 64|(densenet|avg-7|pspnet|avg3d).*planar backward$
kTapElements|512 2048 8192|yolo-spp.*channels_last backward$
kStagedBytes|2048 8192 16384|(vgg16-1|segnet-1|unet3d).*planar backward$
kSerialBytes|16384 131072 1048576|(tiny|vgg16-5).*f32.*forward$
'

source=build/thresholds/source
build=build/thresholds/build
mkdir -p "$source/tests"
cp -r CMakeLists.txt CMakePresets.json cmake include src bench "$source/"
cp -r tests/reference tests/problems "$source/tests/"
cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCENOTE_CUDA=OFF -DCENOTE_TESTS=OFF -DCENOTE_TOOLS=OFF \
  -DCENOTE_EXAMPLES=OFF -DCENOTE_DISABLED_TARGETS='HWY_SSSE3|HWY_SSE4|HWY_AVX3_DL' >/dev/null

while IFS='|' read -r name values filter; do
  [ -n "$name" ] || continue
  if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
  grep -q "constexpr std::int64_t $name = " src/cpu/thresholds.hpp || { echo "measure-thresholds: no $name in thresholds.hpp" >&2; exit 1; }
  echo "== $name (now $(sed -n "s/.*constexpr std::int64_t $name = \(.*\);/\1/p" src/cpu/thresholds.hpp)): $filter"
  for value in $values; do
    sed "s/\(constexpr std::int64_t $name = \).*;/\1$value;/" src/cpu/thresholds.hpp >"$source/src/cpu/thresholds.hpp"
    cmake --build "$build" --target cenote-compare --parallel "$(nproc)" >/dev/null
    "$build/bin/cenote-compare" --peers none --filter "$filter" --json build/thresholds/rows.json >/dev/null
    python3 - "$value" <<'PYTHON'
import json, sys
rows = json.load(open("build/thresholds/rows.json"))["rows"]
print(f"  {sys.argv[1]:>8}: " + "  ".join(f"{r['case']}/{r['layout'][0]} {100 * r['share_of_copy']:.0f} %" for r in rows))
PYTHON
  done
  cp src/cpu/thresholds.hpp "$source/src/cpu/thresholds.hpp"
done <<<"$thresholds"
