// Every way in which servers go wrong ends as a fault of its own name, and takes no other request
// with it. Through libcurl, on a server that does it.
#include <set>

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "tests/load/scene.hpp"
#include "tests/support/eventually.hpp"

namespace weir::load {
namespace misbehaviour_test {

using namespace tests;
using profile::ServedFault;
using profile::ServedRequest;
using End = Script::End;

struct Wrong {
  const char* what;
  Script script;
  const char* fault;
  const char* words = "";  // words that its detail contains
  int status = 0;
};

// The part before it goes wrong: a header and two tokens.
std::string first_half() {
  const scripts::Words words = scripts::completions(4);
  return scripts::head() + scripts::chunk(words.tokens[0]) + scripts::chunk(words.tokens[1]);
}

std::string chunked(const std::string& body) {
  return scripts::head() + scripts::chunk(body) + scripts::last_chunk();
}

Script endless(const std::string& piece, int times) {
  Script script;
  script.steps.push_back({0, scripts::head()});
  std::string many;
  for (int i = 0; i < 100; ++i) many += scripts::chunk(piece);
  for (int i = 0; i < times; ++i) script.steps.push_back({0.001 * i, many});
  script.end = End::hang;
  return script;
}

// A keep-alive each 20 ms for a minute.
Script keep_alive_script() {
  Script script;
  script.steps.push_back({0, first_half()});
  for (int i = 1; i < 3000; ++i) script.steps.push_back({0.02 * i, scripts::chunk(": ping\n\n")});
  return script;
}

std::vector<Wrong> misbehaviours() {
  const scripts::Words words = scripts::completions(4);
  const std::string half = words.tokens[2].substr(0, words.tokens[2].size() / 2);
  const std::string all_tokens =
      words.tokens[0] + words.tokens[1] + words.tokens[2] + words.tokens[3];
  const std::string error =
      scripts::event(R"({"error":{"code":500,"message":"out of memory","type":"server_error"}})");
  return {
      {"closed without a word", scripts::once("", End::close), "cut_off"},
      {"closed amid the header", scripts::once("HTTP/1.1 200 OK\r\nContent-", End::close),
       "cut_off"},
      {"never answers", scripts::once("", End::hang), "timeout_headers"},
      {"a header a byte at a time, too slow", scripts::in_pieces(first_half(), 1, 0.1),
       "timeout_headers"},
      {"a header and no more", scripts::once(scripts::head(), End::hang), "timeout_token",
       "no token within"},
      {"stops amid the stream", scripts::once(first_half(), End::hang), "timeout_token", "after 2"},
      {"keep-alives without an end", keep_alive_script(), "timeout_token", "after 2"},
      {"dies amid the stream", scripts::once(first_half(), End::close), "cut_off"},
      {"is killed amid the stream", scripts::once(first_half(), End::reset), "cut_off"},
      {"dies amid an event", scripts::once(first_half() + scripts::chunk(half), End::close),
       "cut_off"},
      {"half an event, and the answer's end", scripts::once(chunked(words.tokens[0] + half)),
       "unfinished", "in the middle of an event"},
      {"no [DONE]", scripts::once(chunked(all_tokens + words.end[0])), "unfinished"},
      {"no [DONE], and the connection stays open",
       scripts::once(first_half() + scripts::chunk(words.tokens[2] + words.tokens[3]), End::hang),
       "timeout_token", "after 4"},
      {"[DONE] and no token", scripts::once(chunked(words.end[0] + words.end[1])), "no_token"},
      {"an empty answer", scripts::once(chunked(": nothing\n\n")), "unfinished"},
      {"one JSON instead of a stream",
       scripts::refusal("200 OK", R"({"choices":[{"text":"t0 t1 t2 t3 "}]})"), "bad_content_type",
       "application/json", 200},
      {"a page", scripts::once(scripts::head("text/html") + scripts::last_chunk()),
       "bad_content_type", "text/html", 200},
      {"no type", scripts::once(scripts::head("") + scripts::last_chunk()), "bad_content_type", "",
       200},
      {"429",
       scripts::refusal("429 Too Many Requests", R"({"error":{"message":"slow down"}})",
                        {"Retry-After: 1"}),
       "too_many_requests", "slow down", 429},
      {"500", scripts::refusal("500 Internal Server Error", R"({"error":"no \u001b[31mmemory"})"),
       "status", "no memory", 500},
      {"503 while it loads",
       scripts::refusal("503 Service Unavailable",
                        R"({"error":{"code":503,"message":"Loading model"}})"),
       "status", "Loading model", 503},
      {"400 without words", scripts::refusal("400 Bad Request", ""), "status", "", 400},
      {"404, and its body never ends",
       scripts::once("HTTP/1.1 404 Not Found\r\nContent-Length: 100\r\n\r\nno such path",
                     End::hang),
       "status", "no such path", 404},
      {"a redirect",
       scripts::refusal("307 Temporary Redirect", "", {"Location: http://127.0.0.1:1/other"}),
       "redirected", "http://127.0.0.1:1/other", 307},
      {"an error in the stream", scripts::once(first_half() + scripts::chunk(error), End::hang),
       "server_error", "out of memory"},
      {"an event of type error",
       scripts::once(
           first_half() + scripts::chunk("event: error\ndata: {\"message\":\"gone\"}\n\n"),
           End::hang),
       "server_error", "gone"},
      {"an event that is no JSON",
       scripts::once(first_half() + scripts::chunk(scripts::event("{\"choices\":")), End::hang),
       "bad_event"},
      {"an event of another API",
       scripts::once(first_half() + scripts::chunk(scripts::event(R"({"response":"t2"})")),
                     End::hang),
       "bad_event", "choices"},
      {"JSON without an end of lists",
       scripts::once(first_half() + scripts::chunk(scripts::event(std::string(100'000, '['))),
                     End::hang),
       "bad_event"},
      {"tokens without an end", endless(words.tokens[0], 1000), "too_long", "4 were asked for"},
      {"comments without an end", endless(": " + std::string(1000, 'x') + "\n", 1000), "too_long",
       "bytes"},
      {"a text without an end",
       endless(scripts::event(R"({"choices":[{"text":")" + std::string(30'000, 'x') + "\"}]}"), 10),
       "too_long", "bytes of text"},
      {"a line without an end", endless(std::string(1000, 'x'), 1000), "too_long", "bytes"},
      {"gzip",
       scripts::once(scripts::head(scripts::k_event_stream,
                                   {"Content-Encoding: gzip", "Transfer-Encoding: chunked"}) +
                     scripts::chunk("\x1f\x8b\x08") + scripts::last_chunk()),
       "encoded", "gzip", 200},
      {"no HTTP", scripts::once("SSH-2.0-OpenSSH_9.2\r\n", End::close), "bad_http"},
      {"a chunk of no size", scripts::once(first_half() + "xyz\r\n", End::hang), "bad_http"},
      {"a header without an end",
       scripts::once("HTTP/1.1 200 OK\r\n" +
                     [] {
                       std::string lines;
                       for (int i = 0; i < 20'000; ++i) lines += "X-More: and more\r\n";
                       return lines;
                     }()),
       "bad_http"},
  };
}

TEST(Misbehaviour, EndsAsAFaultOfItsOwnName) {
  for (const Wrong& wrong : misbehaviours()) {
    StreamServer server([&](const ReceivedPost&) { return wrong.script; });
    LoadPlan plan = plan_for(server.url());
    // Only the limit that shall end it is short: a busy machine may well stand still for so long.
    if (std::string_view(wrong.fault) == "timeout_headers") plan.limits.header_seconds = 0.3;
    if (std::string_view(wrong.fault) == "timeout_token") {
      plan.limits.first_token_seconds = plan.limits.next_token_seconds = 0.3;
    }
    const Load load = drive_for_real(plan);
    ASSERT_EQ(load.requests.size(), 1U) << wrong.what;
    const ServedRequest& request = load.requests.front();
    EXPECT_EQ(outcome(request), wrong.fault) << wrong.what << ": " << failure_text(request);
    EXPECT_NE(failure_text(request).find(wrong.words), std::string::npos)
        << wrong.what << ": " << failure_text(request);
    EXPECT_EQ(request.failure.value_or(profile::ServedFailure{}).status, wrong.status)
        << wrong.what;
    EXPECT_EQ(server.requests(), 1) << wrong.what << ": nothing is sent twice";
  }
}

// Leaves out misbehaviour that ends by a limit on time: a short one, on a busy machine, would also
// end others (load_test.cpp has it, in virtual time).
TEST(Misbehaviour, OfOneRequestLeavesTheOthersWhole) {
  std::vector<Wrong> all = misbehaviours();
  std::erase_if(all, [](const Wrong& wrong) {
    return std::string_view(wrong.fault).substr(0, 7) == "timeout";
  });
  // Every other request is answered well; of the rest each goes wrong in the next way.
  std::multiset<std::string> wanted, got;
  StreamServer server([&](const ReceivedPost& post) {
    const auto odd = static_cast<std::size_t>(post.number / 2);
    return post.number % 2 == 0 ? scripts::well(scripts::completions(4), 0.01, 0.002)
                                : all[odd % all.size()].script;
  });
  LoadPlan plan = plan_for(server.url());
  plan.requests = static_cast<std::int64_t>(2 * all.size());
  plan.loop = ClosedLoop{.concurrency = 8};
  for (const Wrong& wrong : all) {
    wanted.insert(wrong.fault);
    wanted.insert("whole");
  }
  for (const auto& request : drive_for_real(plan).requests) got.insert(outcome(request));
  EXPECT_EQ(got, wanted);
}

TEST(Misbehaviour, NobodyListens) {
  std::string url;
  {
    StreamServer server([](const ReceivedPost&) { return Script{}; });
    url = server.url();
  }
  LoadPlan plan = plan_for(url);
  plan.requests = 3;
  const Load load = drive_for_real(plan);
  ASSERT_EQ(load.requests.size(), 3U);
  for (const auto& request : load.requests) EXPECT_EQ(outcome(request), "refused");
}

TEST(Misbehaviour, ConnectionsThatAreTakenAndClosed) {
  StreamServer server([](const ReceivedPost&) { return Script{}; });
  server.die();
  EXPECT_EQ(outcome(drive_for_real(plan_for(server.url())).requests.at(0)), "cut_off");
}

TEST(Misbehaviour, ANameThatIsNone) {
  EXPECT_EQ(outcome(drive_for_real(plan_for("http://weir.invalid:80")).requests.at(0)),
            "no_connection");
}

TEST(Misbehaviour, AHandshakeThatBreaksOff) {
  StreamServer server([](const ReceivedPost&) { return Script{}; });
  server.die();
  const std::string url = "https" + server.url().substr(4);
  EXPECT_EQ(outcome(drive_for_real(plan_for(url)).requests.at(0)), "tls");
}

// libcurl by itself would send it again, on a new connection.
TEST(Misbehaviour, ARequestOnAKeptConnectionThatDiesIsNotSentAgain) {
  StreamServer server([](const ReceivedPost& post) {
    return post.number == 1 ? scripts::once("", End::close)
                            : scripts::well(scripts::completions(4));
  });
  LoadPlan plan = plan_for(server.url());
  plan.requests = 3;
  const Load load = drive_for_real(plan);
  ASSERT_EQ(load.requests.size(), 3U);
  EXPECT_EQ(outcome(load.requests[0]), "whole");
  EXPECT_EQ(outcome(load.requests[1]), "cut_off") << failure_text(load.requests[1]);
  EXPECT_EQ(outcome(load.requests[2]), "whole") << failure_text(load.requests[2]);
  EXPECT_EQ(server.requests(), 3);
}

TEST(Misbehaviour, AnAuthorizationOfTwoLinesIsNotSent) {
  StreamServer server([](const ReceivedPost&) { return Script{}; });
  LoadPlan plan = plan_for(server.url());
  plan.token = Secret("a\r\nX-More: b");
  EXPECT_EQ(outcome(drive_for_real(plan).requests.at(0)), "invalid_request");
  EXPECT_EQ(server.connections(), 0);
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (folder != nullptr && readdir(folder) != nullptr) ++count;
  if (folder != nullptr) closedir(folder);
  return count;
}

TEST(Misbehaviour, AThousandRequestsLeaveNoDescriptorAndNoProcess) {
  if (open_descriptors() == 0) GTEST_SKIP() << "no /proc/self/fd here";
  const std::vector<Wrong> all = misbehaviours();
  std::vector<Script> quick;  // scripts that end without a limit
  for (const Wrong& wrong : all) {
    if (std::string_view(wrong.fault).substr(0, 7) != "timeout" && wrong.script.end != End::hang) {
      quick.push_back(wrong.script);
    }
  }
  ASSERT_GT(quick.size(), 10U);
  StreamServer server([&](const ReceivedPost& post) {
    const auto number = static_cast<std::size_t>(post.number);
    return number % 2 == 0 ? scripts::well(scripts::completions(4)) : quick[number % quick.size()];
  });
  LoadPlan plan = plan_for(server.url());
  drive_for_real(plan);  // opens the descriptors that libcurl keeps
  const std::size_t before = open_descriptors();
  plan.requests = 1000;
  plan.loop = ClosedLoop{.concurrency = 16};
  plan.limits.load_seconds = 600;
  const Load load = drive_for_real(plan);
  EXPECT_EQ(load.requests.size(), 1000U);
  // The server's own ends of closed connections may live a little longer than ours.
  EXPECT_TRUE(tests::eventually([&] { return open_descriptors() <= before; }));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child process";
}

}  // namespace misbehaviour_test
}  // namespace weir::load
