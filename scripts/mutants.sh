#!/bin/bash
# Puts small defects into the code, one at a time, and shows which tests notice.
#
#   scripts/mutants.sh [--gpu] [NAME...]   judges those of HEAD that have no verdict yet
#   scripts/mutants.sh --check             whether every patch applies and is in the index
#   scripts/mutants.sh --table             the verdicts as rows of the index, printed
#
# The index is docs/results/mutants.md: a row for each patch, with the reason why it is kept.
#
#   --gpu    takes the defects that only a GPU shows, in the preset dev; else the others, in host
#   --again  forgets the verdicts first
#
# Each tests/mutants/NAME.patch is a few lines behind a header:
#   breaks:  what is wrong with it
#   target:  the CMake target to build
#   tests:   a regular expression of ctest's names, of tests that should notice
#   command: in place of both, a command that should fail
#   gpu:     yes where the tests need a GPU
# Builds and tests in build/mutants/tree, a worktree of HEAD, and changes nothing outside. The tests of
# a defect are first run without it, and must pass. Verdicts are kept by commit, in
# build/mutants/verdicts: a run that was stopped goes on where it was. The exit status is 0 if
# every defect was noticed. It takes long, and is run by hand.

set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

TREE="$ROOT/build/mutants/tree"
INDEX="$ROOT/docs/results/mutants.md"
COMMIT="$(git rev-parse HEAD)"
VERDICTS="$ROOT/build/mutants/verdicts/$COMMIT"
LOG="$ROOT/build/mutants/last.log"
PRESET=host
GPU=no
MODE=judge
NAMES=()
export CCACHE_BASEDIR="$TREE"

while (($#)); do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --gpu) GPU=yes PRESET=dev ;;
    --again) rm -rf "$VERDICTS" ;;
    --check) MODE=check ;;
    --table) MODE=table ;;
    -*) die "unknown option '$1': --gpu, --again, --check, --table and --help are known" ;;
    *) NAMES+=("$1") ;;
  esac
  shift
done
((${#NAMES[@]})) || mapfile -t NAMES < <(cd tests/mutants && printf '%s\n' *.patch | sed 's/\.patch$//')

# header NAME FIELD: the field's value, empty where the patch has none.
header() { sed -n "1,/^\$/s/^$2: *//p" "$ROOT/tests/mutants/$1.patch" | head -n 1; }

# why NAME: the index's reason to keep it, empty where the index has no row for it.
why() { awk -F ' [|] ' -v name="| $1" '$1 == name {print $3}' "$INDEX"; }

needs_gpu() { [[ "$(header "$1" gpu)" == yes ]]; }

# configure: the tree's build, once for a commit.
configure() {
  [[ ! -e $VERDICTS/configured-$PRESET ]] || return 0
  (cd "$TREE" && cmake --preset "$PRESET") >"$LOG" 2>&1 || die "no build: see $LOG"
  : >"$VERDICTS/configured-$PRESET"
}

build() { cmake --build "$TREE/build/$PRESET" --target "$@" -j "$(build_jobs)" >"$LOG" 2>&1; }

# run_tests REGEX [OPTION OF CTEST...]: 0 where all passed, 1 where some failed, 2 where some did
# not run.
run_tests() {
  local limit=120 regex="$1"
  shift
  [[ $GPU == no ]] || limit=900
  if ctest --test-dir "$TREE/build/$PRESET" -R "$regex" --no-tests=error --timeout "$limit" "$@" >"$LOG" 2>&1; then
    # A program's tests of the GPU skip themselves; those that did run have judged.
    grep -q ' Passed ' "$LOG" && ! grep -qE '\((Disabled|Not Run)\)$' "$LOG" || return 2
    return 0
  fi
  [[ -n "$(failed_tests)" ]] || return 2
  return 1
}

failed_tests() {
  sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) .*\*\*\*(Failed|Timeout|Exception|Not Run).*/\1/p' "$LOG"
}

# ask NAME: runs the tests of that defect in the tree as it is. Prints one line. The status is 0 if
# they pass, 1 if one fails, 2 if that cannot be told.
ask() {
  local command status=0
  command="$(header "$1" command)"
  if [[ -n $command ]]; then
    (cd "$TREE" && bash -c "$command") >"$LOG" 2>&1 || status=$?
    case $status in
      0) echo "nobody" ;;
      77) echo "skipped: $(grep -m 1 skipped "$LOG")"; return 2 ;;
      *) echo "\`$command\`"; return 1 ;;
    esac
    return 0
  fi
  build "$(header "$1" target)" || { echo "it does not compile: see $LOG"; return 2; }
  # The first failure is enough: with many a defect each test waits for its time limit.
  run_tests "$(header "$1" tests)" --stop-on-failure || status=$?
  case $status in
    0) echo "nobody" ;;
    2) echo "tests were skipped, or there are none" ;;
    *)
      echo "\`$(failed_tests | head -n 1)\`"
      ;;
  esac
  return "$status"
}

# ask_clean NAME...: what should notice any of these, without a defect: builds all of it, and keeps
# the tests that failed.
ask_clean() {
  local name targets=() tests=()
  for name in "$@"; do
    [[ -n "$(header "$name" target)" ]] || continue
    targets+=("$(header "$name" target)") tests+=("$(header "$name" tests)")
  done
  ((${#targets[@]})) || return 0
  say "without a defect: ${#targets[@]} times what should notice one"
  configure
  mapfile -t targets < <(printf '%s\n' "${targets[@]}" | sort -u)
  build "${targets[@]}" || die "no build: see $LOG"
  run_tests "$(IFS='|'; echo "${tests[*]}")" || true
  failed_tests >"$VERDICTS/clean-$PRESET"
}

# passes_without NAME: what should notice it passes without any defect.
passes_without() {
  local said status=0
  if [[ -z "$(header "$1" command)" ]]; then
    said="$(grep -E -m 1 "$(header "$1" tests)" "$VERDICTS/clean-$PRESET")" || return 0
    echo "without the defect: $said failed"
    return 1
  fi
  said="$(ask "$1")" || status=$?
  ((status == 0)) || { echo "without the defect: $said"; return 1; }
}

# judge NAME: writes the verdict, "noticed by ..." or "not noticed" or why it is not known.
judge() {
  local said status=0 started=$SECONDS
  if ! said="$(passes_without "$1")"; then
    echo "not judged: $said" >"$VERDICTS/$1"
    say "$1: $(cat "$VERDICTS/$1")"
    return
  fi
  git -C "$TREE" apply "$ROOT/tests/mutants/$1.patch" || die "$1 does not apply to HEAD: make it anew"
  said="$(ask "$1")" || status=$?
  git -C "$TREE" checkout --quiet --force .
  # The program with the defect in must not answer for the next one.
  [[ -z "$(header "$1" target)" ]] || find "$TREE/build/$PRESET" -type f -name "$(header "$1" target)" -delete
  case $status in
    0) echo "not noticed" ;;
    1) echo "noticed by $said" ;;
    *) echo "not judged: $said" ;;
  esac >"$VERDICTS/$1"
  say "$1: $(cat "$VERDICTS/$1") ($(as_time $((SECONDS - started))))"
}

# table GPU: the verdicts of one group.
table() {
  local name
  echo "| defect | what it breaks | why it is kept | noticed by |"
  echo "| --- | --- | --- | --- |"
  for name in "${NAMES[@]}"; do
    [[ "$(needs_gpu "$name" && echo yes || echo no)" == "$1" && -f $VERDICTS/$name ]] || continue
    echo "| $name | $(header "$name" breaks) | $(why "$name") | $(sed -e 's/^noticed by //' -e 's/^not .*/**&**/' "$VERDICTS/$name") |"
  done
}

# count PATTERN: verdicts that begin so.
count() { { grep -ls "^$1" "${NAMES[@]/#/$VERDICTS/}" || true; } | wc -l; }

if [[ $MODE == check ]]; then
  stale=0
  for name in "${NAMES[@]}"; do
    git apply --check "tests/mutants/$name.patch" || stale=$((stale + 1))
    [[ -n "$(header "$name" breaks)" ]] || die "$name says not what it breaks"
    [[ -n "$(why "$name")" ]] || die "$name has no row in ${INDEX#"$ROOT"/}"
    [[ -n "$(header "$name" command)" || -n "$(header "$name" tests)" ]] || die "$name names no tests"
  done
  ((stale == 0)) || die "$stale of ${#NAMES[@]} do not apply"
  while read -r name; do
    [[ -f tests/mutants/$name.patch ]] || die "${INDEX#"$ROOT"/} has $name, and tests/mutants has not"
  done < <(sed -nE 's/^\| ([a-z0-9-]+) \| .*/\1/p' "$INDEX" | grep -vxE 'defect|-+')
  say "${#NAMES[@]} apply"
  exit 0
fi

if [[ $MODE == table ]]; then
  printf '# Defects put in on purpose\n\n'
  echo "By \`scripts/mutants.sh\` and its \`--gpu\`, commit ${COMMIT:0:12}:"
  printf '%d noticed, %d not noticed, %d not judged, %d not run.\n' "$(count 'noticed')" \
    "$(count 'not noticed')" "$(count 'not judged')" \
    $((${#NAMES[@]} - $(count 'no')))
  printf '\n## On the host\n\n%s\n\n## On a GPU\n\n%s\n' "$(table no)" "$(table yes)"
  exit 0
fi

[[ -d $TREE ]] || git worktree add --quiet --detach "$TREE" "$COMMIT"
git -C "$TREE" checkout --quiet --force --detach "$COMMIT"
mkdir -p "$VERDICTS"
trap 'git -C "$TREE" checkout --quiet --force .' EXIT

todo=()
for name in "${NAMES[@]}"; do
  [[ -f tests/mutants/$name.patch ]] || die "there is no tests/mutants/$name.patch"
  [[ "$(needs_gpu "$name" && echo yes || echo no)" == "$GPU" ]] || continue
  [[ -f $VERDICTS/$name ]] || todo+=("$name")
done
ask_clean "${todo[@]}"
for name in "${todo[@]}"; do judge "$name"; done
table "$GPU"
survivors=0
for name in "${NAMES[@]}"; do
  [[ ! -f $VERDICTS/$name ]] || grep -q '^noticed' "$VERDICTS/$name" || survivors=$((survivors + 1))
done
((survivors == 0)) || die "$survivors were not noticed, or not judged"
