#!/bin/bash
# Builds the fuzzers as OSS-Fuzz wants them: by its CC, CXX, CFLAGS, CXXFLAGS and LIB_FUZZING_ENGINE, into $OUT, each
# with its seeds. Without OSS-Fuzz, OUT=FOLDER ci/oss-fuzz/build.sh takes clang 19's libFuzzer with ASan and UBSan.
set -euo pipefail
if [[ -n ${SRC:-} ]]; then cd "$SRC/weir"; else cd "$(dirname "${BASH_SOURCE[0]}")/../.."; fi
sanitizers="-O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined"
export CC=${CC:-clang-19} CXX=${CXX:-clang++-19} CFLAGS=${CFLAGS-$sanitizers} CXXFLAGS=${CXXFLAGS-$sanitizers}
# Ubuntu's C++ libraries are of libstdc++.
CXXFLAGS=${CXXFLAGS/-stdlib=libc++/}
build=${WORK:-build-fuzz}/oss-fuzz
# The fuzzers run on a machine without those libraries: linked in, as in a release.
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=None -DWEIR_FUZZ=ON -DWEIR_STATIC=ON -DCMAKE_UNITY_BUILD=ON \
  "-DWEIR_FUZZING_ENGINE=${LIB_FUZZING_ENGINE:--fsanitize=fuzzer}"
cmake --build "$build" --parallel "${WEIR_JOBS:-$(nproc)}" --target fuzzers
mkdir -p "$OUT"
cp "$build"/fuzz/*_fuzz "$OUT/"
tar=$PWD/$build
[[ $build != /* ]] || tar=$build
(cd tests/adapters/data && cmake -E tar cf "$tar/seeds.zip" --format=zip -- *)
for fuzzer in "$OUT"/*_reader_fuzz; do cp "$build/seeds.zip" "${fuzzer}_seed_corpus.zip"; done
