#!/usr/bin/env bash
# Installs the Debian packages that a part of the project needs and that are missing.
#
#   scripts/install-packages.sh build test tool
#
# What is there is looked up in dpkg's own records, so that nothing is fetched and no rights are needed when nothing is missing.
set -euo pipefail

packages_of() {
  case $1 in
    build) echo g++ cmake make ninja-build libhwy-dev libfmt-dev ;;
    test) echo libgtest-dev nlohmann-json3-dev python3 python3-numpy ;;
    tool) echo libcli11-dev libspng-dev pkgconf ;;
    nn) echo libeigen3-dev ;;
    bench) echo libtorch-dev libdnnl-dev nlohmann-json3-dev ;;
    lint) echo clang-format clang-tidy ;;
    *)
      echo "install-packages: unknown group '$1' (build, test, tool, nn, bench, lint)" >&2
      exit 2
      ;;
  esac
}

wanted=()
for group in "$@"; do
  list=$(packages_of "$group")
  read -ra names <<<"$list"
  wanted+=("${names[@]}")
done
[ ${#wanted[@]} -gt 0 ] || exit 0

if ! command -v dpkg-query >/dev/null; then
  echo "install-packages: not a Debian system, so nothing is installed; needed: ${wanted[*]}"
  exit 0
fi

missing=()
for name in "${wanted[@]}"; do
  state=$(dpkg-query --show --showformat='${db:Status-Status}' "$name" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$name")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "install-packages: these packages are missing, and there is neither root nor sudo to install them. Run as root:" >&2
    echo "  apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "install-packages: installing ${missing[*]}"
if [ -z "$(find /var/lib/apt/lists -name '*_Packages*' -print -quit 2>/dev/null)" ]; then
  "${as_root[@]}" apt-get update --quiet --quiet
fi
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --quiet --no-install-recommends "${missing[@]}")
if ! "${install[@]}"; then
  echo "install-packages: trying once more with fresh package lists"
  "${as_root[@]}" apt-get update --quiet --quiet
  "${install[@]}"
fi
