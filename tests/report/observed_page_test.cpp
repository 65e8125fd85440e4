// Tests the page of an engine's or profiler's report: its contents, and text that it never has.
#include "gate/report/observed_page.hpp"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/report/hiding.hpp"
#include "gate/report/timeline_document.hpp"
#include "gate/unit/metric.hpp"

namespace weir::report {
namespace observed_page_test {

using testing::HasSubstr;
using testing::Not;

Json read_head(const TimelineDocument& page) {
  const std::string data = page.html_scripts();
  const std::string begin = "id=\"weir-profile\">";
  const std::size_t at = data.find(begin) + begin.size();
  const auto json = parse_json(data.substr(at, data.find("</script>", at) - at));
  EXPECT_TRUE(json) << json.error().message;
  return json ? *json : Json();
}

Json table(const Json& head, std::string_view title) {
  for (const Json& entry : head["tables"]) {
    if (entry["title"] == title) return entry;
  }
  ADD_FAILURE() << "no table " << title;
  return {};
}

observed::ObservedOp op(const char* name, std::int64_t calls, double seconds) {
  observed::ObservedOp result;
  result.op = name;
  result.calls = calls;
  result.seconds = seconds;
  return result;
}

observed::Observed two_ops() {
  observed::Observed observed;
  observed.format = "vk-perf-logger";
  observed.ops = {op("MUL_MAT", 4, 0.003), op("ADD", 1, 0.001)};
  observed.ops[0].flops = 1.5e6;  // per call: 4 x 1.5e6 in 3 ms are 2 GFLOP/s
  return observed;
}

TEST(PageOfObserved, HasATableOfOpsWithRates) {
  const Json head = read_head(observed_page(two_ops(), nullptr, {}));
  const Json ops = table(head, "Ops");
  std::vector<std::string> titles;
  for (const Json& column : ops["columns"]) titles.push_back(column["title"]);
  EXPECT_THAT(titles,
              testing::ElementsAre("What", "Calls", "Total", "Share, %", "Average", "GFLOP/s"))
      << "columns that nobody has are left out";
  ASSERT_EQ(ops["rows"].size(), 2U);
  EXPECT_EQ(ops["rows"][0][0], "MUL_MAT");
  EXPECT_NEAR(ops["rows"][0][3].get<double>(), 75, 1e-9);
  EXPECT_NEAR(ops["rows"][0][4].get<double>(), 0.00075, 1e-12);
  EXPECT_NEAR(ops["rows"][0][5].get<double>(), 2, 1e-9);
  EXPECT_TRUE(ops["rows"][1][5].is_null()) << "not known is not 0";
  EXPECT_TRUE(head["tracks"].empty()) << "it holds no moments";
}

TEST(PageOfObserved, HasATableOfResultsAsLlamaBenchPrintsIt) {
  observed::Observed observed;
  observed.format = "llama-bench";
  observed::ObservedCase test;
  test.name = "pp16";
  test.facts = {{"model_type", "llama 1B"}, {"n_threads", "2"}, {"test_time", "now"}};
  test.timings.push_back({*unit::find_metric("prefill_tokens_per_second"), {10, 12, 14}, {}, {}});
  observed.cases = {test};
  const Json results = table(read_head(observed_page(observed, nullptr, {})), "Results");
  EXPECT_EQ(results["rows"], Json::parse(R"([["pp16", "llama 1B", 2, 12.0, 2.0]])"))
      << "squares of 2, 0 and 2 over n - 1 = 2 are 4: a deviation of 2";
  EXPECT_EQ(results["columns"][3]["unit"], "tok/s");
}

TEST(PageOfObserved, HasSizesAndCountsOfResultsAsNumbers) {
  observed::Observed observed;
  observed.format = "llama-bench-table";
  for (const auto& [size, params] : {std::pair{"2.5 MiB", "2.36 M"}, {"1048576", "1.5 B"}}) {
    observed::ObservedCase test;
    test.name = "pp16";
    test.facts = {{"model_size", size}, {"model_n_params", params}, {"n_threads", "many"}};
    observed.cases.push_back(test);
  }
  const Json results = table(read_head(observed_page(observed, nullptr, {})), "Results");
  EXPECT_EQ(results["rows"], Json::parse(R"([["pp16", 2621440, 2360000, "many"],
                                             ["pp16", 1048576, 1500000000, "many"]])"));
  EXPECT_EQ(results["columns"][1]["unit"], "B");
}

TEST(PageOfObserved, NeverShowsAPlaceUnlessAsked) {
  observed::Observed observed = two_ops();
  auto& context = observed.context;
  context.places = {"/home/me/models/tiny.gguf", "box17", "C:\\work\\run.exe", "/srv/traces/"};
  context.model = "/home/me/models/tiny.gguf";
  context.device = "GPU of box17";
  context.command =
      "/opt/engine/llama-bench -m /home/me/models/tiny.gguf -p tell me my secret -n 8 --api-key "
      "key-one";
  context.facts = {{"system_prompt", "be nice to Ann"},
                   {"host_name", "box17"},
                   {"loaded from", "/srv/traces/x and C:\\work\\run.exe"},
                   {"n_prompt", "16"}};
  observed.warnings = {"/home/me/models/tiny.gguf is cut", "see /var/lib/x/y.log"};
  observed.errors = {"cannot open /srv/traces/"};
  observed.ops[0].op = "load box17:/home/me/models/tiny.gguf";
  observed.ops[1].op = "box17_kernel";
  observed::ObservedCounter counter;
  counter.name = "requests{host=\"box17\"}";
  counter.points = {{std::nullopt, 3}};
  observed.counters = {counter};

  observed::ObservedMoments moments;
  moments.rows = {{"run box17", "cpu_op", "1 box17"}};
  moments.tracks = {{"python /home/me/run.py", "box17"}};
  moments.spans = {{1, 1, 0, 0, false}};

  const std::string hidden = observed_page(observed, &moments, {"t", {}, {}, {}}).html_scripts() +
                             observed_page(observed, nullptr, {"t", {}, {}, {}}).html_scripts();
  for (const char* text :
       {"/home", "models/", "/srv", "/var", "/opt", "C:", "my secret", "to Ann", "key-one"}) {
    EXPECT_THAT(hidden, Not(HasSubstr(text)));
  }
  for (std::size_t at = 0; (at = hidden.find("box17", at)) != std::string::npos; ++at) {
    EXPECT_EQ(hidden.substr(at, 12), "box17_kernel") << "a word of its own only";
  }
  EXPECT_THAT(hidden, HasSubstr("GPU of (hidden)"));
  EXPECT_THAT(hidden,
              HasSubstr("llama-bench -m tiny.gguf -p \\u003c17 bytes\\u003e -n 8 --api-key ***"));
  EXPECT_THAT(hidden, HasSubstr("[\"n_prompt\",\"16\"]"));

  const std::string shown =
      observed_page(observed, nullptr, {}, {PrivateWords::shown, observed::GroupBy::kernel})
          .html_scripts();
  for (const char* text : {"/home/me/models/tiny.gguf", "GPU of box17", "be nice to Ann",
                           "tell me my secret", "/srv/traces/x"}) {
    EXPECT_THAT(shown, HasSubstr(text));
  }
  EXPECT_THAT(shown, Not(HasSubstr("key-one"))) << "keys are never shown";
}

TEST(PageOfObserved, HidesPlacesThatNobodyNamed) {
  observed::Observed observed = two_ops();
  observed.ops[0].op = "/home/ann/proj/train.py(12): forward";
  observed.ops[1].op = "/sources/x/<frozen importlib>(3): load";
  observed.ops[1].category = "python_function";
  observed.warnings = {"cannot open C:\\Users\\ann\\f.gguf", "cannot open \\\\nas\\ann\\g.gguf"};
  observed::ObservedCounter counter;
  counter.name = "kv{path=\"/home/ann/secretdir/m.gguf\"}";
  counter.track = "python /home/ann/run.py --api-key XYZ";
  counter.points = {{std::nullopt, 3}};
  observed.counters = {counter};
  observed::ObservedMoments moments;
  moments.rows = {{"/home/ann/proj/train.py(12): forward", "cpu_op", "/home/ann/x"},
                  {"/sources/x/y(3)", "python_function", ""}};
  moments.tracks = {{"python /home/ann/run.py --api-key XYZ", "D:\\ann\\thread"}};
  moments.spans = {{1, 1, 0, 0, false}, {2, 1, 1, 0, false}};
  const std::string hidden = observed_page(observed, &moments, {}).html_scripts() +
                             observed_page(observed, nullptr, {}).html_scripts();
  for (const char* text : {"/home", "Users", "nas", "/sources", "XYZ", "secretdir"}) {
    EXPECT_THAT(hidden, Not(HasSubstr(text)));
  }
  EXPECT_THAT(hidden, HasSubstr("train.py(12): forward"));
  EXPECT_THAT(hidden, HasSubstr("python run.py --api-key ***"));
  const std::string shown =
      observed_page(observed, &moments, {}, {PrivateWords::shown, observed::GroupBy::kernel})
          .html_scripts();
  EXPECT_THAT(shown, HasSubstr("/home/ann/run.py"));
  EXPECT_THAT(shown, Not(HasSubstr("XYZ"))) << "keys are never shown";
}

TEST(PageOfObserved, HidesFactsByWhatTheyAreOf) {
  observed::Observed observed = two_ops();
  const std::vector<std::string> secrets = {"password", "auth", "passphrase", "hf_token",
                                            "api_key"};
  const std::vector<std::string> personal = {"messages", "input",    "cwd",  "email",
                                             "home",     "question", "user", "hostname"};
  for (const auto& name : secrets) observed.context.facts[name] = "4711";
  for (const auto& name : personal) observed.context.facts[name] = "of Ann";
  observed.context.facts["n_tokens"] = "4712";
  observed.context.facts["key_length"] = "4713";
  for (const PrivateWords how : {PrivateWords::hidden, PrivateWords::shown}) {
    const std::string data =
        observed_page(observed, nullptr, {}, {how, observed::GroupBy::kernel}).html_scripts();
    EXPECT_THAT(data, Not(HasSubstr("4711"))) << "a secret may be a number";
    EXPECT_EQ(data.find("of Ann") != data.npos, how == PrivateWords::shown);
    for (const char* number : {"4712", "4713"}) EXPECT_THAT(data, HasSubstr(number));
  }
}

TEST(WithoutPrivate, IsReadBackAndHoldsNoPlaces) {
  observed::Observed observed = two_ops();
  observed.context.places = {"/home/me/models/tiny.gguf", "box17"};
  observed.context.model = "/home/me/models/tiny.gguf";
  observed.context.facts = {{"cwd", "/home/me"}, {"n_prompt", "16"}};
  observed.warnings = {"box17 was slow"};
  observed.splits.push_back({0, 0, "CPU", 1, {{"box17/x", 1}}});
  const std::string hidden = write_fields(without_private(observed, PrivateWords::hidden)).dump();
  for (const char* text : {"/home", "box17", "cwd", "places"}) {
    EXPECT_THAT(hidden, Not(HasSubstr(text)));
  }
  const auto again = read_fields<observed::Observed>(Json::parse(hidden), "observed");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->context.model, "tiny.gguf");
  EXPECT_EQ(*again, without_private(observed, PrivateWords::hidden));
  EXPECT_EQ(without_private(observed, PrivateWords::shown), observed);
}

TEST(PageOfObserved, HasTracksWhereItIsKnownWhenThingsTookPlace) {
  observed::Observed observed = two_ops();
  observed::ObservedCounter memory;
  memory.name = "memory";
  memory.track = "python";
  memory.points = {{1.7e9, 1}, {1.7e9 + 1, 2}};
  observed.counters = {memory};
  observed::ObservedMoments moments;
  moments.rows = {{"gemv", "kernel", "4x4"}, {"request", "async", ""}, {"aten::mm", "cpu_op", ""}};
  moments.tracks = {{"python", "thread 1"}, {"GPU", "stream 7"}};
  const double at = 1.7e9;  // seconds since 1970: beyond a page's clock
  moments.spans = {{at, 0.5, 2, 0, false},
                   {at, 2, 1, 0, true},
                   {at + 1, 2, 1, 0, true},
                   {at + 0.25, 1, 0, 1, false}};
  moments.left_out = 3;
  const Json head = read_head(observed_page(observed, &moments, {}));
  std::map<std::string, std::pair<std::string, int>> tracks;
  for (const Json& track : head["tracks"]) {
    tracks[track["name"]] = {track["kind"], track["events"]};
  }
  using KindAndEvents = std::pair<std::string, int>;
  EXPECT_EQ(tracks["thread 1"], KindAndEvents("cpu", 1));
  EXPECT_EQ(tracks["thread 1, overlapping"], KindAndEvents("async", 2));
  EXPECT_EQ(tracks["stream 7"], KindAndEvents("device", 1));
  EXPECT_EQ(tracks["memory"], KindAndEvents("counter", 0));
  EXPECT_EQ(head["processes"], Json::parse(R"(["python", "GPU"])"));
  EXPECT_EQ(head["counters"][0]["at"], Json::parse("[0, 1000000000]"));
  EXPECT_EQ(head["warnings"], Json::parse(R"(["3 events left out: more than a page can show"])"));
  for (const Json& entry : head["tables"]) EXPECT_NE(entry["title"], "Counters");
}

TEST(PageOfObserved, IsInertWhateverNamesAre) {
  observed::Observed observed = two_ops();
  observed.ops[0].op = "</script><!-- \u202e\x1b[31m";
  const std::string data = observed_page(observed, nullptr, {}).html_scripts();
  EXPECT_THAT(data, Not(HasSubstr("</script><!--")));
  EXPECT_THAT(data, Not(HasSubstr("\x1b")));
}

}  // namespace observed_page_test
}  // namespace weir::report
