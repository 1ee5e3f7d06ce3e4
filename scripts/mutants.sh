#!/bin/bash
# Puts small defects into the code, one at a time, and shows which tests notice.
#
#   scripts/mutants.sh [--gpu] [NAME...]
#
# Each tests/mutants/NAME.patch is a few lines behind a header:
#   breaks: what is wrong with it
#   target: the CMake target to build
#   tests:  a regular expression of ctest's names, of tests that should notice
#   gpu:    yes where they need a GPU; --gpu takes those, in the preset dev, and else
#           the others, in the preset host
# Works in build/mutants/tree, a worktree of HEAD, and builds there incrementally.
# Prints a table; the exit status is 0 where every defect was noticed. It takes
# long, and is run by hand.

set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

TREE="$ROOT/build/mutants/tree"
PRESET=host
GPU=no
NAMES=()

while (($#)); do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --gpu) GPU=yes PRESET=dev ;;
    -*) die "unknown option '$1': --gpu and --help are known" ;;
    *) NAMES+=("$1") ;;
  esac
  shift
done

# header PATCH FIELD: the field's value.
header() { sed -n "s/^$2: *//p" "$1" | head -n 1; }

# build TARGET: its last lines where it fails.
build() { cmake --build "$TREE/build/$PRESET" --target "$1" -j "$(nproc)" >"$TREE/build/mutant.log" 2>&1; }

# verdict PATCH: builds and tests the tree as it is.
verdict() {
  local target tests
  target="$(header "$1" target)"
  tests="$(header "$1" tests)"
  if ! build "$target"; then echo "noticed by the compiler"; return; fi
  if ctest --test-dir "$TREE/build/$PRESET" -R "$tests" --no-tests=error --timeout 900 \
    >"$TREE/build/mutant.log" 2>&1; then
    echo "**not noticed**"
  elif grep -q 'No tests were found' "$TREE/build/mutant.log"; then
    echo "**no such tests**"
  else
    echo "noticed by $(grep -cE '\*\*\*(Failed|Timeout|Exception)' "$TREE/build/mutant.log") tests"
  fi
}

if ((${#NAMES[@]} == 0)); then
  for patch in tests/mutants/*.patch; do NAMES+=("$(basename "$patch" .patch)"); done
fi

[[ -d $TREE ]] || git worktree add --quiet --detach "$TREE" HEAD
git -C "$TREE" checkout --quiet --force --detach "$(git rev-parse HEAD)"
(cd "$TREE" && cmake --preset "$PRESET" >build/configure.log 2>&1) || die "see $TREE/build/configure.log"

survivors=0
echo "| mutant | what it breaks | verdict |"
echo "| --- | --- | --- |"
for name in "${NAMES[@]}"; do
  patch="$ROOT/tests/mutants/$name.patch"
  [[ -f $patch ]] || die "there is no tests/mutants/$name.patch"
  [[ "$(header "$patch" gpu)" == yes ]] && needs=yes || needs=no
  [[ $needs == "$GPU" ]] || continue
  git -C "$TREE" apply "$patch" || die "$name does not apply to HEAD: make it anew"
  result="$(verdict "$patch")"
  git -C "$TREE" apply --reverse "$patch"
  echo "| $name | $(header "$patch" breaks) | $result |"
  [[ $result == noticed* ]] || survivors=$((survivors + 1))
done
((survivors == 0)) || die "$survivors were not noticed"
