#!/bin/bash
# Takes the GPU image to a machine with a GPU that has no container engine, and
# multiplies with it there.
#
#   tests/deploy/gpu_image.sh pack ROOT ARCHIVE <ENVIRONMENT
#   tests/deploy/gpu_image.sh run [--out DIR] [--devices SPEC] [--libraries DIR]... ARCHIVE
#
# pack  packs an image's root file system for travel, without CUDA's libraries, which
#       are far too large: sums stand for them in its manifest. ENVIRONMENT is the
#       image's, a variable a line. tests/deploy/image_test.sh --pack does this.
# run   unpacks it, puts that machine's own copies of the libraries back, adds the
#       driver's libraries as the NVIDIA container runtime does, starts gemmd in it as
#       user 10001, multiplies, and stops it. Writes image-gpu-on-device.md to --out
#       ($OUT or ./out). Needs root.
#
# --devices    what gemmd serves, cuda by default; host where there is no GPU
# --libraries  a folder to look for CUDA's libraries in, before those where NVIDIA's
#              wheels and the toolkit lie
#
# The programs run by chroot, with /dev, /proc and /sys of the machine. Where nothing
# may be mounted they run without: started by the image's own loader, with the image's
# libraries alone.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"

LIBRARIES=usr/local/lib
DRIVER_LIBRARIES=usr/lib/x86_64-linux-gnu
START_SECONDS=120
LIMIT_MIB=55 # of the archive

OUT_DIR="${OUT:-./out}"
DEVICES=cuda
FOLDERS=()
SERVER=""
SCRATCH=""

# -- pack ---------------------------------------------------------------------

pack() {
  (($# == 2)) || die "pack wants ROOT ARCHIVE, got $# arguments"
  local root="$1" archive="$2" manifest name
  [[ -x $root/usr/local/bin/gemmd ]] || die "$root has no usr/local/bin/gemmd"
  manifest="$(mktemp -d)"
  cat >"$manifest/environment"
  (cd "$root/$LIBRARIES" && sha256sum libcu*.so.*) >"$manifest/left-out"
  mkdir -p "$(dirname "$archive")"
  # Package lists and the like are not run.
  tar -C "$root" --numeric-owner --one-file-system --exclude="./$LIBRARIES/libcu*" \
    --exclude=./var/lib/dpkg/info --exclude='./var/cache/*' --transform 's,^\.,root,S' \
    -cf "$manifest/image.tar" .
  tar -C "$manifest" -rf "$manifest/image.tar" environment left-out
  xz --threads=0 -c "$manifest/image.tar" >"$archive"
  rm -rf "$manifest"
  say "$archive: $(du -m --apparent-size "$archive" | cut -f1) MiB, without $(wc -l < <(cd "$root/$LIBRARIES" && ls -d libcu*)) libraries of CUDA"
  (($(stat -c %s "$archive") <= LIMIT_MIB * 1024 * 1024)) ||
    die "$archive is larger than $LIMIT_MIB MiB: build it with --architectures 90a-real"
}

# -- run ----------------------------------------------------------------------

parse_run() {
  ARCHIVE=
  while (($#)); do
    case "$1" in
      --out | --devices | --libraries)
        (($# >= 2)) || die "$1 needs a value"
        case "$1" in
          --out) OUT_DIR="$2" ;;
          --devices) DEVICES="$2" ;;
          --libraries) FOLDERS+=("$2") ;;
        esac
        shift
        ;;
      -*) die "unknown option '$1': --out, --devices and --libraries are known" ;;
      *) ARCHIVE="$1" ;;
    esac
    shift
  done
  [[ -f $ARCHIVE ]] || die "no archive '$ARCHIVE': tests/deploy/image_test.sh --pack makes one"
  [[ "$(id -u)" == 0 ]] || die "chroot and the user 10001 need root"
}

# candidates NAME: the machine's copies of a library, the likeliest first.
candidates() {
  local folder
  for folder in "${FOLDERS[@]}" \
    $(python3 -c 'import nvidia; print(*(p + "/cu13/lib" for p in nvidia.__path__))' 2>/dev/null) \
    /usr/local/cuda/lib64 /usr/local/cuda/lib /usr/local/cuda/targets/x86_64-linux/lib; do
    if [[ -f $folder/$1 ]]; then echo "$folder/$1"; fi
  done
  find / -xdev -path "$SCRATCH" -prune -o -name "$1" -type f -print 2>/dev/null || true
}

sum() { sha256sum "$1" | cut -d' ' -f1; }

# put_back SUM NAME
put_back() {
  local path chosen="" first=""
  while read -r path; do
    first="${first:-$path}"
    if [[ $(sum "$path") == "$1" ]]; then chosen="$path"; break; fi
  done < <(candidates "$2" | awk '!seen[$0]++')
  [[ -n $first ]] || die "this machine has no $2, which the image needs: --libraries DIR"
  if [[ -n $chosen ]]; then
    say "$2: the same bytes as the image's, from ${chosen##*/site-packages/}"
  else
    chosen="$first"
    say "$2: NOT the image's bytes ($1), used anyway: $(sum "$chosen") from $chosen"
  fi
  cp --dereference "$chosen" "$ROOTFS/$LIBRARIES/$2"
}

# The libraries of the driver that "compute" and "utility" stand for.
add_driver() {
  local folder
  folder="$(ldconfig -p | awk '/libcuda\.so\.1 .*x86-64/ {print $NF; exit}')"
  folder="${folder%/*}"
  [[ -n $folder ]] || for folder in /usr/local/nvidia/lib64 /usr/lib/x86_64-linux-gnu ""; do
    if [[ -e $folder/libcuda.so.1 ]]; then break; fi
  done
  [[ -n $folder ]] || { say "this machine has no libcuda.so.1: no driver"; return; }
  local name path count=0
  for name in libcuda libnvidia-ml libnvidia-ptxjitcompiler libnvidia-nvvm libnvidia-gpucomp \
    libnvidia-nvvm70; do
    for path in "$folder/$name".so.*; do
      [[ -f $path ]] || continue
      cp --dereference "$path" "$ROOTFS/$DRIVER_LIBRARIES/"
      count=$((count + 1))
    done
  done
  say "the driver: $count libraries from $folder"
}

# enter_root: makes the root one to chroot into; false where nothing may be mounted.
enter_root() {
  local name
  for name in proc sys dev; do
    mount --rbind "/$name" "$ROOTFS/$name" 2>/dev/null || { leave_root; return 1; }
    mount --make-rslave "$ROOTFS/$name"
  done
}

leave_root() {
  local name
  for name in proc sys dev; do
    if mountpoint -q "$ROOTFS/$name"; then umount --recursive --lazy "$ROOTFS/$name"; fi
  done
}

# How a program of the image is started, as its user and with its environment: RUN goes
# before its path, which BIN begins.
prepare_to_run() {
  local environment
  mapfile -t environment < <(grep -v '^GEMMD_\(.*ADDRESS\|TLS_.*\|CALLERS_FILE\)=' "$SCRATCH/environment")
  environment+=("GEMMD_ADDRESS=127.0.0.1:$(free_port)" "GEMMD_METRICS_ADDRESS=127.0.0.1:$(free_port)")
  if enter_root; then
    WAY="by chroot"
    chroot "$ROOTFS" /sbin/ldconfig
    RUN=(chroot --userspec=10001:10001 "$ROOTFS" /usr/bin/env -i "${environment[@]}")
    BIN=/usr/local/bin
  else
    WAY="by the image's loader, NOT by chroot: nothing may be mounted here"
    local system="$ROOTFS/$DRIVER_LIBRARIES"
    RUN=(setpriv --reuid 10001 --regid 10001 --clear-groups /usr/bin/env -i "${environment[@]}"
      "$system/ld-linux-x86-64.so.2" --inhibit-cache
      --library-path "$ROOTFS/$LIBRARIES:$system/openblas-pthread:$system")
    BIN="$ROOTFS/usr/local/bin"
  fi
}

# inside PROGRAM ARGUMENT...
inside() {
  local program="$1"
  shift
  "${RUN[@]}" "$BIN/$program" "$@"
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

start_server() {
  local start=$SECONDS
  # Not by a function, so that SERVER is the server and no shell that waits for it.
  "${RUN[@]}" "$BIN/gemmd" --devices="$DEVICES" >"$SCRATCH/gemmd.log" 2>&1 &
  SERVER=$!
  until inside gemmctl --deadline=4s info >"$SCRATCH/info.txt" 2>&1; do
    if ((SECONDS - start >= START_SECONDS)) || ! kill -0 "$SERVER" 2>/dev/null; then
      cat "$SCRATCH/gemmd.log" "$SCRATCH/info.txt"
      die "gemmd does not come up in its image"
    fi
    sleep 0.5
  done
  say "gemmd is up after $(seconds_since "$start") s, as user" \
    "$(awk '/^Uid:/ {print $2}' "/proc/$SERVER/status") with capabilities" \
    "$(awk '/^CapEff:/ {print $2}' "/proc/$SERVER/status"), $WAY"
  cat "$SCRATCH/info.txt"
}

# A type after the other; the exit status of each says whether the product is right.
multiply() {
  local m=4096 type
  [[ $DEVICES == host* ]] && m=300
  for type in f32 f64 f16 bf16; do
    say "gemmctl multiply random:${m}x${m}:$type:1 random:${m}x${m}:$type:2 --verify"
    inside gemmctl multiply "random:${m}x${m}:$type:1" "random:${m}x${m}:$type:2" --verify
  done
}

stop_server() {
  local status=0
  kill -TERM "$SERVER"
  wait "$SERVER" || status=$?
  SERVER=""
  cat "$SCRATCH/gemmd.log"
  ((status == 0)) || die "gemmd ended with $status after SIGTERM"
  say "SIGTERM: exit status 0"
}

try_image() {
  tar -C "$SCRATCH" --numeric-owner -xf "$ARCHIVE"
  local name digest
  while read -r digest name; do put_back "$digest" "$name"; done <"$SCRATCH/left-out"
  add_driver
  prepare_to_run
  start_server
  multiply
  stop_server
  say "the image's gemmd multiplies on $DEVICES"
}

cleanup() {
  [[ -z $SERVER ]] || kill -KILL "$SERVER" 2>/dev/null || true
  [[ -z $SCRATCH ]] || leave_root
  # Never through a mount that is still there.
  if [[ -n $SCRATCH ]] && ! grep -q " $SCRATCH/" /proc/mounts; then rm -rf --one-file-system "$SCRATCH"; fi
}

gpu_line() {
  if has_gpu; then nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | tr '\n' ';'; else echo none; fi
}

run() {
  parse_run "$@"
  SCRATCH="$(mktemp -d -t gpu-image.XXXXXX)"
  chmod 755 "$SCRATCH"
  ROOTFS="$SCRATCH/root"
  trap cleanup EXIT
  mkdir -p "$OUT_DIR"
  local report="$OUT_DIR/image-gpu-on-device.md" status=0
  # shellcheck disable=SC2016 # Markdown
  {
    printf '# The GPU image on a GPU\n\n| | |\n| --- | --- |\n'
    printf '| GPU, driver | %s |\n' "$(gpu_line)"
    # shellcheck source=/dev/null
    printf '| machine | %s, Linux %s |\n' "$(. /etc/os-release && echo "$PRETTY_NAME")" "$(uname -r)"
    printf '| command | `tests/deploy/gpu_image.sh run --devices %s %s` |\n' "$DEVICES" "$(basename "$ARCHIVE")"
    printf '| archive | %s |\n' "$(sum "$ARCHIVE")"
    printf '| date | %s |\n\n```\n' "$(date -u +%Y-%m-%dT%H:%MZ)"
  } >"$report"
  # A shell of its own, which its first failing step ends.
  set +e
  (set -e; trap cleanup EXIT; try_image) 2>&1 | tee -a "$report"
  status=${PIPESTATUS[0]}
  set -e
  printf '```\n\nexit status %d\n' "$status" >>"$report"
  return "$status"
}

case "${1-}" in
  pack | run) command="$1"; shift; "$command" "$@" ;;
  -h | --help) usage ;;
  *) usage; exit 1 ;;
esac
