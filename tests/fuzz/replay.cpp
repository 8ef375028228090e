// SPDX-License-Identifier: MIT
//
// Gives a fuzz target every file of the folders named, once: what was found stays mended, with any compiler and without
// a fuzzer.
#include "input.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

int main(int count, char** arguments)
{
    std::vector<std::filesystem::path> files;
    for (int i = 1; i < count; ++i)
        for (auto const& entry : std::filesystem::directory_iterator{arguments[i]})
            if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());

    for (auto const& file : files) {
        std::ifstream in{file, std::ios::binary};
        // Exactly as much memory as there are bytes: a sanitizer sees a step beyond them.
        std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>{in}, {}};
        bytes.shrink_to_fit();
        std::cout << file.filename().string() << std::endl;
        LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
    std::cout << files.size() << " inputs\n";
    return files.empty() ? 1 : 0;
}
