#!/bin/bash
# Builds the packages, installs them into a bare Debian 12, multiplies, and purges them.
#
#   tests/deploy/package_test.sh [--packages DIR] [--build-dir DIR] [--keep DIR]
#
# --packages   finished packages of scripts/package.sh, instead of new ones
# --build-dir  the build tree of new ones; build/host by default
# --keep DIR   works in DIR and leaves it there; a base system that it has is used again
#
# The new root is a chroot without systemd: the test starts what the unit's ExecStart says, and
# listens for what it tells systemd. Needs root, debootstrap and systemd-analyze; exit status 77 and
# a reason where one is missing.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
# shellcheck source=tests/deploy/image_base.sh
source "$(dirname "${BASH_SOURCE[0]}")/image_base.sh"
cd "$ROOT"

PACKAGES=
BUILD="$ROOT/build/host"
WORK=
KEEP=false
SERVER=
PROGRAMS=/usr/bin
# systemd-analyze security: of 10, where 10 is a service without any bound.
MOST_EXPOSURE=2.0

skip() { say "skipped: $*"; exit 77; }

parse() {
  while (($#)); do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --packages | --build-dir | --keep)
        (($# >= 2)) || die "$1 needs a value"
        case "$1" in
          --packages) PACKAGES="$(realpath "$2")" ;;
          --build-dir) BUILD="$(realpath -m "$2")" ;;
          --keep) WORK="$(realpath -m "$2")" KEEP=true ;;
        esac
        shift
        ;;
      *) die "unknown option '$1': see --help" ;;
    esac
    shift
  done
}

check_tools() {
  [[ "$(id -u)" == 0 ]] || skip "debootstrap and chroot need root"
  local tool
  for tool in debootstrap systemd-analyze; do
    have "$tool" || skip "$tool is not installed"
  done
}

cleanup() {
  [[ -z $SERVER ]] || kill -KILL "$SERVER" 2>/dev/null || true
  local folder
  for folder in "$WORK"/root/{proc,dev}; do
    if mountpoint -q "$folder"; then umount --recursive "$folder"; fi
  done
  if $KEEP; then return; fi
  # Never through a mount that is still there.
  if ! grep -q " $WORK/" /proc/mounts; then rm -rf --one-file-system "$WORK"; fi
}

make_root() {
  if [[ ! -x $WORK/base/usr/bin/apt-get ]]; then fetch_base "$WORK/base"; fi
  rm -rf --one-file-system "$WORK/root"
  cp -a "$WORK/base" "$WORK/root"
  copy_package_settings "$WORK/root"
  # Manuals, too: they are among what is checked.
  rm -f "$WORK/root/etc/dpkg/dpkg.cfg.d/slim"
  cp --dereference /etc/resolv.conf "$WORK/root/etc/resolv.conf"
  mount -t proc proc "$WORK/root/proc"
  mount --rbind /dev "$WORK/root/dev"
  mount --make-rslave "$WORK/root/dev"
  mkdir "$WORK/root/packages"
  cp "$PACKAGES"/*.deb "$WORK/root/packages/"
}

# inside COMMAND...: as a login of the root's administrator would have it.
inside() { "${ENTER[@]}" "$@" </dev/null; }

# logged COMMAND...: what it prints is shown only where it fails.
logged() { "$@" >"$WORK/log" 2>&1 || { tail -n 40 "$WORK/log"; die "failed: $*"; }; }

# traces: files of ours and settings, users and groups of the system, to be the same after a purge.
traces() {
  (cd "$WORK/root" && find etc usr var/lib -xdev \( -iname '*gemm*' -o -path 'etc/gemmd*' \) -not -path 'etc/.pwd.lock' |
    LC_ALL=C sort)
  cut -d: -f1 "$WORK"/root/etc/{passwd,group} | LC_ALL=C sort
}

# start_server COMMAND...: in the root; the service manager is this script's.
start_server() {
  local socket="$WORK/root/run/notify"
  rm -f "$socket"
  python3 - "$socket" >"$WORK/notified" <<'PYTHON' &
import socket, sys
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind(sys.argv[1])
while True:
    print(manager.recv(256).decode(), flush=True)
PYTHON
  local manager=$!
  until [[ -S $socket ]]; do sleep 0.1; done
  # Not `inside`: the process is to be the server itself.
  "${ENTER[@]}" NOTIFY_SOCKET=/run/notify GEMMD_ADDRESS=unix:/run/gemmd.sock GEMMD_METRICS_ADDRESS= \
    "$@" </dev/null >"$WORK/gemmd.log" 2>&1 &
  SERVER=$!
  until grep -qx READY=1 "$WORK/notified"; do
    kill -0 "$SERVER" 2>/dev/null || { cat "$WORK/gemmd.log"; die "gemmd does not start: $*"; }
    sleep 0.1
  done
  kill "$manager"
}

check_product() {
  inside "$PROGRAMS/gemmctl" --address unix:/run/gemmd.sock multiply random:300x200:f32:1 random:200x100:f32:2 \
    -o /tmp/c.npy --verify >"$WORK/product.txt" || { cat "$WORK/product.txt"; die "gemmctl cannot multiply"; }
  [[ -s $WORK/root/tmp/c.npy ]] || die "gemmctl wrote no product"
  say "ok: a product, verified"
}

stop_server() {
  local status=0
  kill -TERM "$SERVER"
  wait "$SERVER" || status=$?
  SERVER=
  ((status == 0)) || { cat "$WORK/gemmd.log"; die "exit status after SIGTERM: $status; want 0"; }
  say "ok: the server stops"
}

check_files() {
  local file missing=0
  for file in /usr/share/man/man1/{gemmd,gemmctl,gemmctl-matrix-put}.1.gz \
    /usr/share/bash-completion/completions/{gemmd,gemmctl} /etc/gemmd/gemmd.flags \
    /usr/lib/systemd/system/gemmd.service; do
    [[ -f $WORK/root$file ]] || { say "missing: $file"; missing=1; }
  done
  ((missing == 0)) || die "the packages lack files"
  inside bash -n /usr/share/bash-completion/completions/gemmctl
  local commit
  commit="$(inside gemmd --version | sed -n 's/.*commit \([0-9a-f]*\).*/\1/p')"
  inside dpkg -s gemmd | grep -q "commit $commit" ||
    die "the package does not name the commit of its program, '$commit'"
  say "ok: man pages, completions, settings; the package and its program name commit $commit"
}

check_unit() {
  # The root has no systemd, this machine no gemmd.
  mkdir -p "$WORK/unit"
  sed "s|^ExecStart=|&$WORK/root|" "$WORK/root/usr/lib/systemd/system/gemmd.service" >"$WORK/unit/gemmd.service"
  logged systemd-analyze verify --man=no "$WORK/unit/gemmd.service"
  local exposure
  exposure="$(systemd-analyze security --offline=yes --no-pager deploy/systemd/gemmd.service |
    sed -n 's/.*Overall exposure level for gemmd.service: \([0-9.]*\).*/\1/p')"
  awk -v is="$exposure" -v most="$MOST_EXPOSURE" 'BEGIN {exit !(is != "" && is + 0 <= most)}' ||
    die "systemd-analyze security: exposure '$exposure'; at most $MOST_EXPOSURE allowed"
  say "ok: systemd takes the unit; its exposure is $exposure of 10"
}

# Dependencies stay: they are the system's.
check_purge() {
  logged inside apt-get purge -y -qq gemmd gemmctl
  traces >"$WORK/after"
  diff "$WORK/before" "$WORK/after" || die "the purge has left what the lines above name"
  say "ok: a purge leaves nothing"
}

# The archive needs glibc alone: it runs in the root before a package is installed.
check_archive() {
  local name
  name="$(basename "$PACKAGES"/gemmd-*.tar.xz .tar.xz)"
  mkdir "$WORK/root/archive"
  tar --extract --file "$PACKAGES/$name.tar.xz" --directory "$WORK/root/archive"
  PROGRAMS="/archive/$name/bin"
  start_server "$PROGRAMS/gemmd"
  check_product
  stop_server
  PROGRAMS=/usr/bin
  rm -rf "$WORK/root/archive" "$WORK/root/tmp/c.npy"
  say "ok: the archive runs in a bare system"
}

check_sums() {
  (cd "$PACKAGES" && sha256sum --quiet --check SHA256SUMS) || die "SHA256SUMS is wrong"
  python3 - "$PACKAGES"/*.spdx.json <<'PYTHON' || die "the bill of materials is wrong"
import json, sys
document = json.load(open(sys.argv[1], encoding="utf-8"))
names = {package["name"] for package in document["packages"]}
assert document["spdxVersion"] == "SPDX-2.3", document["spdxVersion"]
assert any(name.startswith("gemmd_") and name.endswith(".deb") for name in names), names
assert any(name.startswith("libgrpc++1") for name in names), names
PYTHON
  say "ok: SHA256SUMS and the bill of materials"
}

main() {
  parse "$@"
  check_tools
  WORK="${WORK:-$(mktemp -d /var/tmp/gemmd-package.XXXXXX)}"
  mkdir -p "$WORK"
  ENTER=(chroot "$WORK/root" /usr/bin/env -i HOME=/root TERM=dumb LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
  trap cleanup EXIT
  if [[ -z $PACKAGES ]]; then
    PACKAGES="$WORK/dist"
    scripts/package.sh --build-dir "$BUILD" --out "$PACKAGES"
  fi
  check_sums
  make_root
  check_archive
  traces >"$WORK/before"
  local start=$SECONDS command
  logged inside apt-get update -qq
  logged inside bash -c 'apt-get install -y -qq --no-install-recommends /packages/gemmd_*.deb /packages/gemmctl_*.deb'
  read -ra command < <(sed -n 's/^ExecStart=//p' "$WORK/root/usr/lib/systemd/system/gemmd.service")
  start_server "${command[@]}"
  check_product
  say "from the packages to a product: $(as_time "$(seconds_since "$start")")"
  stop_server
  check_files
  check_unit
  check_purge
}

main "$@"
