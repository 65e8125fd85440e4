// Stores the code of kernels, to compare it later.
#include "gate/run/code_store.hpp"

#include <algorithm>

#include "gate/base/text.hpp"
#include "gate/probes/read/code_facts.hpp"
#include "gate/sys/paths.hpp"

namespace weir::run {
namespace {

// Most pieces of code in the folder, some tens of KB each. A full folder is cleared.
constexpr std::size_t k_max_stored_pipelines = 8000;

bool is_identity(std::string_view text) { return text.size() == 16 && text::is_hex(text); }

}  // namespace

// Stores each GPU pipeline of a recording that is not stored yet. Empties the folder first if it
// has too many. Failures are ignored.
void CodeStore::store(sys::Files& files, const probes::RecordedKernels& recorded) const {
  std::vector<std::size_t> new_pipelines;
  for (std::size_t i = 0; i < recorded.pipelines.size(); ++i) {
    if (find(files, probes::pipeline_hash(recorded.pipelines[i])).empty())
      new_pipelines.push_back(i);
  }
  if (new_pipelines.empty() || folder_.empty()) return;
  const auto stored_count = files.list(folder_).value_or(std::vector<std::string>()).size();
  if (stored_count + new_pipelines.size() > k_max_stored_pipelines)
    (void)files.remove_tree(folder_);
  if (!files.make_dirs(folder_)) return;
  for (const std::size_t i : new_pipelines) {
    const std::string name = probes::pipeline_hash(recorded.pipelines[i]);
    (void)files.write_unsynced(sys::join_path(folder_, name),
                               probes::single_pipeline_recording(recorded, i));
  }
}

void CodeStore::store(sys::Files& files, const std::vector<std::string>& recordings) const {
  for (const std::string& path : recordings) {
    if (const auto recorded = probes::read_recording(files, path)) store(files, *recorded);
  }
}

std::string CodeStore::find(const sys::Files& files, const std::string& identity) const {
  if (folder_.empty() || !is_identity(identity)) return "";  // it may come from anyone's file
  std::string path = sys::join_path(folder_, identity);
  return files.kind(path) == sys::Kind::file ? path : "";
}

}  // namespace weir::run
