#!/usr/bin/env bash
# Each level of ci/setup installs what the one before does, and lint leaves out what only slow tests need.
#   setup_test.sh CI-SETUP
set -euo pipefail
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
bin=$top/bin setup=$top/ci/setup
mkdir "$bin" "$top/ci"
cp "$1" "$setup"
printf '#!/bin/sh\n: >load-tools-called\n' >"$top/ci/load-tools"
chmod +x "$top/ci/load-tools"
fail() { echo "ci/setup: $1" >&2; exit 1; }
# A bare machine, on which apt-get installs nothing.
for name in bash dirname id mktemp rm sed sh uname; do ln -s "$(command -v $name)" "$bin/"; done
printf '#!/bin/sh\nexec /bin/true\n' | tee "$bin/apt-get" "$bin/dpkg-query" "$bin/sudo" >/dev/null
chmod +x "$bin"/{apt-get,dpkg-query,sudo}
packages() { PATH=$bin "$setup" "$@" | sed 's/.*packages: //' | tr ' ' '\n' | sort; }

[ "$(packages)" = "$(packages gate)" ] || fail "the default is not gate"
smaller=gate
for level in test lint all; do
  [ -z "$(comm -23 <(packages $smaller) <(packages $level))" ] || fail "$level lacks packages of $smaller"
  [ -n "$(comm -13 <(packages $smaller) <(packages $level))" ] || fail "$level adds nothing to $smaller"
  smaller=$level
done
[ "$(comm -13 <(packages test) <(packages lint) | tr '\n' ' ')" = 'clang-format-14 clang-tidy-14 ' ] || fail "lint is more than its tools"
[ ! -e "$top/load-tools-called" ] || rm "$top/load-tools-called"
PATH=$bin "$setup" lint >/dev/null
[ ! -e "$top/load-tools-called" ] || fail "lint gets load tools"
PATH=$bin "$setup" all >/dev/null
[ -e "$top/load-tools-called" ] || [ "$(uname -m)" != x86_64 ] || fail "all gets no load tools"
! PATH=$bin "$setup" everything 2>/dev/null || fail "an unknown level is accepted"
