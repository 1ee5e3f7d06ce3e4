#!/bin/sh
# Output that cannot be written is an exit status of 1, and said.
#
#   tests/kernels/full_output_test.sh GEMM_BENCH
for job in --list-suites --catalogue --help "--brief --quiet --shapes 8 --iterations 1"; do
  # shellcheck disable=SC2086  # a job is several words
  said=$("$1" --device host $job 2>&1 >/dev/full)
  status=$?
  case "$status $said" in
    "1 "*"standard output: cannot be written: No space left on device"*) ;;
    *) echo "gemm_bench $job: exit status $status, and said: $said"; exit 1 ;;
  esac
done
