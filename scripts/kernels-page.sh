#!/bin/bash
# Makes docs/kernels.md out of its text, the catalogue and measured figures.
#
#   scripts/kernels-page.sh [--registers] [--build-dir DIR]
#
# --registers  first reads the registers of every kernel from the build's machine
#              code into docs/results/sm90-registers.txt. Takes a minute, and needs
#              cuobjdump and nvdisasm
# --build-dir  the build tree, build/dev by default; with CUDA, and with the
#              targets gemm_bench and, for --registers, kernel_symbols built
#
# The text is docs/kernels.in.md, the figures docs/results/h200-4096.csv; how
# they come together stands in scripts/kernels_page.py. Needs no GPU.

set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

REGISTERS=docs/results/sm90-registers.txt
BUILD="$ROOT/build/dev"
READ_REGISTERS=

while (($#)); do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --registers) READ_REGISTERS=1 ;;
    --build-dir)
      (($# >= 2)) || die "$1 needs a value"
      BUILD="$(realpath -m "$2")"
      shift
      ;;
    *) die "unknown option '$1': --registers, --build-dir and --help are known" ;;
  esac
  shift
done

# built PATH: that program of the build.
built() {
  [[ -x $BUILD/$1 ]] || die "there is no $BUILD/$1: cmake --build $BUILD --target $(basename "$1")"
  echo "$BUILD/$1"
}

# Moved into place only when it is whole.
PART="$(mktemp)"
trap 'rm -f "$PART"' EXIT

if [[ -n $READ_REGISTERS ]]; then
  symbols="$(built tests/kernels/kernel_symbols)"
  mapfile -t objects < <(find "$BUILD/kernels/CMakeFiles/gemmd_kernels.dir" -name '*.cu.o' | sort)
  say "reading the machine code of ${#objects[@]} files"
  python3 tests/kernels/machine_code.py --rows "$symbols" "${objects[@]}" >"$PART"
  cp "$PART" "$REGISTERS"
fi

bench="$(built kernels/bench/gemm_bench)"
python3 scripts/kernels_page.py --bench "$bench" --registers "$REGISTERS" \
  --standing docs/results/h200-4096.csv docs/kernels.in.md >"$PART"
cp "$PART" docs/kernels.md
say "docs/kernels.md: $(wc -l <docs/kernels.md) lines"
