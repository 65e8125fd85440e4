// Servers in pairs, beside a base program: up at the same time, judged, and whole again after a
// stop.
#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "tests/e2e/servers.hpp"

namespace weir::e2e {
namespace server_pairs_test {

// Two requests a block, four blocks of each side: a pair is two starts and 16 requests. No machine
// is so busy that one side would take a thousand times as long as the other, pair for pair
// (tests/run/server_pair_test.cpp has closer limits, in virtual time).
const std::string k_first_token =
    "{hello: {text: Hello, tokens: 2, requests: 8}}\n"
    "limits: [{metrics: time_to_first_token_p90_seconds, max_increase: 100000%},\n"
    "         {metrics: '*tokens_per_second', mode: 'off'}]";

TEST_F(Servers, BesideABaseAreUpInPairsAndTheirPercentilesAreJudged) {
  write_config({"late"}, ", warm_up: 1", k_first_token);
  const Json same = gate(0, {"--against", "--", k_fake, "late", "{port}", mark()});
  const Json judged =
      metric_of(cell_of(same, "late/m/cpu/hello"), "time_to_first_token_p90_seconds");
  EXPECT_EQ(judged["verdict"], "pass") << judged.dump(1);
  EXPECT_NE(judged["warnings"].dump().find("p90 of 8 requests a start"), std::string::npos);
  EXPECT_NE(cell_of(same, "late/m/cpu/hello")["notes"].dump().find("fresh starts of each server"),
            std::string::npos);

  // The journal holds the order before, and the turns as the coin had it.
  std::istringstream journal(slurp(scratch_ / same["run"].get<std::string>() / "run.jsonl"));
  std::map<std::int64_t, std::map<std::int64_t, Json>> pairs;  // pair -> order -> record
  for (std::string line; std::getline(journal, line);) {
    const Json record = Json::parse(line);
    if (record.contains("turns")) pairs[record["pair"]][record["order"]] = record;
  }
  EXPECT_GE(pairs.size(), 8U);
  std::set<bool> base_first;
  for (const auto& [number, two] : pairs) {
    ASSERT_EQ(two.size(), 2U) << number;
    const Json &first = two.begin()->second, &second = two.rbegin()->second;
    EXPECT_EQ(first["turns"], Json::parse("[0, 3, 4, 7]"));
    EXPECT_EQ(second["turns"], Json::parse("[1, 2, 5, 6]"));
    EXPECT_NE(first.value("side", "candidate"), second.value("side", "candidate"));
    if (number > 0) base_first.insert(first.value("side", "candidate") == "base");
    const double first_ends =
        first["started_at"].get<double>() + first["wall_seconds"].get<double>();
    EXPECT_LT(second["started_at"].get<double>(), first_ends) << "not beside each other";
  }
}

// Killed with -9, or asked to stop, while both servers of a pair are up; and cut between the two
// records of a pair, of which a moment alone decides. The servers answer so much and then nothing,
// so that no pair is over before it is stopped.
TEST_F(Servers, BesideABaseGoOnWithAWholePairWhereAStopCutOne) {
  write_config({"late"}, ", warm_up: 1", k_first_token);
  const std::vector<std::string> gating{"gate", "--json", "-",      "--against", "--",
                                        k_fake, "late",   "{port}", mark()};
  const auto journal = [&] {
    for (const auto& entry : fs::directory_iterator(scratch_ / "weir-out")) {
      if (fs::exists(entry.path() / "run.jsonl")) return entry.path() / "run.jsonl";
    }
    return fs::path();
  };
  const auto measured = [&] {  // whole lines of measured pairs
    std::vector<Json> records;
    std::istringstream lines(fs::exists(scratch_ / "weir-out") ? slurp(journal()) : "");
    for (std::string line; std::getline(lines, line) && !lines.eof();) {
      const Json record = Json::parse(line);
      if (record.contains("turns") && record["pair"] > 0) records.push_back(record);
    }
    return records;
  };
  const auto nothing_left = [&] { return processes_with(mark()).empty(); };
  const auto stop_in_pair = [&](const std::vector<std::string>& words, int answers, int signal) {
    Weir process(scratch_, words, answering(answers));
    EXPECT_TRUE(eventually([&] {
      // Weir itself and what watches over its servers have its own words, "gate" among them.
      const auto all = processes_with(mark());
      const auto up = std::count_if(all.begin(), all.end(), [](const std::string& command_line) {
        return command_line.find("gate") == std::string::npos;
      });
      return up == 2 && measured().size() >= 2;
    }));
    process.kill(signal);
    const Ended ended = process.wait();
    EXPECT_TRUE(eventually(nothing_left));
    return ended;
  };
  std::vector<std::string> resuming = gating;
  resuming.insert(resuming.begin() + 1, "--resume");
  // A request to warm up and eight more of each server, of a pair to warm up and of one more.
  EXPECT_EQ(stop_in_pair(gating, 2 * 2 * 9, SIGKILL).signal, SIGKILL);
  EXPECT_EQ(stop_in_pair(resuming, 0, SIGINT).exit_code, 130);
  // As if the second record of the last whole pair had never been written.
  const auto so_far = measured();
  ASSERT_GE(so_far.size(), 2U);
  const Json cut = so_far[so_far.size() - 1 - so_far.size() % 2];
  const std::string text = slurp(journal());
  std::size_t at = 0;
  for (std::size_t from = 0, to = 0; (to = text.find('\n', from)) != std::string::npos;
       from = to + 1) {
    if (Json::parse(text.substr(from, to - from)) == cut) at = from;
  }
  ASSERT_GT(at, 0U);
  spill(journal(), text.substr(0, at));

  const Ended last = weir(scratch_, resuming);
  EXPECT_EQ(last.exit_code, 0) << last.err;
  EXPECT_TRUE(nothing_left());
  const Json verdict = json_of(last);
  EXPECT_EQ(verdict["not_judged"].dump().find("interrupted"), std::string::npos);
  const Json judged =
      metric_of(cell_of(verdict, "late/m/cpu/hello"), "time_to_first_token_p90_seconds");
  EXPECT_EQ(judged["verdict"], "pass") << judged.dump(1);
  std::map<std::int64_t, std::vector<Json>> pairs;
  for (const Json& record : measured()) pairs[record["pair"]].push_back(record);
  const std::int64_t number = cut["pair"];
  for (const auto& [pair, records] : pairs) {
    // The record that was left alone is still there, and is none of the pair's.
    ASSERT_EQ(records.size(), pair == number ? 3U : 2U) << pair;
    const Json &first = records[records.size() - 2], &second = records.back();
    EXPECT_NE(first.value("side", "candidate"), second.value("side", "candidate")) << pair;
    EXPECT_LT(second["started_at"].get<double>(),
              first["started_at"].get<double>() + first["wall_seconds"].get<double>())
        << pair << " was not measured beside each other";
  }
  EXPECT_EQ(judged["pairs"], pairs.size()) << "each pair once: " << judged.dump(1);
}

TEST_F(Servers, BesideABaseThatDiesAreAnError) {
  write_config({"late"}, ", warm_up: 1", k_first_token);
  const Json verdict = gate(3, {"--against", "--", k_fake, "dies_serving", "{port}", mark()});
  EXPECT_NE(cell_of(verdict, "late/m/cpu/hello")
                .value("reason", "")
                .find("the base program failed in 2 of its processes: "
                      "the server ended while it served"),
            std::string::npos)
      << cell_of(verdict, "late/m/cpu/hello").value("reason", "");
}

}  // namespace server_pairs_test
}  // namespace weir::e2e
