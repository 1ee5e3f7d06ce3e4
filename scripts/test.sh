#!/bin/bash
# Installs missing packages, builds, and runs every test that needs no GPU.
#
#   scripts/test.sh [--quick | --all] [--stage NAME]... [--list] [--inputs]
#
# --quick        without the sanitizers, tidy, and the stages that have inputs of their own
# --all          those too whose inputs are as the last release check saw them
# --stage NAME   only this stage (may be given more than once)
# --list         names the stages
# --inputs       prints a digest of the inputs of each stage that has inputs of its own
#
# Stages with inputs of their own (inputs_of, below) run where these are not those of the last
# run of scripts/release-check.sh, which runs all of them and is recorded in
# docs/results/release-check.md. The quick stages come first, and every stage is run even if one
# before it failed.
# At the end stand the time of each stage and a count of what passed, failed and
# was skipped; the exit status is 0 only if nothing failed. Test programs of the
# GPU skip themselves where there is none, each as one test. Build trees are
# build/dev (build/host without nvcc), build/asan, build/tsan and build/fuzz.

set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/test-programs.sh
source "$(dirname "${BASH_SOURCE[0]}")/test-programs.sh"
cd "$ROOT"

# Stages in their order, each with a description.
STAGES="
setup     installs what is missing
format    clang-format over every C++ and CUDA source
scripts   bash -n and shellcheck over every shell script, and the commit hooks
proto     buf lint over the contract, and buf breaking against the released one
python    ruff over every Python file
deploy    Dockerfile, compose, Kubernetes and Prometheus files
docs      what the documentation says and a program can check
build     configures and builds everything, warnings are errors
unit      every test of the build
client    builds the Python package, and tests its wheel against a server of that build
inference clients of the Open Inference Protocol, tritonclient and perf_analyzer, against a server of that build
tidy      clang-tidy over every C++ source
tsan      engine and rpc tests under the thread sanitizer
asan      engine and rpc tests under the address and undefined-behaviour sanitizers
install   installs the libraries of that build, and builds and runs projects that use them
attacks   hostile clients against a server of that build, others being served meanwhile; a proxy in front
page      the status page in headless Chromium, beside a server of that build
fuzz      the fuzz targets over their corpus
package   builds the packages, installs them into a bare Debian 12, multiplies and purges them
image     builds the host image and runs it
gpu-image builds the GPU image and runs it, for one architecture
plain     builds everything file by file, warnings are errors
"
SLOW_STAGES="tidy tsan asan"
# The inputs of a stage, as paths and patterns of git; empty for a stage without inputs of its own.
# A release check runs every stage, whatever changed.
inputs_of() {
  case "$1" in
    install) echo CMakeLists.txt '*/CMakeLists.txt' cmake kernels/include tests/install ;;
    inference) echo proto/inference server/rpc server/engine/job tests/inference ;;
    attacks) echo server/floods server/identity server/listening server/net server/rpc tests/attacks deploy/envoy ;;
    page) echo server/status server/telemetry/http_answer.cc server/telemetry/http_endpoint.cc tests/status ;;
    fuzz) echo tests/fuzz ;;
    package) echo CMakeLists.txt cmake deploy/debian deploy/systemd scripts/bundle.sh scripts/manual.py \
      scripts/package.sh scripts/sbom.py tests/deploy/package_test.sh ;;
    image | gpu-image) echo .dockerignore CMakeLists.txt cmake deploy/docker scripts/cuda-wheels.txt \
      scripts/install-cuda.sh scripts/install-deps.sh ;;
  esac
}
# Not part of CI, but of a release check: each has a build of its own.
RELEASE_STAGES="package gpu-image plain"
RELEASE_CHECK="docs/results/release-check.md"
# Folders of tests/ that the sanitizers run.
SANITIZED="base engine identity rpc"
# The version whose layout is this repository's; others differ in details.
CLANG_FORMAT_VERSION=14.0

PRESET="$(pick_preset)"
# One line a finished step: stage, passed, failed, skipped.
RESULTS="${GEMMD_TEST_RESULTS:-$(mktemp)}"

# count PASSED FAILED SKIPPED: adds to the totals of this stage.
count() { echo "$STAGE $1 $2 $3" >>"$RESULTS"; }

# check NAME COMMAND...: one step that passes or fails.
check() {
  local name="$1"
  shift
  if "$@"; then
    say "ok: $name"
    count 1 0 0
  else
    say "FAILED: $name"
    count 0 1 0
    return 1
  fi
}

# skip NAME REASON: a step that cannot be run here.
skip() {
  say "skipped: $1: $2"
  count 0 0 1
}

# missing NAME [REASON]: a tool is not installed. With CI=true in the environment that is a failure: a
# stage that has checked nothing is not green in CI.
missing() {
  local reason="${2:-not installed: scripts/install-deps.sh lint}"
  [[ ${CI:-} == true ]] || { skip "$1" "$reason"; return; }
  say "FAILED: $1: $reason"
  count 0 1 0
  return 1
}

# some_files FILE...: fails where there is none to look at.
some_files() { (($#)) || check "files to look at: 0, at least 1 needed" false; }

# sources PATTERN...: tracked and new files that match, generated ones left out.
sources() { git ls-files --cached --others --exclude-standard -- "$@" | sort -u | existing; }
existing() { while read -r path; do if [[ -f $path ]]; then echo "$path"; fi; done; }

# configure PRESET [OPTION...]: with the Python that has the test clients' packages.
configure() { cmake --preset "$@" -DPython3_EXECUTABLE=/usr/bin/python3 >"$ROOT/build/$1.configure.log" 2>&1 || {
  cat "$ROOT/build/$1.configure.log"
  return 1
}; }

# compile PRESET [TARGET...]
compile() {
  local preset="$1"
  shift
  cmake --build --preset "$preset" -j "$(build_jobs)" ${1+--target "$@"} -- --quiet
}

# run_ctest FOLDER [OPTION...]: runs the tests and adds them to the totals.
run_ctest() {
  local folder="$1" junit status=0
  shift
  junit="$(mktemp)"
  ctest --test-dir "$folder" --output-on-failure --no-tests=error --timeout 300 -j "$(tests_at_once)" \
    --output-junit "$junit" "$@" || status=$?
  count_junit "$junit"
  rm -f "$junit"
  ((status == 0)) || say "FAILED; again: ctest --test-dir $folder --rerun-failed --output-on-failure"
  return "$status"
}

# count_junit FILE: the counts of ctest, and of pytest, are attributes of their <testsuite>. Only
# pytest has errors there: tests whose set-up failed.
count_junit() {
  local head tests failures errors skipped
  head="$(tr '\n\t' '  ' <"$1" | grep -ao '<testsuite [^>]*>' || true)"
  attribute() { sed -n "s/.* $1=\"\([0-9]*\)\".*/\1/p" <<<"$head"; }
  tests="$(attribute tests)" failures="$(attribute failures)" skipped="$(attribute skipped)"
  [[ -n $tests ]] || { count 0 1 0; return; }
  errors="$(attribute errors)"
  failures=$((failures + ${errors:-0}))
  count $((tests - failures - skipped)) "$failures" "$skipped"
}

stage_setup() {
  check "packages" scripts/install-deps.sh build test lint
}

stage_format() {
  local tool
  for tool in clang-format-14 clang-format; do
    have "$tool" && [[ "$($tool --version)" == *"version $CLANG_FORMAT_VERSION"* ]] && break
    tool=
  done
  [[ -n $tool ]] || { missing clang-format "no clang-format $CLANG_FORMAT_VERSION: scripts/install-deps.sh lint"; return; }
  mapfile -t files < <(sources '*.cc' '*.h' '*.cu' '*.cuh')
  some_files "${files[@]}"
  check "clang-format of ${#files[@]} files" "$tool" --dry-run --Werror "${files[@]}"
}

stage_scripts() {
  mapfile -t files < <(sources '*.sh' '.ci/run')
  some_files "${files[@]}"
  local file failed=0
  for file in "${files[@]}"; do bash -n "$file" || failed=1; done
  check "bash -n of ${#files[@]} scripts" test "$failed" = 0
  have shellcheck || { missing shellcheck; return; }
  check "shellcheck of ${#files[@]} scripts" shellcheck -x "${files[@]}"
  have pre-commit || { missing pre-commit; return; }
  # Those of its hooks that are stages of this script run there.
  check "the commit hooks" env SKIP=contract,deploy,docs pre-commit run --all-files
}

stage_proto() {
  have buf || { missing buf; return; }
  local failed=0
  check "buf lint" buf lint || failed=1
  check "buf breaking" buf breaking --against proto/gemm/v1/baseline.binpb || failed=1
  return "$failed"
}

stage_python() {
  have ruff || { missing ruff; return; }
  local failed=0
  check "ruff check" ruff check --no-cache . || failed=1
  return "$failed"
}

stage_deploy() {
  check "deployment files" tests/deploy/lint.sh
}

stage_docs() {
  have python3 || { missing docs "no python3: scripts/install-deps.sh test"; return; }
  local failed=0
  check "one version" python3 tests/docs/version_check.py || failed=1
  check "every dependency is explained" python3 tests/docs/dependencies_check.py || failed=1
  check "every RPC, form of a product, flag, metric and alert is on the reference page" python3 tests/docs/reference_check.py || failed=1
  check "RPCs, flags and metrics have all of their places" python3 tests/docs/recipes_check.py || failed=1
  check "every error code is explained" python3 tests/docs/codes_check.py || failed=1
  check "names that users rely on are still there" python3 tests/docs/frozen_check.py || failed=1
  check "figures beside the libraries are those of the committed rows" python3 tests/docs/baselines_check.py || failed=1
  check "each known vulnerability of gRPC is answered" python3 tests/docs/vex_check.py || failed=1
  check "links and named files are there" python3 tests/docs/links_check.py || failed=1
  return "$failed"
}

# CI compiles several files at a time, in half the time. The stage `plain` compiles file by file.
stage_build() {
  if ! have nvcc; then say "no nvcc: building for the host device alone"; fi
  local options=()
  if [[ ${CI:-} == true ]]; then options=(-DCMAKE_UNITY_BUILD=ON); fi
  check "configure ($PRESET)" configure "$PRESET" "${options[@]}"
  check "build ($PRESET)" compile "$PRESET"
}

stage_plain() {
  check "configure (plain)" configure "$PRESET" -B build/plain -DCMAKE_UNITY_BUILD=OFF
  check "build (plain)" cmake --build build/plain -j "$(build_jobs)" -- --quiet
}

stage_unit() {
  has_gpu || say "no CUDA device: tests labelled gpu skip themselves"
  local folder="build/$PRESET" failed=0 programs
  # Soaks take most of their time by the clock, so ctest's part comes first.
  run_ctest "$folder" -R "$(other_tests "$folder")" || failed=1
  mapfile -t programs < <(registered "$folder" | cut -d ' ' -f 2- | longest_first)
  run_programs "${programs[@]}" || failed=1
  all_ran "$folder" || failed=1
  return "$failed"
}

# all_ran FOLDER: whether this stage has run as many tests as ctest knows there.
all_ran() {
  local known ran
  known="$(ctest --test-dir "$1" -N | sed -n 's/^Total Tests: //p')"
  ran="$(awk -v stage="$STAGE" '$1 == stage {ran += $2 + $3 + $4} END {print ran + 0}' "$RESULTS")"
  check "$ran of $known tests ran" test "$ran" = "$known"
}

stage_install() {
  check "installed libraries" tests/install/install_test.sh --build-dir "build/$PRESET"
}

stage_client() {
  local junit failed=0
  junit="$(mktemp)"
  check "Python package" env GEMMD_SERVER="$ROOT/build/$PRESET/server/gemmd" tests/python/run.sh \
    -rs --junitxml="$junit" || failed=1
  # Empty where the package did not get as far as its tests.
  if [[ -s $junit ]]; then count_junit "$junit"; fi
  rm -f "$junit"
  return "$failed"
}

stage_inference() {
  local junit failed=0 build="$ROOT/build/$PRESET"
  junit="$(mktemp)"
  check "clients of the Open Inference Protocol" env GEMMD_SERVER="$build/server/gemmd" \
    GEMMCTL="$build/client/ctl/gemmctl" tests/inference/run.sh -rs --junitxml="$junit" || failed=1
  if [[ -s $junit ]]; then count_junit "$junit"; fi
  rm -f "$junit"
  return "$failed"
}

# Chromium is large, so it is installed where this stage runs in CI alone.
stage_page() {
  local build="$ROOT/build/$PRESET" status=0
  if [[ ${CI:-} == true ]]; then check "packages" scripts/install-deps.sh page || return 1; fi
  /usr/bin/python3 tests/status/page_test.py --gemmd "$build/server/gemmd" \
    --gemmctl "$build/client/ctl/gemmctl" || status=$?
  if ((status == 77)); then skip "the status page" "no browser: scripts/install-deps.sh page"; return; fi
  check "the status page" test "$status" = 0
}

# deploy_test TEST OPTION...: of tests/deploy; its status 77 says that it cannot be run here.
deploy_test() {
  local status=0
  "tests/deploy/$1" "${@:2}" || status=$?
  if ((status == 77)); then count 0 0 1; return; fi
  check "$*" test "$status" = 0
}

# Packages of the host, also where the tree of the other stages has CUDA.
stage_package() { deploy_test package_test.sh --build-dir build/host; }

stage_image() { deploy_test image_test.sh --target host; }

stage_gpu-image() { deploy_test image_test.sh --target gpu --architectures 90a-real; }

# Attacks of strangers on a server with TLS and callers: those that a plain server does not have, and
# those that cost more with TLS. attacks.py --guarded runs all.
STRANGERS=tls-unfinished,tls-hellos,tls-records,tls-certificates,wrong-tokens,health-checks
STRANGERS+=,silent-health-checks
STRANGERS+=,partial-messages,rapid-reset,odd-headers,idle
STRANGERS+=,frames-pings,frames-window-updates,frames-empty-continuations

stage_attacks() {
  local folder="build/$PRESET" failed=0
  local gemmd=(--devices host --start-gemmd "$folder/server/gemmd")
  check "the proxy's configuration, run" /usr/bin/python3 tests/deploy/envoy_test.py \
    --gemmd "$folder/server/gemmd" --envoy .venv/bin/envoy || failed=1
  check "attacks" /usr/bin/python3 tests/attacks/attacks.py "${gemmd[@]}" --seconds 390 || failed=1
  check "attacks of strangers" /usr/bin/python3 tests/attacks/attacks.py "${gemmd[@]}" --guarded \
    --by stranger,forged --only "$STRANGERS" --seconds 90 || failed=1
  check "certificates and callers replaced under load" \
    /usr/bin/python3 tests/attacks/reloads.py "${gemmd[@]}" --times 20 || failed=1
  check "clients killed at random points" /usr/bin/python3 tests/attacks/kills.py "${gemmd[@]}" \
    --gemmctl "$folder/client/ctl/gemmctl" --kills 50 --leg 25 || failed=1
  return "$failed"
}

# Several files at a time, as CMake's unity build has them: most of the work is in the
# headers that they share. Only what this build compiles: other files have no command
# to be read with.
stage_tidy() {
  have clang-tidy-14 || { missing clang-tidy; return; }
  check "configure (tidy)" configure "$PRESET" -B build/tidy -DCMAKE_UNITY_BUILD=ON -DGEMMD_PCH=OFF \
    -DGEMMD_BUILD_TESTS=OFF
  check "generated sources" cmake --build build/tidy --target gemmd_generated -- --quiet
  mapfile -t files < <(sed -nE "s#^  \"file\": \"$ROOT/(.*\.(cc|cxx))\".*#\1#p" build/tidy/compile_commands.json |
    grep -E '^(build/tidy/)?(client|files|kernels|server)/')
  some_files "${files[@]}"
  check "clang-tidy of ${#files[@]} groups of files" run_tidy "${files[@]}"
}

# run_tidy FILE...: one process a core; prints findings only. The commands are g++'s, and
# may have warnings that clang does not know.
run_tidy() {
  printf '%s\0' "$@" |
    xargs -0 -n 1 -P "$(nproc)" clang-tidy-14 -p build/tidy --quiet --extra-arg=-Wno-unknown-warning-option 2> >(grep -v 'warnings\? generated' >&2)
}

# sanitize PRESET [OPTION...]: builds the chosen folders of tests/ under it, configured
# with the options, and runs them.
sanitize() {
  local preset="$1" folder folders=() targets=() programs failed=0
  for folder in $SANITIZED; do
    [[ -f tests/$folder/CMakeLists.txt ]] || die "there is no tests/$folder to run under $preset"
    folders+=("$folder")
    targets+=("tests/$folder/all")
  done
  check "configure ($preset)" configure "$@"
  check "build ($preset)" compile "$preset" "${targets[@]}"
  for folder in "${folders[@]}"; do
    mapfile -t programs < <(find "build/$preset/tests/$folder" -maxdepth 1 -type f -name '*_test' -executable | sort)
    run_programs "${programs[@]}" || failed=1
  done
  return "$failed"
}

stage_asan() {
  export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
  export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
  export LSAN_OPTIONS="suppressions=$ROOT/tests/lsan.supp:print_suppressions=0"
  sanitize asan
}

stage_tsan() {
  # OpenBLAS's own threads are invisible to it, so there are none.
  export OPENBLAS_NUM_THREADS=1
  export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:suppressions=$ROOT/tests/tsan.supp"
  TSAN_OPTIONS+=":ignore_noninstrumented_modules=1"
  sanitize tsan "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--version-script=$ROOT/tests/tsan.map"
}

stage_fuzz() {
  have clang++-14 || { missing fuzz "no clang++-14: scripts/install-deps.sh lint"; return; }
  check "configure (fuzz)" configure fuzz
  check "build (fuzz)" compile fuzz tests/fuzz/all
  run_ctest build/fuzz/tests/fuzz
}

# run_stage NAME: in this process, so that the first failing step ends it.
run_stage() {
  STAGE="$1"
  mkdir -p build
  "stage_$STAGE"
}

stage_names() { awk 'NF {print $1}' <<<"$STAGES"; }

# digest_of STAGE: of its inputs as they are here.
digest_of() {
  local paths
  read -ra paths <<<"$(inputs_of "$1")"
  sources "${paths[@]}" | tr '\n' '\0' | xargs -0 sha256sum | sha256sum | cut -c 1-16
}

# print_inputs: stages that have inputs of their own, each with their digest.
print_inputs() {
  local name
  for name in $(stage_names); do
    if [[ -n $(inputs_of "$name") ]]; then echo "$name $(digest_of "$name")"; fi
  done
}

# unchanged STAGE: whether it has inputs of its own, and the last release check saw them as they are.
unchanged() {
  [[ -n $(inputs_of "$1") ]] && grep -qs "^| $1 | $(digest_of "$1") |" "$RELEASE_CHECK"
}

# run_all NAME...: each stage in a process of its own, then the summary.
run_all() {
  local name start status failed_stages=() lines=()
  for name in "$@"; do
    say "stage $name: $(awk -v name="$name" '$1 == name {$1 = ""; print substr($0, 2)}' <<<"$STAGES")"
    start=$SECONDS status=0
    GEMMD_TEST_RESULTS="$RESULTS" bash "$0" --in-stage "$name" </dev/null || status=$?
    if ((status)); then
      failed_stages+=("$name")
      # A stage that ended badly without saying so counts as a failure.
      awk -v s="$name" '$1 == s && $3 > 0 {found = 1} END {exit !found}' "$RESULTS" ||
        echo "$name 0 1 0" >>"$RESULTS"
    fi
    lines+=("$(printf '%-9s %-7s %8s' "$name" "$( ((status)) && echo FAILED || echo ok)" \
      "$(as_time "$(seconds_since "$start")")")")
  done
  summary "${lines[@]}"
  ((${#failed_stages[@]} == 0))
}

# summary LINE...: times, counts a stage, and the closing line.
summary() {
  echo
  printf '%-9s %-7s %8s  %s\n' stage result time "passed failed skipped"
  local line
  for line in "$@"; do
    printf '%s  %s\n' "$line" "$(awk -v name="${line%% *}" '$1 == name {p += $2; f += $3; s += $4}
      END {printf "%6d %6d %7d", p, f, s}' "$RESULTS")"
  done
  echo "total time $(as_time $SECONDS)"
  awk '{p += $2; f += $3; s += $4}
    END {printf "%d passed, %d failed", p, f; if (s) printf ", %d skipped", s; print ""}' "$RESULTS"
}

main() {
  local chosen=() name what=changed
  while (($#)); do
    case "$1" in
      --quick) what=quick ;;
      --all) what=all ;;
      --inputs) print_inputs; exit 0 ;;
      --list) sed '/^$/d' <<<"$STAGES"; exit 0 ;;
      -h | --help) usage; exit 0 ;;
      --stage | --in-stage)
        (($# >= 2)) || die "$1 needs the name of a stage: $(stage_names | tr '\n' ' ')"
        grep -qx -- "$2" <<<"$(stage_names)" || die "no stage '$2': $(stage_names | tr '\n' ' ')"
        if [[ $1 == --in-stage ]]; then run_stage "$2"; exit; fi
        chosen+=("$2")
        shift
        ;;
      *) die "unknown option '$1': see --help" ;;
    esac
    shift
  done
  if ((${#chosen[@]} == 0)); then
    for name in $(stage_names); do
      case "$what" in
        quick) if [[ " $SLOW_STAGES $RELEASE_STAGES " == *" $name "* || -n $(inputs_of "$name") ]]; then continue; fi ;;
        changed)
          if [[ " $RELEASE_STAGES " == *" $name "* ]]; then continue; fi
          if unchanged "$name"; then
            say "left out: $name: its inputs are those of $RELEASE_CHECK"
            continue
          fi
          ;;
      esac
      chosen+=("$name")
    done
  fi
  run_all "${chosen[@]}"
}

main "$@"
