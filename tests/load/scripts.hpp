// Scripts of a StreamServer: how servers of models answer, well and badly.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/load/stream_server.hpp"

namespace weir::tests::scripts {

inline constexpr std::string_view k_event_stream = "text/event-stream";

// A header of the answer: "HTTP/1.1 200 OK", its type and more lines ("Name: value"), and the end.
std::string head(std::string_view content_type = k_event_stream,
                 const std::vector<std::string>& more = {"Transfer-Encoding: chunked"},
                 std::string_view status = "200 OK");
std::string chunk(std::string_view bytes);  // a chunk of a chunked body
std::string last_chunk(const std::vector<std::string>& trailers = {});
std::string event(std::string_view data);  // "data: …\n\n"

// The words of an API's server: of token i, and at the end. Text of token i is "ti ".
struct Words {
  std::vector<std::string> tokens, end;  // events as they stand on the wire, without chunks
};
Words completions(int tokens);  // as vLLM: the last text with finish_reason, usage, [DONE]
Words chat(int tokens);         // as llama-server: a role first, timings in the end
Words llama(int tokens);
Words ollama(int tokens);  // JSON lines

// All of it well: a token each `gap` seconds, the first after `first`.
Script well(const Words& words, double first = 0, double gap = 0,
            std::string_view content_type = k_event_stream);
// The whole answer's bytes in steps of so many, `gap` seconds apart.
Script in_pieces(const std::string& bytes, std::size_t size, double gap = 0);
// One step.
Script once(std::string bytes, Script::End end = Script::End::keep);
// An answer of another status, with a body of JSON.
Script refusal(std::string_view status, std::string_view body,
               const std::vector<std::string>& more = {});

}  // namespace weir::tests::scripts
