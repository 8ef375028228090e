// SPDX-License-Identifier: MIT
#include "certificates.hpp"

#include "overheard.hpp"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace holdfast::test {
namespace {

void require(bool good, char const* what)
{
    if (!good) throw std::runtime_error{std::string{"OpenSSL could not "} + what};
}

struct file_closer {
    void operator()(std::FILE* file) const noexcept { static_cast<void>(std::fclose(file)); }
};

auto create(std::filesystem::path const& path)
{
    std::unique_ptr<std::FILE, file_closer> file{std::fopen(path.c_str(), "wx")};
    require(file != nullptr, "create a file");
    return file;
}

void write(std::filesystem::path const& path, X509* certificate, std::string const& password = {})
{
    auto* const as_bytes = reinterpret_cast<i2d_of_void*>(&::i2d_X509);
    auto const* const cipher = password.empty() ? nullptr : ::EVP_aes_256_cbc();
    auto const* const text = reinterpret_cast<unsigned char const*>(password.data());
    require(::PEM_ASN1_write(as_bytes, PEM_STRING_X509, create(path).get(), certificate, cipher, text,
                             static_cast<int>(password.size()), nullptr, nullptr) == 1,
            "write a certificate");
}

void write(std::filesystem::path const& path, EVP_PKEY* key, std::string const& password)
{
    auto const* const cipher = password.empty() ? nullptr : ::EVP_aes_256_cbc();
    auto text = password;
    require(::PEM_write_PKCS8PrivateKey(create(path).get(), key, cipher, text.data(), static_cast<int>(text.size()),
                                        nullptr, nullptr) == 1,
            "write a key");
}

/// Effects: nobody may say a line of the key in the file.
void keep_secret(std::filesystem::path const& key)
{
    std::ifstream file{key};
    for (std::string line; std::getline(file, line);)
        if (!line.starts_with('-')) everything_heard().keep(line);
}

EVP_PKEY* new_key()
{
    auto* const key = ::EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256");
    require(key != nullptr, "make a key");
    return key;
}

void name(X509_NAME* into, std::string const& common_name)
{
    auto const* const bytes = reinterpret_cast<unsigned char const*>(common_name.data());
    require(::X509_NAME_add_entry_by_txt(into, "CN", MBSTRING_UTF8, bytes, static_cast<int>(common_name.size()), -1,
                                         0) == 1,
            "set a name");
}

void extend(X509* certificate, int what, std::string const& value)
{
    auto* const extension = ::X509V3_EXT_conf_nid(nullptr, nullptr, what, value.c_str());
    require(extension != nullptr, "make an extension");
    bool const added = ::X509_add_ext(certificate, extension, -1) == 1;
    ::X509_EXTENSION_free(extension);
    require(added, "add an extension");
}

X509* new_certificate(EVP_PKEY* key, long serial, std::chrono::seconds from, std::chrono::seconds to)
{
    auto* const made = ::X509_new();
    require(made != nullptr, "make a certificate");
    ::X509_set_version(made, 2);
    ::ASN1_INTEGER_set(::X509_get_serialNumber(made), serial);
    ::X509_gmtime_adj(::X509_getm_notBefore(made), from.count());
    ::X509_gmtime_adj(::X509_getm_notAfter(made), to.count());
    ::X509_set_pubkey(made, key);
    return made;
}

}  // namespace

void authority::closer::operator()(evp_pkey_st* key) const noexcept { ::EVP_PKEY_free(key); }
void authority::closer::operator()(x509_st* certificate) const noexcept { ::X509_free(certificate); }

authority::authority(authority&&) noexcept = default;
authority& authority::operator=(authority&&) noexcept = default;
authority::~authority() = default;

authority::authority(std::string const& common_name)
    : key_{new_key()}, certificate_{new_certificate(key_.get(), 1, std::chrono::hours{-1000}, std::chrono::hours{1000})}
{
    name(::X509_get_subject_name(certificate_.get()), common_name);
    ::X509_set_issuer_name(certificate_.get(), ::X509_get_subject_name(certificate_.get()));
    extend(certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
    extend(certificate_.get(), NID_key_usage, "critical,keyCertSign");
    require(::X509_sign(certificate_.get(), key_.get(), ::EVP_sha256()) > 0, "sign a certificate");
    write(file(), certificate_.get());
    std::array<char, 16> hash{};
    std::snprintf(hash.data(), hash.size(), "%08lx.0", ::X509_subject_name_hash(certificate_.get()));
    std::filesystem::create_directory(hashed_folder());
    std::filesystem::create_symlink(file(), hashed_folder() / hash.data());
}

identity authority::issue(certificate_options const& options)
{
    auto const number = std::to_string(++issued_);
    identity made{folder_.path() / (number + ".pem"), folder_.path() / (number + ".key")};
    std::unique_ptr<EVP_PKEY, closer> const key{new_key()};
    std::unique_ptr<X509, closer> const certificate{
        new_certificate(key.get(), 1 + issued_, options.valid_from, options.valid_to)};
    name(::X509_get_subject_name(certificate.get()), options.common_name);
    ::X509_set_issuer_name(certificate.get(), ::X509_get_subject_name(certificate_.get()));
    if (!options.names.empty()) extend(certificate.get(), NID_subject_alt_name, options.names);
    require(::X509_sign(certificate.get(), key_.get(), ::EVP_sha256()) > 0, "sign a certificate");
    write(made.certificate, certificate.get(), options.certificate_password);
    write(made.key, key.get(), options.key_password);
    keep_secret(made.key);
    everything_heard().keep(options.key_password);
    everything_heard().keep(options.certificate_password);
    return made;
}

}  // namespace holdfast::test
