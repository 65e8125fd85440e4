#!/usr/bin/env bash
# ci/check-layers bites: what is loaded into engines, and programs of tools/, are held to their rules.
#   layers_test.sh CHECK-LAYERS
set -euo pipefail
check=$(realpath "$1")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
cd "$root"
# The folders of libraries that there are: one that the script does not know is said below.
mapfile -t inject < <(cd "$(dirname "$check")/../gate/probes" && printf '%s\n' inject/*/ | sed 's,/$,,')
mkdir -p tools/engine tools/replay/{ggml,vulkan,program} gate/base gate/probes/{read,twin,instrument,devices} "${inject[@]/#/gate/probes/}"

# expect WHAT FILE INCLUDE: the script says WHAT ("" nothing) of a file with this line.
expect() {
  printf '#include %s\n' "$3" >"$2"
  local said
  said=$("$check" "$root" 2>&1) && ok=yes || ok=no
  rm "$2"
  if [ -z "$1" ]; then
    [ $ok = yes ] && return
  elif [ $ok = no ] && [[ $said == *"$2:1: "*"$1"* ]]; then
    return
  fi
  echo "$2 with #include $3: expected \"$1\", got: $said" >&2
  exit 1
}

for folder in "${inject[@]}" twin instrument; do
  file=gate/probes/$folder/x.cpp
  expect '' "$file" '<string.h>'
  expect '' "$file" '"gate/probes/table.h"'
  expect 'loaded into engines' "$file" '<string>'
  expect 'loaded into engines' "$file" '<vector>'
  expect 'loaded into engines' "$file" '<spdlog/spdlog.h>'
  expect 'loaded into engines' "$file" '"gate/base/text.hpp"'
  expect 'may not' "$file" '"gate/probes/read/read.hpp"'
done
expect 'may not' gate/probes/inject/hip/x.cpp '"gate/probes/inject/vulkan/state.h"'
expect 'may not' gate/probes/inject/vulkan/x.cpp '"gate/probes/inject/streams/streams.h"'
expect '' gate/probes/inject/hip/x.cpp '"gate/probes/inject/streams/streams.h"'
expect '' gate/probes/inject/vulkan/x.cpp '"gate/probes/twin/structs.h"'
expect 'may not' gate/probes/inject/vulkan/x.cpp '"gate/probes/twin/state.h"'
expect 'may not' gate/probes/twin/x.cpp '"gate/probes/inject/writer/file.h"'
expect 'loaded into engines' gate/probes/inject/hip/x.cpp '<vulkan/vulkan.h>'
expect 'loaded into engines' gate/probes/inject/ggml/x.cpp '<CL/cl.h>'
expect 'may not' gate/probes/x.h '"gate/probes/inject/writer/file.h"'
expect 'no folder of the table' gate/probes/inject/x.cpp '"gate/probes/table.h"'

# weir-devices is a program of its own.
expect '' gate/probes/devices/x.cpp '"gate/base/text.hpp"'
expect 'belongs to' gate/probes/devices/x.cpp '<nlohmann/json.hpp>'
expect 'stands below it' gate/probes/devices/x.cpp '"gate/flow/devices.hpp"'

expect '' tools/replay/ggml/x.cpp '"gate/base/text.hpp"'
expect '' tools/replay/ggml/x.cpp '"tools/replay/program/program.hpp"'
expect 'tools/ may not' tools/replay/ggml/x.cpp '"gate/app/main.hpp"'
expect 'tools/ may not' tools/replay/ggml/x.cpp '"tools/replay/vulkan/vulkan.hpp"'
expect 'belongs to' tools/replay/program/x.cpp '<nlohmann/json.hpp>'
expect 'belongs to tools/replay/vulkan' tools/replay/ggml/x.cpp '<vulkan/vulkan.h>'
expect '' tools/engine/x.cpp '"gate/model/gguf.hpp"'
expect '' tools/engine/x.cpp '<vulkan/vulkan.h>'
expect 'tools/ may not' tools/engine/x.cpp '"gate/app/main.hpp"'
expect 'tools/ may not' tools/engine/x.cpp '"tools/replay/vulkan/vulkan.hpp"'
expect 'belongs to' tools/engine/x.cpp '<nlohmann/json.hpp>'
expect 'outside of gate/' gate/base/x.cpp '"tools/replay/program/program.hpp"'
echo 'layers: held'
