// SPDX-License-Identifier: MIT
//
// A program with what is behind `make_store` compiled apart, and without a store: what it is told to include is what
// brings one there.
#include <holdfast/impl/make_store.hpp>
#include <holdfast/make_store.hpp>

#include <cstring>

int main()
{
    try {
        static_cast<void>(holdfast::make_store("memory:"));
    } catch (holdfast::error const& e) {
        return std::strstr(e.what(), "include <holdfast/impl/memory.hpp>") ? 0 : 2;
    }
    return 1;
}
