#!/bin/bash
# Makes a bundle that runs on another machine: programs, and the libraries they need.
#
#   scripts/bundle.sh [--preset NAME] [--out DIR] [--build-dir DIR] [PROGRAM...]
#
# PROGRAM      a target of the build to take along beside gemmd and gemmctl,
#              such as a test; it goes to bin/ too
# --preset     what to build: dev (the default where nvcc is found) or host
# --out        where the bundle goes, ./bundle by default; replaced if it is there
# --build-dir  the build tree, build/NAME by default
#
# Everything is stripped and finds its libraries beside itself, wherever the
# folder is moved. The other machine needs glibc at least as new as here, and
# for CUDA the driver and libcublas of the CUDA version of the build.
# scripts/package.sh packs such a folder as an archive.

set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

# Libraries that the other machine brings.
LEFT_OUT='^(linux-vdso|ld-linux.*|lib(c|m|mvec|dl|rt|pthread|resolv|util)|libcuda|libcudart|libcublas|libcublasLt|libnvidia-.*)\.so'

PRESET="$(pick_preset)"
OUT="$ROOT/bundle"
BUILD=
PROGRAMS=(gemmd gemmctl)

parse() {
  while (($#)); do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --preset | --out | --build-dir)
        (($# >= 2)) || die "$1 needs a value"
        case "$1" in
          --preset) PRESET="$2" ;;
          --out) OUT="$(realpath -m "$2")" ;;
          --build-dir) BUILD="$(realpath -m "$2")" ;;
        esac
        shift
        ;;
      -*) die "unknown option '$1': --preset, --out, --build-dir and --help are known" ;;
      *) PROGRAMS+=("$1") ;;
    esac
    shift
  done
  BUILD="${BUILD:-$ROOT/build/$PRESET}"
}

# program_path NAME: where the build put the program.
program_path() {
  local found
  found="$(find "$BUILD" -type f -name "$1" -perm -u+x -not -path '*/CMakeFiles/*' | head -n 1)"
  [[ -n $found ]] || die "the build made no program '$1' under $BUILD"
  echo "$found"
}

# needed_libraries FILE: "soname path" of each library it needs, however deep.
needed_libraries() { ldd "$1" | awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}'; }

copy_programs() {
  local name
  for name in "${PROGRAMS[@]}"; do
    install -m 755 "$(program_path "$name")" "$OUT/bin/$name"
  done
}

copy_libraries() {
  local program soname path
  for program in "$OUT"/bin/*; do needed_libraries "$program"; done | sort -u |
    while read -r soname path; do
      [[ $soname =~ $LEFT_OUT ]] && continue
      install -m 644 "$(realpath "$path")" "$OUT/lib/$soname"
    done
}

# A library's own run path is what finds the libraries that it needs in turn.
make_relocatable() {
  strip --strip-all "$OUT"/bin/*
  strip --strip-unneeded "$OUT"/lib/*
  local file
  # shellcheck disable=SC2016  # $ORIGIN is the dynamic linker's, not the shell's
  for file in "$OUT"/bin/*; do patchelf --set-rpath '$ORIGIN/../lib' "$file"; done
  # shellcheck disable=SC2016
  for file in "$OUT"/lib/*; do patchelf --set-rpath '$ORIGIN' "$file"; done
}

# Every library must be the bundle's own or one of those left out.
check_bundle() {
  local file name path bad=0
  for file in "$OUT"/bin/* "$OUT"/lib/*; do
    while read -r name path; do
      [[ $name =~ $LEFT_OUT || $(realpath "$path") == "$OUT"/lib/* ]] && continue
      say "$(basename "$file") takes $name from $path, outside the bundle"
      bad=1
    done < <(ldd "$file" | awk '$2 == "=>" {print $1, $3}')
  done
  ((bad == 0)) || die "the bundle is not relocatable"
  "$OUT/bin/gemmctl" version >/dev/null || die "the bundled gemmctl does not run"
  local kib
  kib="$(du -sk --apparent-size "$OUT" | cut -f1)"
  say "$OUT: $((kib / 1024)) MiB, $(find "$OUT/bin" -type f | wc -l) programs," \
    "$(find "$OUT/lib" -type f | wc -l) libraries, every library found"
}

main() {
  parse "$@"
  scripts/install-deps.sh build bundle
  say "building ${PROGRAMS[*]} (preset $PRESET)"
  local options=()
  # A program beside the two may be a test.
  ((${#PROGRAMS[@]} > 2)) || mapfile -t options < <(program_options "$BUILD")
  cmake --preset "$PRESET" -B "$BUILD" "${options[@]}" >/dev/null
  cmake --build "$BUILD" -j "$(build_jobs)" --target "${PROGRAMS[@]}"
  rm -rf "$OUT"
  mkdir -p "$OUT/bin" "$OUT/lib"
  copy_programs
  copy_libraries
  make_relocatable
  check_bundle
}

main "$@"
