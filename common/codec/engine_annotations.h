#pragma once

#include <string_view>

namespace podqos::codec {

/// Is `key` one that parse_engine_annotations (annotations.h) reads?
[[nodiscard]] bool is_engine_annotation(std::string_view key);

}  // namespace podqos::codec
