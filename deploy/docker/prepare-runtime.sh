#!/bin/bash
# Makes a base image ready to run gemmd: its shared libraries, and a user
# without any rights to run as. Run once, as root, inside the image.
set -euo pipefail

"$(dirname "${BASH_SOURCE[0]}")/scripts/install-deps.sh" runtime
groupadd --gid 10001 gemmd
useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent \
  --shell /usr/sbin/nologin gemmd
rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
