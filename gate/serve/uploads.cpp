#include "gate/serve/uploads.hpp"

#include <algorithm>
#include <set>

#include "gate/base/text.hpp"
#include "gate/history/json_lines.hpp"

namespace weir::serve {
namespace {

Result<ParsedUpload> parse_document(std::string_view body, const history::GivenFacts& given,
                                    const history::Around& around) {
  WEIR_TRY(const Json json,
           parse_json(body, {.bytes = k_most_upload, .depth = 64, .values = k_most_upload_values}));
  JsonReader read(json, "body");
  const std::string schema = read.string("schema");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  ParsedUpload parsed;
  parsed.projects = {given.project};
  if (schema == history::k_verdict_schema) {
    WEIR_TRY(const verdict::GateVerdict verdict, verdict::verdict_from_json(json));
    WEIR_TRY(parsed.batch, history::batch_of(verdict, given, around));
  } else if (schema == history::k_profiles_schema) {
    WEIR_TRY(parsed.profiles, history::profiles_from_json(json));
    WEIR_TRY(parsed.batch, history::batch_of(parsed.profiles, given, around));
    if (parsed.batch.runs.front().points.empty()) {
      return fail(Code::data, "nothing was measured in it");
    }
  } else {
    return fail(Code::data, "its schema is \"{}\": {} and {} are taken",
                text::printable(schema.substr(0, 60)), history::k_profiles_schema,
                history::k_verdict_schema);
  }
  return parsed;
}

Result<ParsedUpload> parse_lines(std::string_view body, const history::GivenFacts& given,
                                 bool project_given) {
  if (given.commit || given.branch || given.machine || given.time) {
    return fail(Code::usage,
                "lines of weir.history/1 say themselves when, where and of which commit they are: "
                "leave commit, branch, machine and time out");
  }
  ParsedUpload parsed;
  std::set<std::string> projects;
  const auto count = [&](const std::string& project) -> Result<void> {
    projects.insert(project);
    if (project_given && project != given.project) {
      return fail(Code::usage, "its project is \"{}\", and the upload says \"{}\"",
                  text::printable(project), text::printable(given.project));
    }
    if (parsed.batch.runs.size() + parsed.batch.verdicts.size() > k_most_upload_runs) {
      return fail(Code::data, "more than {} runs: send them in parts", k_most_upload_runs);
    }
    return {};
  };
  history::TakeLines take;
  take.run = [&](history::Run run) {
    parsed.batch.runs.push_back(std::move(run));
    return count(parsed.batch.runs.back().facts.project);
  };
  take.verdict = [&](history::StoredVerdict verdict) {
    parsed.batch.verdicts.push_back(std::move(verdict));
    return count(parsed.batch.verdicts.back().project);
  };
  take.acknowledgement = [&](history::Acknowledgement one) {
    parsed.opinions = true;
    parsed.batch.acknowledgements.push_back(std::move(one));
    return count(parsed.batch.acknowledgements.back().project);
  };
  take.look = [&](history::Look look) {
    parsed.opinions = true;
    parsed.batch.looks.push_back(std::move(look));
    return count(parsed.batch.looks.back().project);
  };
  WEIR_CHECK(history::read_lines(body, take));
  if (projects.empty()) return fail(Code::data, "no run in it");
  parsed.projects.assign(projects.begin(), projects.end());
  return parsed;
}

}  // namespace

std::optional<UploadType> upload_type(std::string_view content_type) {
  const std::string kind = text::lower(text::trim(content_type.substr(0, content_type.find(';'))));
  if (kind == "application/json") return UploadType::document;
  if (kind == "application/x-ndjson") return UploadType::lines;
  return std::nullopt;
}

Result<ParsedUpload> parse_upload(UploadType type, std::string_view body,
                                  const history::GivenFacts& given, bool project_given,
                                  const history::Around& around) {
  return type == UploadType::document ? parse_document(body, given, around)
                                      : parse_lines(body, given, project_given);
}

}  // namespace weir::serve
