// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/core/abi.hpp>
#include <holdfast/core/version.hpp>

#include <string>
#include <string_view>

namespace {

#define HOLDFAST_TEST_TEXT(name) #name
#define HOLDFAST_TEST_TEXT_OF(macro) HOLDFAST_TEST_TEXT(macro)
constexpr std::string_view abi = HOLDFAST_TEST_TEXT_OF(HOLDFAST_ABI);
#undef HOLDFAST_TEST_TEXT_OF
#undef HOLDFAST_TEST_TEXT

}  // namespace

TEST_CASE("the namespace of the interface has the version in its name")
{
    auto const version = "v" + std::to_string(HOLDFAST_VERSION_MAJOR) + "_" + std::to_string(HOLDFAST_VERSION_MINOR);
    CHECK(abi.substr(0, version.size()) == version);
}
