#!/usr/bin/env bash
# The worked examples of CONTRIBUTING.md: each is a patch that changes no more files than it is said to, applies
# to this tree, builds, and does what it is there for.
#   worked_test.sh SOURCE-FOLDER          seconds: they apply, to as many files as they are said to
#   worked_test.sh SOURCE-FOLDER build    minutes: all of it
# A patch that no longer applies: `git apply --3way` it, resolve, and write `git diff --cached` over it.
set -euo pipefail
source=$(realpath "$1")
here=$source/tests/worked
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
tree=$root/tree
fail() { echo "worked examples: $1" >&2; exit 1; }

mkdir "$tree"
git -C "$source" ls-files -z --cached --others --exclude-standard |
  (cd "$source" && while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done) |
  tar -C "$source" --null -T - -cf - | tar -C "$tree" -xf -
cd "$tree"

# Example, and how many files it changes besides those that it brings.
while read -r name most; do
  patch=$here/$name.patch
  git apply --check "$patch" 2>"$root/why" || fail "$name.patch does not apply: $(cat "$root/why")"
  changed=$(git apply --numstat "$patch" | cut -f3 | while read -r file; do [ ! -e "$file" ] || echo "$file"; done)
  [ "$(grep -c . <<<"$changed")" -le "$most" ] || fail "$name changes more than $most files:"$'\n'"$changed"
  git apply "$patch"
done <<'TABLE'
output-format 1
preset 0
metric 2
report-format 1
verb 1
device-api 3
TABLE
ci/check-layers || fail "the examples break the order of the layers"
[ "${2:-}" = build ] || exit 0
# Unoptimized, and without the service, which no example touches.
WEIR_CMAKE='-DWEIR_TESTS=OFF -DWEIR_SERVE=OFF' ci/build quick weir >"$root/log" 2>&1 || { tail -30 "$root/log"; fail "they do not build"; }

weir=$tree/build-quick/weir
mkdir "$root/work" && cd "$root/work"
# expect WORDS COMMAND…: what it prints has these words; whatever its exit code.
expect() {
  local words=$1 printed
  shift
  printed=$("$@" 2>&1) || true
  grep -qF -e "$words" <<<"$printed" || fail "$* did not print \"$words\" but:"$'\n'"$printed"
}
# Output format: a file of it is recognised.
printf 'tinybench 1.0, prompt 4, generate 16\nprefill 1000.0 tok/s\ndecode 41.5 tok/s\n' >tiny.txt
expect '41.5' "$weir" profile tiny.txt
expect 'tinybench' "$weir" profile tiny.txt
# Metric: llama.cpp's own line.
printf 'slot print_timing: id  0 | task 0 | draft acceptance rate = 0.57576 (   19 accepted /    33 generated)\n' >draft.txt
expect 'drafts_kept' "$weir" profile draft.txt --json
# Verb: also in completion, which is made of the command line.
expect 'count    dispatches_per_token' "$weir" metrics --kind count
expect 'quality  drafts_kept' "$weir" metrics
expect 'metrics' "$weir" completion bash
# Preset: `weir init` finds the engine by its name and knows its arguments.
cc -shared -fPIC -DLOADER -o libze_loader.so "$here/level_zero.c"
cc -o tinybench "$here/level_zero.c" -L. -lze_loader -Wl,-rpath,"$PWD"
expect 'tiny.gguf' "$weir" model make tiny.gguf
expect './tinybench' "$weir" init
expect 'preset: tinybench' cat weir.yaml
expect '--prompt, "{prompt_tokens}"' "$weir" config show
expect 'tinybench/tiny/cpu/prefill' "$weir" plan --guess --shards 1 --format json
# Device API, and the other five with it: what is counted is what the source does; one more is a failure.
cat >weir.yaml <<'YAML'
version: 1
engines:
  tiny: {command: [./tinybench, --model, "{model}", --prompt, "{prompt_tokens}", -n, "{tokens}"], output: tinybench,
         probes: [level_zero]}
models: {tiny: tiny.gguf}
backends: {level_zero: {device: level_zero}}
prompts: {decode: {tokens: 16}}
YAML
"$weir" gate --counts-only --quiet >gate.txt 2>&1 || fail "the first gate: $(cat gate.txt)"
"$weir" baseline accept --counts-only >accept.txt 2>&1 || fail "weir baseline accept: $(cat accept.txt)"
expect 'PASS  1 cell' "$weir" gate --counts-only --csv verdict.csv
for line in '"dispatches/token","pass","3","3"' '"copies/token","pass","1","1"' '"syncs/token","pass","1","1"'; do
  expect "$line" cat verdict.csv
done
cc -DEXTRA_SYNC -o tinybench "$here/level_zero.c" -L. -lze_loader -Wl,-rpath,"$PWD"
"$weir" gate --counts-only --csv verdict.csv >gate.txt 2>&1 && fail "one sync more a token passes: $(cat gate.txt)"
expect '"syncs/token","FAIL","1","2"' cat verdict.csv
echo "worked examples: six patches apply, build and do what they are there for"
