// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace holdfast::tls {

/// How to talk TLS, 1.2 or later, with the servers whose URLs ask for it. An aggregate; as it is, the server needs a certificate for the
/// host of its URL that an authority known to the system has signed. Files are in PEM form and are read when the client is made: a renewed
/// certificate is used by the clients that are made after it.
struct options {
    /// The authorities that are trusted, instead of the system's. The system's: OpenSSL's own place, or where `SSL_CERT_FILE` and
    /// `SSL_CERT_DIR` point in the environment.
    std::string ca_file{};

    /// The same as a folder, whose files are named as `openssl rehash` does; may stand beside `ca_file`.
    std::string ca_folder{};

    /// What the client shows to a server that asks for it: its certificate, followed by those between it and the authority; and its key.
    std::string certificate_file{};
    std::string key_file{};

    /// Of the key, where it is encrypted.
    std::string key_password{};

    /// The name that the server is asked for (SNI) and that its certificate has to bear, in place of the host of the URL: where the way
    /// leads through an address or a tunnel. A name in the certificate's subject alternative names: its common name does not count. One whole
    /// name of at most 255 bytes, that does not begin with a dot.
    std::string server_name{};

    /// Talk to whoever answers, without looking at the certificate: anybody on the way can then read and change what is said, and learns
    /// the password. For a look at a server on the same machine.
    bool insecure_skip_verification = false;

    friend bool operator==(options const&, options const&) = default;
};

}  // namespace holdfast::tls
