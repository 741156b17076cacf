#include "common/cgroup/kept_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "common/base/text.h"

namespace podqos::cgroup {

Result<std::string> KeptFiles::read(OpenHierarchy& hierarchy, std::string_view path,
                                    std::string_view file) {
  const std::string place = cat(hierarchy.place_of(path), "/", file);
  if (const auto kept = files_.find(place); kept != files_.end()) {
    kept->second.is_read = true;
    ::lseek(kept->second.opened->get(), 0, SEEK_SET);
    if (auto text = read_control(kept->second.opened, place)) return text;
    // The cgroup has been removed. There may be another one of this name.
    files_.erase(kept);
  }
  auto opened = hierarchy.open_file(path, file, O_RDONLY);
  auto text = read_control(opened, place);
  if (text && files_.size() < most_) files_.emplace(place, File{.opened = std::move(opened)});
  return text;
}

void KeptFiles::close_unread() {
  std::erase_if(files_, [](const auto& kept) { return !kept.second.is_read; });
  for (auto& [place, file] : files_)
    file.is_read = false;
}

}  // namespace podqos::cgroup
