#!/bin/bash
# Runs every stage of scripts/test.sh, whatever changed, and records that they passed.
#
#   scripts/release-check.sh
#
# The tree must be that of a commit. Takes an hour and a half on two cores, half an hour of it for
# the GPU image. Where all stages pass it writes docs/results/release-check.md: the commit, the time
# and counts of each stage, and the inputs by which scripts/test.sh knows what it may leave out.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

REPORT="docs/results/release-check.md"

# write_report OUTPUT COMMIT
write_report() {
  cat <<PAGE
# The last release check

\`scripts/release-check.sh\` ran every stage of \`scripts/test.sh\`, and all passed.

| | |
| --- | --- |
| commit | $2 |
| date | $(date -u +%Y-%m-%d) |
| machine | $(nproc) cores, $( (has_gpu && echo "a GPU") || echo "no GPU") |

\`\`\`
$(sed -n '/^stage  *result/,$p' "$1")
\`\`\`

## What was looked at

\`scripts/test.sh\` leaves a stage out while its inputs are these.

| stage | inputs |
| --- | --- |
$(scripts/test.sh --inputs | sed 's/^\([^ ]*\) \(.*\)$/| \1 | \2 |/')
PAGE
}

main() {
  if (($#)); then
    [[ $1 == -h || $1 == --help ]] || die "unknown option '$1': --help is known"
    usage
    exit 0
  fi
  [[ -z $(git status --porcelain) ]] || die "the tree is not that of a commit: git status"
  local commit output
  commit="$(git rev-parse --short=12 HEAD)"
  output="$(mktemp)"
  CI=true scripts/test.sh --all | tee "$output"
  write_report "$output" "$commit" >"$REPORT"
  rm -f "$output"
  say "recorded: $REPORT"
}

main "$@"
