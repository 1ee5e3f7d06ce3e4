#!/bin/bash
# Builds an image for real and runs it, with buildah and without a container engine.
#
#   tests/deploy/image_test.sh [--target host|gpu] [--architectures LIST] [--keep DIR]
#                              [--ccache DIR] [--report FILE] [--pack ARCHIVE]
#
# --target         host (the default) or gpu, which needs 10 GB of disk and has to
#                  say that there is no GPU and to serve the host
# --architectures  of the GPU image's kernels, such as 90a-real; all by default
# --keep DIR       works in DIR and leaves it there, so that the next run need not
#                  fetch the base system and the packages again
# --ccache DIR     the compiler's cache; none by default, so that all is compiled
# --report FILE    writes what is printed as Markdown, where all succeeded
# --pack ARCHIVE   packs the image for tests/deploy/gpu_image.sh
#
# The base image is a Debian 12 of debootstrap that takes packages from where this
# machine's apt and pip take theirs. Needs root, buildah, debootstrap, curl and
# python3 with numpy; exit status 77 and a reason where one is missing.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
# shellcheck source=tests/deploy/image_base.sh
source "$(dirname "${BASH_SOURCE[0]}")/image_base.sh"
# shellcheck source=tests/deploy/image_shipped.sh
source "$(dirname "${BASH_SOURCE[0]}")/image_shipped.sh"
cd "$ROOT"

START_SECONDS=60
# The system's, which has NumPy of scripts/install-deps.sh test.
PYTHON=/usr/bin/python3

TARGET=host
ARCHITECTURES=""
WORK=""
KEEP=false
CCACHE=""
REPORT=""
ARCHIVE=""
CONTAINER=""
SERVER=""
SECRETS=""
# The commit that the image's labels name.
COMMIT="$(git rev-parse --short=12 HEAD 2>/dev/null || echo image-test)"

skip() { say "skipped: $*"; exit 77; }

# note TEXT...: a line of the report, too.
note() { say "$@" | tee -a "$WORK/output.txt"; }

parse() {
  while (($#)); do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --target | --architectures | --keep | --ccache | --report | --pack)
        (($# >= 2)) || die "$1 needs a value"
        case "$1" in
          --target) TARGET="$2" ;;
          --architectures) ARCHITECTURES="$2" ;;
          --keep) WORK="$(realpath -m "$2")" KEEP=true ;;
          --ccache) CCACHE="$(realpath -m "$2")" ;;
          --report) REPORT="$(realpath -m "$2")" ;;
          --pack) ARCHIVE="$(realpath -m "$2")" ;;
        esac
        shift
        ;;
      *) die "unknown option '$1': see --help" ;;
    esac
    shift
  done
  [[ $TARGET == host || $TARGET == gpu ]] || die "--target is '$TARGET': host and gpu are known"
  [[ -z $ARCHIVE || $TARGET == gpu ]] || die "--pack is for --target gpu"
}

check_tools() {
  [[ "$(id -u)" == 0 ]] || skip "debootstrap and chroot isolation need root"
  local tool
  for tool in buildah debootstrap curl python3; do
    have "$tool" || skip "$tool is not installed: scripts/install-deps.sh test"
  done
  "$PYTHON" -c 'import numpy' 2>/dev/null || skip "$PYTHON has no numpy: scripts/install-deps.sh test"
}

cleanup() {
  [[ -z $SERVER ]] || kill -KILL "$SERVER" 2>/dev/null || true
  [[ -z $CONTAINER ]] || run_buildah rm "$CONTAINER" >/dev/null 2>&1 || true
  [[ $KEEP == true ]] || rm -rf --one-file-system "$WORK"
}

# Its own storage, without overlay mounts, so that it works inside a container too.
run_buildah() {
  buildah --root "$WORK/storage" --runroot "$WORK/run" --storage-driver vfs "$@"
}

build_image() {
  say "building the $TARGET image: $WORK/build.log"
  local start=$SECONDS name="${TARGET^^}" options=()
  if [[ -n $CCACHE ]]; then
    mkdir -p "$CCACHE"
    options+=(--volume "$CCACHE:/root/.cache/ccache")
  fi
  [[ -z $ARCHITECTURES ]] || options+=(--build-arg CUDA_ARCHITECTURES="$ARCHITECTURES")
  run_buildah bud --isolation chroot --format docker --jobs 2 --layers="$KEEP" "${options[@]}" \
    --file deploy/docker/Dockerfile --target "$TARGET" --tag "$IMAGE" \
    --build-arg "${name}_BUILD_IMAGE=$BASE" --build-arg "${name}_RUNTIME_IMAGE=$BASE" \
    --build-arg GEMMD_COMMIT="$COMMIT" . >"$WORK/build.log" 2>&1 ||
    { tail -n 40 "$WORK/build.log"; die "the image does not build"; }
  note "the $TARGET image built in $(as_time "$(seconds_since "$start")")," \
    "${ARCHITECTURES:+for $ARCHITECTURES, }${CCACHE:+with a compiler cache, }on $(nproc) cores" \
    "whose load was $(cut -d ' ' -f 3 /proc/loadavg)"
}

# inspect TEMPLATE: from the image's configuration.
inspect() { run_buildah inspect --type image --format "$1" "$IMAGE"; }

# expect NAME WANT GOT
expect() {
  [[ $3 == "$2" ]] || die "$1: want '$2', got '$3'"
  note "ok: $1: ${2:-none}"
}

check_configuration() {
  expect "user" "10001:10001" "$(inspect '{{.Docker.Config.User}}')"
  expect "entry point" "[gemmd]" "$(inspect '{{.Docker.Config.Entrypoint}}')"
  expect "health check" "[CMD gemmd-ready]" \
    "$(inspect '{{.Docker.Config.Healthcheck.Test}}')"
  expect "ports" "map[50051/tcp:{} 9464/tcp:{}]" "$(inspect '{{.Docker.Config.ExposedPorts}}')"
  expect "revision" "$COMMIT" \
    "$(inspect '{{index .Docker.Config.Labels "org.opencontainers.image.revision"}}')"
  if [[ $TARGET == gpu ]]; then
    expect "what the NVIDIA container runtime is asked for" \
      "NVIDIA_DRIVER_CAPABILITIES=compute,utility NVIDIA_REQUIRE_CUDA=cuda>=13.0 NVIDIA_VISIBLE_DEVICES=all" \
      "$(environment | grep '^NVIDIA_' | LC_ALL=C sort | tr '\n' ' ' | sed 's/ $//')"
  fi
}

# environment: of the image, one NAME=VALUE a line.
environment() { inspect '{{range .Docker.Config.Env}}{{println .}}{{end}}' | sed '/^$/d'; }

mebibytes() { du -cs --apparent-size --block-size=1 --one-file-system "$@" | awk 'END {printf "%.1f MiB", $1 / 1048576}'; }

check_files() {
  MOUNT="$(run_buildah mount "$CONTAINER")"
  local missing
  missing="$(inside ldd /usr/local/bin/gemmd /usr/local/bin/gemmctl | grep 'not found' || true)"
  expect "libraries that the loader misses" "" "$missing"
  expect "compilers in the image" "" "$(cd "$MOUNT" && find usr/bin usr/local -name '*g++*' -o -name nvcc)"
  note "root file system $(mebibytes "$MOUNT"): base system $(mebibytes_of_base)," \
    "gemmd $(mebibytes "$MOUNT/usr/local/bin/gemmd"), gemmctl $(mebibytes "$MOUNT/usr/local/bin/gemmctl")"
  if [[ $TARGET == gpu ]]; then
    note "CUDA's libraries $(mebibytes "$MOUNT"/usr/local/lib/libcu*): $(cd "$MOUNT/usr/local/lib" && echo libcu*)"
  fi
}

mebibytes_of_base() {
  local container
  container="$(run_buildah from "$BASE")"
  mebibytes "$(run_buildah mount "$container")"
  run_buildah rm "$container" >/dev/null
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# in_container OPTION... -- COMMAND...: as the image's user, without capabilities. Its
# network is this machine's, so its ports are ones that are free here.
in_container() {
  local options=()
  while [[ $1 != -- ]]; do options+=("$1") && shift; done
  run_buildah run --isolation chroot --cap-drop all --env GEMMD_ADDRESS="$ADDRESS" \
    --env GEMMD_METRICS_ADDRESS="$METRICS" "${options[@]}" "$CONTAINER" "$@"
}

# inside COMMAND...: on the loopback interface, where it needs neither TLS nor callers.
inside() {
  in_container --env GEMMD_TLS_CERTIFICATE= --env GEMMD_TLS_KEY= --env GEMMD_CALLERS_FILE= -- "$@"
}

# Without a GPU the GPU image says so and ends; it does not serve the host unasked.
check_without_gpu() {
  local status=0
  inside gemmd >"$WORK/no-gpu.log" 2>&1 || status=$?
  expect "exit status of gemmd without a GPU" 2 "$status"
  # Beside those of buildah.
  expect "lines that it says then" 1 "$(grep -vc '^subprocess exited\|^Error: exit status' "$WORK/no-gpu.log")"
  grep -q 'there is no CUDA device' "$WORK/no-gpu.log" ||
    { cat "$WORK/no-gpu.log"; die "gemmd does not say that there is no GPU"; }
  note "ok: $(grep 'no CUDA device' "$WORK/no-gpu.log")"
}

# server_pid: of gemmd in the container, whose address nobody else has.
server_pid() {
  local folder
  for folder in /proc/[0-9]*; do
    if [[ $(cat "$folder/comm" 2>/dev/null) == gemmd ]] &&
      grep -qsz "^GEMMD_ADDRESS=$ADDRESS\$" "$folder/environ"; then basename "$folder"; fi
  done
}

# start_server RUN: gemmd by that function, `inside` or `shipped`.
start_server() {
  local start=$SECONDS
  "$1" gemmd --devices=host >"$WORK/gemmd.log" 2>&1 &
  SERVER=$!
  local deadline=$((SECONDS + START_SECONDS))
  # The health check's own command.
  until "$1" gemmd-ready >"$WORK/ready.txt" 2>&1; do
    if ((SECONDS >= deadline)) || ! kill -0 "$SERVER" 2>/dev/null; then
      cat "$WORK/gemmd.log" "$WORK/ready.txt"
      die "gemmd does not come up in its image"
    fi
    sleep 0.5
  done
  note "ok: the health check's command succeeds, after $(seconds_since "$start") s"
}

# check_product GEMMCTL...: multiplies files that the tested programs did not make, and compares with NumPy's product.
# GEMMCTL is a command that runs it in the container.
check_product() {
  rm -f "$MOUNT/tmp/c.npy"
  install -m 644 examples/digits/digits.npy examples/digits/axes.npy "$MOUNT/tmp/"
  # --verify: the exit status says whether the product is right.
  "$@" multiply /tmp/digits.npy /tmp/axes.npy -o /tmp/c.npy --verify >"$WORK/multiply.txt" ||
    { cat "$WORK/multiply.txt"; die "gemmctl cannot multiply in the image"; }
  local line
  line="$("$PYTHON" - "$MOUNT"/tmp/{digits,axes,c}.npy <<'PYTHON'
import sys
import numpy as np
a, b, c = (np.load(path) for path in sys.argv[1:])
want = a.astype("f8") @ b.astype("f8")
# The usual bound on a sum of k products, each rounded.
bound = a.shape[1] * np.finfo("f4").eps * (abs(a).astype("f8") @ abs(b).astype("f8"))
error = abs(c - want)
assert c.shape == want.shape and c.dtype == np.float32, (c.shape, c.dtype)
assert (error <= bound).all(), f"largest error {error.max()}"
print(f"{c.shape[0]}x{c.shape[1]}x{a.shape[1]}, largest difference from NumPy's {error.max():.2e}")
PYTHON
  )" || die "the product differs from NumPy's"
  note "ok: a product, verified by gemmctl and by NumPy: $line"
}

check_server() {
  local pid
  pid="$(server_pid)"
  [[ $pid =~ ^[0-9]+$ ]] || die "want one process gemmd at $ADDRESS, got '$pid'"
  expect "user of the process" "10001" "$(awk '/^Uid:/ {print $2}' "/proc/$pid/status")"
  expect "capabilities of the process" "0000000000000000" \
    "$(awk '/^CapEff:/ {print $2}' "/proc/$pid/status")"
  check_product inside gemmctl
  curl -fsS "http://$METRICS/metrics" >"$WORK/metrics.txt"
  grep -q "gemmd_build_info{.*commit=\"$COMMIT\".*} 1" "$WORK/metrics.txt" ||
    die "no gemmd_build_info of $COMMIT in /metrics"
  grep -q '^gemmd_jobs_total{.*outcome="OK".*} [1-9]' "$WORK/metrics.txt" ||
    die "/metrics does not count the product"
  note "ok: /metrics names the commit and counts the product"
}

stop_server() {
  local status=0
  kill -TERM "$(server_pid)"
  wait "$SERVER" || status=$?
  SERVER=""
  grep -q draining "$WORK/gemmd.log" || { cat "$WORK/gemmd.log"; die "gemmd does not say that it drains"; }
  expect "exit status after SIGTERM" 0 "$status"
}

write_report() {
  local title="The host image"
  [[ $TARGET == host ]] || title="The GPU image"
  {
    printf '# %s\n\n' "$title"
    printf '| | |\n| --- | --- |\n'
    # shellcheck disable=SC2016 # Markdown
    printf '| command | `tests/deploy/image_test.sh --target %s%s%s` |\n' "$TARGET" \
      "${ARCHITECTURES:+ --architectures \"$ARCHITECTURES\"}" "${CCACHE:+ --ccache DIR}"
    printf '| commit | %s |\n' "$COMMIT"
    printf '| date | %s |\n\n' "$(date -u +%Y-%m-%d)"
    printf '```\n'
    cat "$WORK/output.txt"
    printf '```\n'
  } >"$REPORT"
}

main() {
  parse "$@"
  check_tools
  IMAGE="localhost/gemmd-test-$TARGET"
  WORK="${WORK:-$(mktemp -d /var/tmp/gemmd-image.XXXXXX)}"
  mkdir -p "$WORK"
  : >"$WORK/output.txt"
  trap cleanup EXIT
  ADDRESS="127.0.0.1:$(free_port)" METRICS="127.0.0.1:$(free_port)"
  make_base
  build_image
  check_configuration
  CONTAINER="$(run_buildah from "$IMAGE")"
  check_files
  check_closed
  if [[ $TARGET == gpu ]]; then check_without_gpu; fi
  start_server inside
  check_server
  stop_server
  check_shipped
  note "the $TARGET image builds, runs and multiplies; all of it took $(as_time $SECONDS)"
  if [[ -n $REPORT ]]; then write_report; fi
  if [[ -n $ARCHIVE ]]; then environment | tests/deploy/gpu_image.sh pack "$MOUNT" "$ARCHIVE"; fi
}

main "$@"
