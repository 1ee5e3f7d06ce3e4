#!/bin/bash
# Installs CUDA's compiler, headers and libraries, from NVIDIA's wheels on PyPI.
#
#   scripts/install-cuda.sh [--prefix DIR]
#
# --prefix  where CUDA goes, /usr/local/cuda by default
#
# scripts/cuda-wheels.txt pins the versions: those that the tests run with. Needs
# root, 2 GB of disk, and what `scripts/install-deps.sh cuda` installs. An nvcc
# that is found is used as it is. The driver comes with the machine.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

PREFIX=/usr/local/cuda

while (($#)); do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --prefix)
      (($# >= 2)) || die "--prefix needs a folder"
      PREFIX="$(realpath -m "$2")"
      shift
      ;;
    *) die "unknown option '$1': --prefix and --help are known" ;;
  esac
  shift
done

if have nvcc; then
  say "nvcc is there: $(command -v nvcc), $(nvcc --version | sed -n 's/.*release \([^,]*\).*/release \1/p')"
  exit 0
fi
[[ ! -e $PREFIX ]] || die "$PREFIX is there, but has no nvcc: move it away, or choose another --prefix"
[[ "$(id -u)" == 0 ]] || die "$PREFIX and the loader's list of folders need root"

# On the disk of the prefix: 2 GB are moved there.
mkdir -p "$(dirname "$PREFIX")"
SCRATCH="$(mktemp -d "$PREFIX.XXXXXX")"
trap 'rm -rf "$SCRATCH"' EXIT

say "installing CUDA from PyPI into $PREFIX: $(grep -v '^#' "$ROOT/scripts/cuda-wheels.txt" | tr '\n' ' ')"
python3 -m venv "$SCRATCH/venv" || die "python3 has no venv: scripts/install-deps.sh cuda"
"$SCRATCH/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
  --no-compile --no-deps --target "$SCRATCH/wheels" -r "$ROOT/scripts/cuda-wheels.txt" ||
  die "pip could not install scripts/cuda-wheels.txt: the lines above say why"

# The wheels share one tree, laid out as the toolkit is.
shopt -s nullglob
trees=("$SCRATCH"/wheels/nvidia/cu*/)
((${#trees[@]} == 1)) || die "the wheels have ${#trees[@]} trees, not 1: ${trees[*]}"
mv "${trees[0]}" "$PREFIX"
mkdir "$PREFIX/dist-info" # licences among it
mv "$SCRATCH"/wheels/*.dist-info "$PREFIX/dist-info"
# Linkers look for lib64, and for library names without a version.
ln -s lib "$PREFIX/lib64"
for library in "$PREFIX"/lib/lib*.so.*; do
  name="${library##*/}"
  [[ -e $PREFIX/lib/${name%%.so.*}.so ]] || ln -s "$name" "$PREFIX/lib/${name%%.so.*}.so"
done
chmod 755 "$PREFIX"
echo "$PREFIX/lib" >/etc/ld.so.conf.d/cuda.conf
ldconfig
say "installed: $("$PREFIX/bin/nvcc" --version | sed -n 's/.*release \([^,]*\).*/CUDA \1/p') in $PREFIX"
