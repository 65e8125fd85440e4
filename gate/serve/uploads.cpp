#include "gate/serve/uploads.hpp"

#include <algorithm>
#include <set>

#include "gate/base/text.hpp"
#include "gate/history/history.hpp"
#include "gate/history/json_lines.hpp"
#include "gate/serve/http.hpp"
#include "gate/serve/service.hpp"

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
    WEIR_TRY(const verdict::GateVerdict verdict,
             read_fields<verdict::GateVerdict>(json, "verdict"));
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
  history::Takes take;
  take.run = [&](history::Run run) {
    parsed.batch.runs.push_back(std::move(run));
    return count(parsed.batch.runs.back().facts.project);
  };
  const auto into = [&](auto& list) {
    return [&](auto one) {
      list.push_back(std::move(one));
      return count(list.back().project);
    };
  };
  take.verdict = into(parsed.batch.verdicts);
  take.acknowledgement = into(parsed.batch.acknowledgements);
  WEIR_CHECK(history::read_lines(body, take));
  if (projects.empty()) return fail(Code::data, "no run in it");
  parsed.opinions = !parsed.batch.acknowledgements.empty();
  parsed.projects.assign(projects.begin(), projects.end());
  return parsed;
}

constexpr std::size_t k_large_body = std::size_t{1} << 20;
constexpr std::size_t k_longest_key = 255;
constexpr std::size_t k_most_differences = 20;
constexpr double k_ahead = 300;  // seconds that another machine's clock may be ahead
constexpr std::string_view k_branches = "refs/heads/", k_pulls = "refs/pull/", k_merge = "/merge";

// What is said of an upload besides its body.
struct Said {
  UploadType type = UploadType::document;
  history::GivenFacts facts;
  bool project_given = false;
  std::optional<std::int64_t> pull_request;
  bool is_merge = false;  // as of Arrival
  std::optional<std::string> key;
  std::optional<std::string> supersedes;  // a run's id
};

bool is_commit(const std::string& text) {
  return text.size() >= 4 && text.size() <= 64 &&
         text.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
}

Result<void> check_names(const Target& target) {
  static const std::vector<std::string> k_known{"project", "commit", "branch",    "machine",
                                                "time",    "pull",   "supersedes"};
  for (const auto& [name, values] : target.query) {
    if (std::ranges::find(k_known, name) == k_known.end()) {
      return fail(Code::usage, "unknown parameter \"{}\"{}", text::printable(name.substr(0, 60)),
                  text::did_you_mean(name.substr(0, 60), k_known));
    }
    if (values.size() > 1 || values.front().empty()) {
      return fail(Code::usage, "{}: one value, please", name);
    }
    if (values.front().size() > history::k_longest_name)
      return fail(Code::usage, "{}: too long", name);
  }
  return {};
}

Result<Said> said_of(const Head& head) {
  const Target& target = head.target;
  WEIR_CHECK(check_names(target));
  Said said;
  const std::string* type = head.header("content-type");
  said.type = upload_type(type == nullptr ? "" : *type).value_or(UploadType::document);
  history::GivenFacts& facts = said.facts;
  said.project_given = target.one("project").has_value();
  facts.project = target.one("project").value_or("default");
  facts.commit = target.one("commit");
  facts.branch = target.one("branch");
  facts.machine = target.one("machine");
  said.supersedes = target.one("supersedes");
  if (said.supersedes && said.type != UploadType::document) {
    return fail(Code::usage, "supersedes: documents alone; lines are of many runs and projects");
  }
  if (facts.commit && !is_commit(*facts.commit)) {
    return fail(Code::usage, "commit: hexadecimal digits, 4 to 64");
  }
  if (const auto time = target.one("time")) {
    facts.time = history::parse_time(*time);
    if (!facts.time) return fail(Code::usage, "time: none: 2026-11-20T09:30:15Z or Unix seconds");
  }
  if (const auto pull = target.one("pull")) {
    said.pull_request = text::to_int(*pull);
    if (!said.pull_request || *said.pull_request < 1) {
      return fail(Code::usage, "pull: the number of a pull request");
    }
  }
  if (const std::string* key = head.header("idempotency-key")) {
    const bool shown = std::ranges::all_of(*key, [](char c) { return c >= ' ' && c <= '~'; });
    if (!shown || key->empty() || key->size() > k_longest_key) {
      return fail(Code::usage, "Idempotency-Key: 1 to {} printable ASCII characters",
                  k_longest_key);
    }
    said.key = *key;
  }
  return said;
}

// Of everything that tells this upload from another.
std::string digest_of(const Said& said, const std::string& body) {
  Json facts{said.type == UploadType::lines, said.facts.project, said.project_given};
  for (const auto& text : {said.facts.commit, said.facts.branch, said.facts.machine}) {
    facts.push_back(text ? Json(*text) : Json());
  }
  facts.push_back(said.facts.time ? Json(*said.facts.time) : Json());
  facts.push_back(said.pull_request ? Json(*said.pull_request) : Json());
  if (said.supersedes) facts.push_back(*said.supersedes);
  return sha256_hex(dump_json(facts) + "\n" + body);
}

// Keys of one project are no business of another's. `projects` are sorted.
std::string key_space(const std::vector<std::string>& projects) {
  return projects.size() == 1 ? projects.front() : sha256_hex(text::join(projects, "\n"));
}

// A time that is still to come would be the newest for good.
Result<void> check_times(const history::Batch& batch, double now) {
  std::vector<double> times;
  for (const history::Run& run : batch.runs) {
    times.insert(times.end(), {run.facts.time, run.facts.commit_time.value_or(0)});
  }
  for (const auto& one : batch.verdicts) times.insert(times.end(), {one.time, one.kept_at});
  for (const auto& one : batch.acknowledgements) times.insert(times.end(), {one.time, one.at});
  if (std::ranges::all_of(times, [&](double time) { return time <= now + k_ahead; })) return {};
  return fail(Code::data, "a time of it is more than five minutes in the future: here it is {}",
              sys::time_of(now));
}

// A job's token says itself what it is of: what the upload says has to be the same.
Result<void> bind(const Grant& grant, Said& said) {
  if (said.type != UploadType::document) {
    return fail(Code::usage, "a job's token takes documents alone: lines are of many commits");
  }
  history::GivenFacts& facts = said.facts;
  const bool is_branch = grant.ref.starts_with(k_branches);
  const std::string branch = is_branch ? grant.ref.substr(k_branches.size()) : grant.ref;
  const std::string commit = text::lower(facts.commit.value_or(grant.commit));
  if (commit != grant.commit || facts.branch.value_or(branch) != branch) {
    return fail(Code::usage, "this token is of commit {} on {}", text::printable(grant.commit),
                text::printable(branch));
  }
  std::optional<std::int64_t> pull;
  if (grant.ref.starts_with(k_pulls) && grant.ref.ends_with(k_merge)) {
    pull = text::to_int(
        std::string_view(grant.ref).substr(k_pulls.size(), grant.ref.rfind('/') - k_pulls.size()));
  }
  if (said.pull_request && said.pull_request != pull) {
    return fail(Code::usage, "this token is not of that pull request");
  }
  said.pull_request = pull;
  said.is_merge = grant.ref.starts_with(k_pulls);
  facts.commit = commit;
  facts.branch = branch;
  return {};
}

// "201 " and the answer's body, as it is kept with a key. `cells` were judged here.
std::string answer_text(const history::UploadDone& done, Json extra,
                        std::optional<std::size_t> cells) {
  const history::Added& added = done.added;
  if (cells) extra["verdict"] = {{"outcome", done.verdicts.back().outcome}, {"cells", *cells}};
  for (std::size_t i = 0; i < std::min(done.lacking.size(), k_most_differences); ++i) {
    extra["warnings"].push_back("not judged: " + done.lacking[i]);
  }
  if (done.removed) extra["superseded"] = true;
  Json runs = Json::array();
  for (const history::UploadedRun& run : done.runs) {
    runs.push_back(
        {{"project", run.project}, {"id", run.id}, {"points", run.points}, {"known", run.known}});
  }
  Json json{{"schema", "weir.upload/1"},
            {"runs", std::move(runs)},
            {"points", added.points},
            {"verdicts", added.verdicts}};
  json.update(extra);
  if (!added.differences.empty()) {
    json["differences"] = added.differences;
    if (json["differences"].size() > k_most_differences) {
      json["differences"].erase(json["differences"].begin() + k_most_differences,
                                json["differences"].end());
    }
  }
  const bool fresh = added.runs + added.points + added.verdicts + added.acknowledgements > 0;
  return fmt::format("{} {}\n", fresh ? 201 : 200, dump_json(json));
}

Response response_of(const std::string& text, bool again) {
  const int status = text.starts_with("201") ? 201 : 200;
  Response response = text_answer(status, "application/json", text.substr(4));
  set_header(response, "Cache-Control", "no-store");
  if (again) set_header(response, "Idempotency-Replayed", "true");
  return response;
}

// Each project of it has to be one that the token may upload to.
std::optional<Response> refused_projects(const ParsedUpload& parsed, const Caller& caller,
                                         bool supersedes) {
  for (const std::string& project : parsed.projects) {
    if (!caller.token || !allows(*caller.token, Scope::upload, project)) {
      return error_answer(403, "this token may not upload to that project: " + project);
    }
    if (supersedes && !allows(*caller.token, Scope::remove, project)) {
      return error_answer(403, "superseding a run needs a token with the scope delete");
    }
    if (parsed.opinions && !allows(*caller.token, Scope::admin, project)) {
      return error_answer(403, "acknowledgements need a token with the scope admin");
    }
  }
  return std::nullopt;
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

// Uploads: taken apart and judged on an uploader's thread, kept by Intake, answered when it is on
// the disk.

void Service::take_upload(const JobPtr& job) {
  const auto refuse = [&](Response response) {
    ++meters_.uploads_refused;
    respond(*job, std::move(response));
  };
  auto said = said_of(job->request.head);
  if (!said) return refuse(error_answer(400, said.error().message));
  if (job->caller.grant) {
    if (const auto bound = bind(*job->caller.grant, *said); !bound) {
      return refuse(error_answer(403, bound.error().message));
    }
  }
  const std::string& body = job->request.body;
  if (body.size() > k_most_upload) {
    return refuse(error_answer(413, fmt::format("more than {} bytes", k_most_upload)));
  }
  history::Around around;
  around.now = clock_.now();
  around.otherwise = around.now;
  std::unique_lock large(large_mutex_, std::defer_lock);
  if (body.size() > k_large_body) large.lock();
  auto parsed = parse_upload(said->type, body, said->facts, said->project_given, around);
  if (!parsed) return refuse(error_answer(422, parsed.error().message));
  if (auto response = refused_projects(*parsed, job->caller, said->supersedes.has_value())) {
    return refuse(*std::move(response));
  }
  // Behind this only the store can be at fault.
  auto fit = history::check(parsed->batch);
  if (fit) fit = check_times(parsed->batch, around.now);
  if (!fit) return refuse(error_answer(422, fit.error().message));

  const Arrival arrival{said->facts.project, said->facts.commit, said->pull_request,
                        said->is_merge};
  Json extra = Json::object();
  std::optional<std::size_t> cells;
  if (options_.judge != nullptr && !parsed->profiles.empty()) {
    auto gate = options_.judge->judge(arrival, parsed->profiles);
    if (!gate) {
      extra["warnings"] = Json::array({"not judged: " + text::printable(gate.error().message)});
    } else if (*gate) {
      const history::RunFacts& facts = parsed->batch.runs.front().facts;
      parsed->batch.verdicts.push_back(
          history::stored_verdict(facts, facts.id, **gate, around.now));
      cells = (*gate)->cells.size();
    }
  }
  history::Upload upload;
  upload.batch = std::move(parsed->batch);
  upload.at = around.now;
  if (said->key) {
    upload.key =
        history::UploadKey{key_space(parsed->projects), *said->key, digest_of(*said, body)};
  }
  upload.judged_here = cells.has_value();
  upload.bytes = static_cast<std::int64_t>(body.size());
  upload.quota = options_.quota;
  if (said->supersedes) {
    upload.removes = history::Removal{said->facts.project, *said->supersedes, ""};
  }
  upload.answer = [extra, cells](const history::UploadDone& done) {
    return answer_text(done, extra, cells);
  };
  keep(job, std::move(upload), [=, this](const history::UploadOutcome& outcome) {
    const bool again = outcome.kind == history::UploadOutcome::Kind::again;
    Response response = response_of(outcome.text, again);
    if (response.status == 201 && !again) {
      ++meters_.uploads_kept;
    } else {
      ++meters_.uploads_known;
    }
    respond(*job, std::move(response));
    // Again, too: what was kept before the service was killed may not have been announced, and
    // announcing twice edits the same places.
    if (options_.announcer == nullptr || !cells) return;
    // As it is kept: what it lacks made it "not judged".
    auto gate = history::verdict_of(outcome.done.verdicts.back());
    if (gate) options_.announcer->announce(arrival, *std::move(gate));
  });
}

void Service::take_removal(const JobPtr& job) {
  const Target& target = job->request.head.target;
  const auto project = target.one("project");
  if (target.query.size() != (project ? 1 : 0)) {
    return respond(*job, error_answer(400, "removing a run takes project, once"));
  }
  history::Upload upload;
  upload.at = clock_.now();
  upload.removes = history::Removal{project.value_or("default"), removed_run(target.path), ""};
  upload.answer = [removal = *upload.removes](const history::UploadDone& done) {
    return dump_json(Json{{"schema", "weir.removal/1"},
                          {"project", removal.project},
                          {"run", removal.run},
                          {"removed", done.removed}}) +
           "\n";
  };
  keep(job, std::move(upload), [this, job](const history::UploadOutcome& outcome) {
    Response response = text_answer(200, "application/json", outcome.text);
    set_header(response, "Cache-Control", "no-store");
    respond(*job, std::move(response));
  });
}

void Service::keep(const JobPtr& job, history::Upload upload,
                   std::function<void(const history::UploadOutcome&)> answer) {
  upload.who = job->caller.token->id;
  if (upload.removes) {
    upload.removes->who = upload.who;
    job->note = fmt::format("removes {}/{}", upload.removes->project, upload.removes->run);
  }
  const auto bytes = static_cast<std::uint64_t>(upload.bytes);
  const auto done = [this, job,
                     answer = std::move(answer)](Result<history::UploadOutcome> outcome) {
    using Kind = history::UploadOutcome::Kind;
    if (!outcome) {
      ++meters_.uploads_failed;
      return respond(*job, store_trouble(outcome.error()));
    }
    if (outcome->kind != Kind::conflict && outcome->kind != Kind::too_much) return answer(*outcome);
    ++meters_.uploads_refused;
    if (outcome->kind == Kind::conflict) {
      return respond(*job, error_answer(422, "this Idempotency-Key was used for another upload"));
    }
    if (!outcome->until) return respond(*job, error_answer(507, outcome->text));
    respond(*job, later_answer(429,
                               fmt::format("{}: try again after {}", outcome->text,
                                           sys::time_of(*outcome->until)),
                               *outcome->until - clock_.now()));
  };
  if (intake_->put(std::move(upload), bytes, done)) return;
  ++meters_.uploads_failed;
  respond(*job, later_answer(503, stopping_ ? "the service stops" : "too many uploads wait", 2));
}

}  // namespace weir::serve
