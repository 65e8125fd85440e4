// Builds the load of a server's step: generated prompts, a prompt file, or recorded requests.
#include "gate/run/server_requests.hpp"

#include "gate/run/served_report.hpp"
#include "gate/run/server_hold.hpp"

namespace weir::run {

// Reads the cell's prompt text or recorded workload, or makes up a prompt of the right length in
// tokens.
Result<void> ServerRequests::read_prompt(const sys::Files& files) {
  const config::Cell& cell = cell_.cell;
  if (cell.text) {
    prompt_ = *cell.text;
  } else if (cell.prompt_file) {
    constexpr std::uint64_t k_largest_text = std::uint64_t{16} << 20;
    WEIR_TRY_SET(prompt_, files.read(cell_.prompt_file, k_largest_text));
    if (!cell.workload) return {};
    WEIR_TRY_SET(workload_,
                 adapters::read_workload(prompt_, cell.tokens,
                                         static_cast<std::size_t>(cell.requests), cell.turns)
                     .map_error(with_prefix(cell_.prompt_file)));
  } else {
    prompt_ = made_up_prompt(step_.parameters.prompt_tokens);
  }
  return {};
}

// Adds the next recorded requests to the plan, at their recorded times unless the cell sets another
// loop. The measured blocks begin with the requests that the warm-up sent.
void ServerRequests::plan_workload(bool is_warm_up, load::LoadPlan& plan,
                                   std::vector<std::string>& warnings) {
  const config::Cell& cell = cell_.cell;
  const std::size_t count = std::min(workload_.size(), static_cast<std::size_t>(plan.requests));
  plan.prompts.clear();
  std::vector<double> arrivals;
  const auto recorded_at = [](const auto& request) { return request.at.value_or(0); };
  const auto [first, last] = std::ranges::minmax_element(workload_, {}, recorded_at);
  // After its last request, the recording starts again, one mean gap later.
  const double gap_count = std::max(1.0, static_cast<double>(workload_.size()) - 1);
  const double cycle_seconds = (recorded_at(*last) - recorded_at(*first)) * (1 + 1 / gap_count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t index = (next_ + i) % workload_.size();
    const auto& recorded = workload_[index];
    plan.prompts.push_back(
        {fmt::format("{} {}", cell.key.prompt, next_ + i), recorded.prompt, recorded.tokens});
    const auto round = static_cast<double>((next_ + i) / workload_.size());
    if (recorded.at) arrivals.push_back(*recorded.at + round * cycle_seconds);
    plan.after.emplace_back();
    if (recorded.after && index - *recorded.after <= i)
      plan.after.back() = i - (index - *recorded.after);
  }
  if (is_warm_up) return;  // does not move on, so that the same requests are sent again
  if (!arrivals.empty() && arrivals.size() < count && step_.pass == profile::Pass::timed &&
      next_ == 0) {
    warnings.emplace_back("later turns have no moment of their own: no recorded moment is kept");
  }
  next_ += count;
  plan.requests = static_cast<std::int64_t>(count);
  if (arrivals.size() < count || cell.rate || cell.capacity || cell.concurrency > 1 ||
      !std::ranges::is_sorted(arrivals)) {
    return;
  }
  const double first_arrival = arrivals.front();
  for (double& at : arrivals) at -= first_arrival;
  plan.loop = load::RecordedLoop{std::move(arrivals)};
}

// Plans a load of `requests` requests: address, prompts, seed, and when each is sent. `block`
// numbers the measured loads; without it this is the warm-up. With a queue, all are held for one
// batch.
Result<load::LoadPlan> ServerRequests::plan(std::int64_t requests,
                                            std::optional<std::int64_t> block, load::Queue* queue,
                                            std::vector<std::string>& warnings) {
  const config::Cell& cell = cell_.cell;
  const config::ServerSettings& settings = *cell.engine->server;
  const bool is_warm_up = !block;
  load::LoadPlan plan;
  plan.api = settings.api;
  plan.model = settings.model_name;
  plan.prompts = {{cell.key.prompt, prompt_, step_.parameters.tokens}};
  plan.seed = cell.seed;
  plan.sends_extra_fields = settings.sends_extra_fields;
  if (!settings.extra_body.empty())
    WEIR_TRY_SET(plan.extra_members, parse_json(settings.extra_body));
  plan.requests = requests;
  plan.allows_cached_prompts = cell.allows_cached_prompts;
  // Only the warm-up asks for probabilities, because they cost the server time.
  if (const auto* api = adapters::serving::find_api(plan.api);
      is_warm_up && settings.max_divergence && api != nullptr &&
      api->likely_tokens_request != nullptr) {
    if (plan.extra_members.is_null()) plan.extra_members = Json::object();
    plan.extra_members.update(api->likely_tokens_request(profile::k_likely_tokens));
  }
  if (queue != nullptr) {
    plan.loop = load::QueuedBurst{queue};
    plan.prompts.clear();
    for (const std::int64_t tokens : burst_token_counts(step_.parameters.tokens, requests)) {
      plan.prompts.push_back(
          {fmt::format("{}, {} tokens", cell.key.prompt, tokens), prompt_, tokens});
    }
  } else if (block && cell.rate) {
    plan.loop = load::OpenLoop{*cell.rate, static_cast<std::uint64_t>(cell.seed + *block)};
  } else {
    plan.loop = load::ClosedLoop{is_warm_up ? 1 : cell.concurrency};
  }
  if (!workload_.empty()) plan_workload(is_warm_up, plan, warnings);
  return plan;
}

}  // namespace weir::run
