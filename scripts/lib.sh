# What the scripts of this folder share. Sourced, not run; needs bash 4 or later.
# shellcheck shell=bash

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
export ROOT

# nvcc is often installed without being on PATH.
if ! command -v nvcc >/dev/null && [[ -x /usr/local/cuda/bin/nvcc ]]; then
  PATH="$PATH:/usr/local/cuda/bin"
fi
# Tools from PyPI live here (scripts/install-deps.sh lint); the system's come first.
PATH="$PATH:$ROOT/.venv/bin"
export PATH

# Paths below the checkout count as relative, so that checkouts share a ccache.
export CCACHE_BASEDIR="$ROOT" CCACHE_NOHASHDIR=1

# say TEXT...: one line of progress.
say() { printf '==> %s\n' "$*"; }

# die TEXT...: the error, then the end.
die() {
  printf '%s: error: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# usage: prints the header comment of the script that runs, its help text.
usage() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"; }

have() { command -v "$1" >/dev/null 2>&1; }

# has_gpu: a CUDA device is there and its driver answers.
has_gpu() { have nvidia-smi && nvidia-smi -L 2>/dev/null | grep -q '^GPU'; }

# pick_preset: the CMake preset for this machine: `dev` (CUDA and the host)
# where nvcc is found, else `host`.
pick_preset() { if have nvcc; then echo dev; else echo host; fi; }

# gpu_architecture: what to compile for where a GPU is there, such as 90a-real;
# empty where none is.
gpu_architecture() {
  has_gpu || return 0
  local capability
  capability="$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d ' .')"
  case "$capability" in
    90) echo 90a-real ;; # the warpgroup instructions need the "a"
    [0-9]*) echo "$capability-real" ;;
  esac
}

# build_jobs: compilers to run at once: one a core, but no more than one for
# every 1.5 GiB of memory, which the largest generated source takes.
build_jobs() {
  local cores memory_jobs
  cores="$(nproc)"
  memory_jobs="$(awk '/^MemAvailable/ {print int($2 / 1572864)}' /proc/meminfo)"
  ((memory_jobs < 1)) && memory_jobs=1
  echo $((cores < memory_jobs ? cores : memory_jobs))
}

# apt_sources RELEASE: what apt on this machine reads of a release of Debian or Ubuntu
# and of its updates, a line each: URI, suite, component. None of another release.
apt_sources() {
  have apt-get || return 0
  # shellcheck disable=SC2016 # apt-get's own variables
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk -v release="$1" '$2 == release || index($2, release "-") == 1' | sort -u
}

# seconds_since START: whole seconds since START, a value of $SECONDS.
seconds_since() { echo $((SECONDS - $1)); }

# as_time SECONDS: such as 3m07s.
as_time() { printf '%dm%02ds' $(($1 / 60)) $(($1 % 60)); }
