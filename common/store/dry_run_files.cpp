#include "common/store/dry_run_files.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/store/state_files.h"

namespace podqos::store {

Result<std::optional<std::string>> DryRunFiles::read(const std::string& path) {
  const auto changed = changed_.find(path);
  if (changed != changed_.end()) return changed->second;
  return files_ == nullptr ? std::nullopt : files_->read(path);
}

Status DryRunFiles::write(const std::string& path, std::string_view content) {
  change(path, std::string{content});
  return {};
}

Status DryRunFiles::remove(const std::string& path) {
  change(path, std::nullopt);
  return {};
}

Result<std::string> DryRunFiles::read_rows() {
  if (rows_) return *rows_;
  return files_ == nullptr ? "" : files_->read_rows();
}

Status DryRunFiles::write_rows(std::size_t offset, std::string_view bytes) {
  PODQOS_ASSIGN(auto rows, read_rows());
  rows.resize(std::max(rows.size(), offset + bytes.size()));
  rows.replace(offset, bytes.size(), bytes);
  rows_ = std::move(rows);
  return {};
}

Result<std::string> DryRunFiles::set_aside(const std::string& path) {
  change(path, std::nullopt);
  return "";
}

Result<std::vector<std::string>> DryRunFiles::list(std::string_view subdirectory) {
  std::set<std::string> names;
  if (records_ && subdirectory == kPodsName) {
    names.insert(records_->begin(), records_->end());
  } else if (files_ != nullptr) {
    PODQOS_ASSIGN(const auto found, files_->list(subdirectory));
    names.insert(found.begin(), found.end());
  }
  for (const auto& [path, content] : changed_) {
    if (parent_of(path) != subdirectory) continue;
    if (content)
      names.emplace(leaf_of(path));
    else
      names.erase(std::string{leaf_of(path)});
  }
  return std::vector<std::string>{names.begin(), names.end()};
}

Status DryRunFiles::unlock() {
  if (files_ == nullptr) return {};
  PODQOS_ASSIGN(records_, files_->list(kPodsName));
  for (const std::string& name : *records_) {
    if (!name.ends_with(kRecordSuffix)) continue;
    std::string path = cat(kPodsName, "/", name);
    // One that cannot be read is read again, and said, when it is asked for.
    if (auto text = files_->read(path)) changed_.try_emplace(std::move(path), *std::move(text));
  }
  return files_->unlock();
}

void DryRunFiles::change(const std::string& path, std::optional<std::string> content) {
  if (path == kRowsName) {
    rows_ = std::move(content);
    return;
  }
  // Of a file that cannot be read nothing is left.
  if (plan_ != nullptr) tell(path, read(path).value_or("").value_or(""), content.value_or(""));
  changed_.insert_or_assign(path, std::move(content));
}

/// @param former, content  "" for a file that is missing
void DryRunFiles::tell(const std::string& path, const std::string& former,
                       const std::string& content) {
  if (parent_of(path) == kPodsName && path.ends_with(kRecordSuffix) && former != content) {
    const std::string_view name = leaf_of(path);
    plan_->push_back(cat(content.empty() ? "erase  " : "save   ", "record of pod ",
                         name.substr(0, name.size() - kRecordSuffix.size())));
  }
  if (parent_of(path) != kContainersName || !is_index_name(leaf_of(path))) return;
  const auto before = parts_of(former, '/');
  const auto after = parts_of(content, '/');
  const auto note = [&](const char* verb, const auto& uids, const auto& others) {
    for (const std::string& uid : uids) {
      if (std::ranges::find(others, uid) == others.end())
        plan_->push_back(cat(verb, "index entry of pod ", uid));
    }
  };
  note("save   ", after, before);
  note("erase  ", before, after);
}

}  // namespace podqos::store
