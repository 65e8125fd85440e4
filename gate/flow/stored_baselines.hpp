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
  // `words`: their name in reports; "" is "stored baselines in FOLDER", if there is such a folder.
  StoredBaselines(sys::Files& files, std::string folder, std::string words = "");

  struct Entry {
    std::string path;
    baseline::Baseline baseline;
  };
  // Returns the baselines of one cell, perhaps none. A file that cannot be read or belongs to
  // another cell is an Error that names it, as no baseline may be skipped silently.
  [[nodiscard]] Result<std::vector<baseline::Baseline>> of_cell(const profile::CellKey& cell) const;
  // Returns the baseline of a device class, if there is one.
  [[nodiscard]] Result<std::optional<baseline::Baseline>> of_class(
      const profile::CellKey& cell, const std::string& device_class) const;
  // Returns all baselines by path, at most 100 000.
  [[nodiscard]] Result<std::vector<Entry>> all() const;
  [[nodiscard]] Result<std::string> put(const baseline::Baseline& baseline);  // returns the path
  [[nodiscard]] Result<void> remove(const Entry& entry);
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] std::string words() const;

 private:
  [[nodiscard]] Result<baseline::Baseline> read(const std::string& path) const;
  sys::Files& files_;
  std::string folder_, words_;
};

// weir baseline list and show, for job.asked.cells.
struct BaselineListOptions {
  bool in_full = false;  // show everything, not one line each
};
[[nodiscard]] Result<Answer> list_baselines(const Job& job, const BaselineListOptions& wanted);

// weir baseline prune: removes baselines of cells that the configuration no longer has.
struct BaselinePruneOptions {
  bool dry = false;  // only list them
};
[[nodiscard]] Result<Answer> prune_baselines(const Job& job, const BaselinePruneOptions& wanted);

}  // namespace weir::flow
