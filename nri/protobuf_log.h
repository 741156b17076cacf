#pragma once

#include <functional>
#include <string_view>

namespace podqos::nri {

/// Where libprotobuf's complaints about what a peer has sent go, one line each; empty: nowhere, not
/// to stderr either, where the library writes them by itself. However many there are, few lines
/// come of them: the first, the second, the fourth, the eighth and so on, each with its number.
/// For the whole process, and one thread.
void set_protobuf_log(std::function<void(std::string_view line)> take);

}  // namespace podqos::nri
