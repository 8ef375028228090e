// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/language.hpp>

#include <holdfast/core/abi.hpp>
#include <holdfast/core/store.hpp>
#ifdef HOLDFAST_COMPILED
#include <holdfast/impl/declarations.hpp>
#else
#include <holdfast/impl/make_store.hpp>
#endif

#include <string_view>

namespace holdfast::inline HOLDFAST_ABI {

/// Returns: the store that `url` names:
///
/// | URL | store |
/// |---|---|
/// | `memory:`, `memory:NAME` | `memory::store`: locks of this process; the same NAME gives the same locks |
/// | `redis://…`, `rediss://…`, `unix://…` | `redis::client`, see `redis::parse_url` |
/// | `redlock+redis://…,redis://…`, `redlock+rediss://…` | `redlock::masters`; the URLs of the masters, separated by commas, of which one in a password is written as `%2c`; one without a scheme has that of the first |
/// | `zookeeper://host:port,host:port/chroot` | `zookeeper::session` |
///
/// Options that the URL does not give have their defaults. A program knows the schemes of the stores whose headers it
/// includes in any of its files.
/// Throws: `error` (`misconfigured`): the scheme is not known, or its header not included (the message says what to
/// include and link); or what the constructor of the store throws. The message repeats nothing of the URL but its
/// scheme: a password may be in it.
[[nodiscard]] inline store make_store(std::string_view url) { return detail::open_url(url); }

}  // namespace holdfast
