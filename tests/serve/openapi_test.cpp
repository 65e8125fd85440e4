// Tests the OpenAPI description: every status of every path occurs, and no answer lacks one.
#include <map>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>
#pragma GCC diagnostic pop

#include "gate/history/json_lines.hpp"
#include "gate/serve/service.hpp"
#include "gate/serve/uploads.hpp"

#include "tests/serve/support.hpp"

namespace weir::serve {
namespace openapi_test {

// Returns how `document` violates a schema of the description; "" if it does not.
std::string complaint(const Json& description, Json schema, const Json& document) {
  schema["components"] = description["components"];  // the target of its references
  valijson::Schema compiled;
  valijson::SchemaParser(valijson::SchemaParser::kDraft7)
      .populateSchema(valijson::adapters::NlohmannJsonAdapter(schema), compiled);
  valijson::ValidationResults results;
  valijson::Validator validator;
  const valijson::adapters::NlohmannJsonAdapter target(document);
  if (validator.validate(compiled, target, &results)) return "";
  valijson::ValidationResults::Error error;
  std::string out = "refused";
  while (results.popError(error)) {
    out += "\n";
    for (const std::string& part : error.context) out += part;
    out += " " + error.description;
  }
  return out;
}

class Description : public ServiceTest {
 protected:
  // Returns the path of the description that matches a real one.
  static std::string described(const std::string& path) {
    if (path.starts_with("/badge/")) return "/badge/{project}.svg";
    if (path.starts_with("/api/v1/runs/")) return "/api/v1/runs/{run}";
    if (path == "/" || path.starts_with("/data/") || path.starts_with("/assets/")) return "/{page}";
    return path;
  }
  // Sends a request and checks the answer by the description of its path, method and status.
  void hold(Service& service, const ClientRequest& request) {
    const Reply reply = ask(service, request);
    const std::string path = described(request.target.substr(0, request.target.find('?')));
    std::string method = "get";
    if (request.method == Method::post) method = "post";
    if (request.method == Method::remove) method = "delete";
    const std::string status = std::to_string(reply.status);
    const std::string where = method + " " + request.target + " " + status;
    covered_.insert(method + " " + path + " " + status);
    ASSERT_TRUE(description_["paths"].contains(path)) << where;
    const Json& operation = description_["paths"][path];
    ASSERT_TRUE(operation.contains(method)) << where;
    const Json& responses = operation[method]["responses"];
    ASSERT_TRUE(responses.contains(status)) << where << "\n" << reply.body;
    const Json& response = responses[status];
    if (!response.contains("content")) {
      EXPECT_EQ(reply.body, "") << where;
      return;
    }
    const std::string type = reply.type.substr(0, reply.type.find(';'));
    ASSERT_TRUE(response["content"].contains(type)) << where << " " << type;
    if (type == "application/json") {
      EXPECT_EQ(
          complaint(description_, response["content"][type]["schema"], Json::parse(reply.body)), "")
          << where << "\n"
          << reply.body;
    }
    if (reply.status == 503 || reply.status == 429) {
      EXPECT_TRUE(path == "/healthz" || !reply.header("Retry-After").empty()) << where;
    }
    if (reply.status == 401) {
      EXPECT_NE(reply.header("WWW-Authenticate"), "") << where;
    }
  }

  const Json description_ = Json::parse(openapi_text());
  std::set<std::string> covered_;
};

// Builds some points, places, changes and verdicts.
history::Batch make_batch() {
  history::Batch batch;
  for (int i = 0; i < 6; ++i) {
    history::Run run =
        history::run_at("r" + std::to_string(i), 1000 + i,
                        {history::count_point("e/m/b/p", *Rational::make(i < 3 ? 131 : 163, 2)),
                         history::time_point("e/m/b/p", 10 + i, {10.0 + i, 11.0})},
                        std::string(40, static_cast<char>('a' + i)));
    run.facts.branch = "main";
    run.facts.dirty = i == 5;
    run.points[0].place = {"vulkan-1", "Device", "mc", "Machine", "b1"};
    batch.runs.push_back(run);
    batch.verdicts.push_back(history::verdict_at(run.facts.id, 1000 + i, "pass"));
  }
  return batch;
}

TEST_F(Description, HasEveryAnswerAndEveryAnswerIsSeen) {
  value_of(store()->history().add(make_batch()));
  std::filesystem::create_directories(folder_ / "web/assets");
  value_of(sys::RealFiles().write_atomic(folder_ / "web/index.html", "<!doctype html>"));
  const std::string reader = token("*", "read"), narrow = token("other", "read"),
                    uploader = token("*", "upload"), remover = token("*", "delete"),
                    supersedes = token("*", "upload delete");
  ServiceOptions wanted = options();
  wanted.pages.folder = folder_ / "web";
  wanted.quota.bytes = 100'000;
  wanted.access.uploads = {.burst = 8, .a_second = 0.0001};
  wanted.access.refusals = {.burst = 8, .a_second = 0.0001};
  const auto service = start(std::move(wanted));
  // Until the first snapshot of the pages, even a missing file is answered 503.
  while (ask(*service, {Method::get, "/data/overview.js", reader}).status == 503) {
    std::this_thread::yield();
  }

  const std::map<std::string, std::string> good{
      {"/api/v1/series", "?project=default&samples=1"},
      {"/api/v1/changes", "?project=default"},
      {"/api/v1/verdicts", "?project=default&full=1&limit=2"},
      {"/api/v1/projects", ""},
      {"/badge/default.svg", "?cell=*"},
      {"/metrics", ""},
      {"/", ""},
  };
  for (const auto& [path, query] : good) {
    const bool plain = path == "/metrics" || path.starts_with("/badge/");
    hold(*service, {Method::get, path + query, reader});
    if (!plain) {
      hold(*service, {Method::get, path + query, reader, "", "", {{"if-none-match", "*"}}});
    }
    if (path != "/metrics" && path != "/") {
      hold(*service, {Method::get, path + "?what=ever", reader});
    }
    hold(*service, {Method::get, path + query});
    hold(*service, {Method::get, path + query, path == "/api/v1/projects" ? uploader : narrow});
  }
  hold(*service, {Method::get, "/data/nothing.js", reader});
  hold(*service, {Method::get, "/data/overview.js", reader});
  hold(*service, {Method::get, "/healthz"});
  hold(*service, {Method::get, "/api/v1/openapi.json"});
  hold(*service, {Method::get, "/api/v1/openapi.json", "", "", "", {{"if-none-match", "*"}}});

  const std::string runs = "/api/v1/runs";
  ClientRequest upload = make_upload(uploader, profiles_text(65));
  upload.headers = {{"idempotency-key", "one"}};
  hold(*service, upload);                                          // 201
  hold(*service, make_upload(uploader, profiles_text(65)));        // 200
  hold(*service, make_upload(uploader, "{}", runs + "?comit=1"));  // 400
  hold(*service, make_upload("", "{}"));                           // 401
  hold(*service, make_upload(reader, "{}"));                       // 403
  upload.type = "text/plain";
  hold(*service, upload);                       // 415
  hold(*service, make_upload(uploader, "{}"));  // 422
  {
    ClientRequest large = make_upload(uploader, "");
    large.body.assign(k_max_upload_bytes + 1, ' ');
    hold(*service, large);  // 413
  }
  hold(*service, make_upload(supersedes, profiles_text(66), runs + "?supersedes=r0"));  // 201
  {
    const history::Run run = history::run_at(
        "large", 1, {history::time_point("a", 1, std::vector<double>(16'000, 1.0 / 3))});
    ClientRequest large =
        make_upload(uploader, history::first_line() + "\n" + history::line_of(run) + "\n");
    large.type = "application/x-ndjson";
    hold(*service, large);  // 507
  }
  hold(*service, {Method::remove, runs + "/r1", remover});                  // 200
  hold(*service, {Method::remove, runs + "/r1?projekt=default", remover});  // 400
  hold(*service, {Method::remove, runs + "/r1"});                           // 401
  hold(*service, {Method::remove, runs + "/r1", uploader});                 // 403
  for (int i = 0; i < 8; ++i) (void)ask(*service, make_upload(uploader, "{}"));
  hold(*service, make_upload(uploader, "{}"));  // 429

  // One peer sends many invalid tokens.
  for (int i = 0; i < 8; ++i) (void)ask(*service, {Method::get, "/metrics", "weir_none"});
  for (const auto& [path, query] : good) hold(*service, {Method::get, path + query, "weir_none"});
  hold(*service, {Method::remove, runs + "/r1", "weir_none"});

  service->stop();
  for (const auto& [path, query] : good) hold(*service, {Method::get, path + query, reader});
  hold(*service, {Method::get, "/data/nothing.js", reader});
  hold(*service, {Method::get, "/healthz"});
  hold(*service, make_upload(token("*", "upload"), "{}"));
  hold(*service, {Method::remove, runs + "/r1", remover});

  std::set<std::string> all;
  for (const auto& [path, operations] : description_["paths"].items()) {
    for (const auto& [method, operation] : operations.items()) {
      for (const auto& [status, response] : operation["responses"].items()) {
        all.insert(method + " " + path + " " + status);
      }
    }
  }
  EXPECT_THAT(covered_, testing::ContainerEq(all));
}

// Tests the validator of the other tests: it follows references, and refuses.
TEST_F(Description, RefusesWhatItDoesNotDescribe) {
  const Json error{{"$ref", "#/components/schemas/Error"}};
  EXPECT_EQ(complaint(description_, error, {{"error", {{"code", "a"}, {"message", "b"}}}}), "");
  EXPECT_NE(complaint(description_, error, {{"error", {{"code", "a"}}}}), "");
  EXPECT_NE(complaint(description_, error, {{"error", {{"code", "a"}, {"message", 7}}}}), "");
  EXPECT_NE(complaint(description_, error, Json::object()), "");
}

// The program and the description name the same parameters.
TEST_F(Description, HasEveryParameterThatIsTaken) {
  const auto service = start(true);
  for (const std::string& path :
       std::vector<std::string>{"series", "changes", "verdicts", "projects"}) {
    std::set<std::string> named;
    const std::string address = "/api/v1/" + path;
    const Json& get = description_["paths"][address]["get"];
    for (const Json& parameter : get.value("parameters", Json::array()))
      named.insert(parameter["name"]);
    for (const char* name : {"project", "cell", "metric", "machine", "branch", "since", "until",
                             "limit", "cursor", "samples", "all", "full", "commit"}) {
      const Reply reply = ask(*service, {Method::get, address + "?" + name + "=x"});
      const bool unknown = reply.body.find("unknown parameter") != std::string::npos;
      EXPECT_NE(unknown, named.contains(name)) << path << " " << name;
    }
  }
}

}  // namespace openapi_test
}  // namespace weir::serve
