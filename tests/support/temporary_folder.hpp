// SPDX-License-Identifier: MIT
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::test {

/// A fresh folder that only this user can read, removed with all it holds.
class temporary_folder {
public:
    // Not TMPDIR: a socket's path may have 107 characters at most.
    explicit temporary_folder(std::string const& below = "/tmp")
    {
        auto pattern = below + "/holdfast-XXXXXX";
        if (::mkdtemp(pattern.data()) == nullptr) throw std::system_error{errno, std::system_category(), pattern};
        path_ = pattern;
    }

    temporary_folder(temporary_folder&& other) noexcept : path_{std::exchange(other.path_, {})} {}
    temporary_folder& operator=(temporary_folder&& other) noexcept
    {
        path_.swap(other.path_);
        return *this;
    }

    ~temporary_folder()
    {
        std::error_code ignored;
        if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
    }

    [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
};

}  // namespace holdfast::test
