#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/store/state_files.h"

namespace podqos::store {

/// Files of which only the changes are in memory: those below them are read.
class DryRunFiles final : public StateFiles {
 public:
  /// @param files  nullptr if there are none yet
  /// @param plan  gets a line for each change of a record or index entry; must outlive this object
  explicit DryRunFiles(std::unique_ptr<StateFiles> files, std::vector<std::string>* plan = nullptr)
      : files_(std::move(files)), plan_(plan) {}

  [[nodiscard]] Result<std::optional<std::string>> read(const std::string& path) override;
  [[nodiscard]] Status write(const std::string& path, std::string_view content) override;
  [[nodiscard]] Status remove(const std::string& path) override;
  [[nodiscard]] Result<std::string> read_rows() override;
  [[nodiscard]] Status write_rows(std::size_t offset, std::string_view bytes) override;
  [[nodiscard]] Result<std::string> set_aside(const std::string& path) override;
  [[nodiscard]] Result<std::vector<std::string>> list(std::string_view subdirectory) override;
  /// Has the text of all records from then on.
  [[nodiscard]] Status unlock() override;
  [[nodiscard]] const sys::Directory* directory() const override {
    return files_ == nullptr ? nullptr : files_->directory();
  }

 private:
  void change(const std::string& path, std::optional<std::string> content);
  void tell(const std::string& path, const std::string& former, const std::string& content);

  std::unique_ptr<StateFiles> files_;
  std::vector<std::string>* plan_;
  std::map<std::string, std::optional<std::string>> changed_;  ///< nullopt: removed
  std::optional<std::string> rows_;                            ///< once they are changed
  std::optional<std::vector<std::string>> records_;            ///< names in `pods` at unlock()
};

}  // namespace podqos::store
