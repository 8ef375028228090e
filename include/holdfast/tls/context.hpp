// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/io/tls_options.hpp>
#include <holdfast/tls/openssl.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::tls {

/// `options` as an OpenSSL context.
class context {
public:
    /// Effects: reads the files that `o` names. Throws: `error` (`misconfigured`) naming the option that cannot be
    /// used; `std::bad_alloc`.
    explicit context(options const& o)
    {
        check(o);
        error_queue const errors;
        context_.reset(::SSL_CTX_new(::TLS_client_method()));
        if (!context_ || ::SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION) != 1) throw std::bad_alloc{};
        ::SSL_CTX_set_options(context_.get(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
        SSL_CTX_set_mode(context_.get(), SSL_MODE_RELEASE_BUFFERS);
        SSL_CTX_set_session_cache_mode(context_.get(), SSL_SESS_CACHE_OFF);
        ::SSL_CTX_set_verify(context_.get(), o.insecure_skip_verification ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
        if (!o.insecure_skip_verification) trust(o);
        if (!o.certificate_file.empty()) show(o);
    }

    [[nodiscard]] SSL_CTX* get() const noexcept { return context_.get(); }

private:
    [[noreturn]] static void fail(std::string_view option, std::string const& why)
    {
        throw error{holdfast::errc::misconfigured, "TLS options, " + std::string{option} + ": " + why};
    }

    static void check(options const& o)
    {
        auto const no_zero = [](std::string_view name, std::string const& text) {
            if (text.find('\0') != std::string::npos) fail(name, "a zero byte is in it");
        };
        no_zero("ca_file", o.ca_file);
        no_zero("ca_folder", o.ca_folder);
        no_zero("certificate_file", o.certificate_file);
        no_zero("key_file", o.key_file);
        no_zero("server_name", o.server_name);
        if (o.server_name.starts_with('.'))
            fail("server_name", "it begins with a dot, which would accept every name below it; give one whole name");
        if (o.server_name.size() > 255)
            fail("server_name", "it has " + std::to_string(o.server_name.size()) + " bytes; at most 255 are allowed");
        if (o.insecure_skip_verification && !(o.ca_file.empty() && o.ca_folder.empty()))
            fail("insecure_skip_verification",
                 "nothing is verified with it, so ca_file and ca_folder have no use; leave out one or the other");
        if (o.certificate_file.empty() != o.key_file.empty())
            fail(o.key_file.empty() ? "key_file" : "certificate_file",
                 "certificate_file and key_file go together; it is missing");
        if (!o.key_password.empty() && o.key_file.empty()) fail("key_file", "key_password is for a key; it is missing");
    }

    static void require_file(std::string_view option, std::string const& path)
    {
        if (::access(path.c_str(), R_OK) != 0)
            fail(option, holdfast::quoted(path) + ": " + std::system_category().message(errno));
    }

    void trust(options const& o)
    {
        if (o.ca_file.empty() && o.ca_folder.empty()) {
            if (::SSL_CTX_set_default_verify_paths(context_.get()) != 1) throw std::bad_alloc{};
            return;
        }
        if (!o.ca_file.empty()) {
            require_file("ca_file", o.ca_file);
            if (::SSL_CTX_load_verify_locations(context_.get(), o.ca_file.c_str(), nullptr) != 1)
                fail("ca_file", holdfast::quoted(o.ca_file) + " holds no certificate in PEM form");
        }
        if (!o.ca_folder.empty()) {
            require_file("ca_folder", o.ca_folder);
            struct stat what {};
            if (::stat(o.ca_folder.c_str(), &what) != 0 || !S_ISDIR(what.st_mode))
                fail("ca_folder", holdfast::quoted(o.ca_folder) + " is no folder");
            if (::SSL_CTX_load_verify_locations(context_.get(), nullptr, o.ca_folder.c_str()) != 1)
                throw std::bad_alloc{};
        }
    }

    void show(options const& o)
    {
        require_file("certificate_file", o.certificate_file);
        require_file("key_file", o.key_file);
        auto password = o.key_password;
        ::SSL_CTX_set_default_passwd_cb(context_.get(), &give_password);  // without it OpenSSL asks at the terminal
        ::SSL_CTX_set_default_passwd_cb_userdata(context_.get(), &password);
        if (::SSL_CTX_use_certificate_chain_file(context_.get(), o.certificate_file.c_str()) != 1)
            fail("certificate_file",
                 holdfast::quoted(o.certificate_file) + " holds no certificate in PEM form that can be used");
        bool const read = ::SSL_CTX_use_PrivateKey_file(context_.get(), o.key_file.c_str(), SSL_FILETYPE_PEM) == 1;
        ::SSL_CTX_set_default_passwd_cb_userdata(context_.get(), nullptr);
        if (read && ::SSL_CTX_check_private_key(context_.get()) == 1) return;
        auto const e = ::ERR_peek_last_error();
        if (ERR_GET_LIB(e) == ERR_LIB_X509 && ERR_GET_REASON(e) == X509_R_KEY_VALUES_MISMATCH)
            fail("key_file", holdfast::quoted(o.key_file) + " is not the key of the certificate in certificate_file");
        fail("key_file", holdfast::quoted(o.key_file) + " holds no key in PEM form that key_password opens");
    }

    static int give_password(char* into, int size, int, void* password)
    {
        auto const* const text = static_cast<std::string const*>(password);
        if (!text || size < 0 || text->size() > static_cast<std::size_t>(size)) return 0;
        std::copy(text->begin(), text->end(), into);
        return static_cast<int>(text->size());
    }

    openssl_ptr<SSL_CTX> context_;
};

}  // namespace holdfast::tls
