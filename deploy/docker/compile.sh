#!/bin/bash
# Builds gemmd and gemmctl for an image, inside it.
#
#   deploy/docker/compile.sh PRESET OUT COMMIT [ARCHITECTURES]
#
# PRESET         host (no CUDA) or release (CUDA and the host)
# OUT            a folder: the two programs go to bin/, stripped, and the libraries of
#                CUDA that they load to lib/
# COMMIT         the commit that the programs name
# ARCHITECTURES  of GPUs, as CMAKE_CUDA_ARCHITECTURES; empty: those of the preset
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
cd "$ROOT"

(($# == 3 || $# == 4)) || die "want PRESET OUT COMMIT [ARCHITECTURES], got $# arguments"
preset="$1" out="$2" commit="$3" architectures="${4-}"
case "$preset" in
  host) cuda=OFF ;;
  release) cuda=ON ;; # a GPU image without CUDA would be an error found too late
  *) die "PRESET is '$preset': host and release are known" ;;
esac
build="$ROOT/build/image"

# copy_cuda_libraries: no package of the runtime image has them. The loader knows
# where they are here; the programs say no folder, so that it finds them there, too.
copy_cuda_libraries() {
  local name path
  while read -r name path; do
    [[ $path == /* ]] || die "the loader does not find $name, which gemmd needs"
    install -D --mode 644 "$path" "$out/lib/$name"
  done < <(ldd "$build/bin/gemmd" | awk '$1 ~ /^lib(cudart|cublas|cublasLt)\.so/ {print $1, $3}')
}

# Several files at a time: nothing is built here twice.
cmake --preset "$preset" -B "$build" -DCMAKE_BUILD_TYPE=Release -DGEMMD_CUDA="$cuda" \
  -DCMAKE_UNITY_BUILD=ON -DGEMMD_BUILD_TESTS=OFF -DGEMMD_WERROR=OFF \
  -DGEMMD_COMMIT="$commit" -DCMAKE_SKIP_RPATH=ON -DCMAKE_RUNTIME_OUTPUT_DIRECTORY="$build/bin" \
  ${architectures:+-DCMAKE_CUDA_ARCHITECTURES="$architectures"}
cmake --build "$build" -j "$(build_jobs)" --target gemmd gemmctl
install -D --strip --mode 755 --target-directory "$out/bin" "$build/bin/gemmd" "$build/bin/gemmctl"
if [[ $cuda == ON ]]; then copy_cuda_libraries; fi
rm -rf "$build"
