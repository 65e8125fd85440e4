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

// Which of the words stand in the file's first bytes: what programs open by themselves is written
// in them. Read once for all words: libraries with code for GPUs have hundreds of megabytes.
std::set<std::string_view> words_in(const std::string& path,
                                    std::span<const std::string_view> words) {
  std::set<std::string_view> found;
  const auto reader = sys::FileReader::open(path);
  if (!reader || words.empty()) return found;
  const std::size_t longest = std::ranges::max(words, {}, &std::string_view::size).size();
  // Chunks overlap, so that no word is cut in two.
  for (std::uint64_t at = 0; at < k_most_searched; at += k_chunk - longest) {
    const auto bytes = reader->read_at(at, k_chunk);
    if (!bytes || bytes->empty()) break;
    for (const std::string_view word : words) {
      if (!found.contains(word) && bytes->find(word) != std::string::npos) found.insert(word);
    }
    if (bytes->size() < k_chunk || found.size() == words.size()) break;
  }
  return found;
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
    if (facts_.file.kind == FileKind::mach_o) {
      const auto held = words_in(facts_.path, std::array{k_ggml, std::string_view(marker_)});
      facts_.holds_marks = held.contains(marker_);
      facts_.holds_ggml =
          facts_.file.mach_o && !facts_.file.mach_o->needs("libggml") && held.contains(k_ggml);
    }
    if (facts_.file.kind != FileKind::elf) return std::move(facts_);
    const std::string name = sys::file_name_of(facts_.path);
    load(facts_.file, name, origin_, facts_.libraries);
    if (!facts_.file.is_static()) load_plug_ins();
    look_for_words();
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
    std::vector<std::string_view> words{marker_};
    std::vector<const unit::DeviceApi*> unseen;
    for (const unit::DeviceApi& api : unit::device_apis()) {
      if (api.on_macos || any_library([&](const LoadedLibrary& one) {
            return one.name.starts_with(api.needs.front());
          })) {
        continue;
      }
      unseen.push_back(&api);
      words.push_back(stem_of(api));
    }
    const std::size_t of_libraries = words.size();
    words.push_back(k_ggml);  // of the program alone
    std::set<std::string_view> held = words_in(facts_.path, words);
    facts_.holds_ggml = held.contains(k_ggml) && !any_library([](const LoadedLibrary& one) {
                          return one.name.starts_with("libggml");
                        });
    words.resize(of_libraries);
    for (const auto* list : {&facts_.libraries, &facts_.plug_ins}) {
      for (const LoadedLibrary& one : *list) {
        if (!is_of_system(one.path)) held.merge(words_in(one.path, words));
      }
    }
    facts_.holds_marks = held.contains(marker_);
    for (const unit::DeviceApi* api : unseen) {
      if (held.contains(stem_of(*api))) facts_.names.emplace_back(api->name);
    }
  }

  // "libcuda" of "libcuda.so.1".
  static std::string_view stem_of(const unit::DeviceApi& api) {
    const std::string_view library = api.needs.front();
    return library.substr(0, library.find('.'));
  }

  static constexpr std::string_view k_ggml = "GGML_ASSERT(";
  const std::string marker_ = marker();
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
