// Moves files between trees and files in memory.
#include "tests/flow/race/tree.hpp"

#include <gtest/gtest.h>

#include "gate/sys/paths.hpp"

namespace weir::tests::race {

Tree below(const std::string& folder, const Tree& tree) {
  Tree moved;
  for (const auto& [path, file] : tree) moved[sys::join_path(folder, path)] = file;
  return moved;
}

void put(sys::MemoryFiles& files, const std::string& folder, const Tree& tree) {
  for (const auto& [path, file] : below(folder, tree)) {
    if (file.kind == TreeFile::Kind::link) {
      EXPECT_TRUE(files.make_dirs(sys::folder_of(path)));
      EXPECT_TRUE(files.link(file.text, path));
      continue;
    }
    files.put(path, file.text);
    if (file.kind == TreeFile::Kind::program) files.set_executable(path);
  }
}

Tree take(const sys::MemoryFiles& files, const std::string& folder) {
  Tree tree;
  const auto names = files.list(folder);
  if (!names) return tree;
  for (const std::string& name : *names) {
    const std::string path = sys::join_path(folder, name);
    if (files.kind(path) == sys::Kind::folder) {
      tree.merge(take(files, path));
      continue;
    }
    const bool is_program = files.executable(path);
    tree[path] = {files.read(path, 1 << 24).value(),
                  is_program ? TreeFile::Kind::program : TreeFile::Kind::plain};
  }
  return tree;
}

}  // namespace weir::tests::race
