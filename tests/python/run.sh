#!/bin/bash
# Builds the Python package, installs the wheel in a clean virtual environment and tests it.
#
#   tests/python/run.sh [PYTEST ARGUMENT...]
#
# GEMMD_SERVER is the server program (build/dev or build/host where it is not set), PYTHON the
# interpreter (python3), GEMMD_CASES the number of property cases. The environment is
# build/python-venv and is made anew.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
VENV=build/python-venv

rm -rf "$VENV" build/python-dist
"${PYTHON:-python3}" -m venv "$VENV"
"$VENV/bin/pip" install --quiet build mypy types-protobuf types-grpcio pytest hypothesis \
  ml_dtypes pandas
"$VENV/bin/python" -m build --outdir build/python-dist client/python >build/python-build.log 2>&1 || {
  cat build/python-build.log
  exit 1
}
"$VENV/bin/pip" install --quiet build/python-dist/*.whl
(cd client/python && "$OLDPWD/$VENV/bin/mypy" -p gemmd)
exec "$VENV/bin/pytest" -q -p no:cacheprovider "$@" tests/python
