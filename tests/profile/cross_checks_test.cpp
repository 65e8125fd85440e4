// Kernels by name compared with the count of dispatches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/profile/assemble.hpp"

namespace weir::profile {
namespace cross_checks_test {

using testing::ElementsAre;
using testing::IsEmpty;

Profile sixty_five_dispatches() {
  Profile profile;
  profile.device = "vulkan";
  Measurement measured;
  measured.metric = *unit::find_metric("dispatches_per_token");
  measured.exact = Rational(65);
  measured.source = "vulkan";
  profile.metrics["dispatches_per_token"] = measured;
  profile.kernels = KernelSet{unit::Scope::per_token, {}, true, {{"a", 60}, {"b", 5}}};
  return profile;
}

TEST(CrossChecks, HoldKernelsByNameAgainstTheCountOfDispatches) {
  Profile profile = sixty_five_dispatches();
  EXPECT_THAT(cross_checks(profile), IsEmpty());
  profile.kernels->counts["b"] = 4;
  EXPECT_THAT(cross_checks(profile),
              ElementsAre("kernels by name add up to 64, dispatches were counted 65"));
}

// The engine counts dispatches itself; the ggml probe counts ops. A fused dispatch has several ops.
TEST(CrossChecks, LeaveOpsBesideAnEnginesOwnCountAlone) {
  Profile profile = sixty_five_dispatches();
  profile.kernels->counts["b"] = 21;
  profile.metrics["dispatches_per_token"].source = "agave";
  EXPECT_THAT(cross_checks(profile), IsEmpty());
}

}  // namespace cross_checks_test
}  // namespace weir::profile
