// Tests which paths the words of a cell may mean.
#include "gate/flow/named_paths.hpp"

#include <gmock/gmock.h>

#include "gate/config/settings.hpp"

namespace weir::flow {
namespace named_paths_test {

using ::testing::Contains;
using ::testing::IsSupersetOf;
using ::testing::Not;

// All paths of a command in perf/, with 'N' for digits, '*' for a part of a name and '#' for any
// text.
std::vector<std::string> paths_of(const config::Arguments& command,
                                  const config::Environment& environment = {}) {
  config::Cell cell;
  cell.model_path = "m.bin";
  cell.text = "once";
  cell.command = command;
  cell.env = environment;
  NamedPlaces places("perf", {"/home/me/repo"});
  places.add_start("perf/in");
  std::vector<std::string> paths;
  for (const NamedWord& word : named_parts(cell)) {
    for (std::string path : places.paths_of(word)) {
      for (char& c : path) {
        const std::string_view shown = "N*#";
        const std::size_t wildcard = k_wildcards.find(c);
        if (wildcard != std::string_view::npos) c = shown[wildcard];
      }
      paths.push_back(std::move(path));
    }
  }
  return paths;
}

TEST(NamedPaths, AreFoundInEveryFormThatAWordMayHave) {
  const struct {
    const char* word;
    std::vector<std::string> paths;
  } cases[] = {
      {"data.bin", {"perf/data.bin", "perf/in/data.bin"}},
      {"{model}", {"perf/m.bin"}},
      {"--data=data.bin", {"perf/data.bin"}},
      {"-fdata.bin", {"perf/data.bin"}},
      {"@data.bin,other.bin", {"perf/data.bin", "perf/other.bin"}},
      {"data/{tokens}.txt", {"perf/data/N.txt"}},
      {"data/{prompt}.txt", {"perf/data/once.txt"}},
      {"--data=data/{prompt}", {"perf/data/once"}},
      {"open('data.bin')", {"perf/data.bin"}},
      {"./run \"my data.bin\"", {"perf/run", "perf/my data.bin"}},
      {"{\"data\": \"data.bin\"}", {"perf/data.bin"}},
      {"./run 'da'ta.bin d\\ata.bin2", {"perf/data.bin", "perf/data.bin2"}},
      {"cd ..; ./run data.bin", {"", "perf", "perf/data.bin"}},
      {"../data.bin", {"data.bin", "perf/data.bin"}},
      {"/home/me/repo/data.bin", {"data.bin"}},
      {"file:///home/me/repo/data.bin", {"data.bin"}},
      {"file:data.bin#part", {"perf/data.bin"}},
      {"/mnt/in/data.bin", {"in/data.bin", "data.bin", "perf/data.bin"}},
      {"$PWD/data.bin", {"#/data.bin", "data.bin"}},
      {"\"${PWD%/*}/data.bin\"", {"#/data.bin", "data.bin"}},
      {"$(git top)/data.bin", {"#/data.bin", "data.bin"}},
      {"`pwd`/data.bin", {"#/data.bin", "data.bin"}},
      {"~/repo/data.bin", {"#/repo/data.bin", "repo/data.bin"}},
      {"$FOLDER/data.bin", {"perf/sets/data.bin"}},
      {"${FOLDER%s}/data.bin", {"#/data.bin", "perf/set/data.bin"}},
      {"in/${FILE%.txt}.bin", {"perf/in/#.bin", "perf/in/w.bin.bin"}},
      {"${FILE%.txt}", {"perf/w.bin"}},
      {"\"${FILE%%.*}\"", {"perf/w"}},
      {"${FILE#w.}", {"perf/bin.txt"}},
      {"${FILE##*.}", {"perf/txt"}},
      {"${FILE:0:5}", {"perf/w.bin"}},
      {"${FILE:2}", {"perf/bin.txt"}},
      {"${FILE: -3}", {"perf/txt"}},
      {"${FILE/bin/raw}", {"perf/w.raw.txt"}},
      {"${FILE//w/x}", {"perf/x.bin.txt"}},
      {"${FILE^^}", {"perf/W.BIN.TXT"}},
      {"${FILE:-x.bin}", {"perf/w.bin.txt"}},
      {"${FILE:+x.bin}", {"perf/x.bin"}},
      {"${EMPTY:-x.bin}", {"perf/x.bin"}},
      {"${!NAME}", {"perf/w.bin.txt"}},
      {"${FILE%$NONE}", {"perf/##"}},
      {"${FILE/w*/x}", {"perf/##"}},
      {"${FILE:-${FOLDER}}", {"perf/##"}},
      {"data/*.bin", {"perf/data/*.bin"}},
      {"data/**/x?[0-9].bin", {"perf/data/#*/x**.bin"}},
      {"data/{a,b}.bin", {"perf/data/*.bin"}},
      {"data-$i.bin", {"perf/data-#.bin"}},
      {"file:data.bin?mode=ro", {"perf/data.bin"}},
      {"data.bin+more/other.bin", {"perf/data.bin", "perf/more/other.bin"}},
      {"more/data+more/other", {"perf/more/data", "perf/more/other"}},
      {"data.bin^0.5", {"perf/data.bin"}},
      {"data.bin*0.5", {"perf/data.bin"}},
      {"%data.bin", {"perf/data.bin"}},
      {"data.bin!", {"perf/data.bin"}},
      {"c++.bin", {"perf/c++.bin"}},
  };
  for (const auto& [word, paths] : cases) {
    const config::Environment environment{
        {"FOLDER", "sets"}, {"FILE", "w.bin.txt"}, {"NAME", "FILE"}, {"EMPTY", ""}};
    EXPECT_THAT(paths_of({"sh", word}, environment), IsSupersetOf(paths)) << word;
  }
}

TEST(NamedPaths, OfVariablesAreInputsButWhereLoadersLookForPrograms) {
  config::Cell cell;
  cell.env = {{"DATA_DIR", "in"},
              {"HF_HOME", "x:in"},
              {"PYTHONPATH", "in"},
              {"PATH", "x:in"},
              {"LD_LIBRARY_PATH", "in"}};
  std::size_t holding = 0, other = 0;
  for (const NamedWord& word : named_parts(cell)) {
    if (word.text == "in") ++(word.holds_code ? holding : other);
  }
  EXPECT_GE(holding, 3U);
  EXPECT_GE(other, 2U);
}

TEST(NamedPaths, AreNotOptionsNorTextsNorWhatMatchesEverything) {
  for (const char* word : {"*", "\"$@\"", "{", "--", "&&", "-x"})
    EXPECT_EQ(paths_of({"sh", word}), paths_of({"sh"})) << word;
  EXPECT_THAT(paths_of({"sh", "{prompt}/data.bin"}), Not(Contains("perf/data.bin")));
  EXPECT_THAT(paths_of({"sh", "data/*.bin"}), Not(Contains("perf/data")));
  EXPECT_THAT(paths_of({"/usr/bin/data", "-n"}), Not(Contains("data")));
  EXPECT_THAT(paths_of({"data", "-n"}), Not(Contains("perf/data")));
}

TEST(NamedPaths, MatchPatternsInFull) {
  const std::string digits(1, k_digits), part(1, k_name_part), any(1, k_anything);
  const struct {
    std::string pattern, path;
    bool matches;
  } cases[] = {
      {"a/b", "a/b", true},
      {"a/b", "a/bc", false},
      {"a/" + digits, "a/12", true},
      {"a/" + digits, "a/", false},
      {"a/" + digits + "2", "a/12", true},
      {"a/" + part, "a/b", true},
      {"a/" + part, "a/b/c", false},
      {"a/" + part + part + ".bin", "a/.bin", true},
      {"a/" + any, "a/b/c", true},
      {any + "/c", "a/b/c", true},
      {any + "/c", "c", false},
      {any + "c", "c", true},
      {std::string(64, k_anything) + "x", std::string(4096, 'a'), false},
  };
  for (const auto& [pattern, path, matches] : cases)
    EXPECT_EQ(matches_pattern(pattern, path), matches) << path;
}

}  // namespace named_paths_test
}  // namespace weir::flow
