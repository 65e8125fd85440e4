// Tests explanations of changes in device memory and in the number of pipelines.
#include <gmock/gmock.h>

#include "tests/explain/build.hpp"

namespace weir::explain {
namespace memory_test {

using test::best;
using test::evidence;
using test::side;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A model of four layers of two heads of 64: 1024 numbers a token.
ModelFacts model() {
  auto header = test::header({});
  const auto own = [&](const char* key, std::uint32_t value) {
    header.metadata.emplace_back(std::string("test.") + key, model::GgufValue::u32(value));
  };
  own("block_count", 4);
  own("embedding_length", 256);
  own("attention.head_count", 4);
  own("attention.head_count_kv", 2);
  own("attention.key_length", 64);
  own("attention.value_length", 64);
  for (int i = 0; i < 4; ++i) {
    header.tensors.push_back({"blk." + std::to_string(i) + ".attn_q.weight", {256, 256}, 0, 0});
  }
  return model_facts(header);
}

TEST(ModelFacts, SayWhatACacheKeepsOfAToken) {
  EXPECT_EQ(model().cached_numbers, 1024);
  EXPECT_EQ(model().cached_numbers_text, "4 layers \u00d7 2 \u00d7 2 heads \u00d7 64");
  EXPECT_EQ(test::qwen().cached_numbers, std::nullopt) << "its header says no sizes";
}

TEST(GrownMemory, IsExplainedByWhatItIsForInCausalOrder) {
  const test::Counts before = {{"weights_bytes", 6'562'816},
                               {"kv_cache_bytes", 524'288},
                               {"compute_bytes", 194'880},
                               {"device_memory_peak_bytes", 7'233'952}};
  struct Case {
    const char* what;
    std::map<std::string, std::int64_t> after;
    std::string metric, headline, line;
  };
  // Sizes measured with real llama.cpp (docs/evidence/memory.md), except for the weights.
  const Case cases[] = {
      {"a longer cache",
       {{"kv_cache_bytes", 1'048'576},
        {"compute_bytes", 4'143'424},
        {"device_memory_peak_bytes", 10'916'256}},
       "kv_cache_bytes",
       "The KV cache takes more memory.",
       "kv cache: 512 KiB = 256 tokens of f16 to 1.00 MiB = 512 tokens of f16 or 256 tokens "
       "of f32 (+512 KiB)"},
      {"other weights",
       {{"weights_bytes", 3'281'408}, {"device_memory_peak_bytes", 3'952'544}},
       "weights_bytes",
       "The weights take less memory.",
       "weights: 6.26 MiB to 3.13 MiB (\u22123.13 MiB)"},
      {"what ggml has no buffers for",
       {{"device_memory_peak_bytes", 7'238'048}},
       "device_memory_peak_bytes",
       "The engine takes more memory.",
       "device memory peak: 6.90 MiB to 6.90 MiB (+4.00 KiB)"}};
  const ModelFacts facts = model();
  for (const Case& entry : cases) {
    test::Counts after = before;
    for (const auto& [name, value] : entry.after) after[name] = value;
    const auto why = explain(evidence(side(before), side(after)), &facts, {});
    ASSERT_EQ(why.findings.size(), 1U) << entry.what;
    EXPECT_EQ(why.findings[0].kind, "memory_changed");
    EXPECT_EQ(why.findings[0].metric, entry.metric);
    EXPECT_EQ(why.findings[0].headline, entry.headline);
    EXPECT_THAT(why.findings[0].lines, Contains(entry.line)) << entry.what;
  }
}

// llama.cpp with and without -fa (sizes invented). A lost fusion stores more results; the hint
// "-fa, fused ops" would lead away from the reason.
TEST(GrownMemory, SaysWhereToLookOnlyWhereNothingElseDoes) {
  const auto with = [](std::int64_t compute, const test::Counts& kernels) {
    return side({{"dispatches", 24}, {"compute_bytes", compute}}, kernels);
  };
  const test::Counts fused = {{"mul_mat_vec", 12}, {"rms_norm_mul", 12}};
  const test::Counts counts = {{"mul_mat_vec", 12}, {"rms_norm", 12}, {"mul", 12}};
  const auto look_at = [](const Explanation& why) {
    const auto match = std::ranges::find(why.findings, "memory_changed", &Finding::kind);
    return match == why.findings.end() ? "no finding" : match->look_at;
  };
  const auto alone = explain(evidence(with(100, fused), with(200, fused)), nullptr, {});
  EXPECT_THAT(look_at(alone), HasSubstr("flash attention"));
  const auto caused = explain(evidence(with(100, fused), with(200, counts)), nullptr, {});
  EXPECT_EQ(caused.findings.front().kind, "fusion_lost");
  EXPECT_EQ(look_at(caused), "");
}

// llama.cpp with -nkvo 1: the cache left the device, and results of attention are copied to the
// cache.
TEST(GrownMemory, IsToldApartFromWhatFell) {
  const auto why =
      explain(evidence(side({{"compute_bytes", 194'880}, {"device_memory_peak_bytes", 8'011'072}}),
                       side({{"compute_bytes", 324'608}, {"device_memory_peak_bytes", 7'616'576}})),
              nullptr, {});
  ASSERT_EQ(why.findings.size(), 2U);
  EXPECT_EQ(why.findings[0].headline, "Intermediate results take more memory.");
  EXPECT_THAT(why.findings[0].lines, ElementsAre("compute: 190 KiB to 317 KiB (+127 KiB)"));
  EXPECT_EQ(why.findings[1].headline, "The engine takes less memory.");
  EXPECT_THAT(why.findings[1].lines,
              ElementsAre("device memory peak: 7.64 MiB to 7.26 MiB (\u2212385 KiB)"));
}

TEST(Allocations, ThatCameWithEachTokenAreAFinding) {
  const auto why = explain(
      evidence(side({{"dispatches", 65}, {"allocations", 0}, {"device_memory_peak_bytes", 100}}),
               side({{"dispatches", 65}, {"allocations", 11}, {"device_memory_peak_bytes", 120}})),
      nullptr, {});
  ASSERT_EQ(why.findings.size(), 2U);
  EXPECT_EQ(why.findings[0].headline, "Devices are asked for memory more often a token.");
  EXPECT_THAT(why.findings[0].lines, ElementsAre("+11 allocations"));
}

TEST(Pipelines, AreMadeLateWhereOnlyLongerRunsHaveThem) {
  struct Case {
    const char* what;
    std::vector<std::int64_t> now;  // at 4, 8 and 12 tokens; 11 before
    std::string headline;           // "": none
  };
  const Case cases[] = {
      {"the longest run",
       {11, 11, 12},
       "A pipeline is made between token 8 and 12: it waits until they are compiled."},
      {"some in the middle",
       {11, 14, 14},
       "Pipelines are made between token 4 and 8: it waits until they are compiled."},
      {"all of them", {12, 12, 12}, ""},
      {"fewer", {11, 10, 10}, ""}};
  for (const Case& entry : cases) {
    test::Counts before = {{"dispatches", 65}}, after = before;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::string name = "pipelines_at_" + std::to_string(4 * (i + 1));
      before[name] = 11;
      after[name] = entry.now[i];
    }
    const auto why = explain(evidence(side(before), side(after)), nullptr, {});
    if (entry.headline.empty()) {
      EXPECT_THAT(why.findings, IsEmpty()) << entry.what;
      continue;
    }
    ASSERT_FALSE(why.findings.empty()) << entry.what;
    EXPECT_EQ(why.findings[0].kind, "made_late");
    EXPECT_EQ(why.findings[0].headline, entry.headline) << entry.what;
  }
  const auto each = explain(evidence(side({{"dispatches", 65}, {"pipelines", 0}}),
                                     side({{"dispatches", 65}, {"pipelines", 2}})),
                            nullptr, {});
  ASSERT_EQ(each.findings.size(), 1U);
  EXPECT_THAT(each.findings[0].headline, HasSubstr("for each token"));
  const auto fewer = explain(evidence(side({{"dispatches", 65}, {"pipelines", 2}, {"syncs", 1}}),
                                      side({{"dispatches", 65}, {"pipelines", 0}, {"syncs", 2}})),
                             nullptr, {});
  ASSERT_EQ(fewer.findings.size(), 2U);
  EXPECT_EQ(fewer.findings[0].kind, "sync_added") << "what is worse comes first";
  EXPECT_EQ(fewer.findings[1].headline, "Fewer pipelines are made for each token.");
}

// One pipeline is made in a burst of 128 tokens. If other kernels ran, it belongs to them.
TEST(Pipelines, OfABurstAreMadeWhileRequestsAreServed) {
  const auto with = [](const Rational& pipelines, const char* matmul) {
    Side changed = side({{"dispatches", 65}}, {{matmul, 25}});
    changed.metrics["pipelines_per_token"] = {pipelines, {}};
    return changed;
  };
  const Rational rational = *Rational::make(1, 128);
  const auto alone =
      explain(evidence(with(0, "matmul_f16"), with(rational, "matmul_f16")), nullptr, {});
  ASSERT_EQ(alone.findings.size(), 1U);
  EXPECT_EQ(alone.findings[0].headline,
            "Pipelines are made while requests are served: requests wait until they are compiled.");
  const auto others =
      explain(evidence(with(0, "matmul_f16_cm1"), with(rational, "matmul_f16")), nullptr, {});
  ASSERT_FALSE(others.findings.empty());
  EXPECT_EQ(others.findings[0].kind, "variant_changed");
}

// llama.cpp with four times the context (recorded).
TEST(GrownMemory, OfACacheComesBeforeTheKernelThatReadsIt) {
  const auto before =
      side({{"dispatches", 73}, {"kv_cache_bytes", 524'288}}, {{"mul_mat_vec_f16_f32_f32", 33}});
  const auto after = side({{"dispatches", 73}, {"kv_cache_bytes", 2'097'152}},
                          {{"mul_mat_vec_f16_f32_f32", 29}, {"mul_mat_vec_nc_f16_f32", 4}});
  const auto why = explain(evidence(before, after), nullptr, {});
  ASSERT_EQ(why.findings.size(), 2U);
  EXPECT_EQ(why.findings[0].headline, "The KV cache takes more memory.");
  EXPECT_EQ(why.findings[1].kind, "variant_changed");
}

// llama.cpp for CUDA with a cache of q8_0 (recorded): kernels of its own rotate it first.
TEST(GrownMemory, OfACacheComesBeforeWorkThatItsTypeNeeds) {
  const auto with = [](std::int64_t bytes, std::int64_t rotations) {
    return side({{"dispatches", 57 + rotations}, {"kv_cache_bytes", bytes}},
                {{"mul_mat_vec_f", 57}, {"fwht_cuda", rotations}});
  };
  const auto first = [](const Side& before, const Side& after) {
    return explain(evidence(before, after), nullptr, {}).findings.front().kind;
  };
  EXPECT_EQ(first(with(524'288, 0), with(282'624, 16)), "memory_changed");
  EXPECT_EQ(first(with(524'288, 0), with(524'320, 16)), "op_added") << "padding is no setting";
}

TEST(GrownMemory, ComesBeforeTheFixedPartThatItIsTakenIn) {
  const auto with = [](std::int64_t allocations, std::int64_t peak) {
    return side({{"dispatches", 19},
                 {"allocations_fixed", allocations},
                 {"device_memory_peak_bytes", peak}});
  };
  const auto why = explain(evidence(with(5, 20'480), with(6, 282'624)), nullptr, {});
  ASSERT_EQ(why.findings.size(), 2U);
  EXPECT_EQ(why.findings[0].headline, "The engine takes more memory.");
  EXPECT_EQ(why.findings[1].headline,
            "Devices are asked for memory more often at the start; no count a token changed.");
  EXPECT_EQ(why.findings[1].kind, "memory_changed");
}

// llama.node 1.4.12 with swa_full (recorded): layers with a window keep the whole cache. One
// barrier of 96 is new.
TEST(GrownMemory, ComesBeforeAFewBarriersOfMany) {
  const auto first = [](std::int64_t barriers, std::int64_t peak) {
    const auto before = side({{"barriers", 96}, {"device_memory_peak_bytes", 20'418'336}});
    const auto after = side({{"barriers", barriers}, {"device_memory_peak_bytes", peak}});
    return explain(evidence(before, after), nullptr, {}).findings.front().kind;
  };
  EXPECT_EQ(first(97, 24'612'640), "memory_changed");
  EXPECT_EQ(first(106, 24'612'640), "batching_lost") << "a tenth of the barriers";
  EXPECT_EQ(first(97, 20'618'336), "batching_lost") << "1 % more memory";
}

// Dawn allocates memory in blocks, so only buffers show a longer cache (recorded).
TEST(GrownMemory, OfBuffersWithinWhatWasTakenIsTold) {
  const auto with = [](std::int64_t bytes) {
    return side({{"dispatches", 47}, {"bound_buffer_peak_bytes", bytes}});
  };
  EXPECT_EQ(best(explain(evidence(with(118'864), with(1'347'664)), nullptr, {}))->headline,
            "Buffers take more memory.");
}

// llama.cpp without memory that both CPU and GPU can see (recorded): it writes the same tensors.
TEST(CopiesThroughOtherMemory, ComeBeforeTheWaitsForThem) {
  test::Counts before = {{"dispatches", 73}, {"copies", 2}, {"syncs", 1}, {"tensor_sets", 8}};
  test::Counts after = before;
  after["copies"] = 8;
  after["syncs"] = 7;
  EXPECT_EQ(best(explain(evidence(side(before), side(after)), nullptr, {}))->kind, "extra_copies");
  after["tensor_sets"] = 14;
  EXPECT_EQ(best(explain(evidence(side(before), side(after)), nullptr, {}))->kind, "sync_added")
      << "the engine writes more tensors";
}

}  // namespace memory_test
}  // namespace weir::explain
