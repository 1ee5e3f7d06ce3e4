#!/bin/bash
# Makes the secrets of the compose file, in deploy/compose/secrets/:
#
#   deploy/compose/make-secrets.sh [FOLDER]
#
# FOLDER                where they go instead, such as for another container engine
#
# ca.crt                the CA that signs the server's certificate, for clients
# operator.token        a token with every role, for gemmctl
# gemmd/                the server's files: tls/tls.crt, tls/tls.key, callers
# prometheus/token      the token that Prometheus shows
#
# For a trial on one machine: the CA's key is thrown away, and the certificate is for
# localhost and gemmd, for a year. Existing secrets are kept; delete the folder for
# new ones. Run it as root, so that only the containers' user (10001) can read the key;
# else every user of this machine can.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"

if [[ ${1-} == -h || ${1-} == --help ]]; then usage; exit 0; fi
if (($# > 1)) || [[ ${1-} == -* ]]; then die "want one folder or none, got '$*': see --help"; fi
OUT="$(realpath -m "${1:-$ROOT/deploy/compose/secrets}")"
[[ ! -e $OUT ]] || die "$OUT is there already: delete it for new secrets"
have openssl || die "openssl is not installed"

WORK="$(mktemp -d)"
trap 'rm -rf "$WORK"' EXIT
umask 077

# new_key NAME
new_key() { openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$WORK/$1.key"; }

# new_token FILE NAME ROLES: the token into FILE, its line to standard output.
new_token() {
  local token hash
  token="gemmd_$(openssl rand -base64 32 | tr '+/' '-_' | tr -d '=\n')"
  hash="$(printf '%s' "$token" | sha256sum | cut -d ' ' -f 1)"
  printf '%s\n' "$token" >"$1"
  printf '%s %s sha256:%s\n' "$2" "$3" "$hash"
}

new_key ca
openssl req -x509 -new -key "$WORK/ca.key" -subj "/CN=gemmd compose CA" -days 365 -out "$WORK/ca.crt"
new_key tls
openssl req -new -key "$WORK/tls.key" -subj "/CN=gemmd" -out "$WORK/tls.csr"
openssl x509 -req -in "$WORK/tls.csr" -CA "$WORK/ca.crt" -CAkey "$WORK/ca.key" -CAcreateserial \
  -days 365 -out "$WORK/tls.crt" \
  -extfile <(printf 'subjectAltName=DNS:localhost,DNS:gemmd,IP:127.0.0.1\n') 2>/dev/null

# A folder beside it, renamed when it is complete: a failure leaves nothing.
NEW="$OUT.new.$$"
trap 'rm -rf "$WORK" "$NEW"' EXIT
mkdir -p "$NEW/gemmd/tls" "$NEW/prometheus"
install -m 644 "$WORK/ca.crt" "$NEW/ca.crt"
install -m 644 "$WORK/tls.crt" "$NEW/gemmd/tls/tls.crt"
install -m 600 "$WORK/tls.key" "$NEW/gemmd/tls/tls.key"
{
  new_token "$NEW/operator.token" operator all
  new_token "$NEW/prometheus/token" prometheus metrics
} >"$NEW/gemmd/callers"
# The users in the containers: 10001 of gemmd, 65534 of Prometheus.
if [[ "$(id -u)" == 0 ]]; then
  chmod 755 "$NEW"
  chown -R 10001:10001 "$NEW/gemmd"
  chown -R 65534:65534 "$NEW/prometheus"
else
  chmod 755 "$NEW" "$NEW/gemmd" "$NEW/gemmd/tls" "$NEW/prometheus"
  chmod 644 "$NEW/gemmd/tls/tls.key" "$NEW/gemmd/callers" "$NEW/prometheus/token"
  say "not run as root: every user of this machine can read the key and the scraper's token"
fi
mv -T "$NEW" "$OUT"
say "made $OUT; try:"
say "  gemmctl --address localhost:50051 --ca $OUT/ca.crt --token-file $OUT/operator.token info"
