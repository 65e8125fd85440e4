#include "gate/profile/reach_files.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "gate/base/text.hpp"
#include "gate/profile/reach_diff.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::profile {
namespace {

using std::string_view;

// Shaders that are compiled for every API.
constexpr string_view k_shaders[] = {".wgsl", ".hlsl", ".slang"};

constexpr string_view k_headers[] = {".h",   ".hh",  ".hpp", ".hxx", ".h++", ".inc",
                                     ".inl", ".ipp", ".tpp", ".cuh", ".def", ".glsl"};
constexpr string_view k_build_endings[] = {".cmake", ".ninja", ".mk", ".bazel", ".bzl", ".in",
                                           ".am",    ".ac",    ".gn", ".gni",   ".zon", ".gradle"};
constexpr string_view k_build_names[] = {
    "cmakelists.txt", "cmakepresets.json", "cmakeuserpresets.json",
    "makefile",       "gnumakefile",       "configure",
    "meson.build",    "meson_options.txt", "build",
    "workspace",      "cargo.toml",        "cargo.lock",
    "build.rs",       "build.zig",         "go.mod",
    "go.sum",         "package.json",      "package-lock.json",
    "setup.py",       "pyproject.toml",    "conanfile.txt",
    "conanfile.py",   "vcpkg.json",        ".gitmodules",
    "weir.yaml",      "weir.yml",          "build.sh"};

constexpr string_view k_compiled[] = {".c", ".cc", ".cpp", ".cxx", ".c++", ".m",  ".mm",
                                      ".s", ".rs", ".zig", ".f90", ".f",   ".go", ".swift"};
constexpr string_view k_document_endings[] = {".md", ".rst", ".adoc", ".markdown"};
constexpr string_view k_document_beginnings[] = {
    "readme", "license", "licence", "copying", "authors", "notice", "contributors", "codeowners"};
constexpr string_view k_document_names[] = {
    ".gitignore",  ".gitattributes",         ".editorconfig", ".clang-format",
    ".clang-tidy", ".gitlab-ci.yml",         ".travis.yml",   "jenkinsfile",
    ".mailmap",    ".pre-commit-config.yaml"};
constexpr string_view k_document_folders[] = {"docs/",    "doc/",     ".github/", ".circleci/",
                                              ".devops/", ".gitlab/", ".vscode/", "baselines/"};
constexpr string_view k_test_folders[] = {"tests/", "test/"};

template <std::size_t N>
bool ends_with_one(string_view path, const string_view (&endings)[N]) {
  return std::any_of(std::begin(endings), std::end(endings),
                     [&](string_view ending) { return path.ends_with(ending); });
}

template <std::size_t N>
bool starts_with_one(string_view path, const string_view (&beginnings)[N]) {
  return std::any_of(std::begin(beginnings), std::end(beginnings),
                     [&](string_view beginning) { return path.starts_with(beginning); });
}

template <std::size_t N>
bool is_one(string_view name, const string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool is_shader_of(string_view path, const unit::DeviceApi& api) {
  return std::any_of(api.shaders.begin(), api.shaders.end(),
                     [&](string_view ending) { return !ending.empty() && path.ends_with(ending); });
}

}  // namespace

string_view file_name_in(string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == string_view::npos ? path : path.substr(slash + 1);
}

string_view shader_stem(string_view path) {
  const string_view name = file_name_in(path);
  return name.substr(0, name.find('.'));
}

bool shader_runs_on(string_view path, string_view device) {
  const std::string lower = text::lower(path);
  if (ends_with_one(lower, k_shaders)) return device != "cpu";
  const unit::DeviceApi* api = unit::find_device_api(device);
  return api != nullptr && is_shader_of(lower, *api);
}

std::size_t common_end(string_view one, string_view other) {
  std::size_t same = 0;
  while (!one.empty() && !other.empty()) {
    const string_view last = file_name_in(one);
    if (last.empty() || last != file_name_in(other)) break;
    ++same;
    const std::size_t gone = last.size();
    one.remove_suffix(std::min(one.size(), gone + 1));
    other.remove_suffix(std::min(other.size(), gone + 1));
  }
  return same;
}

// "readme.txt", "license-mit": not "notice_queue.cpp".
bool is_document_name(string_view name) {
  return std::any_of(std::begin(k_document_beginnings), std::end(k_document_beginnings),
                     [&](string_view beginning) {
                       if (!name.starts_with(beginning)) return false;
                       const string_view rest = name.substr(beginning.size());
                       return rest.empty() || rest.front() == '.' || rest.front() == '-';
                     });
}

FileKind file_kind(string_view path) {
  const std::string lower = text::lower(path);
  const string_view name = file_name_in(lower);
  // Documents first: a header that shows an example in docs/ is compiled by nobody.
  const bool compiled = ends_with_one(lower, k_compiled) || ends_with_one(lower, k_headers);
  if (starts_with_one(lower, k_document_folders) || ends_with_one(lower, k_document_endings) ||
      (!compiled && is_document_name(name)) || is_one(name, k_document_names)) {
    return FileKind::documents;
  }
  if (ends_with_one(lower, k_headers) || ends_with_one(lower, k_build_endings) ||
      is_one(name, k_build_names) || name.find("toolchain") != string_view::npos) {
    return FileKind::anything;
  }
  const auto apis = unit::device_apis();
  if (ends_with_one(lower, k_shaders) ||
      std::any_of(apis.begin(), apis.end(),
                  [&](const unit::DeviceApi& api) { return is_shader_of(lower, api); })) {
    return FileKind::shader;
  }
  if (starts_with_one(lower, k_test_folders)) return FileKind::tests;
  // Debug information names what was compiled. A script, a model, a linker's map, what code is made
  // from: no record can say that nothing reads it.
  return compiled ? FileKind::source : FileKind::anything;
}

}  // namespace weir::profile
