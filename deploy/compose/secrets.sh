#!/usr/bin/env bash
# Makes the secrets of compose.yaml, once: what is there stays as it is.
# The folder is closed to others; the files in it are readable, for each container reads them as a user of its own.
set -euo pipefail
cd "$(dirname "$0")"
umask 077
mkdir -p secrets
cd secrets

drawn() { head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n'; }
kept() { [ -s "$1" ] || drawn >"$1"; }

for name in postgres_password minio_user minio_password prometheus_token grafana_password operator_token; do
  kept "$name"
done
if [ ! -s turntide.toml ]; then
  cat >turntide.toml <<EOF
# What the roles and commands are told in secret (TURNTIDE_CONFIG); everything else is in compose.yaml.
[archive]
catalog_password = "$(cat postgres_password)"
s3_key_id = "$(cat minio_user)"
s3_secret = "$(cat minio_password)"

# Opens the live page.
[[http.tokens]]
token = "$(cat operator_token)"
role = "operator"
name = "operator"

# Scrapes /metrics, and reads nothing that was said.
[[http.tokens]]
token = "$(cat prometheus_token)"
role = "admin"
text = false
name = "prometheus"
EOF
fi
chmod 0444 ./*
echo "secrets are in $PWD; the live page asks for what is in operator_token"
