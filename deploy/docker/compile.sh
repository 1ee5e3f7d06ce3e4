#!/bin/bash
# Builds gemmd and gemmctl for an image, inside it.
#
#   deploy/docker/compile.sh PRESET OUT COMMIT
#
# PRESET   host (no CUDA) or release (every supported GPU architecture)
# OUT      the folder that the two programs go to, stripped
# COMMIT   what the programs say that they were built from
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
cd "$ROOT"

(($# == 3)) || die "want PRESET OUT COMMIT, got $# arguments"
preset="$1" out="$2" commit="$3"
case "$preset" in
  host) cuda=OFF ;;
  release) cuda=ON ;; # a GPU image without CUDA would be an error found too late
  *) die "PRESET is '$preset': host and release are known" ;;
esac
build="$ROOT/build/image"
cmake --preset "$preset" -B "$build" -DCMAKE_BUILD_TYPE=Release -DGEMMD_CUDA="$cuda" \
  -DGEMMD_BUILD_TESTS=OFF -DGEMMD_COMMIT="$commit" -DCMAKE_RUNTIME_OUTPUT_DIRECTORY="$build/bin"
cmake --build "$build" -j "$(build_jobs)" --target gemmd gemmctl
install -D --strip --mode 755 --target-directory "$out" "$build/bin/gemmd" "$build/bin/gemmctl"
rm -rf "$build"
