# Test programs of GoogleTest, each whole in one process. Sourced by test.sh, which has `count`.
# ctest runs a process for every test, 2,300 of them. In the preset dev each loads cuBLASLt, and the
# starts alone take 200 s of a core. Under a sanitizer they are three quarters of the time.
# shellcheck shell=bash

# Seconds that a program may take.
export PROGRAM_LIMIT=600
# Those that take longest begin first.
LONG_PROGRAMS="defects_test slow_client_test engine_test client_calls_test engine_faults_test fault_process_test"
LONG_PROGRAMS+=" connections_test kernels_test gemmctl_test quotas_rpc_test drain_process_test"

# Half of the time tests wait for a clock: one more than there are cores.
tests_at_once() { echo "$(($(nproc) + 1))"; }

# The tests that ctest found in a program of GoogleTest: each has a filter for itself.
FOUND_TESTS='
import collections, json, re, sys
tests = json.load(sys.stdin)["tests"]
found = [test for test in tests if any(word.startswith("--gtest_filter=") for word in test.get("command", []))]
'

# registered FOLDER: its programs of GoogleTest as ctest knows them, and the number of tests of
# each, a line a program.
registered() {
  ctest --test-dir "$1" --show-only=json-v1 | python3 -c "$FOUND_TESTS"'
for program, count in collections.Counter(test["command"][0] for test in found).items():
    print(count, program)'
}

# other_tests FOLDER: a regular expression of the names of all others.
other_tests() {
  ctest --test-dir "$1" --show-only=json-v1 | python3 -c "$FOUND_TESTS"'
names = {test["name"] for test in tests} - {test["name"] for test in found}
print("^(" + "|".join(re.sub(r"([^A-Za-z0-9_-])", r"[\1]", name) for name in sorted(names)) + ")$")'
}

# longest_first: paths of programs, a line each, in the order in which they are to begin.
longest_first() {
  awk -F/ -v long="$LONG_PROGRAMS" '
    BEGIN { n = split(long, names, " "); for (i = 1; i <= n; i++) rank[names[i]] = i }
    { print ($NF in rank ? rank[$NF] : n + 1) "\t" $0 }' | sort -n -s | cut -f 2-
}

# run_programs PROGRAM...: in this order, tests_at_once at a time. Adds them to the totals.
run_programs() {
  local results status=0 program
  (($#)) || { say "FAILED: there are no test programs"; count 0 1 0; return 1; }
  results="$(mktemp -d)"
  # shellcheck disable=SC2016 # for the inner shell to expand
  printf '%s\0' "$@" |
    xargs -0 -n 1 -P "$(tests_at_once)" bash -c 'run_program "$1" "$2"' bash "$results" || status=1
  for program in "$@"; do count_program "$results/${program##*/}" || status=1; done
  rm -rf "$results"
  return "$status"
}

# run_program RESULTS PROGRAM: in the folder where ctest would run it. If it fails, prints its output
# in one piece, and the command that runs the failed tests again. 77 is the status of a program whose
# every test was skipped.
run_program() {
  local name="${2##*/}" program start=$SECONDS status=0 again
  program="$(realpath "$2")"
  (cd "${program%/*}" && exec timeout -k 10 "$PROGRAM_LIMIT" "$program" --gtest_output="xml:$1/$name.xml") \
    >"$1/$name.log" 2>&1 || status=$?
  echo "$status" >"$1/$name.status"
  ((status != 77)) || status=0
  if ((status == 0)); then
    say "ok: $name, $((SECONDS - start)) s"
    return
  fi
  again="$(failed_in "$1/$name.xml" "$1/$name.log" | paste -s -d :)"
  {
    cat "$1/$name.log"
    say "FAILED: $name, status $status ($(what_ended "$status")), $((SECONDS - start)) s; again:"
    echo "    $program --gtest_filter='${again:-*}'"
  } >"$1/$name.report"
  cat "$1/$name.report"
  return 1
}

# what_ended STATUS: of a program, in words.
what_ended() {
  case "$1" in
    124 | 137) echo "it was ended after $PROGRAM_LIMIT s" ;;
    1) echo "tests failed" ;;
    *) if (($1 > 128)); then echo "signal $(kill -l "$(($1 - 128))")"; else echo "it ended early"; fi ;;
  esac
}

# failed_in XML LOG: names of the failed tests. A program that crashed has no XML: the test that
# it was in, by its log.
failed_in() {
  if [[ -s $1 ]]; then
    awk 'match($0, /<testcase name="[^"]*"/) {
           name = substr($0, RSTART + 16, RLENGTH - 17)
           match($0, / classname="[^"]*"/)
           suite = substr($0, RSTART + 12, RLENGTH - 13)
         }
         /<failure / { print suite "." name }' "$1" | uniq
  else
    sed -n 's/^\[ RUN      \] //p' "$2" | tail -n 1
  fi
}
export -f run_program failed_in what_ended say

# count_program RESULT: adds the results of a program, RESULT.xml and RESULT.status, to the totals.
# It counts as one failure if it ended early, ended badly with no test failed, or ran none.
count_program() {
  local tests failures skipped status
  status="$(cat "$1.status" 2>/dev/null || echo none)"
  if [[ $status == 77 ]]; then count 0 0 1; return; fi
  if [[ ! -s $1.xml ]]; then
    count 0 1 0
    return 1
  fi
  tests="$(grep -c '<testcase ' "$1.xml" || true)"
  failures="$(sed -n 's/.*<testsuites [^>]*failures="\([0-9]*\)".*/\1/p' "$1.xml")"
  skipped="$(grep -c 'result="skipped"' "$1.xml" || true)"
  count $((tests - failures - skipped)) "$failures" "$skipped"
  ((tests)) || say "FAILED: ${1##*/} has run no test"
  if [[ $tests == 0 || ($status != 0 && $failures == 0) ]]; then count 0 1 0; fi
  [[ $tests != 0 && $status == 0 ]]
}
