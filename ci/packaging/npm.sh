# shellcheck shell=bash
# Sourced by ci/package: weir-gate, a launcher, and @weir-gate/PLATFORM with the program for each platform in
# build-package/, as `npm pack` names them.
npm_root=build-package/npm
rm -rf "$npm_root"
mkdir -p "$npm_root"

# npm_describe FOLDER NAME FIELDS: its package.json, with the version and what all have in common.
npm_describe() {
  node -e '
    const [name, version, fields] = process.argv.slice(1);
    console.log(JSON.stringify({name, version, license: "MIT", repository: process.env.GITHUB_REPOSITORY &&
      `github:${process.env.GITHUB_REPOSITORY}`, ...JSON.parse(fields)}, null, 2));' "$2" "$version" "$3" >"$1/package.json"
  cp LICENSE "$1/"
}

for pair in linux-x86-64=linux-x64 linux-arm64=linux-arm64 macos-arm64=darwin-arm64; do
  tree=build-package/${pair%=*}/tree to=$npm_root/${pair#*=} name=@weir-gate/${pair#*=}
  [[ -d $tree ]] || continue
  mkdir -p "$to/share/doc/weir"
  cp -R "$tree"/{bin,lib,share} "$to/"
  [[ ! -d $tree/libexec ]] || cp -R "$tree/libexec" "$to/"
  # Of what a shell, a C++ compiler and man look for they find nothing here.
  rm -rf "$to"/share/{man,bash-completion,fish,doc/weir/docs} "$to"/share/doc/weir/{README,CHANGELOG}.md \
    "$to"/lib/{*-linux-gnu,pkgconfig,libweir_instrument.*}
  [[ ! -e $tree/BUILT-NOT-RUN.txt ]] || cp "$tree/BUILT-NOT-RUN.txt" "$to/"
  system=${pair#*=}
  npm_describe "$to" "$name" "{\"description\": \"weir for ${system/-/ on }: installed by weir-gate\", \"os\": [\"${system%-*}\"], \"cpu\": [\"${system#*-}\"]}"
  packed "weir-gate-${pair#*=}-$version.tgz" "$to" package
  finish "weir-gate-${pair#*=}-$version.tgz" "build-package/${pair%=*}/parts.json"
done
[[ -n ${name:-} && -n $(ls "$npm_root") ]] || die "npm: nothing is built: ci/package linux-x86-64 npm"

# All platforms are named, also where this machine built one alone: they come together in a release.
mkdir "$npm_root/launcher"
cp ci/packaging/npm/weir.js "$npm_root/launcher/"
sed "s,OWNER/weir,${GITHUB_REPOSITORY:-OWNER/weir},g" ci/packaging/npm/README.md >"$npm_root/launcher/README.md"
npm_describe "$npm_root/launcher" weir-gate "{\"description\": \"Performance-regression gate for LLM inference engines\",
  \"bin\": {\"weir\": \"weir.js\"}, \"engines\": {\"node\": \">=16\"}, \"optionalDependencies\": {
  \"@weir-gate/linux-x64\": \"$version\", \"@weir-gate/linux-arm64\": \"$version\", \"@weir-gate/darwin-arm64\": \"$version\"}}"
packed "weir-gate-$version.tgz" "$npm_root/launcher" package
node ci/packaging/sbom.mjs "$version" launcher </dev/null >"$npm_root/parts.json"
finish "weir-gate-$version.tgz" "$npm_root/parts.json"
