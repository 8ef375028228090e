// SPDX-License-Identifier: MIT
#include "library.hpp"

#include <holdfast/core/error.hpp>
#include <holdfast/io/tls_error.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/zookeeper/error.hpp>

#include <string_view>

std::error_category const& category_in_library(char const* name) noexcept
{
    for (auto const* const one :
         {&holdfast::redis::error_category(), &holdfast::tls::error_category(), &holdfast::zookeeper::error_category()})
        if (one->name() == std::string_view{name}) return *one;
    return holdfast::error_category();
}

void throw_in_library() { throw holdfast::error{holdfast::errc::unavailable, "the library's servers"}; }
