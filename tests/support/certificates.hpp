// SPDX-License-Identifier: MIT
#pragma once

#include "temporary_folder.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

struct evp_pkey_st;
struct x509_st;

namespace holdfast::test {

/// A certificate and its key, as files in PEM form.
struct identity {
    std::filesystem::path certificate;
    std::filesystem::path key;
};

struct certificate_options {
    /// Its subject alternative names, as OpenSSL writes them.
    std::string names = "DNS:localhost,IP:127.0.0.1,IP:::1";
    std::string common_name = "server";
    std::chrono::hours valid_from{-1};  ///< from now
    std::chrono::hours valid_to{24};
    /// The key is encrypted with it where it is not empty.
    std::string key_password = {};
    std::string certificate_password = {};  ///< the same for the certificate
};

/// A certificate authority that nobody trusts yet. Its files go with it.
class authority {
public:
    explicit authority(std::string const& name = "authority");
    authority(authority&&) noexcept;
    authority& operator=(authority&&) noexcept;
    ~authority();

    /// Returns: the file with its certificate.
    [[nodiscard]] std::filesystem::path file() const { return folder_.path() / "authority.pem"; }
    /// Returns: a folder with its certificate, named as OpenSSL looks for it.
    [[nodiscard]] std::filesystem::path hashed_folder() const { return folder_.path() / "hashed"; }

    [[nodiscard]] identity issue(certificate_options const& options = {});

private:
    struct closer {
        void operator()(evp_pkey_st* key) const noexcept;
        void operator()(x509_st* certificate) const noexcept;
    };

    temporary_folder folder_;
    std::unique_ptr<evp_pkey_st, closer> key_;
    std::unique_ptr<x509_st, closer> certificate_;
    int issued_ = 0;
};

}  // namespace holdfast::test
