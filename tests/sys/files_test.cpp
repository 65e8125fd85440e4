// Tests files, both on the disk and in memory.
#include "gate/sys/files.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/base/text.hpp"
#include "gate/sys/holes.hpp"
#include "gate/sys/page_cache.hpp"
#include "gate/sys/paths.hpp"

#include "tests/support/eventually.hpp"
#include "tests/support/memory_files.hpp"

namespace weir::sys {
namespace files_test {

// Asks the real files and the fake the same questions, so that the fake stays correct.
class AnyFiles : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()) == "real") {
      char pattern[] = "/tmp/weir-files-XXXXXX";
      root_ = mkdtemp(pattern);
      files_ = std::make_unique<RealFiles>();
    } else {
      root_ = "/root";
      files_ = std::make_unique<MemoryFiles>();
      ASSERT_TRUE(files_->make_dirs(root_).has_value());
    }
  }
  void TearDown() override { (void)files_->remove_tree(root_); }
  [[nodiscard]] std::string at(const std::string& name) const { return root_ + "/" + name; }

  std::string root_;
  std::unique_ptr<Files> files_;
};
INSTANTIATE_TEST_SUITE_P(Files, AnyFiles, testing::Values("real", "memory"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(AnyFiles, ReadBackWhatWasWritten) {
  ASSERT_TRUE(files_->write_atomic(at("a"), "first").has_value());
  ASSERT_TRUE(files_->write_atomic(at("a"), std::string("sec\0ond", 7)).has_value());
  EXPECT_EQ(*files_->read(at("a"), 7), std::string("sec\0ond", 7));
  EXPECT_EQ(*files_->read_prefix(at("a"), 3), "sec");
  EXPECT_EQ(*files_->read_prefix(at("a"), 100), std::string("sec\0ond", 7));
  EXPECT_EQ(*files_->size(at("a")), 7U);
  EXPECT_EQ(files_->read(at("a"), 6).error().code, Code::data) << "a limit";
  EXPECT_EQ(files_->read(at("b"), 6).error().code, Code::io) << "absent";
  EXPECT_EQ(files_->write_atomic(at("no/such/folder"), "x").error().code, Code::io);
  EXPECT_EQ(*files_->list(root_), std::vector<std::string>{"a"}) << "no temporary file is left";
}

TEST_P(AnyFiles, ListNamesInOrderAndTellWhatTheyAre) {
  ASSERT_TRUE(files_->make_dirs(at("b/inner")).has_value());
  ASSERT_TRUE(files_->make_dirs(at("b/inner")).has_value()) << "again";
  ASSERT_TRUE(files_->write_atomic(at("c"), "").has_value());
  ASSERT_TRUE(files_->write_atomic(at("a"), "").has_value());
  EXPECT_EQ(*files_->list(root_), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(files_->kind(at("a")), Kind::file);
  EXPECT_EQ(files_->kind(at("b")), Kind::folder);
  EXPECT_EQ(files_->kind(at("x")), Kind::absent);
  EXPECT_FALSE(files_->make_dirs(at("a")).has_value()) << "a file is in the way";
  EXPECT_FALSE(files_->make_dirs(at("a/b")).has_value()) << "a file is in the way";
  EXPECT_FALSE(files_->remove(at("b")).has_value()) << "a folder that is not empty";
  ASSERT_TRUE(files_->write_atomic(at("b/inner/x"), "").has_value());
  ASSERT_TRUE(files_->remove_tree(at("b")).has_value());
  EXPECT_EQ(*files_->list(root_), (std::vector<std::string>{"a", "c"}));
  ASSERT_TRUE(files_->remove(at("a")).has_value());
  ASSERT_TRUE(files_->remove(at("a")).has_value()) << "absent is fine";
  ASSERT_TRUE(files_->remove_tree(at("never")).has_value());
}

TEST_P(AnyFiles, AppendWholeLinesAndCutOffATornOne) {
  {
    auto log = files_->append_log(at("log"), 0);
    ASSERT_TRUE(log.has_value());
    ASSERT_TRUE((*log)->append("one").has_value());
    ASSERT_TRUE((*log)->append("two").has_value());
  }
  EXPECT_EQ(*files_->read(at("log"), 100), "one\ntwo\n");
  auto log = files_->append_log(at("log"), 4);
  ASSERT_TRUE(log.has_value());
  ASSERT_TRUE((*log)->append("three").has_value());
  EXPECT_EQ(*files_->read(at("log"), 100), "one\nthree\n");
}

TEST_P(AnyFiles, GiveEveryVersionOfAFileAnotherStamp) {
  ASSERT_TRUE(files_->write_atomic(at("a"), "one").has_value());
  const std::string before = *files_->stamp(at("a"));
  EXPECT_EQ(*files_->stamp(at("a")), before);
  // Waits until the file system's coarse clock has moved on.
  EXPECT_TRUE(tests::eventually([&] {
    EXPECT_TRUE(files_->write_atomic(at("clock"), "any").has_value());
    return *files_->stamp(at("clock")) != before;
  }));
  ASSERT_TRUE(files_->write_atomic(at("a"), "two").has_value());
  EXPECT_NE(*files_->stamp(at("a")), before);
}

TEST_P(AnyFiles, LookThroughLinksAndReplaceThemAtOnce) {
  ASSERT_TRUE(files_->make_dirs(at("old")).has_value());
  ASSERT_TRUE(files_->make_dirs(at("new")).has_value());
  ASSERT_TRUE(files_->write_atomic(at("old/x"), "old").has_value());
  ASSERT_TRUE(files_->write_atomic(at("new/x"), "new").has_value());
  ASSERT_TRUE(files_->link(at("old"), at("link")).has_value());
  EXPECT_EQ(files_->kind(at("link")), Kind::folder);
  EXPECT_EQ(*files_->read(at("link/x"), 10), "old");
  ASSERT_TRUE(files_->link("new", at("link")).has_value()) << "counted from the link's folder";
  EXPECT_EQ(*files_->read(at("link/x"), 10), "new");
  ASSERT_TRUE(files_->write_atomic(at("link/y"), "y").has_value());
  EXPECT_EQ(*files_->list(at("new")), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(*files_->list(root_), (std::vector<std::string>{"link", "new", "old"}));

  ASSERT_TRUE(files_->link(at("nothing"), at("dangling")).has_value());
  EXPECT_EQ(files_->kind(at("dangling")), Kind::absent);
  ASSERT_TRUE(files_->link("circle", at("circle")).has_value());
  EXPECT_EQ(files_->kind(at("circle")), Kind::absent);
  EXPECT_EQ(files_->link(at("old"), at("new")).error().code, Code::io) << "a folder is in the way";
  EXPECT_EQ(files_->link(at("old"), at("no/such")).error().code, Code::io);

  ASSERT_TRUE(files_->remove(at("link")).has_value());
  EXPECT_EQ(files_->kind(at("link")), Kind::absent);
  ASSERT_TRUE(files_->link(at("old"), at("link")).has_value());
  ASSERT_TRUE(files_->remove_tree(at("link")).has_value());
  EXPECT_EQ(*files_->read(at("old/x"), 10), "old") << "the link went, not what it led to";
}

class RealFolder : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/weir-files-XXXXXX";
    root_ = mkdtemp(pattern);
  }
  void TearDown() override { (void)files_.remove_tree(root_); }
  [[nodiscard]] std::string at(const std::string& name) const { return root_ + "/" + name; }
  std::string root_;
  RealFiles files_;
};

TEST_F(RealFolder, WritesAHeadWithAHoleBehindIt) {
  const std::string path = at("hollow");
  const auto taken = write_with_hole(path, "head", 64 << 20);
  ASSERT_TRUE(taken);
  EXPECT_LT(*taken, 1U << 20) << "this file system keeps no holes";
  EXPECT_EQ(RealFiles().size(path).value_or(0), 64U << 20);
  EXPECT_EQ(RealFiles().read_prefix(path, 6).value_or(""), std::string("head\0\0", 6));
  EXPECT_FALSE(write_with_hole(at("no/hollow"), "head", 4));
}

TEST_F(RealFolder, NeverMixesLinesOfSeveralThreads) {
  auto log = files_.append_log(at("log"), 0);
  ASSERT_TRUE(log.has_value());
  std::vector<std::thread> threads;
  for (char c = 'a'; c < 'e'; ++c) {
    threads.emplace_back([&, c] {
      for (int i = 0; i < 50; ++i) ASSERT_TRUE((*log)->append(std::string(5000, c)).has_value());
    });
  }
  for (auto& thread : threads) thread.join();
  const auto lines = text::lines(*files_.read(at("log"), 1 << 24));
  EXPECT_EQ(lines.size(), 200U);
  for (const std::string& line : lines) {
    EXPECT_EQ(line, std::string(5000, line.empty() ? '?' : line[0]));
  }
}

// A limit on the size of files stands for a full disk: only a part of a line is written.
TEST_F(RealFolder, CutsOffHalfALineAndWritesNoMoreToThatLog) {
  std::signal(SIGXFSZ, SIG_IGN);
  auto log = files_.append_log(at("log"), 0);
  ASSERT_TRUE(log.has_value());
  ASSERT_TRUE((*log)->append("one").has_value());
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit full{1000, before.rlim_max};
  std::vector<std::thread> workers;
  std::atomic<int> failed = 0;
  setrlimit(RLIMIT_FSIZE, &full);
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      for (int j = 0; j < 20; ++j) failed += (*log)->append(std::string(99, 'x')) ? 0 : 1;
    });
  }
  for (std::thread& worker : workers) worker.join();
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(failed, 80 - 9);
  const auto refused = (*log)->append("short");
  ASSERT_FALSE(refused.has_value()) << "there would be room again";
  EXPECT_EQ(refused.error().code, Code::io);
  EXPECT_NE(refused.error().message.find("nothing more is written to it"), std::string::npos);
  std::string expected = "one\n";
  for (int i = 0; i < 9; ++i) expected += std::string(99, 'x') + "\n";
  EXPECT_EQ(*files_.read(at("log"), 10'000), expected);
  log->reset();
  ASSERT_TRUE((*files_.append_log(at("log"), 1000))->append("later").has_value());
  EXPECT_EQ(*files_.read(at("log"), 10'000), expected + "later\n") << "another weir goes on";
}

TEST_F(RealFolder, LetsNobodyElseWriteALogThatIsOpen) {
  auto first = files_.append_log(at("log"), 0);
  ASSERT_TRUE(first.has_value());
  const auto second = files_.append_log(at("log"), 0);
  ASSERT_FALSE(second.has_value());
  EXPECT_NE(second.error().message.find("another weir is writing it"), std::string::npos);
}

// At any moment a reader sees one of the two texts in full, also while the writer is killed.
TEST_F(RealFolder, ReplacesAFileWholeOrNotAtAllWhenTheWriterIsKilled) {
  const std::string first(300'000, '1'), second(300'000, '2');
  ASSERT_TRUE(files_.write_atomic(at("a"), first).has_value());
  for (int moment = 0; moment < 40; ++moment) {
    const pid_t writer = fork();
    if (writer == 0) {
      RealFiles files;
      for (;;) {
        (void)files.write_atomic(at("a"), second);
        (void)files.write_atomic(at("a"), first);
      }
    }
    usleep(static_cast<useconds_t>(137 * moment));
    kill(writer, SIGKILL);
    waitpid(writer, nullptr, 0);
    const std::string text = *files_.read(at("a"), 1 << 20);
    ASSERT_TRUE(text == first || text == second) << "killed after " << 137 * moment << " us";
  }
}

TEST_F(RealFolder, NeitherFollowsLinksNorWaitsForPipes) {
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(files_.read(at("pipe"), 10).error().code, Code::io);
  EXPECT_EQ(files_.read("/dev/zero", 10).error().code, Code::io);
  EXPECT_EQ(files_.read(root_, 10).error().code, Code::io);

  ASSERT_TRUE(files_.make_dirs(at("kept")).has_value());
  ASSERT_TRUE(files_.write_atomic(at("kept/x"), "x").has_value());
  ASSERT_TRUE(files_.make_dirs(at("gone")).has_value());
  ASSERT_EQ(symlink(at("kept").c_str(), at("gone/link").c_str()), 0);
  ASSERT_EQ(symlink(at("kept").c_str(), at("link").c_str()), 0);
  ASSERT_TRUE(files_.remove_tree(at("gone")).has_value());
  ASSERT_TRUE(files_.remove_tree(at("link")).has_value());
  EXPECT_TRUE(files_.exists(at("kept/x")));
  EXPECT_FALSE(files_.exists(at("link")));
}

TEST(Paths, AreJoinedSplitAndCleaned) {
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("a", "/b"), "/b");
  EXPECT_EQ(join_path("", "b"), "b");
  EXPECT_EQ(folder_of("a/b/c"), "a/b");
  EXPECT_EQ(folder_of("c"), ".");
  EXPECT_EQ(folder_of("/c"), "/");
  EXPECT_EQ(file_name_of("a/b"), "b");
  EXPECT_EQ(absolute("/a/./b/../c/"), "/a/c");
  EXPECT_EQ(absolute("/../x"), "/x");
  EXPECT_TRUE(absolute("x").starts_with("/"));
}

TEST(Paths, FindProgramsAsACommandLineNamesThem) {
  MemoryFiles files;
  for (const char* path : {"/bin/a", "/opt/a", "/project/tools/a", "/bin/plain"}) {
    files.put(path, "");
  }
  for (const char* path : {"/bin/a", "/opt/a", "/project/tools/a"}) files.set_executable(path);
  const auto find = [&](const char* name, const char* path) {
    return find_program(files, name, "/project", path).value_or("nothing");
  };
  EXPECT_EQ(find("a", "/usr/bin:/opt:/bin"), "/opt/a") << "the first in PATH";
  EXPECT_EQ(find("tools/a", "/bin"), "/project/tools/a") << "counted from the config";
  EXPECT_EQ(find("../bin/a", ""), "/bin/a");
  EXPECT_EQ(find("/bin/a", ""), "/bin/a");
  EXPECT_EQ(find("plain", "/bin"), "nothing") << "not executable";
  EXPECT_EQ(find("bin", "/"), "nothing") << "a folder";
  EXPECT_EQ(find("a", "::"), "nothing") << "an empty entry is not the current folder";
  EXPECT_EQ(find("", "/bin"), "nothing");
}

TEST(RealFilesRights, AreThoseThatWereSetWhateverTheMask) {
  char pattern[] = "/tmp/weir-rights-XXXXXX";
  const std::string folder = mkdtemp(pattern);
  RealFiles files;
  const mode_t mask = umask(077);
  EXPECT_TRUE(files.set_mode(folder, 0777));
  umask(mask);
  struct stat facts {};
  ASSERT_EQ(stat(folder.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777U, 0777U);
  EXPECT_TRUE(files.remove_tree(folder));
  EXPECT_FALSE(files.set_mode(folder, 0777)) << "it is gone";
}

// Returns how many pages of a file are in the system's cache, and how many it has.
std::pair<std::ptrdiff_t, std::size_t> cached_pages(const std::string& path, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void* memory = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return {-1, 0};
#ifdef __APPLE__
  std::vector<char> pages((bytes + page - 1) / page);
#else
  std::vector<unsigned char> pages((bytes + page - 1) / page);
#endif
  const int result = mincore(memory, bytes, pages.data());
  munmap(memory, bytes);
  const auto is_cached = [](auto state) { return (state & 1) != 0; };
  return {result == 0 ? std::ranges::count_if(pages, is_cached) : -1, pages.size()};
}

TEST(PageCache, HasAllOfAFileThatIsReadIntoIt) {
#ifndef __linux__
  GTEST_SKIP() << "nothing drops a file from the cache here";
#else
  char path[] = "/var/tmp/weir-cache-XXXXXX";
  const int fd = mkstemp(path);
  const std::vector<char> bytes((std::size_t{3} << 20) + 17, 'x');
  ASSERT_EQ(write(fd, bytes.data(), bytes.size()), std::ssize(bytes));
  fsync(fd);
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  close(fd);
  const auto [dropped, page_count] = cached_pages(path, bytes.size());
  read_into_cache(path);
  const auto cached = cached_pages(path, bytes.size()).first;
  unlink(path);
  EXPECT_EQ(cached, static_cast<std::ptrdiff_t>(page_count));
  if (dropped == cached) GTEST_SKIP() << "this file system keeps its files in memory";
  read_into_cache("/nowhere");
#endif
}

}  // namespace files_test
}  // namespace weir::sys
