#include "gate/profile/reach.hpp"

#include <algorithm>
#include <vector>

#include "gate/base/text.hpp"

namespace weir::profile {
namespace {

constexpr std::size_t k_longest_path = 4096;

std::vector<std::string> strings_of(const std::set<std::string>& set) {
  return {set.begin(), set.end()};
}

std::set<std::string> set_of(std::vector<std::string> strings) {
  return {std::make_move_iterator(strings.begin()), std::make_move_iterator(strings.end())};
}

}  // namespace

void add_executed(Executed& executed, const std::string& file, std::string_view function) {
  if (file.empty() || file.size() > k_longest_path) return;
  if (executed.files.size() >= k_most_reach_files && !executed.files.contains(file)) return;
  std::set<std::string>& functions = executed.files[file];
  if (!function.empty() && functions.size() < k_most_reach_functions) {
    functions.emplace(function);
  }
}

void merge_executed(Executed& into, const Executed& more) {
  for (const auto& [file, functions] : more.files) {
    add_executed(into, file, "");
    for (const std::string& function : functions) add_executed(into, file, function);
  }
  into.blind.insert(more.blind.begin(), more.blind.end());
}

std::string normal_path(std::string_view path) {
  const bool rooted = path.starts_with('/');
  std::vector<std::string> parts;
  for (std::string& part : text::split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(std::move(part));
    } else if (!parts.empty() && parts.back() != "..") {
      parts.pop_back();
    } else if (!rooted) {
      parts.push_back(std::move(part));
    }
  }
  return (rooted ? "/" : "") + text::join(parts, "/");
}

std::string path_below(std::string_view path, std::string_view top) {
  std::string normal = normal_path(path);
  if (top.size() > 1 && normal.size() > top.size() + 1 && normal.starts_with(top) &&
      normal[top.size()] == '/') {
    normal.erase(0, top.size() + 1);
  }
  return normal;
}

Json to_json(const Reach& reach) {
  Json files = Json::object();
  for (const auto& [file, functions] : reach.executed.files) files[file] = strings_of(functions);
  return {{"schema", "weir.reach/1"},
          {"cell", reach.cell},
          {"commit", reach.commit},
          {"dirty", reach.dirty},
          {"source", reach.source},
          {"files", std::move(files)},
          {"blind", strings_of(reach.executed.blind)},
          {"kernels", reach.kernels ? Json(strings_of(*reach.kernels)) : Json(nullptr)},
          {"kernels_named", reach.kernels_named},
          {"ops", strings_of(reach.ops)}};
}

Result<Reach> reach_from_json(const Json& json) {
  JsonReader read(json, "reach");
  if (read.string("schema") != "weir.reach/1") read.complain("not a weir.reach/1");
  Reach reach;
  reach.cell = read.string("cell");
  reach.commit = read.string("commit");
  reach.dirty = read.boolean("dirty");
  reach.source = read.string("source");
  const Json& files = read.object("files");
  reach.executed.blind = set_of(read.strings("blind"));
  if (read.has("kernels")) reach.kernels = set_of(read.strings("kernels"));
  reach.kernels_named = read.boolean("kernels_named");
  reach.ops = set_of(read.strings("ops"));
  if (auto problem = read.problem()) return tl::unexpected(std::move(*problem));
  JsonReader inner(files, "reach.files");
  for (const auto& [file, functions] : files.items()) {
    add_executed(reach.executed, file, "");
    for (const std::string& function : inner.strings(file.c_str())) {
      add_executed(reach.executed, file, function);
    }
  }
  if (auto problem = inner.problem()) return tl::unexpected(std::move(*problem));
  return reach;
}

}  // namespace weir::profile
