#!/bin/bash
# Builds the `host` image for real and runs it, with buildah and without a
# container engine. Takes a compile of the server: minutes.
#
#   tests/deploy/image_test.sh [--keep DIR]
#
# --keep DIR  works in DIR and leaves it there, so that the next run need not
#             fetch the base system and the packages again
#
# The base image is a Debian 12 of debootstrap. Needs root, buildah and
# debootstrap; exit status 77 and a reason where one is missing.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
cd "$ROOT"

BASE=localhost/gemmd-test-base
IMAGE=localhost/gemmd-test
MIRROR="${GEMMD_DEBIAN_MIRROR:-http://deb.debian.org/debian}"
START_SECONDS=60

skip() { say "skipped: $*"; exit 77; }

WORK=""
keep=false
while (($#)); do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --keep)
      (($# >= 2)) || die "--keep needs a folder"
      WORK="$(realpath -m "$2")"
      keep=true
      shift
      ;;
    *) die "unknown option '$1': --keep and --help are known" ;;
  esac
  shift
done

[[ "$(id -u)" == 0 ]] || skip "debootstrap and chroot isolation need root"
for tool in buildah debootstrap curl python3; do
  have "$tool" || skip "$tool is not installed"
done

WORK="${WORK:-$(mktemp -d /var/tmp/gemmd-image.XXXXXX)}"
mkdir -p "$WORK"
CONTAINER=""
SERVER=""

cleanup() {
  [[ -z $SERVER ]] || kill -KILL "$SERVER" 2>/dev/null || true
  [[ -z $CONTAINER ]] || run_buildah rm "$CONTAINER" >/dev/null 2>&1 || true
  [[ $keep == true ]] || rm -rf --one-file-system "$WORK"
}
trap cleanup EXIT

# Its own storage, without overlay mounts, so that it works inside a container too.
run_buildah() {
  buildah --root "$WORK/storage" --runroot "$WORK/run" --storage-driver vfs "$@"
}

make_base() {
  if run_buildah inspect --type image "$BASE" >/dev/null 2>&1; then return; fi
  if [[ ! -e $WORK/base/etc/os-release || -e $WORK/base/debootstrap ]]; then
    say "fetching a Debian 12 base system"
    rm -rf --one-file-system "$WORK/base"
    debootstrap --variant=minbase bookworm "$WORK/base" "$MIRROR" >"$WORK/debootstrap.log" 2>&1 ||
      { tail "$WORK/debootstrap.log"; die "debootstrap failed"; }
  fi
  local container
  container="$(run_buildah from scratch)"
  run_buildah add --quiet "$container" "$WORK/base" / >/dev/null
  run_buildah commit --quiet --rm "$container" "$BASE" >/dev/null
  rm -rf --one-file-system "$WORK/base"
}

build_image() {
  say "building the host image"
  local start=$SECONDS
  run_buildah bud --isolation chroot --format docker --layers="$keep" \
    --file deploy/docker/Dockerfile --target host --tag "$IMAGE" \
    --build-arg HOST_BUILD_IMAGE="$BASE" --build-arg HOST_RUNTIME_IMAGE="$BASE" \
    --build-arg GEMMD_COMMIT=image-test . >"$WORK/build.log" 2>&1 ||
    { tail -n 40 "$WORK/build.log"; die "the image does not build: $WORK/build.log"; }
  say "built in $(as_time "$(seconds_since "$start")")"
}

# inspect TEMPLATE: from the image's configuration.
inspect() { run_buildah inspect --type image --format "$1" "$IMAGE"; }

# expect NAME WANT GOT
expect() {
  [[ $3 == "$2" ]] || die "$1: want '$2', got '$3'"
  say "ok: $1"
}

check_configuration() {
  expect "user" "10001:10001" "$(inspect '{{.Docker.Config.User}}')"
  expect "entry point" "[gemmd]" "$(inspect '{{.Docker.Config.Entrypoint}}')"
  expect "health check" "[CMD gemmctl --deadline=4s info]" \
    "$(inspect '{{.Docker.Config.Healthcheck.Test}}')"
  expect "ports" "map[50051/tcp:{} 9464/tcp:{}]" "$(inspect '{{.Docker.Config.ExposedPorts}}')"
  expect "revision" "image-test" \
    "$(inspect '{{index .Docker.Config.Labels "org.opencontainers.image.revision"}}')"
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# inside COMMAND...: in the container, as the image's user. Its network is this machine's.
inside() {
  run_buildah run --isolation chroot --env GEMMD_ADDRESS="$ADDRESS" \
    --env GEMMD_METRICS_ADDRESS="$METRICS" "$CONTAINER" -- "$@"
}

start_server() {
  CONTAINER="$(run_buildah from "$IMAGE")"
  ADDRESS="127.0.0.1:$(free_port)" METRICS="127.0.0.1:$(free_port)"
  inside gemmd --devices=host >"$WORK/gemmd.log" 2>&1 &
  SERVER=$!
  local deadline=$((SECONDS + START_SECONDS))
  # The health check's own command.
  until inside gemmctl --deadline=4s info >"$WORK/info.txt" 2>&1; do
    if ((SECONDS >= deadline)) || ! kill -0 "$SERVER" 2>/dev/null; then
      cat "$WORK/gemmd.log" "$WORK/info.txt"
      die "gemmd does not come up in its image"
    fi
    sleep 0.5
  done
  say "ok: the health check's command succeeds"
}

check_server() {
  local pid
  pid="$(pgrep --exact --uid 10001 --newest gemmd)" || die "no process gemmd of user 10001"
  expect "user of the process" "10001" "$(awk '/^Uid:/ {print $2}' "/proc/$pid/status")"
  expect "capabilities of the process" "0000000000000000" \
    "$(awk '/^CapEff:/ {print $2}' "/proc/$pid/status")"

  # --verify: the exit status says whether the product is right.
  inside gemmctl multiply random:65x33:f32:1 random:33x17:f32:2 --verify -o /tmp/c.npy ||
    die "gemmctl cannot multiply in the image"
  inside test -s /tmp/c.npy || die "gemmctl wrote no result"
  say "ok: a product, verified"
  curl -fsS "http://$METRICS/metrics" >"$WORK/metrics.txt"
  grep -q 'gemmd_build_info{.*commit="image-test".*} 1' "$WORK/metrics.txt" ||
    die "no gemmd_build_info of this commit in /metrics"
  say "ok: /metrics names the commit"

  kill -TERM "$pid"
  local status=0
  wait "$SERVER" || status=$?
  SERVER=""
  expect "exit status after SIGTERM" 0 "$status"
}

make_base
build_image
check_configuration
start_server
check_server
say "the host image builds, runs and multiplies"
