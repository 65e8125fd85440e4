// nsys stats: its tables as text, with bars or as CSV. Those of kernels, copies (times and sizes)
// and calls of CUDA are read.
#include "gate/adapters/work_table.hpp"

namespace weir::adapters::nsys {
namespace {

// Returns the kind of work of a row by its table's title (`section`), name and category. Nothing
// for tables that are not read: markers, calls of the operating system.
std::optional<Work> classify_row(std::string_view section, const WorkRow& row) {
  const std::string words = text::lower(section);
  const auto has = [&](const char* part) { return words.find(part) != words.npos; };
  if (has("nvtx") || has("osrt") || has("os runtime") || has("openmp") || has("openacc"))
    return std::nullopt;
  const std::string& name = row.name;
  const std::string category = text::lower(row.category);
  if (row.bytes || name.starts_with("[CUDA mem") || name.starts_with("[CUDA Unified") ||
      category.find("mem") != category.npos)
    return Work::copy;
  if (has("api")) return Work::call;
  // A table without a line above it: functions of CUDA have no brackets, kernels of such names do.
  const bool is_plain = name.find_first_of("<( :") == name.npos;
  const bool is_cuda = name.starts_with("cuda") || (name.starts_with("cu") && name.size() > 2 &&
                                                    name[2] >= 'A' && name[2] <= 'Z');
  if (!has("kern") && is_plain && is_cuda) return Work::call;
  return Work::kernel;
}

}  // namespace

void read(const Printed& printed, Observed& observed) {
  read_work_tables(printed, classify_row, observed);
}

}  // namespace weir::adapters::nsys

const weir::adapters::Format weir::adapters::k_nsys(
    "nsys-stats", "nsys stats: kernels, copies and calls of CUDA, as text or CSV", "", nsys::read,
    {{88,
      {"Time (%) & Total Time (", "Time(%) & Total Time (",
       "(cuda_gpu_kern_sum):", "Total (MB) & Operation", "Start (ns) & Duration (ns)"}}});
