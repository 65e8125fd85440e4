#!/usr/bin/env bash
# Builds in one folder do not overlap, and none turns off the tests that another builds.
#   build_test.sh SOURCE-FOLDER
set -euo pipefail
source=$(realpath "$1")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
fail() { echo "ci/build: $1" >&2; exit 1; }
mkdir -p "$root"/tree/ci "$root/bin"
cd "$root/tree"
cp "$source"/ci/{build,prepare} ci/

# Builds until the test opens FOLDER.go; one that finds another at work in its folder fails.
cat >"$root/bin/cmake" <<'FAKE'
#!/usr/bin/env bash
echo "$*" >>calls
[ "$1" = --build ] || exit 0
mkdir "$2/busy" 2>/dev/null || { echo "two builds in $2" >&2; exit 1; }
echo begun >"$2.begun"
read -t 60 -r _ <>"$2.go"
rmdir "$2/busy"
FAKE
chmod +x "$root/bin/cmake"
real_path=$PATH
PATH=$root/bin:$PATH
mkfifo build{,-quick}.{begun,go} waiting

begun() { read -t 60 -r _ <>"$1.begun" || fail "no build began in $1/"; }
ci/build & first=$!
begun build
ci/build release weir 2>waiting & second=$!
# It opens the file once and for all: without a lock it fails, and this line is what it says.
read -r line <waiting || fail "the second build neither waited nor failed"
[ "$line" = "ci/build: waiting for another build in build/: process $first (ci/build release)" ] || fail "the second build said \"$line\""
ci/build quick & other=$!
begun build-quick
echo >build-quick.go
wait $other || fail "a build in another folder waited or failed"
kill -0 $second 2>/dev/null || fail "the second build did not wait for the first"
echo >build.go
wait $first || fail "the first build failed"
begun build
echo >build.go
wait $second || fail "the second build failed"

# ci/prepare (ci/gate, ci/test): the gate says nothing of tests, so it leaves them as they are.
for name in setup llama.cpp node-engines mesa models github-api; do ln -s /bin/true ci/$name; done
prepare() {
  : >calls
  { begun build; echo >build.go; } &
  ci/prepare "$1" || fail "ci/prepare $1 failed"
}
prepare test
grep -q -e '-DWEIR_TESTS=ON' calls || fail "ci/prepare test does not turn the tests on"
prepare gate
! grep -e WEIR_TESTS calls || fail "ci/prepare gate decides about the tests"
grep -qx -e '--build build .*--target weir weir-engine' calls || fail "ci/prepare gate builds: $(cat calls)"

# By themselves, tests are built if GoogleTest is installed; where it is not, weir alone is configured.
PATH=$real_path
has_tests() {
  cmake --preset release -S "$source" -B "$root/build" "$@" >"$root/log" 2>&1 || fail "cmake $*: $(cat "$root/log")"
  ! ctest --test-dir "$root/build" -N | grep -qx 'Total Tests: 0'
}
! has_tests -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON || fail "tests without GoogleTest"
has_tests -DCMAKE_DISABLE_FIND_PACKAGE_GTest=OFF || fail "no tests though GoogleTest is installed"
