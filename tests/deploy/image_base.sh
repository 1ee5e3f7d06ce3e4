# Makes the base image that image_test.sh builds on: a Debian 12 that fetches its
# packages as this machine does. Sourced, not run.
# shellcheck shell=bash

BASE=localhost/gemmd-test-base
SUITE=bookworm

# Folders that debian:12-slim leaves out, too: nothing in them runs.
SLIM=(/usr/share/doc /usr/share/man /usr/share/info /usr/share/locale)

# fetch_base FOLDER: from where this machine's apt gets its packages; where it has
# none of this release, from debootstrap's own default.
fetch_base() {
  local mirror
  mirror="$(apt_sources "$SUITE" | awk -v suite="$SUITE" '$2 == suite {print $1; exit}')"
  rm -rf --one-file-system "$1"
  debootstrap --variant=minbase "$SUITE" "$1" ${mirror:+"$mirror"} >"$1.log" 2>&1 ||
    { tail "$1.log"; die "debootstrap failed: $1.log"; }
  local folder
  for folder in "${SLIM[@]}"; do
    find "$1$folder" -mindepth 1 -delete
    printf 'path-exclude %s/*\n' "$folder" >>"$1/etc/dpkg/dpkg.cfg.d/slim"
  done
  printf 'path-include %s\n' '/usr/share/doc/*/copyright' >>"$1/etc/dpkg/dpkg.cfg.d/slim"
  # As in Debian's own images: no fsync for every file of every package.
  echo force-unsafe-io >"$1/etc/dpkg/dpkg.cfg.d/docker-apt-speedup"
  find "$1/var/lib/apt/lists" "$1/var/cache/apt" -type f -delete
}

# copy_package_settings FOLDER: this machine's settings of apt and pip, and the
# certificates that it trusts beside the system's.
copy_package_settings() {
  if [[ -n $(apt_sources "$SUITE") ]]; then
    apt_sources "$SUITE" | sed 's/^/deb /' >"$1/etc/apt/sources.list"
  fi
  apt-config dump Acquire | grep -v '^Acquire::\(IndexTargets\|Changelogs\|CompressionTypes\)' \
    >"$1/etc/apt/apt.conf.d/90build-machine" || true
  mkdir -p "$1/usr/local/share/ca-certificates"
  find /usr/local/share/ca-certificates -name '*.crt' \
    -exec cp -t "$1/usr/local/share/ca-certificates" {} +
  # global.index-url='…' from a file, :env:.index-url='…' from the environment, which
  # goes before it.
  local settings="$1/etc/pip.conf" key value
  echo '[global]' >"$settings"
  while IFS='=' read -r key value; do
    value="${value#\'}" value="${value%\'}"
    if [[ $key == cert ]]; then
      cp --dereference "$value" "$1/etc/pip-certificates.crt"
      value=/etc/pip-certificates.crt
    elif [[ $value == /* ]]; then
      continue # a folder of this machine
    fi
    echo "$key = $value" >>"$settings"
  done < <(python3 -m pip config list 2>/dev/null |
    sed -n 's/^global\.\([a-z-]*=\)/\1/p; s/^:env:\.\([a-z-]*=\)/\1/p' | sort -u -t= -k1,1)
}

# make_base: as the image $BASE in run_buildah's storage, which may have it already.
make_base() {
  if run_buildah inspect --type image "$BASE" >/dev/null 2>&1; then return; fi
  local start=$SECONDS container
  fetch_base "$WORK/base"
  copy_package_settings "$WORK/base"
  container="$(run_buildah from scratch)"
  run_buildah add --quiet "$container" "$WORK/base" / >/dev/null
  run_buildah commit --quiet --rm "$container" "$BASE" >/dev/null
  rm -rf --one-file-system "$WORK/base"
  note "a Debian 12 base system made in $(as_time "$(seconds_since "$start")")"
}
