#!/bin/bash
# Prints a digest of what decides how the GPU image is built, beside the sources:
# CMake's settings, the Dockerfile, what it runs, the packages and wheels.
#
#   tests/deploy/image_inputs.sh [--list]
#
# --list  the files, with the digest of each
#
# The lists of sources in the folders' CMakeLists.txt are not among them: the host
# image, which is built every time, has the same. Neither are the project's version and
# lines that are comments.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
cd "$ROOT"

inputs() {
  local path
  find .dockerignore CMakeLists.txt CMakePresets.json cmake deploy/docker scripts/cuda-wheels.txt \
    scripts/install-cuda.sh scripts/install-deps.sh scripts/lib.sh -type f | LC_ALL=C sort |
    while read -r path; do echo "$(digest_of "$path")  $path"; done
}

# digest_of FILE: as if the project had no version and the file no comments.
digest_of() {
  sed -e 's/^\(project([a-z]*\) VERSION [0-9.]*/\1/' -e '/^ *#[^!]/d' -e '/^ *#$/d' "$1" | sha256sum | cut -c 1-64
}

case "${1-}" in
  "") inputs | sha256sum | cut -c 1-64 ;;
  --list) inputs ;;
  -h | --help) usage ;;
  *) die "unknown option '$1': --list and --help are known" ;;
esac
