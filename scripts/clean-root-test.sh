#!/bin/bash
# Proves the README's commands on a bare system: a new root, nothing installed.
#
#   scripts/clean-root-test.sh [--suite NAME] [--mirror URL] [--root DIR] [--overlay DIR]
#                              [--keep] [COMMAND...]
#
# Makes a minimal root with debootstrap and puts a clone of this checkout's HEAD
# into it. Runs each COMMAND there, each in the tree that the one before left, and
# prints how long it took. The default is scripts/quickstart.sh, then
# scripts/test.sh. Needs root and debootstrap.
#
# --suite    the release, bookworm (Debian 12) by default; noble for Ubuntu 24.04
# --mirror   where debootstrap gets it; by default where this machine's apt does, or
#            debootstrap's own default for another release
# --root     where the root is made; a new temporary folder by default. A root
#            that exists is used as it is
# --overlay  a folder whose files are laid over the root first: a proxy's
#            settings, certificates, /etc/apt/sources.list
# --keep     leaves the root there afterwards

set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

SUITE=bookworm
MIRROR=
TARGET=
OVERLAY=
KEEP=false
COMMANDS=()

parse() {
  while (($#)); do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --keep) KEEP=true ;;
      --suite | --mirror | --root | --overlay)
        (($# >= 2)) || die "$1 needs a value"
        case "$1" in
          --suite) SUITE="$2" ;;
          --mirror) MIRROR="$2" ;;
          --root) TARGET="$(realpath -m "$2")" ;;
          --overlay) OVERLAY="$(realpath "$2")" ;;
        esac
        shift
        ;;
      -*) die "unknown option '$1': see --help" ;;
      *) COMMANDS+=("$1") ;;
    esac
    shift
  done
  ((${#COMMANDS[@]})) || COMMANDS=(scripts/quickstart.sh scripts/test.sh)
  [[ "$(id -u)" == 0 ]] || die "a new root needs root: run this with sudo"
  have debootstrap || die "debootstrap is missing: apt-get install debootstrap"
}

make_root() {
  TARGET="${TARGET:-$(mktemp -d -t gemmd-root.XXXXXX)}"
  chmod 755 "$TARGET" 2>/dev/null || true
  if [[ ! -x $TARGET/usr/bin/apt-get ]]; then
    MIRROR="${MIRROR:-$(apt_sources "$SUITE" | awk -v suite="$SUITE" '$2 == suite {print $1; exit}')}"
    say "debootstrap $SUITE into $TARGET"
    debootstrap --variant=minbase "$SUITE" "$TARGET" ${MIRROR:+"$MIRROR"} >"$TARGET.log" 2>&1 || {
      tail -n 20 "$TARGET.log" >&2
      die "debootstrap failed: the whole log is $TARGET.log"
    }
  fi
  cp --dereference /etc/resolv.conf "$TARGET/etc/resolv.conf"
  [[ -z $OVERLAY ]] || cp -a "$OVERLAY/." "$TARGET/"
}

mount_root() {
  trap unmount_root EXIT
  mount -t proc proc "$TARGET/proc"
  mount --rbind /dev "$TARGET/dev"
  mount --make-rslave "$TARGET/dev"
}

unmount_root() {
  umount "$TARGET/proc" || true
  umount --recursive "$TARGET/dev" || true
  # Never through a mount that is still there.
  if ! $KEEP && ! grep -q " $TARGET/" /proc/mounts; then rm -rf --one-file-system "$TARGET"; fi
}

# in_root COMMAND: as a login at the top of the clone would have it; nothing of
# this machine's environment but what concerns its network.
in_root() {
  local kept=() name
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY \
    SSL_CERT_FILE PIP_CERT PIP_INDEX_URL; do
    [[ -n ${!name-} ]] && kept+=("$name=${!name}")
  done
  chroot "$TARGET" /usr/bin/env -i HOME=/root TERM=dumb LANG=C.UTF-8 \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${kept[@]}" \
    /bin/bash -c "cd /root/gemmd && $1" </dev/null
}

main() {
  parse "$@"
  make_root
  rm -rf "$TARGET/root/gemmd"
  git clone --quiet --no-hardlinks "$ROOT" "$TARGET/root/gemmd"
  mount_root
  local command start status times=()
  for command in "${COMMANDS[@]}"; do
    say "in the clean root: $command"
    start=$SECONDS status=0
    in_root "$command" || status=$?
    times+=("$(printf '%-40s %8s  exit status %d' "$command" "$(as_time "$(seconds_since "$start")")" "$status")")
    ((status == 0)) || break
  done
  say "$SUITE, $(nproc) cores, commit $(git -C "$TARGET/root/gemmd" rev-parse --short HEAD)"
  printf '    %s\n' "${times[@]}"
  return "$status"
}

main "$@"
