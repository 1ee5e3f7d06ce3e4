#!/bin/bash
# Builds the Python package, installs the wheel in a clean virtual environment and tests it.
#
#   tests/python/run.sh [PYTEST ARGUMENT...]
#
# Wheel and sdist, mypy --strict, the API pages (pdoc, without a warning), then pytest.
# GEMMD_SERVER is the server program (build/dev or build/host where it is not set), PYTHON the
# interpreter (python3), GEMMD_CASES the number of property cases. The environment is
# build/python-venv and is made anew.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
BIN="$PWD/build/python-venv/bin"
unset PYTHONPATH

rm -rf build/python-venv build/python-dist build/python-api
"${PYTHON:-python3}" -m venv build/python-venv
"$BIN/pip" install --quiet --disable-pip-version-check -r tests/python/requirements.txt
"$BIN/python" -m build --outdir build/python-dist client/python >build/python-build.log 2>&1 || {
  cat build/python-build.log
  exit 1
}
"$BIN/pip" install --quiet --disable-pip-version-check build/python-dist/*.whl
(cd client/python && "$BIN/mypy" -p gemmd)
"$BIN/python" -W error -m pdoc -o build/python-api gemmd gemmd.matrices gemmd.queries gemmd.dask '!gemmd._contract'
"$BIN/pytest" -q -p no:cacheprovider "$@" tests/python
