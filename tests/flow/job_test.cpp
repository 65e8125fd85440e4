// Where a job may reuse what earlier runs left in weir's cache.
#include "gate/flow/job.hpp"

#include "tests/flow/fake_world.hpp"

namespace weir::flow {
namespace job_test {

TEST(Job, ReusesTheCacheNeitherInCiNorInAJobOfAScheduler) {
  struct Case {
    const char *variable, *value;
    bool reuses;
  };
  for (const Case& c : {Case{"USER", "me", true},
                        {"CI", "false", true},
                        {"CI", "true", false},
                        {"JENKINS_URL", "https://ci.example/", false},
                        {"SLURM_JOB_ID", "7", false},
                        {"SLURM_JOB_ID", "", true},
                        {"PBS_JOBID", "7.host", false},
                        {"LSB_JOBID", "7", false},
                        {"SGE_TASK_ID", "undefined", false},
                        {"OAR_JOB_ID", "7", false},
                        {"FLUX_JOB_ID", "f2", false},
                        {"COBALT_JOBID", "7", false},
                        {"_CONDOR_JOB_AD", "/a/.job.ad", false}}) {
    tests::FakeWorld world("version: 1\n");
    world.environment[c.variable] = c.value;
    Job job = world.job();
    EXPECT_EQ(job.reuses_cache(), c.reuses) << c.variable << "=" << c.value;
    job.trusts_cache = true;
    EXPECT_TRUE(job.reuses_cache()) << c.variable << "=" << c.value;
  }
}

TEST(Job, BreaksErrorsForATerminalAlone) {
  tests::FakeWorld world("version: 1\n");
  const Error error{Code::usage, "nowhere/engine: no such program in any folder\n  name another"};
  print_error(world.world, error);
  EXPECT_EQ(world.terminal.err, "weir: " + error.message + "\n");
  world.terminal.err.clear();
  world.terminal.width = 40;
  print_error(world.world, error);
  EXPECT_EQ(world.terminal.err,
            "weir: nowhere/engine: no such program in\n  any folder\n  name another\n");
}

}  // namespace job_test
}  // namespace weir::flow
