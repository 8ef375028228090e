// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <string>

namespace holdfast::inline HOLDFAST_ABI::tls {

/// How to use TLS, 1.2 or later, with the servers whose URLs ask for it. An aggregate. By default, the server needs a
/// certificate for the host of its URL that is signed by an authority known to the system. Files are in PEM form and
/// are read when the client is made: clients made later use a renewed certificate.
struct options {
    /// The trusted authorities, in place of the system's. The system's are in OpenSSL's own place, or where the
    /// environment variables `SSL_CERT_FILE` and `SSL_CERT_DIR` point.
    std::string ca_file{};

    /// The same as a folder, with file names as `openssl rehash` makes them. May be used together with `ca_file`.
    std::string ca_folder{};

    /// What the client shows to a server that asks for it: its certificate, followed by those between it and the
    /// authority; and its key.
    std::string certificate_file{};
    std::string key_file{};  ///< the key of `certificate_file`

    /// The password of the key, if it is encrypted.
    std::string key_password{};

    /// The name that is sent to the server (SNI) and that its certificate must have, in place of the host of the URL:
    /// for a server that is reached through an address or a tunnel. It must be one of the certificate's subject
    /// alternative names: the common name does not count. One whole name of at most 255 bytes that does not begin with
    /// a dot.
    std::string server_name{};

    /// Accept any server without checking its certificate. An attacker on the network can then read and change what is
    /// sent, and learns the password. Only for a look at a server on the same machine.
    bool insecure_skip_verification = false;

    friend bool operator==(options const&, options const&) = default;
};

}  // namespace holdfast::tls
