// Uploads and removals: reads bodies, checks them against the caller's token, and passes them on to
// be stored.
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

constexpr std::size_t k_entry_weight = 512;

std::size_t weight_of(const history::StoredVerdict& verdict) {
  return k_entry_weight + verdict.text.size();
}
std::size_t weight_of(const history::Acknowledgement& entry) {
  return k_entry_weight + entry.reason.size();
}

tl::unexpected<Error> too_heavy() {
  return fail(Code::data, "more than {} MiB in memory: send them in parts",
              k_max_upload_weight >> 20);
}

// Parses an uploaded weir.verdict/1 or weir.profiles/1 document. Fails if its schema is another
// one, nothing was measured, or it is too large to store.
Result<ParsedUpload> parse_document(std::string_view body, const history::SenderFacts& facts,
                                    const history::TimeContext& time_context) {
  WEIR_TRY(
      Json json,
      parse_json(body, {.bytes = k_max_upload_bytes, .depth = 64, .values = k_max_upload_values}));
  JsonReader reader(json, "body");
  const std::string schema = reader.string("schema");
  if (auto problem = reader.problem()) return tl::unexpected(*problem);
  ParsedUpload parsed;
  parsed.projects = {facts.project};
  if (schema == history::k_verdict_schema) {
    WEIR_TRY(const verdict::GateVerdict verdict,
             read_fields<verdict::GateVerdict>(json, "verdict"));
    json = nullptr;  // its memory is for the batch
    WEIR_TRY(parsed.batch, history::make_batch(verdict, facts, time_context));
  } else if (schema == history::k_profiles_schema) {
    WEIR_TRY(parsed.profiles, history::profiles_from_json(json));
    json = nullptr;
    WEIR_TRY(parsed.batch, history::make_batch(parsed.profiles, facts, time_context));
    if (parsed.batch.runs.front().points.empty()) {
      return fail(Code::data, "nothing was measured in it");
    }
  } else {
    return fail(Code::data, "its schema is \"{}\": {} and {} are taken",
                text::printable(schema.substr(0, 60)), history::k_profiles_schema,
                history::k_verdict_schema);
  }
  for (const history::Run& run : parsed.batch.runs) parsed.weight += history::weight(run);
  for (const history::StoredVerdict& sent : parsed.batch.verdicts) parsed.weight += weight_of(sent);
  if (parsed.weight > k_max_upload_weight) return too_heavy();
  return parsed;
}

// Parses uploaded weir.history/1 lines. With `project_given`, every line must be of
// `facts.project`; the lines have their own commit, branch, machine and time.
Result<ParsedUpload> parse_lines(std::string_view body, const history::SenderFacts& facts,
                                 bool project_given) {
  if (facts.commit || facts.branch || facts.machine || facts.time) {
    return fail(Code::usage,
                "lines of weir.history/1 say themselves when, where and of which commit they are: "
                "leave commit, branch, machine and time out");
  }
  ParsedUpload parsed;
  std::set<std::string> projects;
  const auto check_entry = [&](const std::string& project, std::size_t weight) -> Result<void> {
    parsed.weight += weight;
    if (parsed.weight > k_max_upload_weight) return too_heavy();
    projects.insert(project);
    if (project_given && project != facts.project) {
      return fail(Code::usage, "its project is \"{}\", and the upload says \"{}\"",
                  text::printable(project), text::printable(facts.project));
    }
    if (parsed.batch.runs.size() + parsed.batch.verdicts.size() +
            parsed.batch.acknowledgements.size() >
        k_max_upload_runs) {
      return fail(Code::data, "more than {} runs: send them in parts", k_max_upload_runs);
    }
    return {};
  };
  history::EntryHandlers handlers;
  handlers.run = [&](history::Run run) {
    parsed.batch.runs.push_back(std::move(run));
    const history::Run& last = parsed.batch.runs.back();
    return check_entry(last.facts.project, history::weight(last));
  };
  const auto append_to = [&](auto& list) {
    return [&](auto entry) {
      list.push_back(std::move(entry));
      return check_entry(list.back().project, weight_of(list.back()));
    };
  };
  handlers.verdict = append_to(parsed.batch.verdicts);
  handlers.acknowledgement = append_to(parsed.batch.acknowledgements);
  WEIR_CHECK(history::read_lines(body, handlers, k_max_upload_values));
  if (projects.empty()) return fail(Code::data, "no run in it");
  parsed.has_acknowledgements = !parsed.batch.acknowledgements.empty();
  parsed.projects.assign(projects.begin(), projects.end());
  return parsed;
}

constexpr std::size_t k_longest_key = 255;
constexpr std::size_t k_max_differences = 20;
constexpr double k_max_clock_skew_seconds =
    300;  // seconds that another machine's clock may be ahead
constexpr std::string_view k_branches = "refs/heads/", k_pulls = "refs/pull/", k_merge = "/merge";

// The facts of an upload that its URL and headers state.
struct UploadFacts {
  UploadType type = UploadType::document;
  history::SenderFacts facts;
  bool project_given = false;
  std::optional<std::int64_t> pull_request;
  bool is_merge = false;  // as in Arrival
  std::optional<std::string> key;
  std::optional<std::string> supersedes;  // a run's id
};

bool is_commit(const std::string& text) {
  return text.size() >= 4 && text.size() <= 64 &&
         text.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
}

// Fails if a query parameter of an upload is unknown, repeated, empty or too long.
Result<void> check_parameters(const Target& target) {
  static const std::vector<std::string> k_parameters{"project", "commit", "branch",    "machine",
                                                     "time",    "pull",   "supersedes"};
  for (const auto& [name, values] : target.query) {
    if (std::ranges::find(k_parameters, name) == k_parameters.end()) {
      return fail(Code::usage, "unknown parameter \"{}\"{}", text::printable(name.substr(0, 60)),
                  text::did_you_mean(name.substr(0, 60), k_parameters));
    }
    if (values.size() > 1 || values.front().empty()) {
      return fail(Code::usage, "{}: one value, please", name);
    }
    if (values.front().size() > history::k_longest_name)
      return fail(Code::usage, "{}: too long", name);
  }
  return {};
}

// Reads what an upload's query and headers state: type, project, commit, branch, machine, time,
// pull request, idempotency key. Fails on a malformed value.
Result<UploadFacts> parse_upload_facts(const Head& head) {
  const Target& target = head.target;
  WEIR_CHECK(check_parameters(target));
  UploadFacts upload_facts;
  const std::string* type = head.header("content-type");
  upload_facts.type = upload_type(type == nullptr ? "" : *type).value_or(UploadType::document);
  history::SenderFacts& facts = upload_facts.facts;
  upload_facts.project_given = target.value("project").has_value();
  facts.project = target.value("project").value_or("default");
  facts.commit = target.value("commit");
  facts.branch = target.value("branch");
  facts.machine = target.value("machine");
  upload_facts.supersedes = target.value("supersedes");
  if (upload_facts.supersedes && upload_facts.type != UploadType::document) {
    return fail(Code::usage, "supersedes: documents alone; lines are of many runs and projects");
  }
  if (facts.commit && !is_commit(*facts.commit)) {
    return fail(Code::usage, "commit: hexadecimal digits, 4 to 64");
  }
  if (const auto time = target.value("time")) {
    facts.time = history::parse_time(*time);
    if (!facts.time) return fail(Code::usage, "time: none: 2026-11-20T09:30:15Z or Unix seconds");
  }
  if (const auto pull = target.value("pull")) {
    upload_facts.pull_request = text::to_int(*pull);
    if (!upload_facts.pull_request || *upload_facts.pull_request < 1) {
      return fail(Code::usage, "pull: the number of a pull request");
    }
  }
  if (const std::string* key = head.header("idempotency-key")) {
    const bool is_printable =
        std::ranges::all_of(*key, [](char c) { return c >= ' ' && c <= '~'; });
    if (!is_printable || key->empty() || key->size() > k_longest_key) {
      return fail(Code::usage, "Idempotency-Key: 1 to {} printable ASCII characters",
                  k_longest_key);
    }
    upload_facts.key = *key;
  }
  return upload_facts;
}

// Returns a hash of everything that distinguishes this upload from another, for its idempotency
// key.
std::string upload_digest(const UploadFacts& upload_facts, const std::string& body) {
  Json facts{upload_facts.type == UploadType::lines, upload_facts.facts.project,
             upload_facts.project_given};
  for (const auto& text :
       {upload_facts.facts.commit, upload_facts.facts.branch, upload_facts.facts.machine}) {
    facts.push_back(text ? Json(*text) : Json());
  }
  facts.push_back(upload_facts.facts.time ? Json(*upload_facts.facts.time) : Json());
  facts.push_back(upload_facts.pull_request ? Json(*upload_facts.pull_request) : Json());
  if (upload_facts.supersedes) facts.push_back(*upload_facts.supersedes);
  return sha256_hex(dump_json(facts) + "\n" + body);
}

// Returns the namespace of an idempotency key, so that projects can use the same key independently.
// `projects` must be sorted.
std::string key_namespace(const std::vector<std::string>& projects) {
  return projects.size() == 1 ? projects.front() : sha256_hex(text::join(projects, "\n"));
}

// Fails if a time lies in the future: such a run would remain the newest one. `now` is in Unix
// seconds.
Result<void> check_times(const history::Batch& batch, double now) {
  std::vector<double> times;
  for (const history::Run& run : batch.runs) {
    times.insert(times.end(), {run.facts.time, run.facts.commit_time.value_or(0)});
  }
  for (const auto& verdict : batch.verdicts)
    times.insert(times.end(), {verdict.time, verdict.kept_at});
  for (const auto& acknowledgement : batch.acknowledgements)
    times.insert(times.end(), {acknowledgement.time, acknowledgement.acknowledged_at});
  if (std::ranges::all_of(times,
                          [&](double time) { return time <= now + k_max_clock_skew_seconds; }))
    return {};
  return fail(Code::data, "a time of it is more than five minutes in the future: here it is {}",
              sys::time_of(now));
}

// Fills in the commit, branch and pull request that a CI job's token is issued for. Fails if the
// upload states other ones.
Result<void> bind_to_token(const Grant& grant, UploadFacts& upload_facts) {
  if (upload_facts.type != UploadType::document) {
    return fail(Code::usage, "a job's token takes documents alone: lines are of many commits");
  }
  history::SenderFacts& facts = upload_facts.facts;
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
  if (upload_facts.pull_request && upload_facts.pull_request != pull) {
    return fail(Code::usage, "this token is not of that pull request");
  }
  upload_facts.pull_request = pull;
  upload_facts.is_merge = grant.ref.starts_with(k_pulls);
  facts.commit = commit;
  facts.branch = branch;
  return {};
}

// Returns "201 " (something new was stored) or "200 ", and the answer's body, in the form stored
// with an idempotency key. `cells` is the number of cells judged here, if any were.
std::string answer_text(const history::UploadResult& result, Json extra,
                        std::optional<std::size_t> cells) {
  const history::Added& added = result.added;
  if (cells) extra["verdict"] = {{"outcome", result.verdicts.back().outcome}, {"cells", *cells}};
  for (std::size_t i = 0; i < std::min(result.lacking.size(), k_max_differences); ++i) {
    extra["warnings"].push_back("not judged: " + result.lacking[i]);
  }
  if (result.removed) extra["superseded"] = true;
  Json runs = Json::array();
  for (const history::UploadedRun& run : result.runs) {
    runs.push_back({{"project", run.project},
                    {"id", run.id},
                    {"points", run.points},
                    {"known", run.was_stored}});
  }
  Json json{{"schema", "weir.upload/1"},
            {"runs", std::move(runs)},
            {"points", added.points},
            {"verdicts", added.verdicts}};
  json.update(extra);
  if (!added.differences.empty()) {
    json["differences"] = added.differences;
    if (json["differences"].size() > k_max_differences) {
      json["differences"].erase(json["differences"].begin() + k_max_differences,
                                json["differences"].end());
    }
  }
  const bool is_new = added.runs + added.points + added.verdicts + added.acknowledgements > 0;
  return fmt::format("{} {}\n", is_new ? 201 : 200, dump_json(json));
}

// Turns the text of answer_text() into a response. `again`: the upload was stored before.
Response stored_response(const std::string& text, bool again) {
  const int status = text.starts_with("201") ? 201 : 200;
  Response response = text_answer(status, "application/json", text.substr(4));
  set_header(response, "Cache-Control", "no-store");
  if (again) set_header(response, "Idempotency-Replayed", "true");
  return response;
}

// Returns 403 if the token lacks the scope for any project of the upload; nullopt if it may upload
// all of it.
std::optional<Response> check_permissions(const ParsedUpload& parsed, const Caller& caller,
                                          bool supersedes) {
  for (const std::string& project : parsed.projects) {
    if (!caller.token || !allows(*caller.token, Scope::upload, project)) {
      return error_answer(403, "this token may not upload to that project: " + project);
    }
    if (supersedes && !allows(*caller.token, Scope::remove, project)) {
      return error_answer(403, "superseding a run needs a token with the scope delete");
    }
    if (parsed.has_acknowledgements && !allows(*caller.token, Scope::admin, project)) {
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
                                  const history::SenderFacts& facts, bool project_given,
                                  const history::TimeContext& time_context) {
  return type == UploadType::document ? parse_document(body, facts, time_context)
                                      : parse_lines(body, facts, project_given);
}

// An upload is parsed and judged on an uploader's thread, stored by Intake, and answered once it is
// on disk.

void Service::handle_upload(const JobPtr& job) {
  const auto refuse = [&](Response response) {
    ++meters_.uploads_refused;
    respond(*job, std::move(response));
  };
  auto upload_facts = parse_upload_facts(job->request.head);
  if (!upload_facts) return refuse(error_answer(400, upload_facts.error().message));
  if (job->caller.grant) {
    if (const auto binding = bind_to_token(*job->caller.grant, *upload_facts); !binding) {
      return refuse(error_answer(403, binding.error().message));
    }
  }
  std::string& body = job->request.body;
  if (body.size() > k_max_upload_bytes) {
    return refuse(error_answer(413, fmt::format("more than {} bytes", k_max_upload_bytes)));
  }
  history::TimeContext time_context;
  time_context.now = clock_.now();
  time_context.default_time = time_context.now;
  auto parsed = parse_upload(upload_facts->type, body, upload_facts->facts,
                             upload_facts->project_given, time_context);
  if (!parsed) return refuse(error_answer(422, parsed.error().message));
  if (auto response =
          check_permissions(*parsed, job->caller, upload_facts->supersedes.has_value())) {
    return refuse(*std::move(response));
  }
  // From here on only the store can fail.
  auto validity = history::check(parsed->batch);
  if (validity) validity = check_times(parsed->batch, time_context.now);
  if (!validity) return refuse(error_answer(422, validity.error().message));

  const Arrival arrival{upload_facts->facts.project, upload_facts->facts.commit,
                        upload_facts->pull_request, upload_facts->is_merge};
  Json extra = Json::object();
  std::optional<std::size_t> cells;
  if (options_.judge != nullptr && !parsed->profiles.empty()) {
    auto gate = options_.judge->judge(arrival, parsed->profiles);
    if (!gate) {
      extra["warnings"] = Json::array({"not judged: " + text::printable(gate.error().message)});
    } else if (*gate) {
      const history::RunFacts& facts = parsed->batch.runs.front().facts;
      parsed->batch.verdicts.push_back(
          history::stored_verdict(facts, facts.id, **gate, time_context.now));
      cells = (*gate)->cells.size();
    }
  }
  history::Upload upload;
  upload.batch = std::move(parsed->batch);
  upload.received_at = time_context.now;
  if (upload_facts->key) {
    upload.key = history::UploadKey{key_namespace(parsed->projects), *upload_facts->key,
                                    upload_digest(*upload_facts, body)};
  }
  upload.judged_here = cells.has_value();
  upload.bytes = static_cast<std::int64_t>(body.size());
  body = {};
  upload.quota = options_.quota;
  if (upload_facts->supersedes) {
    upload.removes = history::Removal{upload_facts->facts.project, *upload_facts->supersedes, ""};
  }
  upload.answer = [extra, cells](const history::UploadResult& done) {
    return answer_text(done, extra, cells);
  };
  const std::size_t weight = parsed->weight;
  keep(job, std::move(upload), weight, [=, this](const history::UploadOutcome& outcome) {
    const bool again = outcome.kind == history::UploadOutcome::Kind::again;
    Response response = stored_response(outcome.text, again);
    if (response.status == 201 && !again) {
      ++meters_.uploads_kept;
    } else {
      ++meters_.uploads_known;
    }
    respond(*job, std::move(response));
    // Announce again too: the service may have been killed between storing and announcing, and
    // announcing twice edits the same places.
    if (options_.announcer == nullptr || !cells) return;
    // Announce the stored verdict: missing baselines made some of it "not judged".
    auto gate = history::verdict_of(outcome.done.verdicts.back());
    if (gate) options_.announcer->announce(arrival, *std::move(gate));
  });
}

// Removes the stored run that the path names, and answers whether it was there.
void Service::handle_removal(const JobPtr& job) {
  const Target& target = job->request.head.target;
  const auto project = target.value("project");
  const std::size_t parameters = project ? 1 : 0;
  if (target.query.size() != parameters) {
    return respond(*job, error_answer(400, "removing a run takes project, once"));
  }
  history::Upload upload;
  upload.received_at = clock_.now();
  const history::Removal removal{project.value_or("default"), removed_run(target.path), ""};
  upload.removes = removal;
  upload.answer = [removal](const history::UploadResult& done) {
    return dump_json(Json{{"schema", "weir.removal/1"},
                          {"project", removal.project},
                          {"run", removal.run},
                          {"removed", done.removed}}) +
           "\n";
  };
  keep(job, std::move(upload), k_entry_weight, [this, job](const history::UploadOutcome& outcome) {
    Response response = text_answer(200, "application/json", outcome.text);
    set_header(response, "Cache-Control", "no-store");
    respond(*job, std::move(response));
  });
}

// Queues the upload, of `weight` bytes, to be stored. Answers the job when that is done: calls
// `answer` on success, else sends the error.
void Service::keep(const JobPtr& job, history::Upload upload, std::size_t weight,
                   std::function<void(const history::UploadOutcome&)> answer) {
  upload.who = job->caller.token->id;
  if (upload.removes) {
    upload.removes->who = upload.who;
    job->note = fmt::format("removes {}/{}", upload.removes->project, upload.removes->run);
  }
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
  if (intake_->put(std::move(upload), weight, done)) return;
  ++meters_.uploads_failed;
  respond(*job, later_answer(503, stopping_ ? "the service stops" : "too many uploads wait", 2));
}

}  // namespace weir::serve
