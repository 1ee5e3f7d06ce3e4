#!/bin/bash
# Measures every kernel of each class of products on many shapes, on a machine with a GPU.
#
#   scripts/measure-timings.sh --bench GEMM_BENCH [--out DIR] [--purpose fit|judge]
#                              [--scale NUMBER] [--only CLASS,...] [--series NUMBER]
#
# --bench    the program gemm_bench, such as bundle/bin/gemm_bench
# --out      where CLASS.csv goes, a file a class: ./timings
# --purpose  fit: the shapes that estimates are fitted to (scripts/timing_shapes.py);
#            judge: linear layers and random sizes, which no fit sees
# --scale    so many times as many shapes, 1 by default
# --only     classes such as f16-nt; without it all
# --series   other shapes of the same kinds for each number, 0 by default
#
# A class is the types of a product and how A and B are stored. On one H200 all of them take
# about ten minutes. cuBLASLt proposes eight algorithms; each is measured.
# scripts/pack_timings.py makes small tables of the results, for docs/results/timings.

set -euo pipefail
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

die() { echo "measure-timings.sh: error: $*" >&2; exit 1; }

# Class, types, layout, shapes to fit, seed, seconds at most.
CLASSES=(
  "f16-nt f16:f16:f16:f32 nt 560 1 75"
  "f16-nn f16:f16:f16:f32 nn 480 2 65"
  "bf16-nt bf16:bf16:bf16:f32 nt 200 3 30"
  "bf16-nn bf16:bf16:bf16:f32 nn 200 4 30"
  "bf16-tn bf16:bf16:bf16:f32 tn 240 5 30"
  "e4m3-nt e4m3:e4m3:f16:f32 nt 400 6 30"
  "e4m3-tn e4m3:e4m3:f16:f32 tn 160 7 15"
  "tf32-nt f32:f32:f32:tf32 nt 360 8 30"
  "tf32-nn f32:f32:f32:tf32 nn 240 9 20"
  "s8-nt s8:s8:s32:s32 nt 320 10 30"
  "f64-nt f64:f64:f64:f64 nt 300 11 25"
  "f64-nn f64:f64:f64:f64 nn 240 12 20"
  "f32x3-nt f32:f32:f32:f32x3 nt 280 13 25"
  "f32x3-nn f32:f32:f32:f32x3 nn 200 14 18"
  "f32-nt f32:f32:f32:f32 nt 480 15 50"
  "f32-nn f32:f32:f32:f32 nn 480 16 50"
)

BENCH='' OUT_DIR=timings PURPOSE=fit SCALE=1 ONLY='' SERIES=0
while (($#)); do
  (($# >= 2)) || die "$1 needs a value"
  case "$1" in
    --bench) BENCH="$2" ;;
    --out) OUT_DIR="$2" ;;
    --purpose) PURPOSE="$2" ;;
    --scale) SCALE="$2" ;;
    --only) ONLY="$2" ;;
    --series) SERIES="$2" ;;
    *) die "unknown option '$1': --bench, --out, --purpose, --scale, --only and --series are known" ;;
  esac
  shift 2
done
[[ -x $BENCH ]] || die "--bench is '$BENCH': the path of the program gemm_bench is needed"
[[ $PURPOSE == fit || $PURPOSE == judge ]] || die "--purpose is '$PURPOSE': fit and judge are allowed"
mkdir -p "$OUT_DIR"

# scaled NUMBER: times --scale, whole.
scaled() { awk -v n="$1" -v s="$SCALE" 'BEGIN {printf "%d", n * s < 1 ? 1 : n * s}'; }

for line in "${CLASSES[@]}"; do
  read -r class types layout count seed seconds <<<"$line"
  [[ -z $ONLY || ,$ONLY, == *,$class,* ]] || continue
  shapes=()
  if [[ $PURPOSE == judge ]]; then
    count=70
    shapes=(--suite layers)
  fi
  most=2e12
  [[ $class == f32* || $class == f64* ]] && most=3e11
  shapes+=(--shapes "$("$HERE/timing_shapes.py" "$PURPOSE" "$(scaled "$count")" --seed "$((seed + 100 * SERIES))" \
    --most-flops "$most")")
  # No library multiplies in this mode: cuBLAS in f32 is the baseline.
  algorithms=(--param "algorithm=0,1,2,3,4,5,6,7")
  [[ $class != f32x3* ]] || algorithms=()
  started=$SECONDS
  # Exit code 1 says that a result was wrong: the row says so, too.
  "$BENCH" "${shapes[@]}" --family hopper,cublas,cublaslt --types "$types" --layout "$layout" \
    "${algorithms[@]}" --algorithms 0 --warmup 1 --iterations 3 \
    --sample-time 0.2 --checked-lines 2 --cutoff 4 --budget "$(scaled $((2 * seconds)))" \
    --csv "$OUT_DIR/$class.csv" --brief --quiet >"$OUT_DIR/$class.log" 2>&1 ||
    echo "$class: gemm_bench failed: $(tail -n 1 "$OUT_DIR/$class.log")"
  echo "$class: $(wc -l <"$OUT_DIR/$class.csv") rows in $((SECONDS - started)) s," \
    "$(grep -c 'budget' "$OUT_DIR/$class.csv" || true) short of time"
done
