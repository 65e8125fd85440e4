// Compares cells that ran on a device twin with the same cells on the device that it describes.
#include "gate/base/text.hpp"
#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

constexpr std::string_view k_twin_class = "twin-";
constexpr std::size_t k_max_parts = 6;
// Several twins may be compared with one cell, so that its numbers count for each.
constexpr std::size_t k_max_compared = 100'000;  // numbers of both sides, over all twins
constexpr std::size_t k_max_backends = 64;       // with the device of a twin, that are looked at

// "vulkan-VENDOR-DEVICE-DRIVER-VERSION-FEATURES", as the probe writes it.
struct DeviceIds {
  std::string api, vendor, device, driver, version, features;
  [[nodiscard]] bool same_device(const DeviceIds& other) const {
    return vendor == other.vendor && device == other.device;
  }
};

std::optional<DeviceIds> device_ids(const Profile& profile) {
  const std::vector<std::string> parts = text::split(profile.provenance.probed_device_class, '-');
  if (parts.size() != 6) return std::nullopt;
  return DeviceIds{parts[0], parts[1], parts[2], parts[3], parts[4], parts[5]};
}

// The name of the device twin that the profile was measured on; nothing for a real device.
std::optional<std::string> twin_name(const Profile& profile) {
  const std::string& device_class = profile.provenance.device_class;
  if (!device_class.starts_with(k_twin_class)) return std::nullopt;
  return device_class.substr(k_twin_class.size());
}

enum class DeviceMatch { other, other_driver, same };

// A cell on a device that no description stands for.
struct RealCell {
  const Profile* profile;
  std::optional<DeviceIds> ids;
};

// Compares the device that a twin describes with a real one: by ids, or else by name.
DeviceMatch match_device(const Profile& twin, const std::optional<DeviceIds>& described,
                         const RealCell& real) {
  const auto& here = real.ids;
  if (!described || !here || described->api != here->api) return DeviceMatch::other;
  if (described->same_device(*here)) {
    return described->driver == here->driver ? DeviceMatch::same : DeviceMatch::other_driver;
  }
  const std::string& name = twin.provenance.probed_device_name;
  return !name.empty() && name == real.profile->provenance.probed_device_name ? DeviceMatch::same
                                                                              : DeviceMatch::other;
}

// Lists how the twin's run (on a simulated GPU) differs from the real device's, besides counts:
// ids, driver, features, and parts of the fingerprint.
std::vector<std::string> list_other_differences(const Profile& twin, const Profile& real) {
  std::vector<std::string> differences;
  if (const auto twin_ids = device_ids(twin), real_ids = device_ids(real); twin_ids && real_ids) {
    if (!twin_ids->same_device(*real_ids) || twin_ids->driver != real_ids->driver) {
      differences.push_back(
          fmt::format("device {}:{} with driver id {} described, {}:{} with {} here",
                      twin_ids->vendor, twin_ids->device, twin_ids->driver, real_ids->vendor,
                      real_ids->device, real_ids->driver));
    }
    if (twin_ids->version != real_ids->version) {
      differences.push_back(fmt::format("driver version 0x{} described, 0x{} here",
                                        twin_ids->version, real_ids->version));
    }
    if (twin_ids->features != real_ids->features) {
      differences.emplace_back("features, limits or extensions described are not those here");
    }
  }
  const auto& twin_parts = twin.provenance.fingerprint_parts;
  for (const std::string& part :
       profile::other_parts(real.provenance.fingerprint_parts, twin_parts)) {
    differences.push_back(fmt::format("the two cells differ in their {}", part));
  }
  return differences;
}

bool was_counted(const Profile& profile) {
  return profile.counted_runs > 0 && profile.errors.empty();
}

bool is_device_count(const Measurement& measured) {
  // Counts of the processor say nothing about the device.
  return measured.metric.kind == unit::Kind::count && measured.metric.base != "instructions" &&
         measured.source != "host";
}

// Compares the exact counts of a run on a simulated GPU with the real device's. Stores those that
// differ, or that one side lacks, with counts of loading last.
void compare_counts(const Profile& twin, const Profile& real, TwinCheck& check) {
  for (const auto& [name, twin_measured] : twin.metrics) {
    if (!is_device_count(twin_measured)) continue;
    const Measurement* real_match = look_up(real.metrics, name);
    const auto real_count = real_match != nullptr ? real_match->exact : std::nullopt;
    const bool are_exact =
        twin_measured.exact && real_count;  // a count that varies is not compared
    if (are_exact) ++check.compared;
    if (real_match == nullptr || (are_exact && *twin_measured.exact != *real_count)) {
      check.differences.push_back({twin_measured.metric.name, twin_measured.exact, real_count});
    }
  }
  for (const auto& [name, real_measured] : real.metrics) {
    if (is_device_count(real_measured) && !twin.metrics.contains(name)) {
      check.differences.push_back({real_measured.metric.name, std::nullopt, real_measured.exact});
    }
  }
  // Counts of loading come last.
  std::stable_partition(check.differences.begin(), check.differences.end(),
                        [](const TwinDifference& difference) {
                          const auto metric = unit::find_metric(difference.name);
                          return !metric || metric->scope != unit::Scope::fixed;
                        });
}

// Compares how often each kernel ran on the simulated GPU and on the real one. Does nothing if a
// side has no names of kernels, or varies.
void compare_kernels(const Profile& twin, const Profile& real, TwinCheck& check) {
  const auto& twin_kernels = twin.kernels;
  const auto& real_kernels = real.kernels;
  if (!twin_kernels || !real_kernels || !twin_kernels->has_names || !real_kernels->has_names ||
      twin_kernels->runs_disagree || real_kernels->runs_disagree ||
      twin_kernels->scope != real_kernels->scope || twin_kernels->length != real_kernels->length) {
    return;
  }
  check.kernels_compared = true;
  for (Changed& kernel : differences(twin_kernels->counts, real_kernels->counts)) {
    check.kernels.push_back({std::move(kernel.name), kernel.baseline, kernel.current});
  }
  std::stable_partition(check.kernels.begin(), check.kernels.end(),
                        [](const auto& difference) { return difference.twin.has_value(); });
}

enum class DifferenceKind { metric, kernel };

// Returns "dispatches/token 65 (66 on the device), and 3 more": each difference with the twin's
// count and the real one.
std::string differences_text(const std::vector<TwinDifference>& all, DifferenceKind kind) {
  const bool are_metrics = kind == DifferenceKind::metric;
  std::vector<std::string> parts;
  for (const TwinDifference& difference : all) {
    if (parts.size() == k_max_parts) break;
    const auto metric = are_metrics ? unit::find_metric(difference.name) : std::nullopt;
    const std::string label = metric ? unit::display_name(*metric) : difference.name;
    const char* without_count = are_metrics ? "not counted" : "0";
    const auto count_text = [&](const std::optional<Rational>& count) {
      return count ? count->str() : without_count;
    };
    parts.push_back(fmt::format("{} {} ({} on the device)", label, count_text(difference.twin),
                                count_text(difference.real)));
  }
  if (all.size() > parts.size()) {
    parts.push_back(fmt::format("and {} more", all.size() - parts.size()));
  }
  return text::join(parts);
}

// Returns the warning that a twin (simulated GPU) counts otherwise than the real device, with the
// differences that may explain it.
std::string warning_text(const TwinCheck& check) {
  std::string out = fmt::format("the twin {} does not count as the real device does: ", check.twin);
  out += differences_text(check.differences, DifferenceKind::metric);
  if (!check.kernels.empty()) {
    if (!check.differences.empty()) out += "; ";
    out += "kernels " + differences_text(check.kernels, DifferenceKind::kernel);
  }
  out += ". ";
  if (!check.about.empty()) {
    out += fmt::format("Known besides: {}. ", text::join(check.about, "; "));
  }
  out += "weir device record describes the device as it is here.";
  return out;
}

// The cells that ran on real devices, by what a twin's cell has to share with them.
class RealCells {
 public:
  explicit RealCells(std::span<const Profile> profiles) {
    for (const Profile& real : profiles) {
      if (!twin_name(real) && was_counted(real)) {
        cells_[shared_key(real)].push_back({&real, device_ids(real)});
      }
    }
  }

  // The cell on the twin's device with the fewest other differences; null if there is none.
  // `other_driver` is set if one ran with another driver.
  [[nodiscard]] const Profile* find(const Profile& twin, bool& other_driver) const {
    const std::vector<RealCell>* cells = look_up(cells_, shared_key(twin));
    if (cells == nullptr) return nullptr;
    const auto described = device_ids(twin);
    const Profile* best = nullptr;
    std::size_t fewest_differences = 0, backends = 0;
    for (const RealCell& real : *cells) {
      const DeviceMatch match = match_device(twin, described, real);
      other_driver = other_driver || match == DeviceMatch::other_driver;
      if (match != DeviceMatch::same) continue;
      ++backends;
      if (backends > k_max_backends) break;
      const std::size_t ways = list_other_differences(twin, *real.profile).size();
      if (best == nullptr || ways < fewest_differences) {
        best = real.profile;
        fewest_differences = ways;
      }
    }
    return best;
  }

 private:
  // Everything of a cell's name but its backend, and its device.
  static std::pair<profile::CellKey, std::string> shared_key(const Profile& profile) {
    profile::CellKey key = profile.cell;
    key.backend.clear();
    return {std::move(key), profile.device};
  }

  std::map<std::pair<profile::CellKey, std::string>, std::vector<RealCell>> cells_;
};

// Returns how many numbers a comparison of the two looks at.
std::size_t count_numbers(const Profile& twin, const Profile& real) {
  std::size_t numbers = 0;
  for (const Profile* profile : {&twin, &real}) {
    numbers += profile->metrics.size();
    if (profile->kernels) numbers += profile->kernels->counts.size();
  }
  return numbers;
}

// The results of one twin, over all cells.
struct Tally {
  std::string device;
  std::int64_t counts = 0;
  std::size_t cells = 0, unequal = 0, without_kernels = 0;
  std::size_t left_out = 0;  // cells beyond k_max_compared
};

// Returns one line on a twin (simulated GPU): how many of its cells were compared with the real
// device, and how many differ.
std::string summary_text(const std::string& twin, const Tally& tally) {
  if (tally.left_out > 0) {
    return fmt::format(
        "twin {}: {} of {} not compared with the real device: more than {} numbers in all; gate "
        "fewer cells at once, with --cell",
        twin, tally.left_out, text::plural(tally.cells + tally.left_out, "cell"), k_max_compared);
  }
  if (tally.cells == 0) {
    return fmt::format(
        "twin {}: the device it describes is here with another driver, so the two were not "
        "compared",
        twin);
  }
  const std::string cells = text::plural(tally.cells, "cell");
  const std::string head = fmt::format("twin {} against the real {}: ", twin, tally.device);
  if (tally.unequal > 0) {
    return head + fmt::format("{} of {} {}", tally.unequal, cells,
                              tally.unequal == 1 ? "differs" : "differ");
  }
  return head + fmt::format("{} counts of {} equal{}", tally.counts, cells,
                            tally.without_kernels == 0 ? ", and their kernels"
                                                       : "; not all kernels could be compared");
}

}  // namespace

// Compares each cell on a twin (simulated GPU) with its cell on the real device, up to
// k_max_compared numbers. Differences become warnings of the cell; returns one line for each twin.
std::vector<std::string> check_twins(std::span<const Profile> profiles,
                                     std::span<CellVerdict> cells) {
  const RealCells real_cells(profiles);
  std::size_t numbers_compared = 0;
  std::map<std::string, Tally> tallies;
  for (std::size_t i = 0; i < profiles.size() && i < cells.size(); ++i) {
    const Profile& twin_profile = profiles[i];
    const auto twin_device = twin_name(twin_profile);
    if (!twin_device || !was_counted(twin_profile)) continue;
    bool other_driver = false;
    const Profile* real = real_cells.find(twin_profile, other_driver);
    if (real == nullptr) {
      if (other_driver) tallies[*twin_device];  // an entry without cells: nothing was compared
      continue;
    }
    numbers_compared += count_numbers(twin_profile, *real);
    if (numbers_compared > k_max_compared) {
      ++tallies[*twin_device].left_out;
      continue;
    }
    TwinCheck check;
    check.twin = *twin_device;
    check.device = real->provenance.probed_device_name;
    check.against = real->cell;
    check.about = list_other_differences(twin_profile, *real);
    compare_counts(twin_profile, *real, check);
    compare_kernels(twin_profile, *real, check);
    Tally& tally = tallies[*twin_device];
    tally.device = check.device;
    ++tally.cells;
    tally.counts += check.compared;
    tally.unequal += check.equal() ? 0 : 1;
    tally.without_kernels += check.kernels_compared ? 0 : 1;
    if (!check.equal()) cells[i].warnings.push_back(warning_text(check));
    cells[i].twin_check = std::move(check);
  }
  return collect<std::string>(
      tallies, [](const auto& entry) { return summary_text(entry.first, entry.second); });
}

}  // namespace weir::verdict
