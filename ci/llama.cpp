#!/usr/bin/env bash
# Gets a real llama.cpp: pinned, with its shipped libraries, in seconds.
#
#   ci/llama.cpp [--cuda 12|13 | --hip] [TOOL…]
#                            llama-bench (default), llama-completion, llama-simple, llama-server,
#                            llama-parallel, test-backend-ops, test-export-graph-ops, ggml-blas.so, and llama-greedy,
#                            which is this repository's own (tests/engine/llama_greedy.cpp)
#
# The npm package node-llama-cpp carries llama.cpp's source as a git bundle, and its platform
# packages carry prebuilt libraries (Vulkan included, which Debian's glslc is too old to build).
# Only the tool itself is compiled here. The result is engines/llama.cpp/: programs and libraries
# side by side, since ggml looks for its backends in the program's own folder; it can be moved.
# With --cuda the libraries are those of a CUDA build, in engines/llama.cpp-cuda13 or -cuda12; none
# of NVIDIA's come with them, so only a machine with CUDA or a CUDA twin of weir's runs them.
# With --hip they are those of a HIP build for gfx90a, gfx942 and gfx1100, which the wheel cyllama-rocm on PyPI carries,
# in engines/llama.cpp-hip; none of AMD's come with them, so only a machine with ROCm or a HIP twin runs them.
# ggml-blas.so is ggml's BLAS backend. ggml does not find it by that name, so counts stay as they are:
# GGML_BACKEND_PATH=engines/llama.cpp/ggml-blas.so loads it.
# Run again, it does nothing. Downloads are kept in .cache/llama.cpp and checked against the
# SHA-256 sums below.
set -euo pipefail

version=3.22.1 # of the npm packages; llama.cpp calls this release v0.5.0
wheel_version=0.5.1 # of cyllama-rocm, made of the same release
release=v0.5.0
declare -A sums=(
  [node-llama-cpp]=a0d9dd80eacd2ab1cfe71aee57ac8a806487fd70b3d2a38fbec637752d9e5c5f
  [linux-x64-vulkan]=e10577190fc4bd1649d3b655588e5c7a85fc6b6dbf7136fee596cbe9e25521e7
  [linux-x64-cuda]=d6cd3ff39a43b024816952e0bc6452d6711608d26256ff6eb0fe8cf7ff55bb2c
  [linux-x64-cuda-ext]=1c4817215f51d0ebea37ea684a409a418e62cfb19fcbb5b6e0300e50c6ee9bee
  [cyllama-rocm]=6d35cd30af609939cc4f022ebaff425a218c257aa536c1dd83b5d964647eb7b7
  [linux-arm64]=39c76b998e35ed2f236c01472fc79eda0fc558b1c8b535023c2d7ded8c327cc4
)

say() { printf 'ci/llama.cpp: %s\n' "$*"; }
die() {
  printf 'ci/llama.cpp: %s\n' "$*" >&2
  exit 1
}

# The libraries' file names say which flavour they are: libllama.vulkan.v0.5.0.so, libllama.v0.5.0.so.
case "$(uname -m)" in
  x86_64) platform=linux-x64-vulkan flavour=vulkan. ;;
  aarch64) platform=linux-arm64 flavour= ;; # no Vulkan package is published for it: CPU only
  *) die "no prebuilt libraries for $(uname -m): build llama.cpp yourself and name it in weir.yaml" ;;
esac

folder=llama.cpp cuda=
if [[ ${1:-} == --cuda ]]; then
  cuda=${2:-}
  [[ $cuda == 12 || $cuda == 13 ]] || die "--cuda takes 12 or 13"
  [[ $platform == linux-x64-vulkan ]] || die "CUDA builds are published for x86-64 alone"
  shift 2
  folder=llama.cpp-cuda$cuda platform=linux-x64-cuda flavour=cuda.
fi

hip=no
if [[ ${1:-} == --hip ]]; then
  [[ $platform == linux-x64-vulkan ]] || die "HIP builds are published for x86-64 alone"
  shift
  folder=llama.cpp-hip hip=yes
fi

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=$root/.cache/llama.cpp
source=$cache/source-$version
engine=$root/engines/$folder
tools=("${@:-llama-bench}")
cxx=${CXX:-g++}

# A stamp holds what the file beside it was made from: this recipe.
greedy=$root/tests/engine/llama_greedy.cpp
recipe="$version $platform $cuda$hip $(cat "${BASH_SOURCE[0]}" "$greedy" | cksum)"
is_done() { [[ -e $engine/$1 && -r $engine/.$1.stamp && $(<"$engine/.$1.stamp") == "$recipe" ]]; }
mark_done() { printf '%s\n' "$recipe" >"$engine/.$1.stamp"; }

for tool in "${tools[@]}"; do
  case "$tool" in
    llama-bench | llama-completion | llama-simple | llama-server | llama-parallel) ;;
    llama-greedy | ggml-blas.so | test-backend-ops | test-export-graph-ops) ;;
    *) die "unknown tool \"$tool\": see the beginning of this script for those it knows" ;;
  esac
done
missing=()
for tool in "${tools[@]}"; do
  is_done "$tool" || missing+=("$tool")
done
if ((${#missing[@]} == 0)); then
  say "${tools[*]}: already in engines/$folder"
  exit 0
fi

for program in npm git tar sha256sum flock "$cxx"; do
  command -v "$program" >/dev/null || die "$program is missing: run ci/setup first"
done
mkdir -p "$cache" "$engine"
exec 9>"$cache/lock"
flock 9 # two calls at once: the second finds the work done

# fetch PACKAGE NAME: the checked tarball in $cache/NAME.tgz.
fetch() {
  local package=$1 name=$2 file=$cache/$2-$version.tgz scratch
  if [[ ! -e $file ]]; then
    say "getting $package@$version from npm"
    scratch=$(mktemp -d "$cache/tmp.XXXXXX")
    (cd "$scratch" && npm pack --loglevel error "$package@$version" >npm.out) ||
      die "npm pack $package@$version failed (see above): is the registry reachable?"
    mv "$scratch"/*.tgz "$file.new"
    rm -rf "$scratch"
    check "$file.new" "$name"
    mv "$file.new" "$file"
  else
    check "$file" "$name"
  fi
}
check() {
  local got
  got=$(sha256sum <"$1")
  [[ ${got%% *} == "${sums[$2]}" ]] && return
  rm -f "$1"
  die "$2@$version: SHA-256 is ${got%% *}, pinned is ${sums[$2]}; the download was removed"
}

# The checked wheel of a HIP build in $cache, by Python's pip.
wheel=$cache/cyllama_rocm-$wheel_version.whl
fetch_wheel() {
  local scratch
  if [[ ! -e $wheel ]]; then
    say "getting cyllama-rocm $wheel_version from PyPI"
    scratch=$(mktemp -d "$cache/tmp.XXXXXX")
    python3 -m venv "$scratch/venv" && "$scratch/venv/bin/pip" --quiet --disable-pip-version-check download --no-deps \
      --only-binary :all: --python-version 3.12 --platform manylinux_2_35_x86_64 -d "$scratch" \
      "cyllama-rocm==$wheel_version" || die "pip download cyllama-rocm failed (see above): is PyPI reachable?"
    mv "$scratch"/*.whl "$wheel.new"
    rm -rf "$scratch"
    check "$wheel.new" cyllama-rocm
    mv "$wheel.new" "$wheel"
  else
    check "$wheel" cyllama-rocm
  fi
}
# Links the wheel's libraries, whose names have hashes, under those that llama.cpp's tools and ggml ask for.
unpack_wheel() {
  local name library
  fetch_wheel
  python3 -m zipfile -e "$wheel" "$engine/wheel"
  mv "$engine"/wheel/cyllama_rocm.libs/* "$engine"
  rm -rf "$engine/wheel"
  for name in libllama.vulkan.$release:libllama libggml.vulkan.$release:libggml libggml-base:libggml-base libggml-cpu:libggml-cpu \
    libggml-hip:libggml-hip; do
    for library in "$engine/${name#*:}"-[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f].so*; do
      ln -sfn "${library##*/}" "$engine/${name%:*}.so"
    done
  done
}

if [[ ! -d $source ]]; then
  fetch node-llama-cpp node-llama-cpp
  say "unpacking llama.cpp's source"
  rm -rf "$source.new"
  mkdir "$source.new"
  tar -xzOf "$cache/node-llama-cpp-$version.tgz" package/llama/gitRelease.bundle \
    >"$cache/source.bundle"
  git -c advice.detachedHead=false clone -q "$cache/source.bundle" "$source.new"
  rm -rf "$cache/source.bundle" "$source.new/.git"
  mv "$source.new" "$source"
fi

if ! is_done libggml-base.so; then
  fetch "@node-llama-cpp/$platform" "$platform"
  say "unpacking the libraries ($platform)"
  tar -xzf "$cache/$platform-$version.tgz" -C "$engine" --strip-components=3 --no-same-owner \
    --wildcards 'package/bins/*/*.so'
  if [[ $cuda == 12 ]]; then
    # The same build for older GPUs lies in a package of its own.
    fetch @node-llama-cpp/linux-x64-cuda-ext linux-x64-cuda-ext
    tar -xzf "$cache/linux-x64-cuda-ext-$version.tgz" -C "$engine" --strip-components=4 \
      --no-same-owner package/bins/linux-x64-cuda/fallback/libggml-cuda.so
  fi
  if [[ $hip == yes ]]; then
    # Of these the tools need only what the wheel lacks.
    find "$engine" -name 'lib*.so' ! -name libllama-common.so -delete
    unpack_wheel
  fi
  mark_done libggml-base.so
fi

includes=(-I include -I ggml/include -I common -I vendor -I . -I src -I ggml/src)
flags=(-O2 -DNDEBUG -w -DGGML_BACKEND_DL -DGGML_BACKEND_SHARED -DGGML_SHARED -DLLAMA_SHARED)

# compile TOOL FILE…: sources (or objects) to a program; a temporary name, then renamed.
# shellcheck disable=SC2016 # $ORIGIN is the loader's
compile() {
  local tool=$1
  shift
  (
    cd "$source"
    "$cxx" -std=c++17 "${flags[@]}" "${includes[@]}" "$@" -o "$engine/.$tool.new" \
      -L "$engine" -l:libllama-common.so "-l:libllama.$flavour$release.so" \
      "-l:libggml.$flavour$release.so" -l:libggml-base.so \
      -Wl,-rpath,'$ORIGIN' -Wl,--allow-shlib-undefined -pthread
  ) || die "compiling $tool failed (see above)"
  mv "$engine/.$tool.new" "$engine/$tool"
}

# The server has some eighty files: objects side by side, then one program. Its web pages are left
# out: a header that says so stands in for the generated one.
# shellcheck disable=SC2016 # the inner shell's variables
compile_server() {
  local objects=$cache/server-objects file
  mkdir -p "$objects"
  cat >"$objects/ui.h" <<'UI'
#pragma once
#include <cstddef>
#include <string>
#include <vector>
struct llama_ui_asset {
  std::string name;
  const unsigned char *data = nullptr;
  size_t size = 0;
  std::string etag, type;
};
inline const std::vector<llama_ui_asset> &llama_ui_get_assets() {
  static const std::vector<llama_ui_asset> none;
  return none;
}
inline const llama_ui_asset *llama_ui_find_asset(const std::string &) { return nullptr; }
inline bool llama_ui_use_gzip() { return false; }
UI
  includes+=(-I "$objects" -I tools/mtmd -I tools/server -I vendor/hash)
  (
    cd "$source"
    for file in tools/server/*.cpp tools/mtmd/clip.cpp tools/mtmd/mtmd*.cpp \
      tools/mtmd/models/*.cpp vendor/hash/hash.cpp vendor/hash/sha256/sha256.c; do
      [[ $file == tools/mtmd/mtmd-cli.cpp ]] || printf '%s\n' "$file"
    done | xargs -P "$(nproc)" -I{} sh -c '
      object=$1/$(printf %s "$2" | tr / _).o
      shift; file=$1; shift
      case $file in *.c) set -- "$@" -x c ;; *) set -- "$@" -std=c++17 ;; esac
      exec "$@" -c "$file" -o "$object"' sh "$objects" {} "$cxx" "${flags[@]}" "${includes[@]}"
  ) || die "compiling llama-server failed (see above)"
  compile llama-server "$objects"/*.o
  rm -rf "$objects"
}

for tool in "${missing[@]}"; do
  is_done "$tool" && continue
  say "compiling $tool"
  case "$tool" in
    llama-bench) compile "$tool" tools/llama-bench/{llama-bench,main}.cpp ;;
    llama-completion) compile "$tool" tools/completion/{completion,main}.cpp ;;
    llama-simple | llama-parallel) compile "$tool" "examples/${tool#llama-}/${tool#llama-}.cpp" ;;
    llama-greedy) compile "$tool" "$greedy" ;;
    llama-server) compile_server ;;
    ggml-blas.so) compile "$tool" -shared -fPIC -DGGML_BACKEND_BUILD ggml/src/ggml-blas/ggml-blas.cpp -lblas ;;
    test-*) compile "$tool" "tests/$tool.cpp" ;;
  esac
  mark_done "$tool"
done
say "${missing[*]}: ready in engines/$folder"
