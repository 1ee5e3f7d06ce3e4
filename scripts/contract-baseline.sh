#!/bin/bash
# Writes the baseline of the contract: proto/gemm/v1 as it was released.
#
#   scripts/contract-baseline.sh [--break]
#
# --break  writes it even if callers of the old baseline would break
#
# `buf breaking` compares the contract with the baseline (scripts/test.sh --stage proto).
# Renew it at each release, so that later changes must keep the release's additions. Use
# --break only before the first release with callers. After that, a change that breaks
# callers goes to gemm.v2.
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
