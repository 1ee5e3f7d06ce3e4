# Functions that the scripts of this folder share. Sourced, not run; needs bash 4 or later.
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

# gpu_architecture: what to compile for this machine's GPUs, as CMAKE_CUDA_ARCHITECTURES
# has it, such as 90a-real; empty without a GPU.
gpu_architecture() {
  has_gpu || return 0
  # 9.0: the warpgroup instructions need the "a".
  nvidia-smi --query-gpu=compute_cap --format=csv,noheader | tr -d ' .' |
    sed -n 's/^90$/90a/; s/^[0-9][0-9a-z]*$/&-real/p' | sort -u | paste -sd ';'
}

# program_options BUILD: options of CMake, one a line, for who needs gemmd and gemmctl alone. A new
# tree compiles several files at a time, in half the time, and has no tests; one that is there stays
# as it is. `cmake --preset` adds the tests.
program_options() {
  [[ -f $1/CMakeCache.txt ]] || echo -DCMAKE_UNITY_BUILD=ON
  grep -qsx GEMMD_BUILD_TESTS:BOOL=ON "$1/CMakeCache.txt" || echo -DGEMMD_BUILD_TESTS=OFF
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

# apt_sources RELEASE: where apt on this machine gets a release of Debian or Ubuntu and its updates
# from, a line each: URI, suite, component. Empty if it gets another release.
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
