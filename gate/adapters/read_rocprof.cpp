// rocprofv3's CSV (kernel_stats, kernel_trace, those of copies and calls), its summary with bars,
// and results.stats.csv and results.csv of rocprof.
#include "gate/adapters/work_table.hpp"

namespace weir::adapters::rocprof {
namespace {

// Returns the kind of work of a row by its name and category. Nothing for sums of a whole domain,
// markers and allocations.
std::optional<Work> classify_row(std::string_view, const WorkRow& row) {
  const std::string name = text::lower(row.name), category = text::lower(row.category);
  // domain_stats.csv adds up all of a domain.
  for (const char* domain : {"kernel_dispatch", "memory_copy", "memory_allocation", "hip_api",
                             "hip_runtime_api", "hip_compiler_api", "hsa_api", "hsa_core_api",
                             "hsa_amd_ext_api", "marker_api", "scratch_memory"}) {
    if (name == domain) return std::nullopt;
  }
  if (category.find("marker") != category.npos || category.find("memory_alloc") != category.npos)
    return std::nullopt;
  if (name.find("memory_copy") != name.npos || category.find("memory_copy") != category.npos ||
      name.starts_with("copydevice") || name.starts_with("copyhost"))
    return Work::copy;
  const bool is_plain = name.find_first_of("<( ") == name.npos;
  if (category.find("api") != category.npos ||
      (is_plain &&
       (name.starts_with("hip") || name.starts_with("__hip") || name.starts_with("hsa_"))))
    return Work::call;
  return Work::kernel;
}

}  // namespace

void read(const Printed& printed, Observed& observed) {
  read_work_tables(printed, classify_row, observed);
  // rocprof names the kernel's descriptor, rocprofv3 the kernel.
  for (ObservedOp& op : observed.ops) {
    for (const std::string_view end : {" [clone .kd]", ".kd"}) {
      if (op.kernel.ends_with(end)) op.kernel.resize(op.kernel.size() - end.size());
    }
  }
}

}  // namespace weir::adapters::rocprof

const weir::adapters::Format weir::adapters::k_rocprof(
    "rocprof-csv", "rocprofv3's kernel_stats.csv, kernel_trace.csv and the like", "", rocprof::read,
    {{88,
      {"TotalDurationNs", "Start_Timestamp & End_Timestamp", "KernelName & DurationNs",
       "KernelName & BeginNs", "DURATION (nsec)"}}});
