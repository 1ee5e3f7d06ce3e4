#!/bin/bash
# Runs the acceptance programs on a machine with a GPU, from a bundle.
#
#   scripts/gpu-acceptance.sh pack [--bundle DIR] [--sentences FILE]
#   DIR/gpu-acceptance.sh run [--out DIR] [--devices SPEC] [--soak-seconds N]
#                             [--before GEMMD] PIECE...
#
# pack  adds the pieces' needs to a bundle of scripts/bundle.sh: the Python stubs of
#       the contract, the test programs in Python, the allocators that the baselines of
#       `wire` try, and this script. It packs all of it as .bundle/gemmd-bundle.tar.gz,
#       beside the bundle's folder: the file for the other machine. Make the
#       bundle with the programs wire_bench and soak, and with those of the pieces
#       that you run: the GoogleTest programs for kernels-test and device-test,
#       gpu_fault_process_test and gemmd_faulty for faults, gpu_check_test and
#       check_trial for checks, gemm_bench for suites.
# run   runs pieces, one after the other, each within its time, and writes
#       PIECE.md for each and results.json for all to --out ($OUT or ./out). The
#       last lines are a table; the exit code is 0 where every piece passed.
#       `wire` measures another gemmd (--before) in turn with the bundle's, `latency`
#       after it.
#
# Pieces: kernels-test device-test faults checks fairness overload wire-overload security
# conformance inference wire small idle-tuning latency strangers crowds soak attacks suites python
#
# faults with two devices (--devices cuda:0,1) loses them: an illegal access takes both. With
# one it skips that.
# crowds has the attacks of strangers that take too long for `strangers`.
#
# python needs torch there. Its sentence transformer needs --sentences, a file that
# client/python/examples/minilm.py writes; without it that part is left out.
#
# suites leaves the tables, CSV and JSON files and plots of gemm_bench in
# suites.tar.gz. Its 4096.csv has all rows at 4096 x 4096 x 4096; docs/kernels.md
# is made of it.
#
# The other machine needs glibc as new as that of the build, the driver with libcudart
# and libcublas, and python3 with grpcio, protobuf and numpy. The oracle on the GPU and
# the plain server of `latency` need torch, too, and the oracle of the grouped kernels in
# `suites` needs triton.

set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
PIECES=(kernels-test device-test faults checks fairness overload wire-overload security conformance
  inference wire small idle-tuning latency strangers crowds soak attacks suites python)
declare -A SECONDS_OF=([kernels-test]=240 [device-test]=120 [faults]=120 [checks]=560 [fairness]=260
  [overload]=400 [wire-overload]=120 [security]=120 [conformance]=560 [wire]=400 [small]=120
  [inference]=120 [idle-tuning]=240 [strangers]=570 [crowds]=420
  [latency]=420 [soak]=480 [attacks]=570 [suites]=580 [python]=540)

# The measurements of `suites`: a name, and the arguments of gemm_bench. The last three
# together are every row at one size.
F16=f16:f16:f16:f16 F16_F32=f16:f16:f16:f32 F32=f32:f32:f32:f32
SUITES=(
  "sgemm-8 --budget 40 --suite sgemm-8 --family simt,cublas --types $F32 --layout nn"
  "article --budget 40 --suite article --family simt,cublas --types $F32 --layout nn"
  "hgemm-27 --budget 60 --suite hgemm-27 --family mma,wmma,cublas --types $F16 --layout nn"
  "hgemm-125 --budget 100 --suite hgemm-125 --family mma,wmma,cublas --types $F16 --layout nn"
  "triton-31 --budget 90 --suite triton-31 --family grouped,cublas --types $F16_F32 --layout nn"
  "narrow --budget 40 --shapes 4096 --family simt,wmma,mma,cublas --types $F32,$F16 --layout nn"
  "wide --budget 60 --shapes 4096 --family simt,wmma,mma,grouped,cublas
   --types f64,$F16_F32,bf16:bf16:bf16:f32,f32:f32:f32:tf32 --layout nn"
  "fp8 --budget 30 --shapes 4096 --family grouped,cublaslt
   --types e4m3:e4m3:f16:f32,e5m2:e5m2:f16:f32"
)

LIMIT_MIB=60  # of the archive that pack makes
BUNDLE="$HERE"
OUT_DIR="${OUT:-./out}"
DEVICES=cuda
SOAK_SECONDS=300
BEFORE=
SELECTED=()
RESULTS=()

# -- pack ---------------------------------------------------------------------

# Whatever fails says so: some commands end without a word, and a command in a pipe may be ended
# by a signal.
pack() {
  set -E
  trap 'die "pack: exit code $? of: $BASH_COMMAND"' ERR
  local sentences=
  BUNDLE="$ROOT/bundle"
  while (($#)); do
    (($# >= 2)) || die "$1 needs a value"
    case "$1" in
      --bundle) BUNDLE="$(realpath -m "$2")" ;;
      --sentences) sentences="$(realpath "$2")" ;;
      *) die "unknown argument '$1' for pack: --bundle and --sentences are known" ;;
    esac
    shift 2
  done
  [[ -x $BUNDLE/bin/gemmd ]] || die "$BUNDLE has no bin/gemmd: make it with scripts/bundle.sh"
  # If this fails, no older archive is left that could be taken for the new one.
  local archive
  archive="$(dirname "$BUNDLE")/.bundle/gemmd-bundle.tar.gz"
  rm -f "$archive" "$archive.part"
  local stubs="$BUNDLE/python/stubs"
  rm -rf "$BUNDLE/python"
  mkdir -p "$stubs"
  protoc -I "$ROOT/proto" --python_out="$stubs" --grpc_out="$stubs" \
    --plugin=protoc-gen-grpc="$(command -v grpc_python_plugin)" gemm/v1/gemm.proto
  protoc -I "$ROOT/proto" --python_out="$stubs" inference/inference.proto
  cp "$ROOT"/tests/conformance/*.py "$ROOT"/tests/wire/torch_server.py \
    "$ROOT"/tests/wire/{check_cost,clean_jobs,busy_threads,idle_tuning_delay,inference_cost}.py \
    "$ROOT"/kernels/bench/compile_triton.py "$BUNDLE/python/"
  mkdir "$BUNDLE/python/attacks"
  cp "$ROOT"/tests/attacks/*.py "$BUNDLE/python/attacks/"
  pack_allocators
  pack_package
  if [[ -n $sentences ]]; then cp "$sentences" "$BUNDLE/python/sentences.npz"; fi
  cp "$HERE/gpu-acceptance.sh" "$HERE/lib.sh" "$BUNDLE/"
  local commit
  commit="$(git -C "$ROOT" describe --always --dirty --abbrev=40 --exclude '*')"
  echo "$commit" >"$BUNDLE/COMMIT"
  pack_archive "$archive" "$commit"
}

# As it travels: OpenBLAS alone is 37 MB unpacked. The archive is complete or absent.
pack_archive() { # ARCHIVE COMMIT
  local archive="$1" bytes limit=$((LIMIT_MIB * 1024 * 1024))
  mkdir -p "$(dirname "$archive")"
  tar -C "$BUNDLE" -czf "$archive.part" .
  bytes="$(stat -c %s "$archive.part")"
  if ((bytes > limit)); then
    rm "$archive.part"
    die "$archive would have $bytes bytes, and may have $limit ($LIMIT_MIB MiB)"
  fi
  mv "$archive.part" "$archive"
  say "$archive: packed at $2, $bytes bytes of at most $limit"
}

# tcmalloc is among the bundle's libraries: wire_bench is linked with it.
pack_allocators() {
  local soname path
  rm -rf "$BUNDLE/allocators"
  mkdir "$BUNDLE/allocators"
  for soname in libjemalloc.so.2 libmimalloc.so.2; do
    # Reads to the end: without a reader ldconfig would be ended by a signal now and then.
    path="$(ldconfig -p | awk -v name="$soname" '$1 == name && !found++ {print $NF}')"
    [[ -n $path ]] || die "$soname is not installed: scripts/install-deps.sh bundle"
    install -m 644 "$(realpath "$path")" "$BUNDLE/allocators/$soname"
  done
}

# The Python package from its source, with what measures it.
pack_package() {
  local package="$BUNDLE/python/package"
  mkdir -p "$package"
  cp -r "$ROOT/client/python/src/gemmd" "$package/"
  rm -rf "$package/gemmd/_contract" "$package/gemmd/__pycache__"
  mkdir "$package/gemmd/_contract"
  cp "$BUNDLE/python/stubs/gemm/v1/gemm_pb2.py" "$package/gemmd/_contract/"
  touch "$package/gemmd/_contract/__init__.py"
  cp "$ROOT"/tests/python/{gpu,gpu_cases,gpu_times,cases,oracle}.py \
    "$ROOT"/client/python/examples/{minilm,sentence_transformer}.py "$package/"
}

# -- run ----------------------------------------------------------------------

# The libraries of CUDA where they are not on the loader's path.
find_cuda() {
  local folder
  for folder in /usr/local/cuda/lib64 /usr/local/cuda/targets/x86_64-linux/lib; do
    if [[ -e $folder/libcublas.so || -n $(compgen -G "$folder/libcublas.so.*") ]]; then
      export LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
      return
    fi
  done
}

# The version of cuBLAS that the server loads, from the name of its file.
cublas_version() {
  local path
  path="$(ldd "$BUNDLE/bin/gemmd" | awk '/libcublas\.so/ {print $3}')"
  [[ -n $path && $path != not ]] || { echo "none"; return; }
  basename "$(realpath "$path")" | sed 's/^libcublas\.so\.//'
}

gpu_line() {
  if has_gpu; then
    nvidia-smi --query-gpu=name,driver_version,memory.total,power.limit --format=csv,noheader |
      tr '\n' ';'
  else
    echo "none"
  fi
}

cuda_version() {
  if have nvidia-smi; then nvidia-smi | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/\1/p'; fi
  if have nvcc; then nvcc --version | sed -n 's/.*release \([0-9.]*\).*/(nvcc \1)/p'; fi
}

write_header() { # PIECE COMMAND
  cat <<TEXT
# $1

| | |
| --- | --- |
| GPU, driver, memory, power limit | $(gpu_line) |
| CUDA | $(cuda_version | tr '\n' ' ') |
| cuBLAS | $(cublas_version) |
| CPU | $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores |
| commit | $(cat "$BUNDLE/COMMIT") |
| date | $(date -u +%Y-%m-%dT%H:%MZ) |
| command | \`$2\` |

TEXT
}

# with_server PIECE ARGUMENT...: a server of its own (SERVER, else the bundle's), and
# ARGUMENT... of with_server.py.
with_server() {
  local piece="$1"
  shift
  python3 "$BUNDLE/python/with_server.py" --server "${SERVER:-$BUNDLE/bin/gemmd}" --devices "$DEVICES" \
    --log "$OUT_DIR/.$piece.server.log" "$@"
}

# gtests PROCESSES PATTERN...: every program of the bundle that matches, its tests
# shared among so many processes.
gtests() {
  local processes="$1" pattern program name part found=0 failed=0 running
  shift
  for pattern in "$@"; do
    for program in $(compgen -G "$BUNDLE/bin/$pattern"); do
      found=1 running=()
      name="$OUT_DIR/.$(basename "$program")"
      for ((part = 0; part < processes; ++part)); do
        GTEST_TOTAL_SHARDS=$processes GTEST_SHARD_INDEX=$part "$program" --gtest_brief=1 \
          --gtest_output="json:$name.$part.json" >"$name.$part.log" 2>&1 &
        running+=($!)
      done
      for ((part = 0; part < processes; ++part)); do
        wait "${running[part]}" || failed=1
        echo "$(basename "$program"), part $((part + 1)) of $processes:"
        cat "$name.$part.log"
        rm "$name.$part.log"
      done
    done
  done
  ((found)) || { echo "the bundle has none of: $*"; return 1; }
  return $failed
}

baseline="wire_bench serve-baseline --listen {beside1}"

# The checks are the host's work: it takes all of its cores.
run_kernels-test() { gtests "$(nproc)" '*kernels_test'; }
run_device-test() { gtests 1 '*device_test'; }
# With two devices the test of two GPUs must not skip itself.
run_faults() {
  local failed=0
  FAULTY_GEMMD="$BUNDLE/bin/gemmd_faulty" gtests 1 gpu_fault_process_test || failed=1
  if [[ $DEVICES == *,* ]] && grep -qs '"result": "SKIPPED"' "$OUT_DIR/.gpu_fault_process_test.0.json"; then
    echo "--devices is $DEVICES, but a test was skipped: it found fewer GPUs"
    failed=1
  fi
  return $failed
}
# Whether the check finds wrong products, and how much time it takes.
run_checks() {
  local failed=0
  gtests 1 gpu_check_test || failed=1
  "$BUNDLE/bin/check_trial" --flips 10000 --clean 1000000 --threads "$(nproc)" \
    --out "$OUT_DIR/result-checks.md" || failed=1
  with_server checks -- python3 "$BUNDLE/python/check_cost.py" --gemmctl "$BUNDLE/bin/gemmctl" \
    --address '{address}' --json "$OUT_DIR/.checks.json" || failed=1
  PYTHONPATH="$BUNDLE/python/stubs" with_server clean-jobs --flag=--verify=always \
    --flag=--max-queue-wait=1h -- python3 "$BUNDLE/python/clean_jobs.py" --address '{address}' \
    --processes "$(nproc)" || failed=1
  return $failed
}
# make_callers FOLDER WEIGHT...: a certificate for 127.0.0.1, and a caller of each weight: NUMBER.token,
# callers and quotas. CALLERS_FLAGS are the flags of a server with these callers.
make_callers() {
  local folder="$1" number=0 weight
  shift
  rm -rf "$folder"
  (umask 077 && mkdir "$folder")
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=gemmd \
    -addext subjectAltName=IP:127.0.0.1 -keyout "$folder/tls.key" -out "$folder/tls.crt" \
    2>/dev/null
  for weight in "$@"; do
    "$BUNDLE/bin/gemmctl" token "caller$number" >"$folder/$number.token" 2>>"$folder/callers"
    echo "caller$number weight=$weight" >>"$folder/quotas"
    number=$((number + 1))
  done
  TLS_FLAGS=("--tls-certificate=$folder/tls.crt" "--tls-key=$folder/tls.key")
  CALLERS_FLAGS=("${TLS_FLAGS[@]}" "--callers-file=$folder/callers" "--quotas-file=$folder/quotas")
}
# One with large products beside one with small ones; then four callers with weights.
run_fairness() {
  local failed=0 extent=512 callers="$OUT_DIR/.callers"
  local room=(--flag=--max-queue-wait=1h --flag=--max-queued-jobs=8192 --flag=--max-jobs=8192)
  with_server fairness "${room[@]}" -- "$BUNDLE/bin/wire_bench" fairness --server '{address}' \
    --check --json "$OUT_DIR/.fairness.json" || failed=1
  if [[ $DEVICES == cuda* ]]; then
    extent=2048
    echo "beside 64 products of 8192 cubed, results kept:"
    with_server fairness "${room[@]}" -- "$BUNDLE/bin/wire_bench" fairness --server '{address}' \
      --large-extent 8192 --in-flight 64 --keep --rounds 2 --seconds 5 \
      --json "$OUT_DIR/.fairness-8192.json" || failed=1
    echo "beside batches of 65,535 products of 64 cubed, results kept:"
    with_server fairness "${room[@]}" -- "$BUNDLE/bin/wire_bench" fairness --server '{address}' \
      --large-extent 64 --large-batch 65535 --in-flight 4 --keep --rounds 2 --seconds 5 \
      --json "$OUT_DIR/.fairness-batches.json" || failed=1
  fi
  make_callers "$callers" 1 1 2 4
  with_server shares "${room[@]}" "${CALLERS_FLAGS[@]/#/--flag=}" -- "$BUNDLE/bin/wire_bench" \
    shares --server '{address}' --ca "$callers/tls.crt" --token "1=$callers/0.token" \
    --token "1=$callers/1.token" --token "2=$callers/2.token" --token "4=$callers/3.token" \
    --extent "$extent" --keep --check --json "$OUT_DIR/.shares.json" || failed=1
  rm -rf "$callers"
  return $failed
}
# The same calls without TLS, with TLS, and with TLS and tokens, in turns.
run_security() {
  local callers="$OUT_DIR/.callers" failed=0
  make_callers "$callers" 1
  local server="$BUNDLE/bin/gemmd --devices=$DEVICES --metrics-address= --device-memory-bytes=16GiB"
  with_server security --flag=--device-memory-bytes=16GiB \
    --beside "$server --address={beside1} ${TLS_FLAGS[*]}" \
    --beside "$server --address={beside2} ${CALLERS_FLAGS[*]}" -- "$BUNDLE/bin/wire_bench" security \
    --plain '{address}' --tls '{beside1}' --tokens '{beside2}' --ca "$callers/tls.crt" \
    --token-file "$callers/0.token" --json "$OUT_DIR/.security.json" || failed=1
  rm -rf "$callers"
  return $failed
}
# Three times as many products as the device can make, for five minutes. Results stay on
# the device: it is the bottleneck, not the wire.
run_overload() {
  local extent=512
  [[ $DEVICES == cuda* ]] && extent=2048
  with_server overload -- "$BUNDLE/bin/wire_bench" overload --server '{address}' --pid '{pid}' \
    --extent "$extent" --keep --check --json "$OUT_DIR/.overload.json"
}
# Three times as many products as one connection can answer: here the wire is short. They take
# the device no time, and their results of 1 MiB come back. There is no bound to hold: the
# throughput depends on the cores that the client leaves to the server.
run_wire-overload() {
  with_server wire-overload -- "$BUNDLE/bin/wire_bench" overload --server '{address}' --pid '{pid}' \
    --extent 512 --inner 4 --factor 3 --seconds 60 --json "$OUT_DIR/.wire-overload.json"
}
run_conformance() {
  local flags=()
  [[ $DEVICES == cuda* ]] || flags=(--quick)
  with_server conformance -- python3 "$BUNDLE/python/conformance.py" --address '{address}' \
    --stubs "$BUNDLE/python/stubs" --device-kind "${DEVICES%%:*}" "${flags[@]}" \
    --json "$OUT_DIR/.conformance.json"
}
# ModelInfer beside MultiplyUnary.
run_inference() {
  with_server inference --flag=--max-message-bytes=256MiB -- \
    python3 "$BUNDLE/python/inference_cost.py" --address '{address}' \
    --stubs "$BUNDLE/python/stubs" --json "$OUT_DIR/.inference.json"
}
# The baseline once with each allocator of the bundle, and gemmd. With --before, that
# gemmd, too: it takes its turns between the others.
run_wire() {
  local beside=(--beside "$BUNDLE/bin/$baseline") names=(--baseline 'raw-tcmalloc={beside1}')
  local allocator name servers=(--server 'gemmd={address}')
  for allocator in "$BUNDLE"/allocators/lib*; do
    name="$(basename "$allocator")"
    name="${name#lib}"
    beside+=(--beside "env LD_PRELOAD=$allocator $BUNDLE/bin/${baseline/beside1/beside$((${#beside[@]} / 2 + 1))}")
    names+=(--baseline "raw-${name%%.*}={beside$((${#beside[@]} / 2))}")
  done
  if [[ -n $BEFORE ]]; then
    beside+=(--beside "$BEFORE --devices=$DEVICES --address={beside$((${#beside[@]} / 2 + 1))} --metrics-address=")
    servers+=(--server "before={beside$((${#beside[@]} / 2))}")
  fi
  with_server wire "${beside[@]}" -- "$BUNDLE/bin/wire_bench" transfers "${servers[@]}" \
    "${names[@]}" --check --json "$OUT_DIR/.wire.json"
}
# Small products a second beside the same bytes without a product.
run_small() {
  with_server small --beside "$BUNDLE/bin/$baseline --answer-bytes 8192" -- \
    "$BUNDLE/bin/wire_bench" small --server '{address}' --baseline '{beside1}' --check \
    --json "$OUT_DIR/.small.json"
}
# Latency of small products that come in the middle of a measurement, and without one.
run_idle-tuning() {
  local failed=0 file="$OUT_DIR/.idle.tune" measure
  measure=(python3 "$BUNDLE/python/idle_tuning_delay.py" --address '{address}' --metrics '{metrics}')
  echo "with --idle-tuning:"
  PYTHONPATH="$BUNDLE/python/stubs" with_server idle-with "--flag=--idle-tuning=$file" -- \
    "${measure[@]}" --json "$OUT_DIR/.idle-with.json" || failed=1
  echo "without:"
  PYTHONPATH="$BUNDLE/python/stubs" with_server idle-without -- "${measure[@]}" \
    --json "$OUT_DIR/.idle-without.json" || failed=1
  rm -f "$file"
  return $failed
}
run_latency() {
  local torch=() failed=0
  if python3 -c 'import torch' 2>/dev/null; then
    torch=(--beside "python3 $BUNDLE/python/torch_server.py --listen {beside2}")
  fi
  with_server latency --beside "$BUNDLE/bin/$baseline" "${torch[@]}" -- "$BUNDLE/bin/wire_bench" \
    latency --server '{address}' --baseline '{beside1}' ${torch:+--torch '{beside2}'} --check \
    --json "$OUT_DIR/.latency.json" || failed=1
  [[ -n $BEFORE ]] || return $failed
  echo "before: $BEFORE"
  SERVER="$BEFORE" with_server latency-before --beside "$BUNDLE/bin/$baseline" -- \
    "$BUNDLE/bin/wire_bench" latency --server '{address}' --baseline '{beside1}' \
    --json "$OUT_DIR/.latency-before.json" || failed=1
  return $failed
}
run_soak() {
  with_server soak --flag=--max-queue-wait=1m -- "$BUNDLE/bin/soak" --server '{address}' \
    --metrics '{metrics}' --pid '{pid}' --seconds "$SOAK_SECONDS" --coalesces --json "$OUT_DIR/.soak.json"
}
# Two rounds of four minutes.
run_attacks() {
  python3 "$BUNDLE/python/attacks/attacks.py" --start-gemmd "$BUNDLE/bin/gemmd" \
    --devices "$DEVICES" --stubs "$BUNDLE/python/stubs" --rounds 2 --seconds 240 --limit 490 \
    --rate 20 --json "$OUT_DIR/.attacks.json"
}
# Attacks that take several minutes together, most of them with thousands of connections.
CROWDS=(health-checks silent-health-checks refused-watches watches idle)
# guarded_attacks ATTACKS ARGUMENT...: a server with TLS and callers.
guarded_attacks() {
  local only="$1"
  shift
  python3 "$BUNDLE/python/attacks/attacks.py" --start-gemmd "$BUNDLE/bin/gemmd" \
    --devices "$DEVICES" --stubs "$BUNDLE/python/stubs" --guarded --only "$only" --rate 20 "$@"
}
# All but CROWDS.
run_strangers() {
  local others
  others="$(python3 "$BUNDLE/python/attacks/attacks.py" --list | awk '{print $1}' |
    grep -vxF "$(printf '%s\n' "${CROWDS[@]}")" | paste -sd ,)"
  guarded_attacks "$others" --seconds 400 --limit 520 --report "$OUT_DIR/attacks-strangers.md"
}
run_crowds() {
  guarded_attacks "$(IFS=,; echo "${CROWDS[*]}")" --seconds 240 --limit 380 \
    --report "$OUT_DIR/attacks-crowds.md"
}
# Host devices have a store of 1 GiB.
run_python() {
  local sizes=(--check) sentences=()
  if [[ $DEVICES == host* ]]; then
    sizes=(--extent 512 --rounds 3 --calls 100 --put-mib 256 --cases 500 --limit 50)
  fi
  if [[ -f $BUNDLE/python/sentences.npz ]]; then
    sentences=(--sentences "$BUNDLE/python/sentences.npz")
  else
    echo "no sentence transformer: the bundle was packed without --sentences"
  fi
  PYTHONPATH="$BUNDLE/python/package" with_server python \
    --beside "python3 $BUNDLE/python/torch_server.py --listen {beside1}" -- \
    python3 "$BUNDLE/python/package/gpu.py" --address '{address}' --torch '{beside1}' \
    --gemmctl "$BUNDLE/bin/gemmctl" --examples "$BUNDLE/python/package" "${sentences[@]}" \
    "${sizes[@]}" --json "$OUT_DIR/.python.json"
}

run_suites() {
  local folder="$OUT_DIR/.suites" suite name words failed=0
  mkdir -p "$folder"
  local triton="$OUT_DIR/.triton"
  rm -rf "$triton"
  if python3 -c 'import triton' 2>/dev/null; then
    python3 "$BUNDLE/python/compile_triton.py" "$triton" || failed=1
  else
    echo "no baseline of the grouped kernels: this python3 has no triton"
  fi
  for suite in "${SUITES[@]}"; do
    read -ra words -d '' <<<"$suite" || true
    name="${words[0]}"
    if [[ $name == triton-31 && -f $triton/kernels.json ]]; then words+=(--triton "$triton"); fi
    "$BUNDLE/bin/gemm_bench" --device "${DEVICES%%,*}" --brief --quiet "${words[@]:1}" \
      --csv "$folder/$name.csv" --json "$folder/$name.json" --plot "$folder/$name.svg" ||
      failed=1
  done
  awk 'NR == 1 || FNR > 1' "$folder"/{narrow,wide,fp8}.csv >"$folder/4096.csv" || failed=1
  tar -C "$folder" -czf "$OUT_DIR/suites.tar.gz" .
  rm -rf "$folder" "$triton"
  return $failed
}

run_piece() {
  local piece="$1" begin=$SECONDS code=0 report="$OUT_DIR/$1.md"
  say "$piece (at most ${SECONDS_OF[$piece]} s)"
  write_header "$piece" \
    "gpu-acceptance.sh run --devices $DEVICES --soak-seconds $SOAK_SECONDS $piece" >"$report"
  echo '```' >>"$report"
  # A shell of its own, so that the time limit ends all of it.
  set +e
  timeout --kill-after=20 "${SECONDS_OF[$piece]}" "$BUNDLE/gpu-acceptance.sh" piece \
    --out "$OUT_DIR" --devices "$DEVICES" --soak-seconds "$SOAK_SECONDS" \
    ${BEFORE:+--before "$BEFORE"} "$piece" 2>&1 |
    tee -a "$report"
  code=${PIPESTATUS[0]}
  set -e
  {
    echo '```'
    echo
    echo "exit code $code after $((SECONDS - begin)) s"
  } >>"$report"
  local verdict=passed
  ((code == 124 || code == 137)) && verdict="out of time"
  ((code == 0 || code == 124 || code == 137)) || verdict="FAILED ($code)"
  RESULTS+=("$(printf '%-14s %-12s %5d s' "$piece" "$verdict" $((SECONDS - begin)))")
  return "$code"
}

# One file of all results, for a machine whose files come back few at a time.
merge_json() {
  python3 - "$OUT_DIR" <<'PYTHON'
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
merged = {}
for path in sorted(folder.glob(".*.json")):
    merged[path.stem[1:]] = json.loads(path.read_text())
    path.unlink()
(folder / "results.json").write_text(json.dumps(merged, indent=1) + "\n")
PYTHON
  # A server's log is worth keeping only while it is read.
  rm -f "$OUT_DIR"/.*.server.log
}

parse_run() {
  while (($#)); do
    case "$1" in
      --out | --devices | --soak-seconds | --before)
        (($# >= 2)) || die "$1 needs a value"
        case "$1" in
          --out) OUT_DIR="$2" ;;
          --devices) DEVICES="$2" ;;
          --soak-seconds) SOAK_SECONDS="$2" ;;
          --before) BEFORE="$(realpath "$2")" ;;
        esac
        shift
        ;;
      -*) die "unknown option '$1': --out, --devices, --soak-seconds and --before are known" ;;
      *)
        [[ -n ${SECONDS_OF[$1]:-} ]] || die "unknown piece '$1': there are ${PIECES[*]}"
        SELECTED+=("$1")
        ;;
    esac
    shift
  done
  ((${#SELECTED[@]})) || die "no piece named: there are ${PIECES[*]}"
}

run() {
  parse_run "$@"
  [[ -x $BUNDLE/bin/gemmd && -f $BUNDLE/COMMIT ]] || die "$BUNDLE is no packed bundle"
  mkdir -p "$OUT_DIR"
  OUT_DIR="$(realpath "$OUT_DIR")"
  find_cuda
  local piece failed=0
  for piece in "${SELECTED[@]}"; do run_piece "$piece" || failed=1; done
  merge_json
  say "results in $OUT_DIR, commit $(cat "$BUNDLE/COMMIT"), $(gpu_line)"
  printf '%s\n' "${RESULTS[@]}"
  return $failed
}

case "${1:-}" in
  pack) shift; pack "$@" ;;
  run) shift; run "$@" ;;
  piece) shift; parse_run "$@"; "run_${SELECTED[0]}" ;; # what `run` starts for each piece
  -h | --help) usage ;;
  *) usage; exit 1 ;;
esac
