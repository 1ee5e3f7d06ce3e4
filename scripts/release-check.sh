#!/bin/bash
# Runs stages of scripts/test.sh, whatever changed, and records that they passed.
#
#   scripts/release-check.sh [STAGE]...
#   scripts/release-check.sh --from OUTPUT
#
# --from   records the stages that passed in a run of scripts/test.sh on this commit, such as
#          .ci/run; OUTPUT is a file with its output
#
# Without a name every stage is run, which takes two hours on two cores: half an hour each for the
# GPU image and for the build file by file. The tree must be that of a commit. If all of them pass,
# each has a row in docs/results/release-check.md: its commit, time, counts and inputs. scripts/test.sh
# leaves stages out whose inputs are the same. A release has one commit in all rows.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

REPORT="docs/results/release-check.md"
HEAD_ROW="| stage | inputs | commit | date | time | passed | failed | skipped |"

# new_rows OUTPUT: a row for each line of the summary that test.sh ends with.
new_rows() {
  local commit stage result time passed failed skipped inputs
  commit="$(git rev-parse --short=12 HEAD)"
  sed -n '/^stage  *result/,/^total time/{/^stage\|^total/d;p}' "$1" |
    while read -r stage result time passed failed skipped; do
      [[ $result == ok ]] || continue
      inputs="$(scripts/test.sh --inputs | sed -n "s/^$stage //p")"
      echo "| $stage | ${inputs:--} | $commit | $(date -u +%F) | $time | $passed | $failed | $skipped |"
    done
}

# merged ROWS: these, and the page's rows of other stages, in the order of the stages.
merged() {
  local stage
  scripts/test.sh --list | awk '{print $1}' | while read -r stage; do
    grep -h "^| $stage | " "$1" "$REPORT" 2>/dev/null | head -n 1 || true
  done
}

write_page() {
  cat <<PAGE
# The last release checks

Stages of \`scripts/test.sh\` that passed, and on which commit. \`scripts/release-check.sh\` runs them
and writes this page. A stage with inputs of its own is left out of CI while these are as in its row.

$HEAD_ROW
| --- | --- | --- | --- | ---: | ---: | ---: | ---: |
$(merged "$1")
PAGE
}

main() {
  local options=(--all) output rows stage from=""
  case "${1-}" in
    -h | --help) usage; exit 0 ;;
    --from)
      from="${2-}"
      [[ -r $from ]] || die "--from needs the output of a run of scripts/test.sh"
      ;;
    "") ;;
    *)
      options=()
      for stage in "$@"; do options+=(--stage "$stage"); done
      ;;
  esac
  [[ -z $(git status --porcelain) ]] || die "the tree is not that of a commit: git status"
  output="$(mktemp)" rows="$(mktemp)"
  if [[ -n $from ]]; then
    cp "$from" "$output"
  else
    CI=true scripts/test.sh "${options[@]}" | tee "$output"
  fi
  new_rows "$output" >"$rows"
  write_page "$rows" >"$output"
  mv "$output" "$REPORT"
  chmod 644 "$REPORT"
  rm -f "$rows"
  say "recorded: $REPORT"
}

main "$@"
