// SPDX-License-Identifier: MIT
//
// Every error of the library is a std::runtime_error: the linker has its constructor called through here (--wrap,
// holdfast_test.cmake), so that no message is made that is not heard.
#include "support/overheard.hpp"

#include <stdexcept>
#include <string>

#define HOLDFAST_MESSAGE_CONSTRUCTOR(prefix)                                                                           \
    prefix##_ZNSt13runtime_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE

extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier): so the linker has it
void HOLDFAST_MESSAGE_CONSTRUCTOR(__real_)(std::runtime_error* made, std::string const& what);
void HOLDFAST_MESSAGE_CONSTRUCTOR(__wrap_)(std::runtime_error* made, std::string const& what);

void HOLDFAST_MESSAGE_CONSTRUCTOR(__wrap_)(std::runtime_error* made, std::string const& what)
{
    holdfast::test::everything_heard().hear(what);
    HOLDFAST_MESSAGE_CONSTRUCTOR(__real_)(made, what);
}
// NOLINTEND(bugprone-reserved-identifier)
}
