// Finds what leads from a virtual environment back into the checkout that it lies in, and copies of
// the checkout's packages.
#include "gate/source/virtual_environment.hpp"

#include <algorithm>
#include <set>

#include "gate/base/encode.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/sys/code_file.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/python_environment.hpp"

namespace weir::source {
namespace {

constexpr std::uint64_t k_max_bytes = std::uint64_t{1} << 20;

// Returns `path` as a URL has it: pip writes one into direct_url.json.
std::string url_path(const std::string& path) {
  return text::join(collect<std::string>(text::split(path, '/'), percent_encode), "/");
}

bool is_name_char(char c) { return text::is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; }

// Returns true if `text` goes on with `path`, or with what lies below it.
bool begins_with_path(std::string_view text, std::string_view path) {
  return text.starts_with(path) && (text.size() == path.size() || !is_name_char(text[path.size()]));
}

std::vector<std::string> list(const sys::Files& files, const std::string& folder) {
  return files.list(folder).value_or(std::vector<std::string>());
}

// Returns where a file of a checkout is installed, from the folder of packages.
std::string installed_path(std::string_view path) {
  for (const std::string_view sources : {"src/", "python/"}) {
    if (path.starts_with(sources)) path.remove_prefix(sources.size());
  }
  return std::string(path);
}

// Returns the name of the package or module that a file of a checkout belongs to.
std::string package_name(std::string_view path) {
  const std::string installed = installed_path(path);
  return installed.substr(0, installed.find_first_of("/."));
}

class WayBack {
 public:
  WayBack(const sys::Files& files, const std::string& environment,
          const std::vector<std::string>& roots)
      : files_(files), environment_(environment) {
    add_name(own_names_, environment);
    add_name(own_names_, sys::follow_links(environment));
    std::optional<std::string> inner;
    for (const std::string& root : roots) {
      add_name(roots_, root);
      if (!inner) inner = sys::relative_path(environment, root);
    }
    if (!inner) return;
    for (const std::string& root : roots) add_name(own_names_, sys::join_path(root, *inner));
  }

  [[nodiscard]] std::optional<std::string> find() const {
    const std::string settings = sys::join_path(environment_, "pyvenv.cfg");
    if (names_checkout(settings)) return settings;
    if (auto link = find_link(sys::join_path(environment_, "bin"))) return link;
    for (const std::string& packages : sys::package_folders(files_, environment_)) {
      if (auto link = find_link(packages)) return link;
      if (auto file = find_file(packages)) return file;
    }
    return std::nullopt;
  }

 private:
  static void add_name(std::vector<std::string>& names, const std::string& path) {
    names.push_back(path);
    names.push_back(url_path(path));
  }

  [[nodiscard]] bool is_of_checkout(const std::string& path) const {
    const auto holds_path = [&](const std::string& top) { return sys::is_within(path, top); };
    return std::ranges::any_of(roots_, holds_path) && std::ranges::none_of(own_names_, holds_path);
  }

  [[nodiscard]] std::optional<std::string> find_link(const std::string& folder) const {
    for (const std::string& name : list(files_, folder)) {
      std::string path = sys::join_path(folder, name);
      if (is_of_checkout(sys::follow_links(path))) return path;
    }
    return std::nullopt;
  }

  // Returns the first file of the installed packages that names a folder of the checkout.
  [[nodiscard]] std::optional<std::string> find_file(const std::string& packages) const {
    for (const std::string& name : list(files_, packages)) {
      std::string path = sys::join_path(packages, name);
      if (name.ends_with(".dist-info")) path = sys::join_path(path, "direct_url.json");
      const bool is_path_file = name.ends_with(".pth");
      const bool may_name_it = is_path_file || name.ends_with(".egg-link") ||
                               name.starts_with("__editable__") || name.ends_with(".dist-info");
      if (!may_name_it || files_.kind(path) != sys::Kind::file) continue;
      if (names_checkout(path) || (is_path_file && adds_checkout(packages, path))) return path;
    }
    return std::nullopt;
  }

  // Returns true if a file names a path of the checkout outside of the environment.
  [[nodiscard]] bool names_checkout(const std::string& file) const {
    const auto text = files_.read(file, k_max_bytes);
    if (!text) return true;
    return std::ranges::any_of(roots_, [&](const std::string& root) {
      for (std::size_t at = 0; (at = text->find(root, at)) != std::string::npos; ++at) {
        const std::string_view rest = std::string_view(*text).substr(at);
        const auto names = [&](const std::string& path) { return begins_with_path(rest, path); };
        if (at > 0 && is_name_char((*text)[at - 1])) continue;  // of a longer path
        if (names(root) && std::ranges::none_of(own_names_, names)) return true;
      }
      return false;
    });
  }

  // Returns true if a line of a *.pth, which may count from its folder, leads into the checkout.
  [[nodiscard]] bool adds_checkout(const std::string& folder, const std::string& file) const {
    const auto text = files_.read(file, k_max_bytes);
    return !text || std::ranges::any_of(text::lines(*text), [&](const std::string& line) {
      const std::string path(text::trim(line));
      return !path.empty() &&
             is_of_checkout(sys::follow_links(sys::absolute(sys::join_path(folder, path))));
    });
  }

  const sys::Files& files_;
  const std::string& environment_;
  std::vector<std::string> roots_, own_names_;  // also as in URLs
};

}  // namespace

std::optional<std::string> environment_around(const sys::Files& files, const std::string& path) {
  for (std::string folder = path; folder.size() > 1; folder = sys::folder_of(folder)) {
    if (sys::is_python_environment(files, folder)) return folder;
  }
  return std::nullopt;
}

std::optional<std::string> find_way_back(const sys::Files& files, const std::string& environment,
                                         const std::vector<std::string>& roots) {
  return WayBack(files, environment, roots).find();
}

// Returns the environment's installed copies of the packages and modules whose code `changed`
// edits, with their compiled files.
std::vector<std::string> find_copies(const sys::Files& files, const std::string& environment,
                                     const std::vector<std::string>& changed) {
  std::set<std::string> packages;
  for (const std::string& path : changed) {
    if (sys::is_module(path)) packages.insert(package_name(path));
  }
  std::vector<std::string> copies;
  for (const std::string& folder : sys::package_folders(files, environment)) {
    for (const std::string& package : packages) {
      const std::string path = sys::join_path(folder, package);
      if (files.exists(sys::join_path(path, "__init__.py"))) copies.push_back(path);
      if (!files.exists(path + ".py")) continue;
      copies.push_back(path + ".py");
      const std::string compiled = sys::join_path(folder, "__pycache__");
      for (const std::string& name : list(files, compiled)) {
        if (name.starts_with(package + ".")) copies.push_back(sys::join_path(compiled, name));
      }
    }
  }
  return copies;
}

// Returns installed copies in which an edited file differs from that of the checkout at `root`.
std::vector<std::string> find_stale_copies(const sys::Files& files, const std::string& environment,
                                           const std::string& root,
                                           const std::vector<std::string>& changed) {
  const std::vector<std::string> folders = sys::package_folders(files, environment);
  std::vector<std::string> stale;
  for (const std::string& path : changed) {
    const auto own = files.read(sys::join_path(root, path), k_max_bytes);
    const std::string installed = installed_path(path);
    const auto differs = [&](const std::string& folder) {
      const auto copy = files.read(sys::join_path(folder, installed), k_max_bytes);
      return own && copy && *own != *copy;
    };
    if (std::ranges::any_of(folders, differs)) stale.push_back(path);
  }
  return find_copies(files, environment, stale);
}

}  // namespace weir::source
