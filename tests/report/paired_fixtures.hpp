// Builds gate verdicts of a candidate compared with a base program by pairs. Numbers are invented;
// the noise comes from a fixed sequence, so pictures are the same everywhere.
#pragma once

#include <cmath>
#include <random>

#include "tests/report/fixtures.hpp"

namespace weir::report::fixtures {

// Runs to generate: `factor` is the candidate's number over the base's, `noise` the spread of
// ratios.
struct Ran {
  int pairs = 14;
  double factor = 1, noise = 0.02;
};

// Roughly normal: the sum of twelve uniform numbers (its variance is 1).
inline double bell(std::mt19937& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(random() >> 8U) / 16777216.0;
  return sum;
}

inline Judgement paired(const std::string& name, Outcome outcome, double base, Ran ran,
                        Interval interval) {
  Judgement judgement = rate(name, outcome, base, base * (1 + interval.change), interval);
  judgement.samples = ran.pairs;
  judgement.baseline_sessions.reset();
  judgement.pairs = ran.pairs;
  if (judgement.metric.better == unit::Better::lower) {
    judgement.limit.max_increase = judgement.limit.max_drop;
    judgement.limit.max_drop.reset();
  }
  std::mt19937 random(static_cast<unsigned>(ran.pairs));
  for (int i = 0; i < ran.pairs; ++i) {
    judgement.ratios.emplace_back(ran.factor * std::exp(ran.noise * bell(random)));
  }
  return judgement;
}

inline GateVerdict beside_pass() {
  GateVerdict gate = green();
  gate.base_commit = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d";
  gate.base_origin =
      "merge-base of HEAD and origin/main, 1a2b3c4 \"Fuse rope into the cache's write\"";
  gate.against = verdict::Against{"origin/main", {}};
  gate.decision_rule =
      "Counts are exact: one that changed fails, in either direction, unless all work is seen to "
      "have stayed where it was. Throughput beside the base program: a change for the worse of 5 % "
      "and more passes in at most 1 of 100; one of 2.5 % and less is blamed in at most 1 of 100; "
      "where nothing changed, at most 1 of 1000 gates fails by chance, whatever the machine does "
      "meanwhile.";
  gate.notes = {"the working tree differs from a1b2c3d"};
  gate.budget_seconds = 600;
  gate.cells.resize(2);
  for (CellVerdict& cell : gate.cells) cell.base = "same device class";
  gate.cells[0].judgements[5] = paired("prefill_tokens_per_second", Outcome::pass, 512,
                                       {14, 0.998, 0.02}, {-0.003, -0.014, 0.009});
  gate.cells[1].judgements[5] = paired("decode_tokens_per_second", Outcome::pass, 28.6,
                                       {22, 1.004, 0.03}, {0.004, -0.011, 0.018});
  gate.cells[1].judgements[5].ratios[7] = 0.31;  // a run that something disturbed
  gate.totals = {{"pass", 2}};
  return gate;
}

inline GateVerdict beside_fail() {
  GateVerdict gate = beside_pass();
  CellVerdict& cell = gate.cells[1];
  cell.verdict = Outcome::fail;
  cell.judgements[5] = paired("decode_tokens_per_second", Outcome::fail, 28.6, {12, 0.882, 0.02},
                              {-0.118, -0.126, -0.109});
  cell.judgements[5].reason = "it dropped by more than 2.5 %, sure after 12 pairs";
  Judgement first = paired("time_to_first_token_seconds", Outcome::fail, 0.2, {12, 1.22, 0.05},
                           {0.22, 0.17, 0.28});
  first.reason = "it rose by more than 2.5 %, sure after 12 pairs";
  cell.judgements.insert(cell.judgements.begin() + 6, std::move(first));
  gate.verdict = Outcome::fail;
  gate.exit_code = verdict::ExitCode::fail;
  gate.totals = {{"pass", 1}, {"fail", 1}};
  return gate;
}

// A gate with one metric that needs more pairs, and one whose candidate is noisier than the base.
inline GateVerdict beside_open() {
  GateVerdict gate = beside_pass();
  CellVerdict& more = gate.cells[0];
  more.verdict = Outcome::inconclusive;
  more.judgements[5] = paired("prefill_tokens_per_second", Outcome::inconclusive, 512,
                              {30, 0.964, 0.09}, {-0.036, -0.08, 0.011});
  more.judgements[5].ratios[4].reset();
  more.judgements[5].more_pairs = 45;
  more.judgements[5].more_seconds = 123;
  more.judgements[5].reason =
      "not decided after 30 pairs; about 45 pairs more (2 m 3 s) would settle it";
  CellVerdict& unlike = gate.cells[1];
  unlike.verdict = Outcome::inconclusive;
  unlike.judgements[5] = paired("decode_tokens_per_second", Outcome::inconclusive, 28.6,
                                {80, 0.95, 0.3}, {-0.05, -0.1, 0.004});
  unlike.judgements[5].reason =
      "the candidate's runs spread 6.1 x as wide as the base's, and they do not agree: fastest "
      "tenth +31.0 %, middle \u22125.0 %, mean \u22124.2 %, slowest tenth \u221234.0 %";
  unlike.judgements[5].spread_ratio = 6.1;
  unlike.judgements[5].baseline_runs = verdict::RunSpread{30.1, 28.6, 28.5, 26.9};
  unlike.judgements[5].current_runs = verdict::RunSpread{39.4, 27.2, 27.3, 17.8};
  gate.verdict = Outcome::inconclusive;
  gate.not_judged = {
      "throughput not decided in 2 of 2 cells (in 1 the budget of 3 m 0 s was used up, about 6 m 0 "
      "s would do)"};
  gate.totals = {{"inconclusive", 2}};
  return gate;
}

inline GateVerdict beside_improved() {
  GateVerdict gate = beside_pass();
  CellVerdict& cell = gate.cells[1];
  cell.verdict = Outcome::improved;
  cell.judgements[5] = paired("decode_tokens_per_second", Outcome::improved, 28.6,
                              {16, 1.094, 0.02}, {0.094, 0.081, 0.107});
  cell.judgements[5].reason = "better by more than 2.5 %";
  gate.verdict = Outcome::improved;
  gate.totals = {{"pass", 1}, {"improved", 1}};
  return gate;
}

// A gate whose candidate hangs three times of five; its base program is a command.
inline GateVerdict beside_error() {
  GateVerdict gate = beside_pass();
  gate.base_commit.reset();
  gate.base_origin = "the command ../old/llama-bench -m {model} -n {tokens} -o json";
  gate.against =
      verdict::Against{"", {"../old/llama-bench", "-m", "{model}", "-n", "{tokens}", "-o", "json"}};
  CellVerdict& cell = gate.cells[1];
  cell.verdict = Outcome::error;
  cell.reason = "timed: the candidate timed out 3 times, the base program never";
  cell.stderr_tail = "llama_model_loader: loaded\nwaiting for device\n";
  cell.judgements[5] = paired("decode_tokens_per_second", Outcome::inconclusive, 28.6,
                              {5, 1.0, 0.02}, {0, -0.2, 0.1});
  for (const std::size_t hung : {1U, 2U, 4U}) cell.judgements[5].ratios[hung].reset();
  cell.judgements[5].low.reset();
  cell.judgements[5].reason = "not decided after 5 pairs; nothing points either way yet";
  gate.verdict = Outcome::error;
  gate.exit_code = verdict::ExitCode::unmeasured;
  gate.not_judged = {"throughput not decided in 1 of 2 cells"};
  gate.totals = {{"pass", 1}, {"error", 1}};
  return gate;
}

inline std::vector<Case> all_beside() {
  return {{"beside-pass", beside_pass()},
          {"beside-fail", beside_fail()},
          {"beside-open", beside_open()},
          {"beside-improved", beside_improved()},
          {"beside-error", beside_error()}};
}

}  // namespace weir::report::fixtures
