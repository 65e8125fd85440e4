// Reads the GPU code of two builds from their files, and compares it.
#include "gate/flow/builds.hpp"

#include <set>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/gpu_code.hpp"
#include "gate/probes/read/kernel_names.hpp"
#include "gate/report/builds_text.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

constexpr std::size_t k_max_files = 100'000, k_max_depth = 32;

// The files below a path, each once.
class FileList {
 public:
  explicit FileList(const sys::Files& files) : files_(files) {}

  Result<void> add(const std::string& path, std::size_t depth = 0) {
    const sys::Kind kind = files_.kind(path);
    const std::string real = sys::real_path(path).value_or(path);
    if (kind == sys::Kind::file && seen_.insert(real).second) paths.push_back(path);
    if (kind != sys::Kind::folder || !seen_.insert(real).second) return {};
    if (depth == k_max_depth || paths.size() > k_max_files) {
      return fail(Code::usage, "{}: more than {} files or {} levels of folders", path, k_max_files,
                  k_max_depth);
    }
    WEIR_TRY(const std::vector<std::string> names, files_.list(path));
    for (const std::string& name : names) WEIR_CHECK(add(sys::join_path(path, name), depth + 1));
    return {};
  }

  std::vector<std::string> paths;

 private:
  const sys::Files& files_;
  std::set<std::string> seen_;
};

// Reads the GPU code of a file, or of all files in a folder. Fails if there is none for `targets`
// (empty: all).
Result<profile::GpuBuild> read_build(const std::string& path, const Job& job,
                                     const std::vector<std::string>& targets) {
  if (!job.files().exists(path)) return fail(Code::usage, "{}: no such file or folder", path);
  FileList list(job.files());
  WEIR_CHECK(list.add(path));
  profile::GpuBuild build;
  for (const std::string& file : list.paths) {
    WEIR_TRY(const std::uint64_t bytes, job.files().size(file));
    WEIR_TRY(const sys::FileReader reader, sys::FileReader::open(file));
    const probes::PartialFile part{bytes, [&](std::uint64_t offset, std::uint64_t size) {
                                     return reader.read_at(offset, size);
                                   }};
    if (auto read = probes::read_gpu_code(part, targets, build); !read) {
      return fail(read.error().code, "{}: {}", file, read.error().message);
    }
  }
  const std::string wanted = targets.empty() ? "" : " for " + text::join(targets);
  if (build.kernels.empty() && build.unread != 0) {
    return fail(Code::unavailable,
                "{}: its GPU code{} is compressed in a way that weir does not unpack (it reads "
                "zstd and zlib)",
                path, wanted);
  }
  if (build.kernels.empty()) {
    return fail(Code::usage,
                "{}: no GPU code{} in it. Name a program, a library, a code object, a cubin or a "
                "folder of them",
                path, wanted);
  }
  return build;
}

// Parses a limit on a kernel's figure, such as "spilled_vgprs=0" or "registers=10%".
Result<profile::FigureLimit> read_limit(const std::string& text, bool is_on_decrease) {
  const std::size_t equals = text.find('=');
  profile::FigureLimit limit{text.substr(0, equals), 0, false, is_on_decrease};
  std::vector<std::string> names{"spilled_registers"};
  for (const auto& figure : profile::kernel_figures()) names.emplace_back(figure.name);
  if (!holds(names, limit.figure)) {
    return fail(Code::usage, "unknown figure \"{}\" (known: {})", text::printable(limit.figure),
                text::join(names));
  }
  std::string_view amount =
      equals == std::string::npos ? std::string_view() : std::string_view(text).substr(equals + 1);
  limit.is_relative = amount.ends_with('%');
  if (limit.is_relative) amount.remove_suffix(1);
  const std::optional<double> value = text::to_double(amount);
  if (!value || *value < 0) {
    return fail(Code::usage,
                "\"{}\": write FIGURE=AMOUNT, such as spilled_vgprs=0 or registers=10%",
                text::printable(text));
  }
  limit.amount = limit.is_relative ? *value / 100 : *value;
  return limit;
}

}  // namespace

// Compares the GPU kernels in two builds. Exits with `fail` if one breaks a limit.
Result<Answer> compare_builds(const Job& job, const BuildsOptions& options) {
  report::BuildComparison comparison{.base = options.base,
                                     .now = options.now,
                                     .targets = {},
                                     .limits = {},
                                     .readable = probes::readable_kernel_name};
  for (const std::string& text : options.max_increase) {
    WEIR_TRY_SET(comparison.limits.emplace_back(), read_limit(text, /*is_on_decrease=*/false));
  }
  for (const std::string& text : options.max_decrease) {
    WEIR_TRY_SET(comparison.limits.emplace_back(), read_limit(text, /*is_on_decrease=*/true));
  }
  WEIR_TRY(profile::GpuBuild base, read_build(options.base, job, options.targets));
  WEIR_TRY(profile::GpuBuild now, read_build(options.now, job, options.targets));
  comparison.unread_base = base.unread;
  comparison.unread_now = now.unread;
  comparison.targets = profile::compare_builds(base, now);
  const bool is_broken = report::count_broken(comparison) != 0;
  return Answer{report::builds_text(comparison, job.width(), options.top),
                json_document(report::builds_json(comparison)),
                is_broken ? ExitCode::fail : ExitCode::pass};
}

}  // namespace weir::flow
