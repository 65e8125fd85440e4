// Tests quantiles of samples, of the normal and of Student's distribution.
#include "gate/stats/quantile.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace weir::stats {
namespace quantile_test {

TEST(Quantile, AgreesWithNumpysDefault) {
  const std::vector<double> samples = {7, 1, 3, 10};
  EXPECT_EQ(quantile(samples, 0), 1);
  EXPECT_EQ(quantile(samples, 1), 10);
  EXPECT_DOUBLE_EQ(*quantile(samples, 0.25), 2.5);  // numpy.quantile([7,1,3,10], .25)
  EXPECT_DOUBLE_EQ(*quantile(samples, 0.9), 9.1);
  EXPECT_EQ(median(samples), 5);
  EXPECT_EQ(median(std::vector<double>{4}), 4);
  EXPECT_FALSE(median({}));
}

// Reference values by scipy 1.10.1: scipy.stats.norm.ppf(p).
TEST(NormalQuantile, AgreesWithScipy) {
  struct Case {
    double p, z;
  };
  for (const auto& [p, z] : {Case{0.975, 1.959963984540054}, Case{0.995, 2.5758293035489004},
                             Case{0.501, 0.0025066308995717666}, Case{1e-10, -6.361340902404056},
                             Case{0.9, 1.2815515655446004}, Case{0.025, -1.9599639845400545}}) {
    EXPECT_NEAR(normal_quantile(p), z, 1e-13 * std::fabs(z)) << p;
  }
  EXPECT_EQ(normal_quantile(0.5), 0);
}

// df 1 and 2 have closed forms, tan(pi (p - 1/2)) and (2p - 1) / sqrt(2p (1 - p)). There scipy is
// good to 8 digits only. The others are by scipy 1.10.1: scipy.stats.t.ppf(p, df).
TEST(StudentQuantile, AgreesWithClosedFormsAndScipy) {
  constexpr double k_pi = 3.14159265358979323846;
  struct Case {
    double p, df, t;
  };
  for (const auto& [p, df, t] :
       {Case{0.975, 1, std::tan(k_pi * 0.475)}, Case{0.9995, 1, std::tan(k_pi * 0.4995)},
        Case{0.975, 2, 0.95 / std::sqrt(2 * 0.975 * 0.025)},
        Case{0.01, 2, -0.98 / std::sqrt(2 * 0.01 * 0.99)}, Case{0.975, 4, 2.7764451051977987},
        Case{0.01, 4, -3.7469473879811375}, Case{0.975, 8, 2.3060041350333704},
        Case{0.9995, 8, 5.0413054333884535}, Case{0.975, 23, 2.0686576104190406},
        Case{0.01, 23, -2.4998667394943985}, Case{0.975, 30.5, 2.04086944518632},
        Case{0.9995, 1000, 3.300282648423858}}) {
    EXPECT_NEAR(student_quantile(p, df), t, 1e-9 * std::fabs(t)) << p << " " << df;
  }
  EXPECT_EQ(student_quantile(0.5, 3), 0);
}

}  // namespace quantile_test
}  // namespace weir::stats
