// Data of pictures of a load. Numbers are invented.
#include "gate/profile/load_picture.hpp"

#include <limits>

#include <gmock/gmock.h>

namespace weir::profile {
namespace load_picture_test {

using ::testing::ElementsAre;

// Builds requests one second apart from their durations.
std::vector<std::int64_t> requests(const std::vector<std::int64_t>& durations) {
  std::vector<std::int64_t> latencies;
  for (std::size_t i = 0; i < durations.size(); ++i) {
    const std::int64_t begun = static_cast<std::int64_t>(i) * 1'000'000;
    latencies.insert(latencies.end(), {begun, durations[i] / 2, durations[i]});
  }
  return latencies;
}

std::vector<std::int64_t> thin_durations(const std::vector<std::int64_t>& durations,
                                         std::size_t most) {
  const std::vector<std::int64_t> thin = thin_latencies(requests(durations), most);
  std::vector<std::int64_t> left;
  for (std::size_t i = 2; i < thin.size(); i += k_latencies_of_request) left.push_back(thin[i]);
  return left;
}

TEST(LoadPicture, RequestsAreTheFastestAndSlowestOfEveryFewInTheirOrder) {
  EXPECT_THAT(thin_durations({5, 9, 7, 1, 8, 6}, 6), ElementsAre(5, 9, 7, 1, 8, 6));
  EXPECT_THAT(thin_durations({5, 9, 7, 1, 8, 6}, 4), ElementsAre(5, 9, 1, 8));
  EXPECT_THAT(thin_durations({5, 9, 7, 1, 8, 6}, 5), ElementsAre(5, 9, 1, 8))
      << "two of each group";
  EXPECT_THAT(thin_durations({3, 3, 3, 3}, 2), ElementsAre(3)) << "all alike: one is enough";
  EXPECT_THAT(thin_durations({}, 2), ElementsAre());
}

TEST(LoadPicture, HalfARequestIsNone) {
  std::vector<std::int64_t> latencies = requests({5, 9});
  latencies.pop_back();
  EXPECT_THAT(thin_latencies(latencies, 400), ElementsAre(0, 2, 5));
}

TEST(LoadPicture, BarsOfAHostileJournalAddUpToWhatANumberHolds) {
  constexpr std::int64_t k_max_tokens = std::numeric_limits<std::int64_t>::max();
  std::map<std::int64_t, std::int64_t> batches;
  for (std::int64_t tokens = 1; tokens <= 32; ++tokens) batches[tokens] = k_max_tokens;
  for (int power = 6; power < 63; ++power) batches[std::int64_t{1} << power] = 1;
  const std::vector<BatchBar> bars = batch_bars(batches);
  EXPECT_LE(bars.size(), k_max_batch_bars);
  EXPECT_EQ(bars.at(5), (BatchBar{17, 32, k_max_tokens}));
}

}  // namespace load_picture_test
}  // namespace weir::profile
