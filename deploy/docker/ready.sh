#!/bin/bash
# Whether the gemmd of this container serves calls: /readyz says so, and asks for no token.
set -euo pipefail

exec 3<>"/dev/tcp/127.0.0.1/${GEMMD_METRICS_ADDRESS##*:}"
printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3
read -r -t 4 _ status _ <&3
[[ $status == 200 ]]
