// Each sample in another form of the same (encodings, order of members, unknown members) gives the
// same numbers. One that lacks what its format needs gives fewer only with a warning, a count of
// parts that were not read, or an error.
#include <gmock/gmock.h>

#include "gate/adapters/format.hpp"
#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"

#include "tests/adapters/read_data.hpp"
#include "tests/adapters/samples.hpp"

namespace weir::adapters {
namespace changed_form_test {

using Numbers = std::multiset<std::string>;

// Returns the numbers of an Observed as text; facts are none.
Numbers numbers_of(const Observed& observed) {
  Numbers numbers;
  const auto add = [&](std::string_view kind, const std::optional<double>& value) {
    if (value) numbers.insert(fmt::format("{} {:.12g}", kind, *value));
  };
  const auto add_timing = [&](const ObservedTiming& timing) {
    for (const double sample : timing.samples) add(timing.metric.name, sample);
    add(timing.metric.name, timing.mean);
  };
  for (const auto& timing : observed.timings) add_timing(timing);
  for (const auto& latency : observed.latencies) add(latency.metric.name, latency.seconds);
  for (const auto& test : observed.cases) {
    for (const auto& timing : test.timings) add_timing(timing);
    for (const auto& latency : test.latencies) add(latency.metric.name, latency.seconds);
  }
  for (const auto& count : observed.counts) {
    for (const auto value : count.values) add(count.metric.name, static_cast<double>(value));
  }
  for (const auto& op : observed.ops) {
    add("seconds", op.seconds);
    add("calls", static_cast<double>(op.calls.value_or(0)));
  }
  for (const auto& buffer : observed.buffers) add("buffer", buffer.seconds);
  for (const auto& split : observed.splits) add("split", static_cast<double>(split.inputs.size()));
  for (const auto& counter : observed.counters) {
    for (const auto& point : counter.points) add(counter.name, point.value);
  }
  return numbers;
}

std::string utf16(std::string_view text, bool big_endian) {
  std::string result;
  const auto add = [&](char32_t unit) {
    const auto low = static_cast<char>(unit & 0xFF), high = static_cast<char>(unit >> 8);
    result += big_endian ? high : low;
    result += big_endian ? low : high;
  };
  add(0xFEFF);
  for (std::size_t at = 0; at < text.size();) {
    const char32_t point = text::next_code_point(text, at);
    if (point >= 0x10000) {
      add(0xD800 + ((point - 0x10000) >> 10));
      add(0xDC00 + ((point - 0x10000) & 0x3FF));
    } else {
      add(point);
    }
  }
  return result;
}

std::string text_of(const char* name) { return *name == '\0' ? "" : read_data(name); }

TEST(ChangedForm, IsReadAlikeInEachEncoding) {
  for (const SampleFile& sample : samples()) {
    if (*sample.format == '\0') continue;
    const std::string out = text_of(sample.out), err = text_of(sample.err);
    const auto plain = read_any({out, err});
    ASSERT_TRUE(plain) << sample.name;
    const auto expect_same = [&](const std::string& out_coded, const std::string& err_coded) {
      const auto read = read_any({out_coded, err_coded});
      ASSERT_TRUE(read) << sample.name << ": " << read.error().message;
      EXPECT_EQ(dump_json(write_fields(*read), 1), dump_json(write_fields(*plain), 1))
          << sample.name;
    };
    if (std::string(sample.name).find("cp1252") != std::string::npos) continue;  // is no UTF-8
    expect_same(out.empty() ? out : utf16(out, false), err.empty() ? err : utf16(err, false));
    expect_same(out.empty() ? out : utf16(out, true), err.empty() ? err : utf16(err, true));
    expect_same("\xEF\xBB\xBF" + out, "\xEF\xBB\xBF" + err);
  }
}

// Returns the JSON documents of a sample, line by line or the whole; empty if it is no JSON.
std::vector<Json> documents_of(const std::string& text) {
  std::vector<Json> documents;
  if (auto whole = parse_json(text); whole && whole->is_structured()) return {std::move(*whole)};
  for (const std::string& line : text::lines(text)) {
    if (line.empty()) continue;
    auto json = parse_json(line);
    if (!json || !json->is_object()) return {};
    documents.push_back(std::move(*json));
  }
  return documents;
}

std::string lines_of(const std::vector<Json>& documents) {
  std::string text;
  for (const Json& json : documents) text += dump_json(json) + "\n";
  return text;
}

void add_members(Json& json) {
  for (auto& [key, value] : json.items()) {
    if (value.is_structured()) add_members(value);
  }
  if (json.is_object()) json["zz_unknown"] = "new in a later release";
}

// Writes JSON with the members of each object in the order of their names, backwards.
std::string reversed(const Json& json) {
  std::string text;
  if (json.is_object()) {
    for (const auto& [key, value] : json.items())
      text = dump_json(Json(key)) + ":" + reversed(value) + (text.empty() ? "" : ",") + text;
    return "{" + text + "}";
  }
  if (!json.is_array()) return dump_json(json);
  for (const Json& value : json) text += (text.empty() ? "" : ",") + reversed(value);
  return "[" + text + "]";
}

TEST(ChangedForm, OfJsonGivesTheSameNumbersWhateverTheOrderAndUnknownMembers) {
  std::size_t tried = 0;
  for (const SampleFile& sample : samples()) {
    const std::string format = sample.format;
    // weir's own formats refuse what they do not know.
    if (format.empty() || format.starts_with("weir") || *sample.out == '\0') continue;
    const auto documents = documents_of(read_data(sample.out));
    if (documents.empty()) continue;
    ++tried;
    const std::string err = text_of(sample.err);
    const auto plain = read_any({lines_of(documents), err});
    ASSERT_TRUE(plain) << sample.name;
    std::string backwards;
    for (const Json& json : documents) backwards += reversed(json) + "\n";
    const auto other_order = read_any({backwards, err});
    ASSERT_TRUE(other_order) << sample.name << ": " << other_order.error().message;
    EXPECT_EQ(numbers_of(*other_order), numbers_of(*plain)) << sample.name;
    auto more = documents;
    for (Json& json : more) add_members(json);
    const auto longer = read_any({lines_of(more), err});
    ASSERT_TRUE(longer) << sample.name << ": " << longer.error().message;
    EXPECT_EQ(numbers_of(*longer), numbers_of(*plain)) << sample.name;
  }
  EXPECT_GT(tried, 12U);
}

// Removes each member `name`, at any depth. Returns how many there were.
std::size_t remove_members(Json& json, const std::string& name) {
  std::size_t removed = json.is_object() ? json.erase(name) : 0;
  for (auto& [key, value] : json.items()) {
    if (value.is_structured()) removed += remove_members(value, name);
  }
  return removed;
}

// Returns true if the result has a warning or an error that the plain one lacks.
bool says_more(const Observed& read, const Observed& plain) {
  const auto is_new = [](const std::vector<std::string>& before) {
    return [&](const std::string& text) { return !holds(before, text); };
  };
  return std::ranges::any_of(read.warnings, is_new(plain.warnings)) ||
         std::ranges::any_of(read.errors, is_new(plain.errors));
}

// Members without which a format gives fewer numbers. Others, such as a percentile, may be absent.
const std::map<std::string, std::vector<std::string>> k_required{
    {"llama-bench", {"n_prompt", "n_gen"}},
    {"llama-server", {"predicted_n", "predicted_ms", "timings"}},
    {"ollama", {"eval_count", "eval_duration"}},
    {"google-benchmark", {"name", "real_time", "time_unit"}},
    {"ggml-profiler", {"name", "duration_ns"}},
    {"vllm", {"completed"}},
    {"chrome-trace", {"ph", "ts"}},
};

TEST(ChangedForm, WithoutAMemberThatItsFormatNeedsSaysSo) {
  for (const SampleFile& sample : samples()) {
    const auto* required = look_up(k_required, std::string(sample.format));
    if (required == nullptr || *sample.out == '\0') continue;
    const auto documents = documents_of(read_data(sample.out));
    if (documents.empty()) continue;
    const auto plain = read_any({lines_of(documents), ""});
    ASSERT_TRUE(plain) << sample.name;
    for (const std::string& name : *required) {
      auto fewer = documents;
      std::size_t removed = 0;
      for (Json& json : fewer) removed += remove_members(json, name);
      // Repetitions of Google Benchmark have two names.
      if (name == "name" && std::string_view(sample.format) == "google-benchmark") {
        for (Json& json : fewer) remove_members(json, "run_name");
      }
      if (removed == 0) continue;
      const auto read = read_as(sample.format, {lines_of(fewer), ""});
      if (!read || numbers_of(*read) == numbers_of(*plain)) continue;
      EXPECT_TRUE(says_more(*read, *plain)) << sample.name << " without " << name;
    }
  }
}

// Rows of tables: a part of such a line identifies it.
const std::map<std::string, std::vector<std::string>> k_rows{
    {"llama-bench-table", {"| llama", "| qwen", "| deepseek"}},
    {"vk-perf-logger", {" us = "}},
    {"agave", {"%"}},
    {"hf2q", {"count="}},
    {"mlx-lm", {"Trial "}},
    {"sched-debug", {"node #", "## SPLIT"}},
    {"ggml-profiler-text", {"[OP  ]"}},
    {"test-backend-ops", {" us/run"}},
    {"prometheus", {"_total "}},
    {"google-benchmark-console", {"BM_gemv/", "BM_softmax"}},
    {"nvprof", {"\"GPU activities\"", "%  "}},
    {"sglang-one-batch", {"Prefill. latency", "Decode.  median"}},
    {"torch-benchmark", {"Median: "}},
};

TEST(ChangedForm, WithARowThatCanNotBeReadSaysSo) {
  std::size_t tried = 0;
  for (const SampleFile& sample : samples()) {
    const auto* marks = look_up(k_rows, std::string(sample.format));
    if (marks == nullptr) continue;
    const bool is_err = *sample.out == '\0';
    const std::string text = text_of(is_err ? sample.err : sample.out);
    const auto read_text = [&](const std::string& changed) {
      return is_err ? read_as(sample.format, {"", changed})
                    : read_as(sample.format, {changed, text_of(sample.err)});
    };
    const auto plain = read_text(text);
    if (!plain) continue;  // the other stream has the figures
    const std::vector<std::string> lines = text::lines(text);
    for (std::size_t i = 0; i < lines.size() && i < 400; ++i) {
      const auto holds_mark = [&](const std::string& mark) {
        return lines[i].find(mark) != std::string::npos;
      };
      if (std::ranges::none_of(*marks, holds_mark)) continue;
      auto changed = lines;
      // A word in place of the last numbers of the row.
      const std::size_t digit = changed[i].find_last_of("0123456789");
      if (digit == std::string::npos) continue;
      std::size_t first = digit;
      while (first > 0 && (text::is_digit(changed[i][first - 1]) || changed[i][first - 1] == '.'))
        --first;
      changed[i].replace(first, digit + 1 - first, "many");
      const auto read = read_text(text::join(changed, "\n") + "\n");
      ++tried;
      if (!read) continue;
      if (numbers_of(*read).size() >= numbers_of(*plain).size()) continue;
      EXPECT_TRUE(says_more(*read, *plain)) << sample.name << ": " << changed[i];
    }
  }
  EXPECT_GT(tried, 100U);
}

TEST(ChangedForm, WithLongListsOfRequestsGivesTheSameNumbersOrSaysSo) {
  const struct {
    const char* file;
    const char* format;
    const char* list;
  } cases[] = {{"constructed-vllm.json", "vllm", "itls"},
               {"constructed-aiperf.json", "aiperf", "errors_by_request"},
               {"constructed-guidellm.json", "guidellm", "requests"}};
  for (const auto& c : cases) {
    const std::string text = read_data(c.file);
    const auto plain = read_any({text});
    ASSERT_TRUE(plain) << c.file;
    for (const std::size_t megabytes : {20U, 100U}) {
      std::string changed = text.substr(0, text.rfind('}'));
      changed += fmt::format(", \"{}\": [", c.list);
      changed.reserve(changed.size() + (megabytes << 20) + 100);
      while (changed.size() < megabytes << 20) changed += "[0.0125, 0.0125, 0.0126, 0.0124],\n";
      changed += "[0.0125]]}\n";
      const auto read = read_any({changed});
      if (!read || numbers_of(*read) == numbers_of(*plain)) continue;
      EXPECT_TRUE(says_more(*read, *plain)) << c.file << " of " << megabytes << " MB";
    }
  }
}

}  // namespace changed_form_test
}  // namespace weir::adapters
