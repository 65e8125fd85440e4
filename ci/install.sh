#!/bin/sh
# Installs weir from a release, once its SHA-256 sum is compared:
#
#   curl -fsSL https://github.com/OWNER/weir/releases/latest/download/install.sh | sh
#
# WEIR_VERSION   0.1.0, or 0.1.0@sha256:... to pin the archive (default: the newest release)
# WEIR_PREFIX    where it goes: PREFIX/bin/weir and what lies beside it (default: ~/.local/share/weir)
# WEIR_BIN       a folder that gets a link to it (default: ~/.local/bin; empty: none)
# WEIR_RELEASES  the page of the releases
set -eu
releases=${WEIR_RELEASES:-https://github.com/OWNER/weir/releases}
prefix=${WEIR_PREFIX:-$HOME/.local/share/weir}
bin=${WEIR_BIN-$HOME/.local/bin}
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac

die() {
  printf 'weir: %s\n' "$*" >&2
  exit 2
}
get() {
  curl --fail --silent --show-error --location --proto '=https' --retry 3 --max-time 300 \
    --max-filesize 200000000 --output "$2" "$1"
}
sum_of() {
  if command -v sha256sum >/dev/null; then sha256sum <"$1"; else shasum -a 256 <"$1"; fi | head -c 64
}

# What lies there is replaced as a whole: never a folder that this script did not make.
main() { # as a whole, so that half a script does nothing
mark=.made-by-install.sh
[ -z "$bin" ] || [ ! -e "$bin/weir" ] || [ -L "$bin/weir" ] || die "$bin/weir is no link that this script made: WEIR_BIN names another folder"
[ ! -e "$prefix" ] || [ -e "$prefix/$mark" ] || die "$prefix is there and was not made by this script: WEIR_PREFIX names another"

case $(uname -s)-$(uname -m) in
  Linux-x86_64) platform=linux-x86-64 ;;
  Linux-aarch64) platform=linux-arm64 ;;
  Darwin-arm64) platform=macos-arm64 ;; # built, not run (docs/how-to/github.md)
  Darwin-*) die "weir is built for Macs with Apple's processors alone" ;;
  *) die "there is no release for $(uname -s) on $(uname -m); build weir from its sources" ;;
esac
if [ "${platform%-*}" != macos ]; then
  needs='weir needs glibc 2.31 or newer (Debian 11, Ubuntu 20.04, or a container of them)'
  glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed -n 's/^glibc //p')
  if [ -n "$glibc" ]; then
    [ "$(printf '%s\n2.31\n' "$glibc" | sort -t. -k1,1n -k2,2n | head -n 1)" = 2.31 ] || die "this system has glibc $glibc; $needs"
  else
    ! ldd --version 2>&1 | grep -qi musl || die "this system has no glibc, as Alpine; $needs"
  fi
fi

version=${WEIR_VERSION:-}
if [ -z "$version" ]; then
  version=$(curl --fail --silent --show-error --head --location --proto '=https' --max-time 60 --output /dev/null \
    --write-out '%{url_effective}' "$releases/latest") || die "$releases/latest could not be had"
  version=${version##*/}
fi
sum=''
case $version in *@*)
  sum=${version#*@sha256:} version=${version%%@*}
  printf '%s' "$sum" | grep -Eqx '[0-9a-f]{64}' || die 'WEIR_VERSION: after "@" must stand sha256: and 64 hex digits'
esac
version=${version#v}
printf '%s' "$version" | grep -Eqx '[0-9]+(\.[0-9]+){1,3}(-[A-Za-z0-9.]+)?' || die "\"$version\" is no release of weir"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
name=weir-$version-$platform.tar.gz
get "$releases/download/v$version/$name" "$scratch/$name" || die "$releases/download/v$version/$name could not be had"
if [ -z "$sum" ]; then
  get "$releases/download/v$version/$name.sha256" "$scratch/sum" || die "the release has no $name.sha256"
  sum=$(head -c 64 "$scratch/sum")
fi
got=$(sum_of "$scratch/$name")
[ "$got" = "$sum" ] || die "$name: SHA-256 is $got, not $sum"
mkdir -p "$(dirname "$prefix")"
new=$prefix.new.$$ # on the same disk: what is there goes only once this is whole
trap 'rm -rf "$scratch" "$new"' EXIT
mkdir "$new"
tar -xzf "$scratch/$name" -C "$new" --strip-components 1 --no-same-owner || die "$name cannot be unpacked"
[ -x "$new/bin/weir" ] || die "there is no bin/weir in $name"
: >"$new/$mark"
rm -rf "$prefix"
mv "$new" "$prefix"
printf '%s in %s\n' "$("$prefix/bin/weir" --version)" "$prefix"
if [ -n "$bin" ]; then
  mkdir -p "$bin"
  ln -sf "$prefix/bin/weir" "$bin/weir"
  case :$PATH: in *":$bin:"*) ;; *) printf 'Add %s to PATH.\n' "$bin" ;; esac
fi
}
main
