// A run of weir while it is drawn: its cells, its records, and the parts of its weir.yaml.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/profile/assemble.hpp"
#include "gate/profile/record.hpp"

#include "tests/hostile_records/random.hpp"

namespace weir::hostile {

// How names of kernels, ops, cells and metrics look.
enum class NameStyle { brief, words, shared_prefix, longest, templated, odd };

struct Draft {
  explicit Draft(std::uint64_t seed) : random(seed) {}

  // Returns the `i`-th name of a style; names of different numbers differ.
  std::string name(NameStyle style, std::size_t i);
  NameStyle draw_style();
  // Returns text of about `bytes`, as engines, drivers and people never write it.
  std::string text(std::size_t bytes);
  // Adds a cell that runs on `device`; its name is one that the draft does not have.
  std::size_t add_cell(const std::string& device);
  // Returns a cell on `device` ("" for any), mostly one that is there.
  std::size_t some_cell(const std::string& device);
  profile::RunRecord& add_record(std::size_t cell, profile::Pass pass, profile::Side side);

  // Returns weir.yaml. Its limits apply to cells that need not be in its matrix.
  [[nodiscard]] std::string config() const;
  // Returns run.jsonl with the records of both sides, or of one of them as the candidate.
  enum class Sides { both, candidate, base };
  [[nodiscard]] std::string journal(Sides sides) const;

  Random random;
  std::vector<profile::CellFacts> cells;
  std::vector<profile::RunRecord> records;
  std::map<std::string, std::string> unavailable;
  std::vector<std::string> notes;
  Json extra = Json::object();
  std::vector<std::string> limits, explain_rules, engines, models, backends, prompts;
  std::string more_config;  // whole sections
  std::string lines;        // of the journal, after its header and before its records
  bool is_product = false;  // its cells are those of its weir.yaml
};

}  // namespace weir::hostile
