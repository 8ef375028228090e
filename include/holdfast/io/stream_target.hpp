// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/io/secure_layer.hpp>

#include <memory>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::io {

/// What a stream connects to: a host and port, or a Unix socket.
struct stream_target {
    std::string host;
    std::string port;
    std::string path;                         ///< of a Unix socket, in place of host and port
    std::shared_ptr<secure_layer const> tls;  ///< null: no TLS
};

}  // namespace holdfast::io
