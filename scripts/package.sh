#!/bin/bash
# Builds the packages of gemmd: .deb files, an archive, and the Python client.
#
#   scripts/package.sh [--preset host|release] [--build-dir DIR] [--out DIR]
#
# --preset     host (the default): the server for processors. release: also the kernels
#              for GPUs, as gemmd-cuda; needs nvcc
# --build-dir  the build tree; build/NAME by default
# --out        where the packages go, ./dist by default; replaced if it is there
#
# The packages, for the system and the processor of this machine:
#
#   gemmd_VERSION_amd64.deb                the server, its systemd unit, man page
#   gemmctl_VERSION_amd64.deb              the command line, man pages, completions
#   libgemmd-client-dev_VERSION_amd64.deb  the C++ client library
#   gemmd-VERSION-linux-x86_64.tar.xz      both programs, for any Linux with glibc as new as here
#   gemmd_client-*.whl and .tar.gz         the Python client
#   gemmd-VERSION.spdx.json                what they are made of
#   SHA256SUMS
#
# VERSION is that of CMakeLists.txt. Before its tag, the commit's day and the commit follow, such as
# ~20261128.63c121bd1f2e. Needs Debian 12 and what `scripts/install-deps.sh build package` installs.

set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

PRESET=host
BUILD=
OUT="$ROOT/dist"
WORK="$(mktemp -d -t gemmd-package.XXXXXX)"
trap 'rm -rf "$WORK"' EXIT

parse() {
  while (($#)); do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --preset | --build-dir | --out)
        (($# >= 2)) || die "$1 needs a value"
        case "$1" in
          --preset) PRESET="$2" ;;
          --build-dir) BUILD="$(realpath -m "$2")" ;;
          --out) OUT="$(realpath -m "$2")" ;;
        esac
        shift
        ;;
      *) die "unknown option '$1': see --help" ;;
    esac
    shift
  done
  [[ $PRESET == host || $PRESET == release ]] || die "--preset: '$PRESET'; allowed: host, release"
  [[ $PRESET == host ]] || have nvcc || die "--preset release needs nvcc: scripts/install-cuda.sh"
  BUILD="${BUILD:-$ROOT/build/$PRESET}"
}

# package_version: of CMakeLists.txt, with the commit unless that is the release's.
package_version() {
  local version
  version="$(sed -n 's/^project(gemmd VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)"
  git tag --points-at HEAD 2>/dev/null | grep -qx "v$version" && { echo "$version"; return; }
  echo "$version~$(git show -s --format=%cs HEAD | tr -d -).$(git rev-parse --short=12 HEAD)"
}

build() {
  local options
  mapfile -t options < <(program_options "$BUILD")
  if [[ $PRESET == release ]]; then options+=(-DGEMMD_CUDA=ON); fi
  say "building (preset $PRESET) in $BUILD"
  cmake --preset "$PRESET" -B "$BUILD" -DGEMMD_PACKAGE_VERSION="$VERSION" "${options[@]}" >"$WORK/log" 2>&1 ||
    { cat "$WORK/log"; die "configuring failed: the lines above say why"; }
  cmake --build "$BUILD" -j "$(build_jobs)" --target gemmd gemmctl gemmd_client
}

make_debs() {
  say "packing .deb files"
  rm -rf "$BUILD/package-files"
  scripts/manual.py --gemmd "$BUILD/server/gemmd" --gemmctl "$BUILD/client/ctl/gemmctl" \
    --out "$BUILD/package-files" --date "$(git show -s --format=%cs HEAD)"
  (cd "$BUILD" && cpack -G DEB -B "$WORK/debs" >"$WORK/log" 2>&1) || { cat "$WORK/log"; die "cpack failed"; }
  mv "$WORK"/debs/*.deb "$OUT/"
}

# The bundle, with the licence, as one file.
make_archive() {
  local name
  name="gemmd-$VERSION-linux-$(uname -m)"
  scripts/bundle.sh --preset "$PRESET" --build-dir "$BUILD" --out "$WORK/$name"
  cp LICENSE "$WORK/$name/"
  echo "gemmd $VERSION, commit $(git rev-parse HEAD)" >"$WORK/$name/VERSION"
  tar --create --owner=0 --group=0 --sort=name --mtime="@$EPOCH" --directory "$WORK" \
    --use-compress-program 'xz -T0 -3' --file "$OUT/$name.tar.xz" "$name"
}

make_python() {
  say "packing the Python client"
  python3 -m venv "$WORK/venv"
  "$WORK/venv/bin/python" -m pip install --quiet --disable-pip-version-check build ||
    die "pip could not install build: the lines above say why"
  "$WORK/venv/bin/python" -m build --outdir "$OUT" client/python >"$WORK/log" 2>&1 ||
    { cat "$WORK/log"; die "the Python client was not built"; }
}

main() {
  parse "$@"
  scripts/install-deps.sh build package
  [[ -z $(git status --porcelain) ]] || say "warning: the tree is not that of its commit"
  VERSION="$(package_version)"
  EPOCH="$(git show -s --format=%ct HEAD)"
  export SOURCE_DATE_EPOCH="$EPOCH"
  rm -rf "$OUT"
  mkdir -p "$OUT"
  build
  make_debs
  make_archive
  make_python
  scripts/sbom.py --version "$VERSION" --commit "$(git rev-parse HEAD)" \
    --created "$(date -u -d "@$EPOCH" +%FT%TZ)" --out "$WORK/sbom" --program "$BUILD/server/gemmd" \
    --program "$BUILD/client/ctl/gemmctl" "$OUT"/*
  mv "$WORK/sbom" "$OUT/gemmd-$VERSION.spdx.json"
  (cd "$OUT" && sha256sum -- * >"$WORK/sums" && mv "$WORK/sums" SHA256SUMS)
  say "packages of $VERSION in $OUT, in $(as_time $SECONDS):"
  (cd "$OUT" && du --apparent-size -h -- *)
}

main "$@"
