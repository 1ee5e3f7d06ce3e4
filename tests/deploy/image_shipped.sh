# Checks an image as it is shipped: with TLS, callers and tokens. Sourced by
# image_test.sh, not run.
# shellcheck shell=bash

# As it is shipped, the image serves nobody until it has a certificate and callers.
check_closed() {
  local status=0
  run_buildah run --isolation chroot --cap-drop all "$CONTAINER" -- gemmd --devices=host \
    >"$WORK/closed.log" 2>&1 || status=$?
  expect "exit status of gemmd without a certificate" 2 "$status"
  grep -q '/etc/gemmd/' "$WORK/closed.log" ||
    { cat "$WORK/closed.log"; die "gemmd does not say which file it wants"; }
}

# shipped COMMAND...: with all that the image sets, and the files of make-secrets.sh where
# compose.yaml mounts them.
shipped() { in_container --volume "$SECRETS/gemmd:/etc/gemmd:ro" -- "$@"; }

# as_root COMMAND...: as root, who alone may read the operator's token.
as_root() { in_container --user 0:0 --volume "$SECRETS:/secrets:ro" -- "$@"; }

# operator ARGUMENT...: the command that make-secrets.sh prints.
operator() {
  as_root gemmctl --address "127.0.0.1:${ADDRESS##*:}" --ca /secrets/ca.crt \
    --token-file /secrets/operator.token "$@"
}

# http_status PATH [CURL OPTION...]: of the metrics address.
http_status() {
  local path="$1"
  shift
  curl -sS -o "$WORK/answer.txt" -w '%{http_code}' "$@" "http://127.0.0.1:${METRICS##*:}$path"
}

# A call without a token. What it says goes to a file in the container: on a busy machine
# buildah may lose the last lines of a command that ends at once.
check_no_token() {
  # shellcheck disable=SC2016 # for the inner shell to expand
  if as_root bash -c '"$@" >/tmp/no-token.txt 2>&1' - gemmctl \
    --address "127.0.0.1:${ADDRESS##*:}" --ca /secrets/ca.crt info >"$WORK/no-token.log" 2>&1; then
    die "a call without a token was served"
  fi
  grep -q UNAUTHENTICATED "$MOUNT/tmp/no-token.txt" ||
    { cat "$WORK/no-token.log" "$MOUNT/tmp/no-token.txt"; die "a call without a token: want UNAUTHENTICATED"; }
  note "ok: a call without a token: UNAUTHENTICATED"
}

# Every interface, TLS and callers, as in the image's variables; only the ports are others.
check_shipped() {
  ADDRESS="0.0.0.0:$(free_port)" METRICS="0.0.0.0:$(free_port)" SECRETS="$WORK/secrets"
  rm -rf "$SECRETS"
  deploy/compose/make-secrets.sh "$SECRETS" >"$WORK/secrets.txt"
  note "as shipped, with the files of make-secrets.sh:"
  start_server shipped
  check_product operator
  check_no_token
  # curl reads the header from a file: a token is in no command line.
  (umask 077 && printf 'Authorization: Bearer %s\n' "$(<"$SECRETS/prometheus/token")" >"$WORK/header.txt")
  expect "/metrics with the scraper's token" 200 "$(http_status /metrics --header "@$WORK/header.txt")"
  grep -q '^gemmd_jobs_total{.*outcome="OK".*} [1-9]' "$WORK/answer.txt" ||
    die "/metrics does not count the product"
  expect "/metrics without a token" 401 "$(http_status /metrics)"
  expect "/readyz without a token" 200 "$(http_status /readyz)"
  stop_server
}
