#!/bin/bash
# Installs a build into a temporary folder, moves that, and uses the libraries there as
# other projects do: by CMake and by pkg-config.
#
#   tests/install/install_test.sh [--build-dir DIR]
#
# --build-dir  a finished build; build/dev by default, build/host without nvcc
#
# Fails where an install component has other files than it should, a public header does
# not compile alone, a path or a flag of this build is left in a package, a library
# brings an allocator, a package takes another version, or a product is wrong.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
cd "$ROOT"

BUILD="build/$(pick_preset)"
COMPONENTS=(server ctl tools client-dev kernels-dev)
# Flags of our own build, which are not for users.
OUR_FLAGS='-W(all|extra|error)|-fsanitize|-fno-omit-frame-pointer|gemmd::flags'
# C's and C++'s own allocation, as nm shows what a library defines.
ALLOCATORS=' [A-Z] (malloc|calloc|realloc|free|memalign|posix_memalign|aligned_alloc|_Zn[aw][jm].*|_Zd[al]Pv.*)$'

WORK="$(mktemp -d)"
trap 'rm -rf "$WORK"' EXIT
PREFIX="$WORK/moved"

parse() {
  while (($#)); do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --build-dir)
        (($# >= 2)) || die "$1 needs a value"
        BUILD="$2"
        shift
        ;;
      *) die "unknown option '$1': --build-dir and --help are known" ;;
    esac
    shift
  done
  [[ -f $BUILD/CMakeCache.txt ]] || die "no build in $BUILD: scripts/test.sh --stage build"
}

# Each component has a prefix of its own, so that none uses a file of another.
install_components() {
  local component
  for component in "${COMPONENTS[@]}"; do
    cmake --install "$BUILD" --component "$component" --strip \
      --prefix "$WORK/made/$component" >"$WORK/install.log" 2>&1 || {
      cat "$WORK/install.log"
      die "component $component was not installed"
    }
  done
  mv "$WORK/made" "$PREFIX"
}

# files_of COMPONENT [FOLDER]: below its prefix.
files_of() { (cd "$PREFIX/$1/${2-}" && find . -type f -printf '%P\n' | LC_ALL=C sort); }

# same WHAT EXPECTED FOUND
same() { [[ $2 == "$3" ]] || die "$1:"$'\n'"$(diff <(echo "$2") <(echo "$3"))"; }

check_programs() {
  same "component server" bin/gemmd "$(files_of server)"
  same "component ctl" bin/gemmctl "$(files_of ctl)"
  same "component tools" bin/gemm_bench "$(files_of tools)"
  local program
  for program in server/bin/gemmd ctl/bin/gemmctl tools/bin/gemm_bench; do
    "$PREFIX/$program" --help >"$WORK/help.txt" || die "the installed $program does not run"
  done
  say "ok: components server, ctl and tools are a program each"
}

# Every header below an include folder is public, and so is the contract's, which is generated.
# quote.h and edit_distance.h are not: they are for our own messages.
check_header_lists() {
  same "headers of client-dev" \
    "$( (echo gemm/v1/gemm.pb.h; cd client/cpp/include && find . -type f -printf '%P\n') | LC_ALL=C sort)" \
    "$(files_of client-dev include)"
  same "headers of kernels-dev" \
    "$(cd kernels/include && find . -type f -not -name quote.h -not -name edit_distance.h -printf '%P\n' | LC_ALL=C sort)" \
    "$(files_of kernels-dev include)"
  say "ok: the public headers are installed, and no others"
}

check_leaks() {
  local found
  found="$(grep -rInE -e "$ROOT|$WORK|$OUR_FLAGS" "$PREFIX"/*-dev || true)"
  [[ -z $found ]] || die "paths or flags of this build are installed:"$'\n'"$found"
  say "ok: no path and no flag of this build in a package"
}

check_allocators() {
  local library symbols
  while read -r library; do
    nm --extern-only --defined-only "$library" >"$WORK/symbols.txt" 2>"$WORK/nm.log"
    symbols="$(grep -c ' T ' "$WORK/symbols.txt" || true)"
    ((symbols > 0)) || die "$library defines nothing"
    if grep -E "$ALLOCATORS" "$WORK/symbols.txt"; then die "$library brings an allocator"; fi
  done < <(find "$PREFIX" -name '*.a')
  say "ok: no library brings an allocator"
}

# compile_alone PACKAGE HEADER: with the flags of pkg-config.
compile_alone() {
  local flags
  read -ra flags < <(pkg-config --cflags "$1")
  echo "#include \"$2\"" | c++ -std=c++20 -Wall -Wextra -Werror -fsyntax-only "${flags[@]}" -x c++ - ||
    die "$2 does not compile alone"
}
export -f compile_alone die

check_headers_alone() {
  { files_of client-dev include | sed 's/^/gemmd-client /'
    files_of kernels-dev include | sed 's/^/gemm-kernels /'; } >"$WORK/headers.txt"
  # shellcheck disable=SC2016 # for the inner shell to expand
  xargs -P "$(nproc)" -L 1 bash -c 'compile_alone "$@"' install_test.sh <"$WORK/headers.txt" ||
    die "a public header does not compile alone"
  say "ok: $(wc -l <"$WORK/headers.txt") public headers compile alone"
}

# logged COMMAND...: its output is shown only if it fails.
logged() {
  "$@" >"$WORK/command.log" 2>&1 || {
    cat "$WORK/command.log"
    die "failed: $*"
  }
}

# build_consumer NAME PACKAGE: by CMake, against the component NAME-dev, and by pkg-config.
build_consumer() {
  local flags
  logged cmake -S "tests/install/$1" -B "$WORK/$1" -G Ninja "-DCMAKE_PREFIX_PATH=$PREFIX/$1-dev"
  logged cmake --build "$WORK/$1"
  read -ra flags < <(pkg-config --cflags --libs "$2")
  logged c++ -std=c++20 "tests/install/$1/main.cc" -o "$WORK/$1_by_pkg_config" "${flags[@]}"
  say "ok: the consumer of $2 builds by CMake and by pkg-config"
}

run_consumers() {
  local program
  for program in "$WORK/kernels/kernels_consumer" "$WORK/kernels_by_pkg_config"; do
    "$program" || die "a product of the kernel library is wrong"
  done
  for program in "$WORK/client/client_consumer" "$WORK/client_by_pkg_config"; do
    python3 tests/conformance/with_server.py --server "$PREFIX/server/bin/gemmd" --devices host -- \
      "$program" "{address}" "$WORK/product.npy" || die "a product of the client library is wrong"
  done
  say "ok: the consumers' products are right"
}

check_refusals() {
  logged cmake -S tests/install/refusals -B "$WORK/refusals" -G Ninja \
    "-DCMAKE_PREFIX_PATH=$PREFIX/client-dev;$PREFIX/kernels-dev" \
    "-DVERSION=$(pkg-config --modversion gemmd-client)"
  say "ok: the packages refuse other versions and unknown components"
}

main() {
  parse "$@"
  install_components
  PKG_CONFIG_PATH="$(find "$PREFIX" -name '*.pc' -printf '%h:')"
  export PKG_CONFIG_PATH
  check_programs
  check_header_lists
  check_leaks
  check_allocators
  check_headers_alone
  build_consumer kernels gemm-kernels
  build_consumer client gemmd-client
  check_refusals
  run_consumers
}

main "$@"
