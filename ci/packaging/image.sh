# shellcheck shell=bash
# Sourced by ci/package: a container image as an OCI archive (`podman load`, `docker load`, `skopeo copy`), made of
# debootstrap, tar and JSON. Debian 12 with weir's .deb in it, and what weir opens or starts: git, libcurl, Vulkan's
# loader. Needs root. One layer; the same commit and the same Debian give the same bytes.
[[ $(id -u) == 0 ]] || die "image: debootstrap takes root"
image_arch=$(dpkg --print-architecture)
declare -A image_platform=([amd64]=x86-64 [arm64]=arm64)
image_deb=weir_${version}_$image_arch.deb
[[ -e dist/$image_deb ]] || die "dist/$image_deb is missing: ci/package deb makes it"
image_root=$PWD/build-package/image/root image_oci=$PWD/build-package/image/oci
rm -rf --one-file-system "$image_root" "$image_oci"
mkdir -p "$image_root" "$image_oci/blobs/sha256"
mirror=$(sed -n 's/^URIs: *//p;s/^deb [^h]*\(http[^ ]*\) .*/\1/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1 || true)
debootstrap --variant=minbase --include=ca-certificates,git,libcurl4,libvulkan1 bookworm "$image_root" "$mirror" \
  >"$image_root.log" 2>&1 || { tail -n 5 "$image_root.log" >&2; die "image: debootstrap failed (see above)"; }
cp "dist/$image_deb" "$image_root/tmp/weir.deb"
chroot "$image_root" dpkg --install /tmp/weir.deb >>"$image_root.log" 2>&1 || { tail -n 5 "$image_root.log" >&2; die "image: dpkg failed (see above)"; }
mkdir "$image_root/work"
{
  installed --admindir="$image_root/var/lib/dpkg" | grep -v '^weir '
  cat "build-package/linux-${image_platform[$image_arch]}/linked-in"
} | sort -u | node ci/packaging/sbom.mjs "$version" "linux-$image_arch-image" "$image_root/usr" >build-package/image/parts.json
# What differs from one day to the next, and what apt gets again.
rm -rf "$image_root"/{tmp,var/tmp,var/log,var/cache/apt,var/lib/apt/lists}/* "$image_root"/var/cache/{ldconfig,debconf}/* \
  "$image_root"/etc/{machine-id,resolv.conf,hostname} "$image_root"/usr/share/{man,locale}/*
find "$image_root/usr/share/doc" -type f ! -name copyright ! -path '*/doc/weir/*' -delete

# blob TYPE FILE: moves FILE in and prints what an index says of it.
image_blob() {
  local sum
  sum=$(sha256sum "$2" | head -c 64)
  mv "$2" "$image_oci/blobs/sha256/$sum"
  printf '{"mediaType":"application/vnd.oci.image.%s","digest":"sha256:%s","size":%s%s}' "$1" "$sum" \
    "$(stat -c %s "$image_oci/blobs/sha256/$sum")" "${3:-}"
}
image_layer=build-package/image/layer.tar
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --clamp-mtime --numeric-owner --one-file-system -C "$image_root" -cf "$image_layer" .
image_diff=$(sha256sum "$image_layer" | head -c 64)
gzip -9nf "$image_layer"
image_layer=$(image_blob layer.v1.tar+gzip "$image_layer.gz")
image_made=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
printf '{"created":"%s","architecture":"%s","os":"linux","config":{"Env":["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin","LANG=C.UTF-8"],"Entrypoint":["weir"],"WorkingDir":"/work","Labels":{"org.opencontainers.image.title":"weir","org.opencontainers.image.version":"%s","org.opencontainers.image.licenses":"MIT"}},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]},"history":[{"created":"%s","created_by":"ci/package image"}]}' \
  "$image_made" "$image_arch" "$version" "$image_diff" "$image_made" >build-package/image/config
image_config=$(image_blob config.v1+json build-package/image/config)
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":%s,"layers":[%s]}' \
  "$image_config" "$image_layer" >build-package/image/manifest
printf '{"schemaVersion":2,"manifests":[%s]}' "$(image_blob manifest.v1+json build-package/image/manifest \
  ",\"platform\":{\"architecture\":\"$image_arch\",\"os\":\"linux\"},\"annotations\":{\"org.opencontainers.image.ref.name\":\"weir:$version\"}")" \
  >"$image_oci/index.json"
printf '{"imageLayoutVersion":"1.0.0"}' >"$image_oci/oci-layout"
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$image_oci" \
  -cf "dist/weir-$version-image-$image_arch.tar" oci-layout index.json blobs
finish "weir-$version-image-$image_arch.tar" build-package/image/parts.json
