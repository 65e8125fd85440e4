#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

constexpr std::string_view k_twin_class = "twin-";
constexpr std::size_t k_most_told = 6;

// "vulkan-VENDOR-DEVICE-DRIVER-VERSION-FEATURES", as the probe writes it.
struct DeviceIds {
  std::string api, vendor, device, driver, version, features;
  [[nodiscard]] bool same_device(const DeviceIds& other) const {
    return vendor == other.vendor && device == other.device;
  }
};

std::optional<DeviceIds> ids_of(const Profile& profile) {
  const std::vector<std::string> parts = text::split(profile.provenance.seen_class, '-');
  if (parts.size() != 6) return std::nullopt;
  return DeviceIds{parts[0], parts[1], parts[2], parts[3], parts[4], parts[5]};
}

std::optional<std::string> twin_of(const Profile& profile) {
  const std::string& device_class = profile.provenance.device_class;
  if (!device_class.starts_with(k_twin_class)) return std::nullopt;
  return device_class.substr(k_twin_class.size());
}

bool same_work_asked(const profile::CellKey& a, const profile::CellKey& b) {
  profile::CellKey there = a;
  there.backend = b.backend;
  return there == b;
}

enum class Likeness { other, other_driver, same };

Likeness likeness(const Profile& twin, const Profile& real) {
  const auto described = ids_of(twin), here = ids_of(real);
  if (!described || !here || described->api != here->api) return Likeness::other;
  if (described->same_device(*here)) {
    return described->driver == here->driver ? Likeness::same : Likeness::other_driver;
  }
  const std::string& name = twin.provenance.seen_name;
  return !name.empty() && name == real.provenance.seen_name ? Likeness::same : Likeness::other;
}

// What may explain a difference, besides the description's own fields.
std::vector<std::string> other_ways(const Profile& twin, const Profile& real) {
  std::vector<std::string> about;
  if (const auto described = ids_of(twin), here = ids_of(real); described && here) {
    if (!described->same_device(*here) || described->driver != here->driver) {
      about.push_back(fmt::format("device {}:{} with driver id {} described, {}:{} with {} here",
                                  described->vendor, described->device, described->driver,
                                  here->vendor, here->device, here->driver));
    }
    if (described->version != here->version) {
      about.push_back(fmt::format("driver version 0x{} described, 0x{} here", described->version,
                                  here->version));
    }
    if (described->features != here->features) {
      about.emplace_back("features, limits or extensions described are not those here");
    }
  }
  const auto& mine = twin.provenance.fingerprint_parts;
  for (const std::string& part : profile::other_parts(real.provenance.fingerprint_parts, mine)) {
    about.push_back(fmt::format("the two cells differ in their {}", part));
  }
  return about;
}

bool counted(const Profile& profile) { return profile.counted_runs > 0 && profile.errors.empty(); }

bool is_device_count(const Measurement& measured) {
  // What the processor did says nothing of the device.
  return measured.metric.kind == unit::Kind::count && measured.metric.base != "instructions" &&
         measured.source != "host";
}

void compare_counts(const Profile& twin, const Profile& real, TwinCheck& check) {
  for (const auto& [name, mine] : twin.metrics) {
    if (!is_device_count(mine)) continue;
    const Measurement* found = look_up(real.metrics, name);
    const auto here = found != nullptr ? found->exact : std::nullopt;
    const bool both = mine.exact && here;  // one that varies tells nothing
    if (both) ++check.compared;
    if (found == nullptr || (both && *mine.exact != *here)) {
      check.differences.push_back({mine.metric.name, mine.exact, here});
    }
  }
  for (const auto& [name, theirs] : real.metrics) {
    if (is_device_count(theirs) && !twin.metrics.contains(name)) {
      check.differences.push_back({theirs.metric.name, std::nullopt, theirs.exact});
    }
  }
  // What loading took comes behind what each token takes.
  std::stable_partition(check.differences.begin(), check.differences.end(),
                        [](const TwinDifference& one) {
                          const auto metric = unit::find_metric(one.name);
                          return !metric || metric->scope != unit::Scope::fixed;
                        });
}

void compare_kernels(const Profile& twin, const Profile& real, TwinCheck& check) {
  const auto& mine = twin.kernels;
  const auto& theirs = real.kernels;
  if (!mine || !theirs || !mine->named || !theirs->named || mine->varies || theirs->varies ||
      mine->scope != theirs->scope || mine->length != theirs->length) {
    return;
  }
  check.kernels_compared = true;
  for (Changed& one : differences(mine->counts, theirs->counts)) {
    check.kernels.push_back({std::move(one.name), one.baseline, one.current});
  }
  std::stable_partition(check.kernels.begin(), check.kernels.end(),
                        [](const auto& one) { return one.twin.has_value(); });
}

std::string told(const std::vector<TwinDifference>& all, bool of_metrics) {
  std::vector<std::string> words;
  for (const TwinDifference& one : all) {
    if (words.size() == k_most_told) break;
    const auto metric = of_metrics ? unit::find_metric(one.name) : std::nullopt;
    const auto number = [&](const std::optional<Rational>& count) {
      return count ? count->str() : std::string(of_metrics ? "not counted" : "0");
    };
    words.push_back(fmt::format("{} {} ({} on the device)",
                                metric ? unit::label(*metric) : one.name, number(one.twin),
                                number(one.real)));
  }
  if (all.size() > words.size()) {
    words.push_back(fmt::format("and {} more", all.size() - words.size()));
  }
  return text::join(words);
}

std::string warning_of(const TwinCheck& check) {
  std::string out = fmt::format("the twin {} does not count as the real device does: ", check.twin);
  out += told(check.differences, true);
  if (!check.kernels.empty()) {
    out += fmt::format("{}kernels {}", check.differences.empty() ? "" : "; ",
                       told(check.kernels, false));
  }
  out += ". ";
  if (!check.about.empty())
    out += fmt::format("Known besides: {}. ", text::join(check.about, "; "));
  out += "weir device record describes the device as it is here.";
  return out;
}

// The real device's cell that was run most alike.
const Profile* partner_of(const Profile& twin, std::span<const Profile> profiles,
                          bool& other_driver) {
  const Profile* best = nullptr;
  std::size_t least = 0;
  for (const Profile& real : profiles) {
    if (twin_of(real) || real.device != twin.device || !counted(real) ||
        !same_work_asked(twin.cell, real.cell)) {
      continue;
    }
    const Likeness alike = likeness(twin, real);
    other_driver = other_driver || alike == Likeness::other_driver;
    if (alike != Likeness::same) continue;
    const std::size_t ways = other_ways(twin, real).size();
    if (best == nullptr || ways < least) {
      best = &real;
      least = ways;
    }
  }
  return best;
}

// Of one twin, over all cells.
struct Tally {
  std::string device;
  std::int64_t counts = 0;
  std::size_t cells = 0, unequal = 0, without_kernels = 0;
};

std::string note_of(const std::string& twin, const Tally& tally) {
  if (tally.cells == 0) {
    return fmt::format(
        "twin {}: the device it describes is here with another driver, so the two were not "
        "compared",
        twin);
  }
  const std::string cells = plural(tally.cells, "cell");
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

std::vector<std::string> check_twins(std::span<const Profile> profiles,
                                     std::span<CellVerdict> cells) {
  std::map<std::string, Tally> tallies;
  for (std::size_t i = 0; i < profiles.size() && i < cells.size(); ++i) {
    const Profile& mine = profiles[i];
    const auto twin = twin_of(mine);
    if (!twin || !counted(mine)) continue;
    bool other_driver = false;
    const Profile* real = partner_of(mine, profiles, other_driver);
    if (real == nullptr) {
      if (other_driver) tallies[*twin];  // told, and nothing was compared
      continue;
    }
    TwinCheck check;
    check.twin = *twin;
    check.device = real->provenance.seen_name;
    check.against = real->cell;
    check.about = other_ways(mine, *real);
    compare_counts(mine, *real, check);
    compare_kernels(mine, *real, check);
    Tally& tally = tallies[*twin];
    tally.device = check.device;
    ++tally.cells;
    tally.counts += check.compared;
    tally.unequal += check.equal() ? 0 : 1;
    tally.without_kernels += check.kernels_compared ? 0 : 1;
    if (!check.equal()) cells[i].warnings.push_back(warning_of(check));
    cells[i].twin_check = std::move(check);
  }
  return collect<std::string>(tallies,
                              [](const auto& one) { return note_of(one.first, one.second); });
}

}  // namespace weir::verdict
