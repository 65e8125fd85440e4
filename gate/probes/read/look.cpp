// Reads a program and its libraries, which it finds as the loader would.
#include <algorithm>
#include <array>
#include <deque>
#include <set>
#include <utility>

#include "gate/base/text.hpp"
#include "gate/probes/read/fit.hpp"
#include "gate/probes/read/python_environment.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/paths.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::probes {
namespace {

constexpr std::size_t k_max_libraries = 512;
constexpr std::size_t k_max_plug_ins = 64;
constexpr std::uint64_t k_max_searched_bytes = std::uint64_t{512} << 20;
constexpr std::uint64_t k_chunk = std::uint64_t{1} << 20;
// Prefixes of the functions that judge_fit() looks for.
constexpr std::array<std::string_view, 1> k_prefixes{"ggml_backend_"};

// The path with all links followed, or at least absolute.
std::string resolve_links(const std::string& path) {
  return sys::real_path(path).value_or(sys::absolute(path));
}

Result<ProgramFile> read_file(const sys::FileReader& reader) {
  return read_program_file(
      [&](std::uint64_t at, std::uint64_t size) { return reader.read_at(at, size); }, k_prefixes);
}

// Returns those words that the first 512 MiB of a file contain. Programs hold the names of
// libraries that they open at run time. All words are searched in one pass: libraries with code
// for GPUs are large.
std::set<std::string_view> find_words(const std::string& path,
                                      std::span<const std::string_view> words) {
  std::set<std::string_view> matches;
  const auto reader = sys::FileReader::open(path);
  if (!reader || words.empty()) return matches;
  const std::size_t longest = std::ranges::max(words, {}, &std::string_view::size).size();
  // Chunks overlap, so that no word is cut in two.
  for (std::uint64_t at = 0; at < k_max_searched_bytes; at += k_chunk - longest) {
    const auto bytes = reader->read_at(at, k_chunk);
    if (!bytes || bytes->empty()) break;
    for (const std::string_view word : words) {
      if (!matches.contains(word) && bytes->find(word) != std::string::npos) matches.insert(word);
    }
    if (bytes->size() < k_chunk || matches.size() == words.size()) break;
  }
  return matches;
}

// A text that every program with the instrument library inside contains. It is joined from parts so
// that weir itself does not contain it.
std::string make_marker() {
  const std::vector<std::string> parts{"weir", "instrument", "abi", ""};
  return text::join(parts, "-");
}

bool is_system_library(const std::string& path) {
  return path.starts_with("/lib/") || path.starts_with("/lib64/") || path.starts_with("/usr/lib");
}

// Finds libraries in the order of ld.so(8). Instead of the loader's cache it searches the folders
// that /etc/ld.so.conf names.
class Loader {
 public:
  // Reads the folders to search: LD_LIBRARY_PATH, the loader's settings, and its defaults.
  Loader(const std::string& path, const sys::Files& files, const Lookup& environment)
      : files_(files), program_(resolve_links(path)), origin_(sys::folder_of(program_)) {
    facts_.path = path;
    for (std::string& folder : text::split(environment("LD_LIBRARY_PATH").value_or(""), ':')) {
      if (!folder.empty()) library_path_.push_back(std::move(folder));
    }
    const std::string settings = "/etc/ld.so.conf.d";
    for (const std::string& name : files.list(settings).value_or(std::vector<std::string>())) {
      if (name.ends_with(".conf")) add_folders(sys::join_path(settings, name));
    }
    add_folders("/etc/ld.so.conf");
    for (const char* folder : {"/lib64", "/usr/lib64", "/lib", "/usr/lib"}) {
      system_folders_.push_back(folder);
    }
  }

  // Reads the program, its libraries and its plug-ins; see look_at_program().
  Result<ProgramFacts> read_program() {
    WEIR_TRY(const sys::FileReader reader, sys::FileReader::open(facts_.path));
    WEIR_TRY(facts_.file, read_file(reader).map_error(with_prefix(facts_.path)));
    facts_.changes_rights = reader.changes_rights();
    if (facts_.file.kind == FileKind::mach_o) {
      const auto words = find_words(facts_.path, std::array{k_ggml, std::string_view(marker_)});
      facts_.holds_marks = words.contains(marker_);
      facts_.holds_ggml =
          facts_.file.mach_o && !facts_.file.mach_o->needs("libggml") && words.contains(k_ggml);
    }
    if (facts_.file.kind != FileKind::elf) return std::move(facts_);
    const std::string name = sys::file_name_of(facts_.path);
    load(facts_.file, name, origin_, facts_.libraries);
    if (!facts_.file.is_static()) load_plug_ins();
    read_packages();
    search_words();
    return std::move(facts_);
  }

 private:
  template <class Fits>
  [[nodiscard]] bool any_library(Fits fits) const {
    return std::ranges::any_of(facts_.libraries, fits) ||
           std::ranges::any_of(facts_.plug_ins, fits) || std::ranges::any_of(facts_.packages, fits);
  }

  // A library to find.
  struct Need {
    std::string name, needed_by;
    std::vector<std::string> folders;  // searched before the system's
  };

  // Adds the folders that a file of the loader's settings lists.
  void add_folders(const std::string& settings) {
    for (const std::string& line : text::lines(files_.read_prefix(settings, 65'536).value_or(""))) {
      if (line.starts_with("/")) system_folders_.emplace_back(text::trim(line));
    }
  }

  // The folders where the loader looks for libraries of `file`, before the system's. `origin`: the
  // file's own folder, for $ORIGIN.
  [[nodiscard]] std::vector<std::string> search_folders(const ProgramFile& file,
                                                        const std::string& origin) const {
    std::vector<std::string> folders;
    const auto add = [&](const std::vector<std::string>& entries) {
      for (std::string folder : entries) {
        for (const std::string_view variable : {"${ORIGIN}", "$ORIGIN"}) {
          if (const std::size_t at = folder.find(variable); at != std::string::npos) {
            folder.replace(at, variable.size(), origin);
          }
        }
        folders.push_back(std::move(folder));
      }
    };
    if (file.runpath.empty()) {
      add(file.rpath);
      add(facts_.file.rpath);
    }
    folders.insert(folders.end(), library_path_.begin(), library_path_.end());
    add(file.runpath);
    return folders;
  }

  // Queues the libraries that `file` needs, each once in the whole program.
  void queue_needs(const ProgramFile& file, const std::string& name, const std::string& origin,
                   std::deque<Need>& queue) {
    const std::vector<std::string> folders = search_folders(file, origin);
    for (const std::string& needed : file.needed) {
      if (queued_.size() == k_max_libraries) return;
      if (!queued_.insert(needed).second) continue;
      queue.push_back({needed, name, folders});
    }
  }

  // Appends the libraries that `file` needs to `out`, and then those that they need.
  void load(const ProgramFile& file, const std::string& name, const std::string& origin,
            std::vector<LoadedLibrary>& out) {
    std::deque<Need> queue;
    queue_needs(file, name, origin, queue);
    while (!queue.empty()) {
      const Need need = std::move(queue.front());
      queue.pop_front();
      auto library = find(need);
      if (!library) {
        facts_.missing.push_back(fmt::format("{} (needed by {})", need.name, need.needed_by));
        continue;
      }
      queue_needs(library->file, need.name, sys::folder_of(resolve_links(library->path)), queue);
      out.push_back(std::move(*library));
    }
  }

  // Paths at which the loader looks for a library, in order.
  [[nodiscard]] std::vector<std::string> candidate_paths(const Need& need) const {
    if (need.name.find('/') != std::string::npos) return {need.name};
    std::vector<std::string> paths;
    for (const auto* folders : {&need.folders, &system_folders_}) {
      for (const std::string& folder : *folders) {
        paths.push_back(sys::join_path(folder, need.name));
      }
    }
    return paths;
  }

  // Finds and reads a library. Unreadable files are recorded and skipped; so are those for another
  // machine, as the loader does.
  std::optional<LoadedLibrary> find(const Need& need) {
    for (const std::string& path : candidate_paths(need)) {
      if (files_.kind(path) != sys::Kind::file) continue;
      const auto reader = sys::FileReader::open(path);
      auto file = reader ? read_file(*reader) : tl::unexpected(reader.error());
      if (!file) {
        facts_.unreadable.push_back(fmt::format("{}: {}", path, file.error().message));
        continue;
      }
      if (file->kind != FileKind::elf || file->machine != facts_.file.machine ||
          file->bits != facts_.file.bits) {
        continue;
      }
      return LoadedLibrary{need.name, path, need.needed_by, std::move(*file)};
    }
    return std::nullopt;
  }

  // Loads ggml's backends from the program's folder, as ggml does when it runs.
  void load_plug_ins() {
    for (const std::string& name : files_.list(origin_).value_or(std::vector<std::string>())) {
      if (!name.starts_with("libggml-") || !name.ends_with(".so")) continue;
      if (facts_.plug_ins.size() >= k_max_plug_ins) return;
      if (!queued_.insert(name).second) continue;
      auto library = find({sys::join_path(origin_, name), "", {}});
      if (!library) continue;
      library->name = name;
      const ProgramFile file = library->file;
      facts_.plug_ins.push_back(std::move(*library));
      load(file, name, origin_, facts_.plug_ins);
    }
  }

  // Reads the libraries of the Python environment to which the program belongs.
  void read_packages() {
    facts_.environment = python_environment_of(facts_.path, files_);
    if (facts_.environment.empty()) return;
    for (const std::string& path : libraries_of_environment(facts_.environment, files_)) {
      auto library = find({path, "", {}});
      if (!library || !needs_device_api(library->file)) continue;
      library->name = sys::file_name_of(path);
      facts_.packages.push_back(std::move(*library));
    }
  }

  static bool needs_device_api(const ProgramFile& file) {
    return std::ranges::any_of(unit::device_apis(), [&](const unit::DeviceApi& api) {
      return std::ranges::any_of(api.needs, [&](std::string_view prefix) {
        return !prefix.empty() && std::ranges::any_of(file.needed, [&](const std::string& name) {
          return name.starts_with(prefix);
        });
      });
    });
  }

  [[nodiscard]] bool has_library(std::string_view prefix) const {
    return any_library(
        [&](const LoadedLibrary& library) { return library.name.starts_with(prefix); });
  }

  // Searches the bytes of the program and its own libraries for APIs that no library names, and for
  // weir's marks. The program alone is searched for ggml, which may be linked into it.
  void search_words() {
    std::vector<std::string_view> words{marker_};
    std::vector<const unit::DeviceApi*> unnamed_apis;
    for (const unit::DeviceApi& api : unit::device_apis()) {
      if (api.on_macos || has_library(api.needs.front())) continue;
      unnamed_apis.push_back(&api);
      words.push_back(library_stem(api));
    }
    std::vector<std::string_view> program_words = words;
    program_words.push_back(k_ggml);
    std::set<std::string_view> matches = find_words(facts_.path, program_words);
    facts_.holds_ggml = matches.contains(k_ggml) && !has_library("libggml");
    for (const auto* list : {&facts_.libraries, &facts_.plug_ins}) {
      for (const LoadedLibrary& library : *list) {
        if (!is_system_library(library.path)) matches.merge(find_words(library.path, words));
      }
    }
    facts_.holds_marks = matches.contains(marker_);
    for (const unit::DeviceApi* api : unnamed_apis) {
      if (matches.contains(library_stem(*api))) facts_.names.emplace_back(api->name);
    }
  }

  // "libcuda" of "libcuda.so.1".
  static std::string_view library_stem(const unit::DeviceApi& api) {
    const std::string_view library = api.needs.front();
    return library.substr(0, library.find('.'));
  }

  static constexpr std::string_view k_ggml = "GGML_ASSERT(";
  const std::string marker_ = make_marker();
  const sys::Files& files_;
  std::string program_, origin_;  // the program without links, and its folder
  std::vector<std::string> library_path_, system_folders_;
  std::set<std::string> queued_;  // names of libraries
  ProgramFacts facts_;
};

}  // namespace

Result<ProgramFacts> read_program_facts(const std::string& path, const sys::Files& files,
                                        const Lookup& environment) {
  return Loader(path, files, environment).read_program();
}

}  // namespace weir::probes
