# SPDX-License-Identifier: MIT
#
# What GCC and Clang are asked to warn of in a user's file: all that a careful project has switched on, and more.

set(strict_options_GNU -O2 -Wall -Wextra -Wpedantic -Werror
  -Wcast-align -Wcast-qual -Wconversion -Wdouble-promotion -Wduplicated-branches -Wduplicated-cond -Wextra-semi -Wformat=2 -Wlogical-op
  -Wmissing-declarations -Wnon-virtual-dtor -Wnull-dereference -Wold-style-cast -Woverloaded-virtual -Wredundant-decls -Wshadow
  -Wsign-conversion -Wsuggest-override -Wundef -Wuseless-cast -Wzero-as-null-pointer-constant)
set(strict_options_Clang -Weverything -Werror -Wno-c++98-compat -Wno-c++98-compat-pedantic)

# What they would say of the headers themselves, were these not taken for a system's: a matter of taste, of room, of C++17 or of C's arrays.
# Clang 19 also says that a capture has the name of what is moved into it.
set(strict_but_GNU "")
set(strict_but_Clang
  -Wno-ctad-maybe-unsupported -Wno-documentation-unknown-command -Wno-global-constructors -Wno-padded -Wno-shadow-uncaptured-local -Wno-switch-default -Wno-switch-enum -Wno-unknown-warning-option
  -Wno-unsafe-buffer-usage -Wno-unsafe-buffer-usage-in-container -Wno-used-but-marked-unused -Wno-weak-vtables)
