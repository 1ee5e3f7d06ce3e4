#!/bin/bash
# Installs what gemmd needs on Debian 12 or Ubuntu 24.04.
#
#   scripts/install-deps.sh [build] [runtime] [cuda] [test] [page] [lint] [bundle] [package] [--list]
#
# build     compilers and libraries to build everything, tests included (the default)
# runtime   the shared libraries that an installed gemmd needs
# cuda      what scripts/install-cuda.sh needs
# test      what tests use: Python with grpcio, a real Prometheus, cuobjdump, buildah
# page      a browser, for the test of the status page
# lint      formatters, linters, clang for the fuzzers
# bundle    what scripts/bundle.sh needs
# package   what scripts/package.sh needs beside
# --list    prints the packages of the groups and whether each is there; installs nothing
#
# Packages come from apt-get (as root, or through sudo), Python tools from PyPI
# into .venv/ of the checkout. Installed packages are left as they are. CUDA is not
# among them: scripts/install-cuda.sh installs it. Without nvcc a build serves the host
# alone.

set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# One package a line: its name and its use. A|B: the names of Debian and of Ubuntu.
packages_of() {
  case "$1" in
    build) cat <<'LIST' ;;
g++                       the compiler
cmake                     the build
ninja-build               the build
pkg-config                finds libraries for the build
git                       the version that the build records
ca-certificates           package registries over TLS
ccache                    faster second builds
libgrpc++-dev             gRPC, the server's face
libprotobuf-dev           messages of the contract
protobuf-compiler         generates the messages
protobuf-compiler-grpc    generates the services
libabsl-dev               Status, Time, containers
libssl-dev                certificates, SHA-256 and random bytes
libspdlog-dev             logs
prometheus-cpp-dev        metrics
libboost-dev              HTTP for /metrics: Beast and Asio, headers alone
libopenblas-pthread-dev   the host device's products
libcli11-dev              flags
libgoogle-perftools-dev   tcmalloc, the allocator of the programs
nlohmann-json3-dev        JSON logs and reports
libgtest-dev              tests
libgmock-dev              tests
LIST
    runtime) cat <<'LIST' ;;
libgrpc++1.51|libgrpc++1.51t64             gRPC
libprotobuf32|libprotobuf32t64             messages of the contract
libspdlog1.10|libspdlog1.12|libspdlog1.12t64   logs
libprometheus-cpp-core1.0|libprometheus-cpp-core1.0t64   metrics
libssl3|libssl3t64                         TLS, certificates, SHA-256
libopenblas0-pthread                       the host device's products
libtcmalloc-minimal4|libtcmalloc-minimal4t64   the allocator
ca-certificates                            TLS
LIST
    cuda) cat <<'LIST' ;;
python3                   pip
python3-venv              pip, apart from the system's Python
LIST
    test) cat <<'LIST' ;;
python3                   test clients
python3-venv              cuobjdump and nvdisasm, for tests of machine code
python3-grpcio            a client of the contract that has no code of ours
python3-protobuf          its messages
python3-numpy             its oracle
curl                      reads /metrics
libb64-0d                 perf_analyzer
prometheus                scrapes /metrics in a test; promtool checks the rules
buildah                   builds the images without a container engine
debootstrap               their base system
iproute2                  network namespaces for servers that are rolled
dnsmasq-base              the name that they are behind
LIST
    page) cat <<'LIST' ;;
chromium                  opens the status page in a test
chromium-driver           drives it
LIST
    lint) cat <<'LIST' ;;
clang-14                  builds the fuzzers
libclang-rt-14-dev        libFuzzer and the sanitizers of clang
clang-format-14           the format check
clang-tidy-14             static checks
shellcheck                checks of the scripts
gcovr                     what the tests cover (scripts/coverage.sh)
python3                   runs the linters' drivers
python3-venv              .venv, where the linters of PyPI go
LIST
    bundle) cat <<'LIST' ;;
patchelf                  lets bundled programs find the libraries beside them
binutils                  strips them
libjemalloc2              an allocator that the raw baselines of wire_bench try
libmimalloc2.0            another one
LIST
    package) cat <<'LIST' ;;
dpkg-dev                  finds the packages of the libraries that a .deb needs
file                      tells programs from other files, for dpkg-shlibdeps
xz-utils                  packs the archive
python3                   man pages, and the list of what the packages are made of
python3-venv              builds the Python client
LIST
    *) die "unknown group '$1': build, runtime, cuda, test, page, lint, bundle and package are known" ;;
  esac
}

# check_system: an error unless this is a system whose package names are known.
check_system() {
  local system=unknown
  # shellcheck source=/dev/null
  [[ -r /etc/os-release ]] && system="$(. /etc/os-release && echo "${ID:-} ${VERSION_ID:-}")"
  case "$system" in
    "debian 12" | "ubuntu 24.04") ;;
    *) die "this system is '$system': only Debian 12 and Ubuntu 24.04 are supported." \
      "Install by hand what 'scripts/install-deps.sh build --list' names" ;;
  esac
}

installed() { [[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]; }

# known_name A|B: the one that is installed, else the first that apt-get can install.
known_name() {
  local names name
  IFS='|' read -ra names <<<"$1"
  for name in "${names[@]}"; do if installed "$name"; then echo "$name"; return; fi; done
  for name in "${names[@]}"; do
    if ((${#names[@]} == 1)) || apt-cache show "$name" >/dev/null 2>&1; then echo "$name"; return; fi
  done
  echo "${names[0]}"
}

# as_root COMMAND...: as root, through sudo where needed.
as_root() {
  if [[ "$(id -u)" == 0 ]]; then
    "$@"
  elif have sudo; then
    sudo "$@"
  else
    die "packages are missing and need root: run this as root, or install sudo"
  fi
}

# Installing Debian's prometheus would start it as a service on port 9090; the
# tests only need the programs.
hold_services() {
  [[ -e /usr/sbin/policy-rc.d ]] && return
  printf '#!/bin/sh\nexit 101\n' | as_root tee /usr/sbin/policy-rc.d >/dev/null
  as_root chmod +x /usr/sbin/policy-rc.d
  trap 'as_root rm -f /usr/sbin/policy-rc.d' EXIT
}

# apt_install PACKAGE...
apt_install() {
  local services=()
  if [[ " $* " == *" prometheus "* ]]; then
    hold_services
    [[ -d /run/systemd/system ]] && services=(prometheus)
  fi
  local log
  log="$(mktemp -t install-deps.XXXXXX)"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o Dpkg::Use-Pty=0 "$@" </dev/null >"$log" 2>&1 || {
    tail -n 30 "$log" >&2
    die "apt-get install failed; its whole output is in $log"
  }
  rm -f "$log"
  if ((${#services[@]})); then as_root systemctl disable "${services[@]}" >&2; fi
}

# python_packages GROUP: installs scripts/requirements-GROUP.txt into .venv/.
python_packages() {
  local requirements="$ROOT/scripts/requirements-$1.txt" stamp="$ROOT/.venv/.$1.txt"
  [[ -f "$requirements" ]] || return 0
  if cmp -s "$requirements" "$stamp"; then return 0; fi
  say "installing from PyPI into .venv: $(grep -v '^#' "$requirements" | tr '\n' ' ')"
  [[ -x "$ROOT/.venv/bin/python" ]] || python3 -m venv "$ROOT/.venv"
  "$ROOT/.venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements" ||
    die "pip could not install scripts/requirements-$1.txt: the lines above say why"
  cp "$requirements" "$stamp"
}

# list GROUP: its packages, whether they are there, and what for.
list() {
  local names name reason
  while read -r names reason; do
    name="$(known_name "$names")"
    printf '%-8s %-28s %-8s %s\n' "$1" "$name" \
      "$(installed "$name" && echo there || echo missing)" "$reason"
  done < <(packages_of "$1")
}

# install GROUP...: whatever of them is missing.
install() {
  local group names reason name missing=()
  for group in "$@"; do
    while read -r names reason; do
      installed "$(known_name "$names")" && continue
      [[ " ${missing[*]-} " == *" $names "* ]] && continue
      say "missing: ${names%%|*} ($reason)"
      missing+=("$names")
    done < <(packages_of "$group")
  done
  if ((${#missing[@]})); then
    say "installing ${#missing[@]} packages with apt-get"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq ||
      say "apt-get update had errors: going on with the package lists that are there"
    local packages=()
    for names in "${missing[@]}"; do packages+=("$(known_name "$names")"); done
    apt_install "${packages[@]}"
  fi
  for group in "$@"; do python_packages "$group"; done
  say "installed: everything for $*"
}

main() {
  local groups=() action=install argument group
  for argument in "$@"; do
    case "$argument" in
      -h | --help) usage; exit 0 ;;
      --list) action=list ;;
      -*) die "unknown option '$argument': --list and --help are known" ;;
      *) packages_of "$argument" >/dev/null; groups+=("$argument") ;;
    esac
  done
  ((${#groups[@]})) || groups=(build)
  if [[ $action == list ]]; then
    for group in "${groups[@]}"; do list "$group"; done
  else
    check_system
    install "${groups[@]}"
  fi
}

main "$@"
