#!/bin/bash
# Proves the wheel on a bare Debian: a new root, in which there is Python and nothing else.
#
#   tests/python/bare_root.sh [--suite NAME] [--mirror URL] [--root DIR] [--tests] [--out FILE]
#
# Makes a minimal root with debootstrap and puts the wheel of build/python-dist, a server
# program with its libraries, tests and examples into it. There it makes a virtual environment,
# installs the wheel with pip, and runs `python -m gemmd` against that server. Needs root,
# debootstrap and a wheel: tests/python/run.sh makes one. GEMMD_SERVER is the program
# (build/host or build/dev where it is not set); it runs on its own Debian or a newer one.
#
# --suite   the release: bookworm (Debian 12, Python 3.11) by default; trixie has Python 3.13
# --mirror  where debootstrap gets it; debootstrap's own default if left out
# --root    where the root is made; a temporary folder if left out. One that is there
#           already is used as it is, and left there
# --tests   also installs what the tests need, and runs them all
# --out     a Markdown file with what was run and printed

set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
cd "$ROOT"

SUITE=bookworm MIRROR='' TARGET='' OUT='' TESTS=false MADE=false
# The root brings these, or is no system.
LEFT_OUT='^(linux-vdso|ld-linux.*|lib(c|m|mvec|dl|rt|pthread|resolv|util|gcc_s|stdc\+\+))\.so'

parse() {
  while (($#)); do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --tests) TESTS=true ;;
      --suite | --mirror | --root | --out)
        (($# >= 2)) || die "$1 needs a value"
        case "$1" in
          --suite) SUITE="$2" ;;
          --mirror) MIRROR="$2" ;;
          --root) TARGET="$(realpath -m "$2")" ;;
          --out) OUT="$(realpath -m "$2")" ;;
        esac
        shift
        ;;
      *) die "unknown argument '$1': see --help" ;;
    esac
    shift
  done
  [[ "$(id -u)" == 0 ]] || die "a new root needs root: run this with sudo"
  [[ -n $(compgen -G 'build/python-dist/*.whl') ]] || die "no wheel: run tests/python/run.sh"
  local place
  for place in "${GEMMD_SERVER:-}" build/host/server/gemmd build/dev/server/gemmd; do
    if [[ -x $place ]]; then SERVER="$place"; return; fi
  done
  die "no server program: build one, or name it with GEMMD_SERVER"
}

make_root() {
  [[ -n $TARGET ]] || { TARGET="$(mktemp -d -t gemmd-root.XXXXXX)"; MADE=true; }
  if [[ ! -x $TARGET/usr/bin/python3 ]]; then
    have debootstrap || die "debootstrap is missing: apt-get install debootstrap"
    say "debootstrap $SUITE into $TARGET"
    debootstrap --variant=minbase --include=python3-venv,ca-certificates "$SUITE" "$TARGET" \
      ${MIRROR:+"$MIRROR"} >"$TARGET.log" 2>&1 || die "debootstrap failed: see $TARGET.log"
  fi
  cp --dereference /etc/resolv.conf "$TARGET/etc/"
  # It trusts whom this machine trusts.
  cp --dereference /etc/ssl/certs/ca-certificates.crt "$TARGET/etc/ssl/certs/"
  trap unmount_root EXIT
  mount -t proc proc "$TARGET/proc"
  mount --rbind /dev "$TARGET/dev"
  mount --make-rslave "$TARGET/dev"
}

unmount_root() {
  umount "$TARGET/proc" || true
  umount --recursive "$TARGET/dev" || true
  # Never through a mount that is still there.
  if $MADE && ! grep -q " $TARGET/" /proc/mounts; then rm -rf --one-file-system "$TARGET"; fi
}

fill_root() {
  local soname path
  rm -rf "$TARGET/gemmd"
  mkdir -p "$TARGET/gemmd/bin/lib" "$TARGET/gemmd/client/python"
  cp "$SERVER" "$TARGET/gemmd/bin/program"
  ldd "$SERVER" | awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}' | while read -r soname path; do
    [[ $soname =~ $LEFT_OUT ]] || cp --dereference "$path" "$TARGET/gemmd/bin/lib/$soname"
  done
  # shellcheck disable=SC2016 # for the shell in the root to expand
  printf '%s\n' '#!/bin/sh' 'LD_LIBRARY_PATH=/gemmd/bin/lib exec /gemmd/bin/program "$@"' \
    >"$TARGET/gemmd/bin/gemmd"
  chmod +x "$TARGET/gemmd/bin/gemmd"
  cp build/python-dist/*.whl tests/conformance/with_server.py "$TARGET/gemmd/"
  cp -r client/python/examples client/python/docs "$TARGET/gemmd/client/python/"
  mkdir -p "$TARGET/gemmd/tests" "$TARGET/gemmd/examples"
  cp -r tests/python "$TARGET/gemmd/tests/"
  cp -r examples/digits "$TARGET/gemmd/examples/"
}

# in_root COMMAND: nothing of this machine's environment but what concerns its network.
in_root() {
  local kept=() name status=0
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY PIP_INDEX_URL; do
    [[ -n ${!name-} ]] && kept+=("$name=${!name}")
  done
  printf '$ %s\n' "$1"
  chroot "$TARGET" /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    GEMMD_SERVER=/gemmd/bin/gemmd GEMMD_CASES="${GEMMD_CASES:-300}" \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt "${kept[@]}" \
    PIP_CERT=/etc/ssl/certs/ca-certificates.crt PIP_DISABLE_PIP_VERSION_CHECK=1 \
    /bin/bash -c "cd /gemmd && $1" </dev/null 2>&1 || status=$?
  ((status == 0)) || { printf 'exit status %d\n' "$status"; return "$status"; }
}

prove() {
  local with="python3 with_server.py --server bin/gemmd -- venv/bin/python -m gemmd --address"
  in_root "rm -rf venv && python3 -m venv venv && venv/bin/python --version" &&
    in_root "venv/bin/pip install --quiet ./*.whl && venv/bin/pip list --format=freeze" &&
    in_root "$with {address} info" &&
    in_root "$with {address} selftest" || return
  if $TESTS; then
    in_root "venv/bin/pip install --quiet -r tests/python/requirements.txt matplotlib" &&
      in_root "venv/bin/pytest -q -p no:cacheprovider tests/python"
  fi
}

main() {
  parse "$@"
  make_root
  fill_root
  local log status=0
  log="$(mktemp)"
  prove 2>&1 | tee "$log" || status=$?
  if [[ -n $OUT ]]; then
    {
      echo "# The Python package on a bare Debian"
      echo
      echo "\`tests/python/bare_root.sh $ARGUMENTS\` at $(git describe --always --dirty)," \
        "$(nproc) cores, $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' "$TARGET/etc/os-release")."
      echo "The root has what \`debootstrap --variant=minbase --include=python3-venv,ca-certificates\`" \
        "puts there."
      echo
      echo '```'
      cat "$log"
      echo '```'
    } >"$OUT"
  fi
  rm -f "$log"
  return "$status"
}

ARGUMENTS="$*"
main "$@"
