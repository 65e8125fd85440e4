#!/usr/bin/env bash
# ci/check runs the parts that it is given; with --since, tidy reads what changed since a commit and what includes it.
#   check_test.sh CI-CHECK
set -euo pipefail
check=$(realpath "$1")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
fail() { echo "ci/check: $1" >&2; exit 1; }
mkdir -p "$root"/tree/ci "$root"/tree/gate/{base,probes/twin} "$root/bin"
cd "$root/tree"
cp "$check" ci/check
for name in setup check-layers words markdown macos; do ln -s /bin/true ci/$name; done
for name in cmake clang-format-14 ctest; do ln -s /bin/true "$root/bin/$name"; done
printf '#!/bin/sh\nshift 3\nprintf "%%s\\n" "$@" >>"%s/read"\n' "$root" >"$root/bin/clang-tidy-14"
chmod +x "$root/bin/clang-tidy-14"
PATH=$root/bin:$PATH
git() { command git -c user.name=weir -c user.email=weir@example.org "$@"; }

echo '#include "gate/base/text.hpp"' | tee gate/base/{text,user}.cpp >gate/base/apple_macos.cpp
touch gate/base/{text.hpp,other.cpp,lonely.hpp} gate/probes/twin/probe.cpp .clang-tidy
git init -q
git add -A
git commit -q -m 'All of it'
# expect FILES OPTIONS…: tidy reads these files, in any order.
expect() {
  local files=$1
  shift
  : >"$root/read"
  ci/check "$@" >"$root/log" 2>&1 || fail "$* failed: $(cat "$root/log")"
  [ "$(sort "$root/read" | xargs)" = "$files" ] || fail "$*: tidy reads \"$(sort "$root/read" | xargs)\", not \"$files\""
}
everything='gate/base/other.cpp gate/base/text.cpp gate/base/user.cpp'
expect "$everything" tidy
expect '' style
expect '' --since HEAD tidy
echo '// changed' >>gate/base/text.hpp
expect 'gate/base/text.cpp gate/base/user.cpp' --since HEAD tidy
git commit -q -a -m 'A header'
expect 'gate/base/text.cpp gate/base/user.cpp' --since HEAD^ style tidy
expect '' --since HEAD tidy
echo '// changed' | tee -a gate/base/{other.cpp,lonely.hpp,apple_macos.cpp} >>gate/probes/twin/probe.cpp
expect 'gate/base/other.cpp' --since HEAD tidy
git rm -q -f gate/base/other.cpp
expect '' --since HEAD tidy
echo 'Checks: all' >.clang-tidy
expect 'gate/base/text.cpp gate/base/user.cpp' --since HEAD tidy
# What only the other side changed since the two parted is no change of ours.
git stash -q
git checkout -q -b other HEAD^
expect '' --since '@{-1}' tidy
! ci/check --since nowhere tidy 2>/dev/null || fail "an unknown commit is accepted"
! ci/check everything 2>/dev/null || fail "an unknown part is accepted"
