#!/bin/sh
# --joules is refused where there is no counter of energy, and where its time is none.
#
#   tests/kernels/joules_test.sh GEMM_BENCH
bench=$1
refused() {
  want=$1
  shift
  said=$("$bench" --device host --shapes 8 --iterations 1 "$@" 2>&1)
  status=$?
  case "$status $said" in
    "2 "*"$want"*) ;;
    *) echo "gemm_bench $*: exit status $status, and said: $said"; exit 1 ;;
  esac
}

none="--joules needs an energy counter: a device of this kind has none"
refused "$none" --joules
refused "$none" --joules 2.5
refused "$none" --joules --quiet
for time in 0 0.05 601 long nan; do
  refused "\"$time\" is not a number of seconds of 0.1 to 600" --joules "$time"
done
