#!/bin/bash
# Shows which lines and branches of server and client the tests reach, on the host device.
#
#   scripts/coverage.sh [--at COMMIT] [-R REGEX] [-LE REGEX]
#
#   --at COMMIT  of another commit, in a worktree of its own, to compare
#   -R REGEX     with those tests alone, as ctest takes it
#   -LE REGEX    without the tests of these labels, as ctest takes it. Those with the label
#                kernels take most of the time, and reach neither server nor client
#
# Builds apart from everything else, below build/coverage, and runs the tests of ctest there.
# Prints the share of every file, sorted by it, and the totals. The pages with the
# uncovered lines are build/coverage/report/index.html. Tests that fail do not end it; it says so,
# and its exit status is 1. Needs gcovr (scripts/install-deps.sh lint).

set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

SOURCE="$ROOT"
OUT="$ROOT/build/coverage"
CTEST=()

while (($#)); do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --at)
      (($# > 1)) || die "--at needs a commit"
      COMMIT="$(git rev-parse --verify "$2^{commit}")" || die "--at $2: no such commit"
      OUT="$ROOT/build/coverage-${COMMIT:0:12}" SOURCE="$ROOT/build/coverage-${COMMIT:0:12}/tree"
      shift
      ;;
    -R | -LE) (($# > 1)) || die "$1 needs a regular expression"; CTEST+=("$1" "$2"); shift ;;
    *) die "unknown argument '$1': --at, -R, -LE and --help are known" ;;
  esac
  shift
done
have gcovr || die "gcovr is not installed: scripts/install-deps.sh lint"

BUILD="$OUT/build"
mkdir -p "$OUT"
if [[ $SOURCE != "$ROOT" ]]; then
  [[ -d $SOURCE ]] || git worktree add --quiet --detach "$SOURCE" "$COMMIT"
  export CCACHE_BASEDIR="$SOURCE"
fi

# Several threads count, so the counters are atomic. Nothing is inlined, so that a line is where it
# stands.
cmake -S "$SOURCE" -B "$BUILD" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DGEMMD_CUDA=OFF \
  -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -fno-inline -g1 --coverage -fprofile-update=atomic" \
  >"$OUT/configure.log" || die "see $OUT/configure.log"
cmake --build "$BUILD" -j "$(build_jobs)" -- --quiet

# Counts of an earlier run would add up.
find "$BUILD" -name '*.gcda' -delete
failed=0
ctest --test-dir "$BUILD" -j "$(nproc)" --no-tests=error --timeout 300 --output-on-failure "${CTEST[@]}" \
  >"$OUT/tests.log" 2>&1 || failed=1
tail -n 3 "$OUT/tests.log"

# Branches that only an exception takes are the compiler's, not ours: we throw none.
mkdir -p "$OUT/report"
gcovr --root "$SOURCE" --object-directory "$BUILD" -j "$(nproc)" \
  --filter "$SOURCE/server/" --filter "$SOURCE/client/cpp/" --filter "$SOURCE/client/ctl/" \
  --exclude-throw-branches --exclude-unreachable-branches --sort-percentage --print-summary \
  --txt "$OUT/lines.txt" --json-summary "$OUT/summary.json" \
  --html-details "$OUT/report/index.html" "$BUILD" >"$OUT/totals.txt"
cat "$OUT/lines.txt" "$OUT/totals.txt"
((failed == 0)) || die "tests failed: see $OUT/tests.log"
