#pragma once

namespace podqos {

/// One callable of several, for std::visit.
/// @note en.cppreference.com/w/cpp/utility/variant/visit2
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

}  // namespace podqos
