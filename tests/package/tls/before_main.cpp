// SPDX-License-Identifier: MIT
//
// Makes a client that talks TLS before `main` begins; what brings TLS is linked after this file.
#include <holdfast/redis.hpp>

int brought_elsewhere();

namespace {

holdfast::redis::client const before_main{"rediss://redis.example"};

}  // namespace

int main() { return brought_elsewhere() == 1 ? 0 : 1; }
