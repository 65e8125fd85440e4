#!/usr/bin/env bash
# The shards of ci/test together run each core test once.
#   shard_test.sh CI-TEST
set -euo pipefail
test=$(realpath "$1")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
fail() { echo "ci/test: $1" >&2; exit 1; }
mkdir -p "$root"/{ci,build}
cd "$root"
cp "$test" ci/test
printf '#!/bin/sh\n[ "$*" = "--built test" ]\n' >ci/prepare
chmod +x ci/prepare
for ((i = 1; i <= 11; i++)); do
  echo "add_test(t$i sh -c \"echo t$i >>$root/ran\")"
  # Left out before they are divided, so that no shard gets fewer.
  ((i % 3 != 0)) || echo "set_tests_properties(t$i PROPERTIES LABELS slow)"
done >build/CTestTestfile.cmake
for shard in 1 2 3; do
  ci/test --shard $shard/3 >log 2>&1 || fail "shard $shard of 3 failed: $(cat log)"
  [ "$(wc -l <ran)" -ge $((shard * 8 / 3)) ] || fail "shard $shard of 3 has too few tests: $(xargs <ran)"
done
[ "$(sort -V ran | xargs)" = 't1 t2 t4 t5 t7 t8 t10 t11' ] || fail "the shards run: $(sort -V ran | xargs)"
for wrong in 1 1/ 0/2 /2 'x/2'; do
  ! ci/test --shard "$wrong" >log 2>&1 || fail "--shard $wrong is accepted"
done
