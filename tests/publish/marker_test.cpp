// Tests the marker line in weir's comments, and the names of gates and bases in it.
#include <gtest/gtest.h>

#include "gate/publish/target.hpp"

namespace weir::publish {
namespace marker_test {

TEST(GateName, ThatIsFineStaysAndAnyOtherBecomesOneOfItsOwn) {
  EXPECT_EQ(gate_name(""), "gate");
  EXPECT_EQ(gate_name("linux-gpu.2"), "linux-gpu.2");
  EXPECT_EQ(gate_name("linux / gpu").rfind("linux-gpu-", 0), 0U);
  EXPECT_NE(gate_name("linux / gpu"), gate_name("linux : gpu"));
  for (const std::string& hostile :
       {std::string("a-->b"), std::string("--"), std::string(500, 'x'), std::string("<!--\n-->"),
        std::string("ü"), std::string("..."), std::string("-a")}) {
    const std::string name = gate_name(hostile);
    EXPECT_EQ(gate_name(name), name) << hostile;  // already valid
    EXPECT_LE(name.size(), 64U);
    EXPECT_EQ(name.find("--"), std::string::npos) << name;
  }
}

TEST(BaseName, OfABranchIsPlainOrOfNoOtherBranch) {
  for (const char* plain : {"", "main", "release/1.2", "a_b-c.d"})
    EXPECT_EQ(base_name(plain), plain);
  std::set<std::string> names;
  const std::string long_branch(200, 'x');
  for (const std::string& branch :
       {std::string("Main"), std::string("MAIN"), std::string("a--b"), std::string("a---b"),
        std::string("<!-- -->"), std::string("a b"), std::string("x) (main"), std::string("ü"),
        std::string("`@all`\n"), long_branch, long_branch + "y", base_name("Main")}) {
    const std::string name = base_name(branch);
    EXPECT_LE(name.size(), 60U) << branch;
    EXPECT_NE(name, branch);
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._/-~"),
              std::string::npos)
        << name;
    EXPECT_EQ(name.find("--"), std::string::npos) << name;
    // A branch name has no "~", so the name cannot collide with a branch's.
    EXPECT_NE(name.find('~'), std::string::npos) << name;
    EXPECT_TRUE(names.insert(name).second) << branch;
  }
}

TEST(Marker, OfAPullRequestAndBaseIsReadBackAndOfNoOther) {
  const Marker marker{"nightly", {12, 3}, 7, base_name("Main"), true};
  const auto read = parse_comment_marker(marker.hidden());
  ASSERT_TRUE(read) << marker.hidden();
  EXPECT_EQ(read->text(), marker.text());
  EXPECT_TRUE(read->is_same_place(marker));
  EXPECT_EQ(Marker({"gate", {1, 1}, 7, "main"}).text(),
            "weir:gate=gate pr=7 base=main run=1 attempt=1");
  for (const Marker& different :
       {Marker{"other", {12, 3}, 7, marker.base}, Marker{"nightly", {12, 3}, 8, marker.base},
        Marker{"nightly", {12, 3}, 7, "main"}, Marker{"nightly", {12, 3}}}) {
    EXPECT_FALSE(different.is_same_place(marker)) << different.text();
  }
}

TEST(Marker, IsReadBackFromTheFirstLineOnly) {
  const Marker marker{"nightly", {12, 3}};
  EXPECT_EQ(marker.hidden(), "<!-- weir:gate=nightly run=12 attempt=3 -->");
  for (const char* behind : {"", "\ntext", "\r\ntext"}) {
    const auto read = parse_comment_marker(marker.hidden() + behind);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->gate, "nightly");
    EXPECT_EQ(read->run, marker.run);
  }
}

TEST(Marker, ThatIsQuotedOrBentIsNone) {
  const std::string hidden = Marker{"nightly", {12, 3}}.hidden();
  for (const std::string& body :
       {"> " + hidden, "text\n" + hidden, hidden + " text", " " + hidden,
        std::string("<!-- weir:gate=nightly -->"),
        std::string("<!-- weir:gate= run=1 attempt=1 -->"),
        std::string("<!-- weir:gate=a run=x attempt=1 -->"), std::string("<!-- -->"), std::string(),
        std::string("<!-- weir:gate=a run=99999999999999999999 attempt=1 -->"),
        std::string("<!-- weir:gate=a pr=x run=1 attempt=1 -->"),
        std::string("<!-- weir:gate=a run=1 attempt=1 pr=7 -->"),
        std::string("<!-- weir:gate=a--b run=1 attempt=1 -->")}) {
    EXPECT_FALSE(parse_comment_marker(body)) << body;
  }
}

TEST(RunNumber, OfALaterRunOrAttemptMustNotBeOverwritten) {
  EXPECT_TRUE(is_newer({2, 1}, {1, 5}));
  EXPECT_TRUE(is_newer({1, 2}, {1, 1}));
  EXPECT_FALSE(is_newer({1, 1}, {1, 1}));
  EXPECT_FALSE(is_newer({1, 1}, {1, 2}));
  EXPECT_FALSE(is_newer({9, 9}, {})) << "somebody asked for this post just now";
  EXPECT_FALSE(is_newer({}, {1, 1}));
}

}  // namespace marker_test
}  // namespace weir::publish
