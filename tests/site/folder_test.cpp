// Tests of writing a site into a folder.
#include <gtest/gtest.h>

#include "gate/site/site.hpp"

#include "tests/browser/site_scene.hpp"
#include "tests/support/memory_files.hpp"

namespace weir::site {
namespace folder_test {

constexpr const char* k_index = "<head><meta name=\"generator\" content=\"weir\"></head>";

class SiteFolder : public testing::Test {
 protected:
  SiteFolder() {
    files_.put("/share/web/index.html", k_index);
    files_.put("/share/web/assets/weir.js", "pages");
  }
  SiteWritten write(const Site& site) {
    const auto written = write_site(files_, "/share/web", site, "/out");
    EXPECT_TRUE(written) << (written ? "" : written.error().message);
    return written.value_or(SiteWritten{});
  }
  sys::MemoryFiles files_;
};

TEST_F(SiteFolder, HoldsThePagesAndAllDocuments) {
  const Site site(scene::small_scene());
  EXPECT_EQ(write(site).written, site.paths().size() + 2);
  EXPECT_EQ(files_.read("/out/index.html", 999), k_index);
  EXPECT_EQ(files_.read("/out/assets/weir.js", 999), "pages");
  for (const std::string& path : site.paths()) {
    EXPECT_EQ(files_.read("/out/" + path, 1 << 24), *site.text(path)) << path;
  }
}

TEST_F(SiteFolder, WritesOnlyWhatDiffers) {
  write(Site(scene::small_scene()));
  const SiteWritten again = write(Site(scene::small_scene()));
  EXPECT_EQ(again.written, 0U);
  EXPECT_EQ(again.removed, 0U);
  SiteModel model = scene::small_scene();
  model.title = "another title";
  EXPECT_EQ(write(Site(std::move(model))).written, 1U);  // the overview's
}

TEST_F(SiteFolder, RemovesItsOwnOldDocumentsAndNothingElse) {
  files_.put("/out/data/cells/0a1b2c3d4e5f6071.js", "old");
  files_.put("/out/data/runs/0a1b2c3d4e5f6071.js", "old");
  for (const char* path : {"/out/data/cells/notes.js", "/out/data/cells/0a1b.js.bak",
                           "/out/data/mine.js", "/out/CNAME", "/out/assets/mine.css"}) {
    files_.put(path, "mine");
  }
  EXPECT_EQ(write(Site(SiteModel{})).removed, 2U);
  EXPECT_FALSE(files_.exists("/out/data/cells/0a1b2c3d4e5f6071.js"));
  for (const char* path : {"/out/data/cells/notes.js", "/out/data/cells/0a1b.js.bak",
                           "/out/data/mine.js", "/out/CNAME", "/out/assets/mine.css"}) {
    EXPECT_TRUE(files_.exists(path)) << path;
  }
}

TEST_F(SiteFolder, IsNotAFolderThatSomebodyElseKeepsPagesIn) {
  files_.put("/out/index.html", "<p>my own page");
  const auto written = write_site(files_, "/share/web", Site(SiteModel{}), "/out");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::config);
  EXPECT_EQ(files_.read("/out/index.html", 999), "<p>my own page");
  EXPECT_FALSE(files_.exists("/out/data"));
}

TEST_F(SiteFolder, SaysWhereItLookedForThePages) {
  files_.put("/opt/share/weir/web/index.html", k_index);
  EXPECT_EQ(find_pages(files_, "/opt/bin/weir"), "/opt/share/weir/web");
  EXPECT_EQ(find_pages(files_, "/opt/weir"), "/opt/share/weir/web");
  files_.put("/opt/share/weir/web/report.html", "<script>");
  EXPECT_EQ(read_page(files_, "/opt/bin/weir", "report.html"), "<script>");
  EXPECT_FALSE(read_page(files_, "/opt/bin/weir", "other.html"));
  const auto none = find_pages(files_, "/usr/bin/weir");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::unavailable);
  EXPECT_NE(none.error().message.find("/usr/share/weir/web"), std::string::npos);
}

}  // namespace folder_test
}  // namespace weir::site
