// The folder of stored baselines, as files:
// baselines/<engine>/<model>/<backend>/<prompt>/<class>.json.
#pragma once

#include <string>
#include <vector>

#include "gate/baseline/baseline.hpp"
#include "gate/flow/job.hpp"
#include "gate/profile/cell.hpp"

namespace weir::flow {
class StoredBaselines {
 public:
  // `words`: what they are called; "" is "stored baselines in FOLDER".
  StoredBaselines(sys::Files& files, std::string folder, std::string words = "");

  struct Entry {
    std::string path;
    baseline::Baseline baseline;
  };
  // Of one cell; none is an empty list. A file that cannot be read or belongs to another cell is
  // an Error that names it: a baseline must not be passed over in silence.
  [[nodiscard]] Result<std::vector<baseline::Baseline>> of_cell(const profile::CellKey& cell) const;
  // The one of a device class, where it is there.
  [[nodiscard]] Result<std::optional<baseline::Baseline>> of_class(
      const profile::CellKey& cell, const std::string& device_class) const;
  // All of them, by path. At most 100 000 files.
  [[nodiscard]] Result<std::vector<Entry>> all() const;
  [[nodiscard]] Result<std::string> put(const baseline::Baseline& baseline);  // answers the path
  [[nodiscard]] Result<void> remove(const Entry& entry);
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] const std::string& words() const { return words_; }

 private:
  [[nodiscard]] Result<baseline::Baseline> read(const std::string& path) const;
  sys::Files& files_;
  std::string folder_, words_;
};

// weir baseline list and show: those of job.asked.cells.
struct BaselineListOptions {
  bool whole = false;  // everything stored, not one line
};
[[nodiscard]] Result<Answer> list_baselines(const Job& job, const BaselineListOptions& wanted);

// Removes those of cells that the configuration no longer has.
struct BaselinePruneOptions {
  bool dry = false;  // only says so
};
[[nodiscard]] Result<Answer> prune_baselines(const Job& job, const BaselinePruneOptions& wanted);

}  // namespace weir::flow
