#!/bin/bash
# Tests the server with clients of the Open Inference Protocol: tritonclient and perf_analyzer.
#
#   tests/inference/run.sh [PYTEST ARGUMENT...]
#
# GEMMD_SERVER and GEMMCTL are the programs (those of build/dev or build/host where they are not
# set), PYTHON the interpreter (python3). The environment is build/inference-venv and is made anew.
# perf_analyzer comes from the wheel of an older tritonclient, the last that runs on Debian 12. Its
# tests are skipped, with the reason, where the wheel or a library of it is missing.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
VENV="$PWD/build/inference-venv"
PERF_WHEEL="tritonclient==2.51.0"
CUDA_WHEEL="nvidia-cuda-runtime-cu12==12.9.79"
unset PYTHONPATH

BUILD=build/dev
[[ -x $BUILD/server/gemmd ]] || BUILD=build/host
export GEMMD_SERVER="${GEMMD_SERVER:-$PWD/$BUILD/server/gemmd}"
export GEMMCTL="${GEMMCTL:-$PWD/$BUILD/client/ctl/gemmctl}"

rm -rf "$VENV"
"${PYTHON:-python3}" -m venv "$VENV"
"$VENV/bin/pip" install --quiet --disable-pip-version-check -r tests/inference/requirements.txt

# Beside tritonclient, of which the environment has another version.
fetch_perf_analyzer() {
  local wheels="$VENV/wheels"
  "$VENV/bin/pip" download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    -d "$wheels" "$PERF_WHEEL" "$CUDA_WHEEL" || return 1
  for wheel in "$wheels"/*.whl; do "$VENV/bin/python" -m zipfile -e "$wheel" "$wheels" || return 1; done
}

if fetch_perf_analyzer; then
  program="$(echo "$VENV"/wheels/tritonclient-*.data/data/bin/perf_analyzer)"
  chmod +x "$program"
  libraries="$VENV/wheels/nvidia/cuda_runtime/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  if LD_LIBRARY_PATH="$libraries" "$program" --version >/dev/null 2>"$VENV/perf_analyzer.log"; then
    export PERF_ANALYZER="$program" LD_LIBRARY_PATH="$libraries"
  else
    PERF_ANALYZER_MISSING="perf_analyzer does not run: $(head -1 "$VENV/perf_analyzer.log")"
  fi
else
  PERF_ANALYZER_MISSING="the wheel $PERF_WHEEL cannot be had"
fi
export PERF_ANALYZER_MISSING="${PERF_ANALYZER_MISSING:-}"
"$VENV/bin/pytest" -q -p no:cacheprovider "$@" tests/inference
