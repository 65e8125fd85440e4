// The reading half of fit.hpp: a program's files, found as its loader would find them.
#include <algorithm>
#include <array>
#include <deque>
#include <set>
#include <utility>

#include "gate/base/text.hpp"
#include "gate/probes/read/fit.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/paths.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::probes {
namespace {

constexpr std::size_t k_most_libraries = 512;
constexpr std::size_t k_most_plug_ins = 64;
constexpr std::uint64_t k_most_searched = std::uint64_t{512} << 20;
constexpr std::uint64_t k_chunk = std::uint64_t{1} << 20;
// All that judge_fit() asks for.
constexpr std::array<std::string_view, 1> k_names{"ggml_backend_"};

std::string resolved(const std::string& path) {
  return sys::real_path(path).value_or(sys::absolute(path));
}

Result<ProgramFile> read_file(const sys::FileReader& reader) {
  return read_program_file(
      [&](std::uint64_t at, std::uint64_t size) { return reader.read_at(at, size); }, k_names);
}

// Whether the word stands in the file's first bytes: what programs open by themselves is written in
// them.
bool has_word(const std::string& path, std::string_view word) {
  const auto reader = sys::FileReader::open(path);
  if (!reader) return false;
  // Chunks overlap, so that no word is cut in two.
  for (std::uint64_t at = 0; at < k_most_searched; at += k_chunk - word.size()) {
    const auto bytes = reader->read_at(at, k_chunk);
    if (!bytes || bytes->empty()) return false;
    if (bytes->find(word) != std::string::npos) return true;
    if (bytes->size() < k_chunk) return false;
  }
  return false;
}

// What a program with the library inside it holds. Put together here: weir itself must not hold it.
std::string marker() {
  const std::vector<std::string> parts{"weir", "instrument", "abi", ""};
  return text::join(parts, "-");
}

bool is_of_system(const std::string& path) {
  return path.starts_with("/lib/") || path.starts_with("/lib64/") || path.starts_with("/usr/lib");
}

// Finds libraries as ld.so(8) says, but for its cache, whose folders are read from its settings.
class Loader {
 public:
  Loader(const std::string& path, const sys::Files& files, const Lookup& environment)
      : files_(files), program_(resolved(path)), origin_(sys::folder_of(program_)) {
    facts_.path = path;
    for (std::string& one : text::split(environment("LD_LIBRARY_PATH").value_or(""), ':')) {
      if (!one.empty()) library_path_.push_back(std::move(one));
    }
    const std::string settings = "/etc/ld.so.conf.d";
    for (const std::string& name : files.list(settings).value_or(std::vector<std::string>())) {
      if (name.ends_with(".conf")) add_folders(sys::join_path(settings, name));
    }
    add_folders("/etc/ld.so.conf");
    for (const char* usual : {"/lib64", "/usr/lib64", "/lib", "/usr/lib"}) system_.push_back(usual);
  }

  Result<ProgramFacts> run() {
    WEIR_TRY(const sys::FileReader reader, sys::FileReader::open(facts_.path));
    WEIR_TRY(facts_.file, read_file(reader).map_error(in_context(facts_.path)));
    facts_.changes_rights = reader.changes_rights();
    if (facts_.file.mach_o && !facts_.file.mach_o->needs("libggml")) {
      facts_.holds_ggml = has_word(facts_.path, "GGML_ASSERT(");
    }
    const bool program = facts_.file.kind == FileKind::elf || facts_.file.kind == FileKind::mach_o;
    if (program) facts_.holds_marks = has_word(facts_.path, marker());
    if (facts_.file.kind != FileKind::elf) return std::move(facts_);
    const std::string name = sys::file_name_of(facts_.path);
    load(facts_.file, name, origin_, facts_.libraries);
    if (!facts_.file.is_static()) load_plug_ins();
    look_for_words();
    // A library of the engine's may have it inside, too.
    facts_.holds_marks = facts_.holds_marks || any_library([](const LoadedLibrary& one) {
                           return !is_of_system(one.path) && has_word(one.path, marker());
                         });
    return std::move(facts_);
  }

 private:
  template <class Is>
  [[nodiscard]] bool any_library(Is is) const {
    return std::ranges::any_of(facts_.libraries, is) || std::ranges::any_of(facts_.plug_ins, is);
  }

  struct Wanted {
    std::string name, needed_by;
    std::vector<std::string> folders;  // those of who needs it
  };

  void add_folders(const std::string& settings) {
    for (const std::string& line : text::lines(files_.read_prefix(settings, 65'536).value_or(""))) {
      if (line.starts_with("/")) system_.emplace_back(text::trim(line));
    }
  }

  [[nodiscard]] std::vector<std::string> folders_of(const ProgramFile& file,
                                                    const std::string& origin) const {
    std::vector<std::string> folders;
    const auto add = [&](const std::vector<std::string>& written) {
      for (std::string folder : written) {
        for (const std::string_view word : {"${ORIGIN}", "$ORIGIN"}) {
          if (const std::size_t at = folder.find(word); at != std::string::npos) {
            folder.replace(at, word.size(), origin);
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

  void want(const ProgramFile& file, const std::string& name, const std::string& origin,
            std::deque<Wanted>& queue) {
    const std::vector<std::string> folders = folders_of(file, origin);
    for (const std::string& needed : file.needed) {
      if (seen_.size() == k_most_libraries) return;
      if (!seen_.insert(needed).second) continue;
      queue.push_back({needed, name, folders});
    }
  }

  // Loads what `file` needs, and what that needs, into `out`.
  void load(const ProgramFile& file, const std::string& name, const std::string& origin,
            std::vector<LoadedLibrary>& out) {
    std::deque<Wanted> queue;
    want(file, name, origin, queue);
    while (!queue.empty()) {
      const Wanted wanted = std::move(queue.front());
      queue.pop_front();
      auto library = find(wanted);
      if (!library) {
        facts_.missing.push_back(fmt::format("{} (needed by {})", wanted.name, wanted.needed_by));
        continue;
      }
      want(library->file, wanted.name, sys::folder_of(resolved(library->path)), queue);
      out.push_back(std::move(*library));
    }
  }

  std::optional<LoadedLibrary> find(const Wanted& wanted) {
    std::vector<std::string> places;
    if (wanted.name.find('/') != std::string::npos) {
      places.push_back(wanted.name);
    } else {
      for (const auto* folders : {&wanted.folders, &std::as_const(system_)}) {
        for (const std::string& folder : *folders) {
          places.push_back(sys::join_path(folder, wanted.name));
        }
      }
    }
    for (const std::string& place : places) {
      if (files_.kind(place) != sys::Kind::file) continue;
      const auto reader = sys::FileReader::open(place);
      auto file = reader ? read_file(*reader) : tl::unexpected(reader.error());
      if (!file) {
        facts_.unreadable.push_back(fmt::format("{}: {}", place, file.error().message));
        continue;
      }
      // A library of another machine is passed by, as the loader does.
      if (file->kind != FileKind::elf || file->machine != facts_.file.machine ||
          file->bits != facts_.file.bits) {
        continue;
      }
      return LoadedLibrary{wanted.name, place, wanted.needed_by, std::move(*file)};
    }
    return std::nullopt;
  }

  // ggml opens its backends from the folder of the program, whatever their names end in.
  void load_plug_ins() {
    for (const std::string& name : files_.list(origin_).value_or(std::vector<std::string>())) {
      if (!name.starts_with("libggml-") || !name.ends_with(".so")) continue;
      if (facts_.plug_ins.size() >= k_most_plug_ins) return;
      if (!seen_.insert(name).second) continue;
      auto library = find({sys::join_path(origin_, name), "", {}});
      if (!library) continue;
      library->name = name;
      const ProgramFile file = library->file;
      facts_.plug_ins.push_back(std::move(*library));
      load(file, name, origin_, facts_.plug_ins);
    }
  }

  void look_for_words() {
    const auto uses = [&](std::string_view prefix) {
      return any_library([&](const LoadedLibrary& one) { return one.name.starts_with(prefix); });
    };
    if (!uses("libggml")) facts_.holds_ggml = has_word(facts_.path, "GGML_ASSERT(");
    for (const unit::DeviceApi& api : unit::device_apis()) {
      const std::string_view library = api.needs.front();
      if (api.on_macos || uses(library)) continue;
      const std::string_view stem = library.substr(0, library.find('.'));
      const auto names_it = [&](const LoadedLibrary& one) {
        return !is_of_system(one.path) && has_word(one.path, stem);
      };
      if (has_word(facts_.path, stem) || any_library(names_it)) facts_.names.emplace_back(api.name);
    }
  }

  const sys::Files& files_;
  std::string program_, origin_;
  std::vector<std::string> library_path_, system_;
  std::set<std::string> seen_;
  ProgramFacts facts_;
};

}  // namespace

Result<ProgramFacts> look_at_program(const std::string& path, const sys::Files& files,
                                     const Lookup& environment) {
  return Loader(path, files, environment).run();
}

}  // namespace weir::probes
