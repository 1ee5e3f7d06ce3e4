#!/bin/bash
# Makes the baseline of the contract anew: what proto/gemm/v1 had when it was released.
#
#   scripts/contract-baseline.sh [--break]
#
# --break  also where callers of the baseline would break
#
# `buf breaking` compares the contract with the baseline (scripts/test.sh --stage proto).
# Renew it at each release, so that what the release added is held from then on. With
# --break only before a version is released that callers may have: after that, what
# breaks callers goes to gemm.v2.
#
# The baseline is a FileDescriptorSet without comments, for `protoc --decode` or buf.

set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

BASELINE=proto/gemm/v1/baseline.binpb
BREAK=

while (($#)); do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --break) BREAK=1 ;;
    *) die "unknown option '$1': --break and --help are known" ;;
  esac
  shift
done

have buf || die "buf is not installed: scripts/install-deps.sh lint"
if [[ -f $BASELINE ]] && ! buf breaking --against "$BASELINE"; then
  [[ -n $BREAK ]] || die "the lines above break callers of $BASELINE: --break renews it even so"
fi
buf build --as-file-descriptor-set --exclude-source-info -o "$BASELINE"
say "$BASELINE: $(sha256sum "$BASELINE" | cut -c 1-16)"
