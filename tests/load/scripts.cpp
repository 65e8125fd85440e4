// Scripts of answers for the stream server.
#include "tests/load/scripts.hpp"

#include <fmt/format.h>

namespace weir::tests::scripts {
namespace {

std::string token_text(int token) { return fmt::format("t{} ", token); }

}  // namespace

std::string head(std::string_view content_type, const std::vector<std::string>& more,
                 std::string_view status) {
  std::string text = fmt::format("HTTP/1.1 {}\r\n", status);
  if (!content_type.empty()) text += fmt::format("Content-Type: {}\r\n", content_type);
  for (const std::string& line : more) text += line + "\r\n";
  return text + "\r\n";
}

std::string chunk(std::string_view bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

std::string last_chunk(const std::vector<std::string>& trailers) {
  std::string text = "0\r\n";
  for (const std::string& line : trailers) text += line + "\r\n";
  return text + "\r\n";
}

std::string event(std::string_view data) { return fmt::format("data: {}\n\n", data); }

Words completions(int tokens) {
  Words words;
  for (int i = 0; i < tokens; ++i) {
    words.tokens.push_back(event(fmt::format(
        R"({{"id":"c","object":"text_completion","model":"m","choices":[{{"index":0,"text":"{}","finish_reason":{}}}]}})",
        token_text(i), i + 1 == tokens ? "\"length\"" : "null")));
  }
  words.end = {
      event(fmt::format(
          R"({{"id":"c","model":"m","choices":[],"usage":{{"prompt_tokens":5,"completion_tokens":{},"prompt_tokens_details":{{"cached_tokens":0}}}}}})",
          tokens)),
      event("[DONE]")};
  return words;
}

Words chat(int tokens) {
  Words words;
  const auto delta = [](const std::string& json, std::string_view finish = "null") {
    return event(fmt::format(
        R"({{"object":"chat.completion.chunk","choices":[{{"index":0,"finish_reason":{},"delta":{}}}]}})",
        finish, json));
  };
  for (int i = 0; i < tokens; ++i) {
    std::string piece = delta(fmt::format(R"({{"content":"{}"}})", token_text(i)));
    if (i == 0) piece = delta(R"({"role":"assistant","content":null})") + piece;
    words.tokens.push_back(piece);
  }
  words.end = {
      delta("{}", "\"length\""),
      event(fmt::format(
          R"({{"choices":[],"usage":{{"prompt_tokens":5,"completion_tokens":{0}}},"timings":{{"cache_n":0,"prompt_n":5,"prompt_ms":2.5,"predicted_n":{0},"predicted_ms":7.5}}}})",
          tokens)),
      event("[DONE]")};
  return words;
}

Words llama(int tokens) {
  Words words;
  for (int i = 0; i < tokens; ++i) {
    words.tokens.push_back(event(fmt::format(
        R"({{"index":0,"content":"{}","tokens":[{}],"stop":false,"tokens_predicted":{}}})",
        token_text(i), 100 + i, i + 1)));
  }
  words.end = {event(fmt::format(
      R"({{"content":"","tokens":[],"stop":true,"stop_type":"limit","model":"m.gguf","timings":{{"cache_n":0,"prompt_n":5,"prompt_ms":2.5,"predicted_n":{},"predicted_ms":7.5}}}})",
      tokens))};
  return words;
}

Words ollama(int tokens) {
  Words words;
  for (int i = 0; i < tokens; ++i) {
    words.tokens.push_back(
        fmt::format("{{\"model\":\"m\",\"response\":\"{}\",\"done\":false}}\n", token_text(i)));
  }
  words.end = {
      fmt::format("{{\"model\":\"m\",\"response\":\"\",\"done\":true,\"done_reason\":\"length\","
                  "\"prompt_eval_count\":5,\"prompt_eval_duration\":2500000,\"eval_count\":{},"
                  "\"eval_duration\":7500000}}\n",
                  tokens)};
  return words;
}

Script well(const Words& words, double first, double gap, std::string_view content_type) {
  Script script;
  script.steps.push_back({0, head(content_type)});
  double at = first;
  for (const std::string& token : words.tokens) {
    script.steps.push_back({at, chunk(token)});
    at += gap;
  }
  std::string end;
  for (const std::string& last : words.end) end += chunk(last);
  script.steps.push_back({words.tokens.empty() ? at : at - gap, end + last_chunk()});
  return script;
}

Script in_pieces(const std::string& bytes, std::size_t size, double gap) {
  Script script;
  for (std::size_t at = 0, i = 0; at < bytes.size(); at += size, ++i) {
    script.steps.push_back({gap * static_cast<double>(i), bytes.substr(at, size)});
  }
  return script;
}

Script once(std::string bytes, Script::End end) {
  Script script;
  script.steps.push_back({0, std::move(bytes)});
  script.end = end;
  return script;
}

Script refusal(std::string_view status, std::string_view body,
               const std::vector<std::string>& more) {
  std::vector<std::string> lines = more;
  lines.push_back(fmt::format("Content-Length: {}", body.size()));
  return once(head("application/json", lines, status) + std::string(body));
}

}  // namespace weir::tests::scripts
