#include "nri/plugin_process.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/temporary_directory.h"

namespace podqos::nri {
namespace {

class SingleInstance : public ::testing::Test {
 protected:
  [[nodiscard]] Result<sys::FileLock> lock() const { return lock_single_instance(directory_); }

  TemporaryDirectory temporary_;
  std::string directory_ = temporary_.path("state");
};

TEST_F(SingleInstance, MakesTheStateDirectory) {
  const auto only = lock();
  ASSERT_TRUE(only) << only.error().message;
  struct stat made{};
  ASSERT_EQ(::stat(directory_.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 07777U, 0700U);
  EXPECT_EQ(temporary_.read("state/nri.lock"), std::to_string(::getpid()) + "\n");
}

TEST_F(SingleInstance, RefusesTheSecondAndNamesTheFirst) {
  ASSERT_TRUE(lock());
  const auto first = lock();  // the one before has ended
  ASSERT_TRUE(first);
  const auto held = lock();
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(held.error().message, "another podqos-nri (process " + std::to_string(::getpid()) +
                                      ") holds " + directory_ +
                                      "/nri.lock: only one may serve a runtime");
  EXPECT_TRUE(write_status(directory_, "synchronized\nwith it"));
  EXPECT_EQ(temporary_.read("state/nri.lock"),
            std::to_string(::getpid()) + "\nsynchronized\\x0awith it\n");
  EXPECT_EQ(lock().error().message, held.error().message);
  EXPECT_TRUE(write_status(directory_, "waiting"));
  EXPECT_THAT(temporary_.read("state/nri.lock"),
              testing::StartsWith(std::to_string(::getpid()) + "\nwaiting\n"));
  for (const char* text : {"", "garbage\n", "a line that is far too long to be a pid\n"}) {
    temporary_.write("state/nri.lock", text);
    EXPECT_EQ(lock().error().message,
              "another podqos-nri holds " + directory_ + "/nri.lock: only one may serve a runtime");
  }
}

TEST_F(SingleInstance, RefusesADirectoryThatOthersCanWriteTo) {
  ASSERT_EQ(::mkdir(directory_.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(directory_.c_str(), 0777), 0);
  EXPECT_EQ(lock().error().code, ErrorCode::kConflict);
}

TEST_F(SingleInstance, NamesTheDirectoryThatCannotBeMade) {
  EXPECT_EQ(
      lock_single_instance(temporary_.path("none/state")).error().message,
      "make state directory " + temporary_.path("none/state") + ": No such file or directory");
}

}  // namespace
}  // namespace podqos::nri
