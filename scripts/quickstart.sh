#!/bin/bash
# From nothing to checked matrix products: installs, builds, starts gemmd, multiplies.
#
#   scripts/quickstart.sh [--serve] [--port N] [--metrics-port N] [--build-dir DIR]
#
# --serve         leaves the server running at the end, and says how to use and stop it
# --port          the server's port on 127.0.0.1; 50051 with --serve, else any free one
# --metrics-port  the port of its metrics; 9464 with --serve, else any free one
# --build-dir     the build tree; build/dev by default, or build/host without a GPU
#
# Missing packages are installed first, on Debian 12 and Ubuntu 24.04, as root or
# through sudo. The script builds gemmd and gemmctl for this machine: for its GPUs if
# it has any and nvcc is found, else for the host alone. The input is examples/digits:
# 1797 images of handwritten digits. scripts/test.sh goes on in the same build tree. With
# nvcc and no GPU it takes build/dev instead, because it compiles the CUDA code, too.

set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

DIGITS=examples/digits
SERVE=false
PORT=
METRICS_PORT=
PRESET=host
if have nvcc && has_gpu; then PRESET=dev; fi
BUILD=
SERVER_PID=
ADDRESS=
METRICS=
OUT="$(mktemp -d -t gemmd-quickstart.XXXXXX)" # kept after a failure and with --serve

parse() {
  while (($#)); do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --serve) SERVE=true ;;
      --port | --metrics-port | --build-dir)
        (($# >= 2)) || die "$1 needs a value"
        case "$1" in
          --port) PORT="$(a_port "$@")" ;;
          --metrics-port) METRICS_PORT="$(a_port "$@")" ;;
          --build-dir) BUILD="$(realpath -m "$2")" ;;
        esac
        shift
        ;;
      *) die "unknown option '$1': see --help" ;;
    esac
    shift
  done
  if $SERVE; then PORT="${PORT:-50051}" METRICS_PORT="${METRICS_PORT:-9464}"; fi
  PORT="${PORT:-0}" METRICS_PORT="${METRICS_PORT:-0}"
  BUILD="${BUILD:-$ROOT/build/$PRESET}"
}

# a_port OPTION VALUE: the value, if it is a port.
a_port() {
  [[ $2 =~ ^[0-9]{1,5}$ && $2 -le 65535 ]] ||
    die "$1: '$2'; allowed: 0 to 65535, 0 for any free port"
  echo "$2"
}

# say_what_is_built: also the kernels that are left out, with the way to get them.
say_what_is_built() {
  if [[ $PRESET == dev ]]; then
    say "building for the host and this machine's GPUs ($(gpu_architecture)) in $BUILD"
    say "left out: kernels for other GPUs; 'cmake --preset release && cmake --build --preset release'" \
      "builds for all"
  elif have nvcc; then
    say "no GPU: building for the host alone in $BUILD"
    say "left out: kernels for GPUs; 'cmake --preset release && cmake --build --preset release'" \
      "builds them"
  else
    say "no nvcc: building for the host alone in $BUILD"
    say "left out: kernels for GPUs; on a machine with one, run scripts/install-cuda.sh and then this" \
      "script again"
  fi
}

configure() {
  local options
  mapfile -t options < <(program_options "$BUILD")
  if [[ $PRESET == dev ]]; then options+=("-DCMAKE_CUDA_ARCHITECTURES=$(gpu_architecture)"); fi
  cmake --preset "$PRESET" -B "$BUILD" ${options[@]+"${options[@]}"} >"$OUT/configure.log" 2>&1 || {
    cat "$OUT/configure.log" >&2
    die "configuring failed: the lines above say why"
  }
  # Kernels that this GPU cannot run.
  sed -n 's/^-- CUDA: no code/left out: no code/p' "$OUT/configure.log"
}

build() {
  say_what_is_built
  configure
  NINJA_STATUS='[%f/%t] ' cmake --build "$BUILD" -j "$(build_jobs)" --target gemmd gemmctl \
    >"$OUT/build.log" 2>&1 </dev/null &
  local builder=$!
  # The shell lets what runs beside it ignore Ctrl-C.
  # shellcheck disable=SC2064  # the number of now
  trap "kill $builder 2>/dev/null; exit 130" INT TERM
  show_progress "$builder"
  trap - INT TERM
  wait "$builder" || {
    tail -n 40 "$OUT/build.log" >&2
    die "the build failed; the lines above end its log, $OUT/build.log"
  }
}

# show_progress PROCESS: how far the build is, and how long it will take, while the process runs.
# Files take about as long as those before them.
show_progress() {
  local started=$SECONDS shown=0 done_files all_files elapsed
  while kill -0 "$1" 2>/dev/null; do
    sleep 1
    elapsed="$(seconds_since "$started")"
    ((elapsed - shown >= 10)) || continue
    shown=$elapsed
    IFS=/ read -r done_files all_files < <(
      grep -o '^\[[0-9]*/[0-9]*\]' "$OUT/build.log" | tail -n 1 | tr -d '[]') || continue
    say "$done_files of $all_files files in $(as_time "$elapsed"), about" \
      "$(as_time $((elapsed * (all_files - done_files) / done_files))) left"
  done
}

# start_server: on the ports asked for, or on free ones; sets ADDRESS and METRICS
# to where it listens, which gemmd says in its log.
start_server() {
  : >"$OUT/gemmd.log"
  "$BUILD/server/gemmd" --address="127.0.0.1:$PORT" --metrics-address="127.0.0.1:$METRICS_PORT" \
    </dev/null >>"$OUT/gemmd.log" 2>&1 &
  SERVER_PID=$!
  trap stop_server EXIT
  for _ in {1..300}; do
    ADDRESS="$(serving address)"
    [[ -n $ADDRESS ]] && break
    kill -0 "$SERVER_PID" 2>/dev/null || break
    sleep 0.2
  done
  if [[ -z $ADDRESS ]]; then
    tail -n 20 "$OUT/gemmd.log" >&2
    die "gemmd did not start; the lines above are its log"
  fi
  METRICS="$(serving metrics)"
  export GEMMCTL_ADDRESS="$ADDRESS"
}

# serving FIELD: of gemmd's log line that says it serves.
serving() { sed -n "s/^[^ ]* info serving \(.* \)\{0,1\}$1=\([^ ]*\).*/\2/p" "$OUT/gemmd.log"; }

stop_server() {
  [[ -n $SERVER_PID ]] || return 0
  kill -TERM "$SERVER_PID" 2>/dev/null || true
  # It ends by itself, at the latest after its drain timeout of 30 s.
  for _ in {1..300}; do
    kill -0 "$SERVER_PID" 2>/dev/null || break
    sleep 0.2
  done
  kill -KILL "$SERVER_PID" 2>/dev/null || true
  wait "$SERVER_PID" 2>/dev/null || true
  SERVER_PID=
}

ctl() { "$BUILD/client/ctl/gemmctl" "$@"; }

# json_number FILE KEY and json_string FILE KEY: the first value of that key.
# gemmctl prints one key a line.
json_number() { sed -n "s/^ *\"$2\": \(-\{0,1\}[0-9][0-9.eE+-]*\),\{0,1\}$/\1/p" "$1" | head -n 1; }
json_string() { sed -n "s/^ *\"$2\": \"\(.*\)\",\{0,1\}$/\1/p" "$1" | head -n 1; }

# pick_kernels: two kernels for f32 that run here: the libraries' on a GPU, and
# OpenBLAS and the reference on the host.
pick_kernels() {
  local available name
  ctl kernels --available --json >"$OUT/kernels.json"
  available="$(sed -n 's/^ *"name": "\(.*\)",\{0,1\}$/\1/p' "$OUT/kernels.json")"
  for name in cublaslt_f32 cublas_f32 host_openblas host_reference; do
    if grep -qx "$name" <<<"$available"; then echo "$name"; fi
  done | head -n 2
}

# multiply NAME KERNEL ARGUMENT...: one product, checked; a line of the table.
multiply() {
  local name="$1" kernel="$2" report="$OUT/$1-$2.json"
  shift 2
  ctl multiply "$@" -o "$OUT/$name-$kernel.npy" --kernel "$kernel" --verify \
    --verify-samples 10000000 --json >"$report" || {
    cat "$report" >&2
    die "$name with $kernel failed"
  }
  local phases=() phase
  for phase in receive queue h2d kernel d2h send; do
    phases+=("$(json_number "$report" "$phase")")
  done
  printf '%s %s %sx%sx%s %s %s %s\n' "$name" "$(json_string "$report" kernel)" \
    "$(json_number "$report" m)" "$(json_number "$report" n)" "$(json_number "$report" k)" \
    "${phases[*]}" "$(json_number "$report" tflops)" "$(json_number "$report" worst_absolute_error)"
}

# table: the lines of multiply on standard input, with seconds as milliseconds.
table() {
  printf '%-11s %-15s %-14s %8s %8s %8s %8s %8s %8s %9s %10s\n' product kernel 'm x n x k' \
    receive queue h2d kernel d2h send GFLOPS 'max error'
  awk '{printf "%-11s %-15s %-14s", $1, $2, $3
    for (i = 4; i <= 9; ++i) printf " %8.3f", $i * 1000
    printf " %9.2f %10.2e\n", $10 * 1000, $11}'
  echo "phases in ms; every product was compared with a reference in double precision"
}

run_products() {
  local kernels kernel
  mapfile -t kernels < <(pick_kernels)
  ((${#kernels[@]} == 2)) || die "two f32 kernels expected, there are: ${kernels[*]-none}"
  say "X is $DIGITS/digits.npy, 1797 images of 64 pixels; gram is X X^T," \
    "projection is (X - mean) W on 16 principal axes"
  for kernel in "${kernels[@]}"; do
    multiply gram "$kernel" "$DIGITS/digits.npy" "$DIGITS/digits.npy" --transpose-b
  done >"$OUT/table"
  for kernel in "${kernels[@]}"; do
    multiply projection "$kernel" "$DIGITS/digits.npy" "$DIGITS/axes.npy" --bias "$DIGITS/offset.npy"
  done >>"$OUT/table"
  echo
  table <"$OUT/table"
  echo
}

go_on() {
  local ctl="${BUILD#"$ROOT"/}/client/ctl/gemmctl"
  if $SERVE; then
    trap - EXIT
    cat <<TEXT
gemmd goes on serving on $ADDRESS, process $SERVER_PID; its log is $OUT/gemmd.log
  stop it               kill $SERVER_PID
  what it is            $ctl --address $ADDRESS info
  its kernels           $ctl --address $ADDRESS kernels
  a product             $ctl --address $ADDRESS multiply A.npy B.npy -o C.npy
  under load            $ctl --address $ADDRESS loadtest --shape 512x512x512 --duration 5s
  metrics               curl http://$METRICS/metrics
TEXT
  else
    cat <<TEXT
The server has stopped. To go on:
  scripts/quickstart.sh --serve    the same, and leaves the server running
  scripts/test.sh                  every test that needs no GPU
  $ctl --help
TEXT
  fi
  echo "  docs/start.md goes on from here"
}

main() {
  parse "$@"
  scripts/install-deps.sh build
  build
  start_server
  say "gemmd serves $(ctl info --json | sed -n 's/^ *"name": "\(.*\)",$/\1/p' | tr '\n' ' ')on $ADDRESS"
  run_products
  if ! $SERVE; then
    stop_server
    rm -rf "$OUT"
  fi
  go_on
}

main "$@"
