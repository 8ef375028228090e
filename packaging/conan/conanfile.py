# SPDX-License-Identifier: MIT
"""The recipe of holdfast for Conan 2: `conan create packaging/conan`."""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir

ROOT = os.path.join(os.pardir, os.pardir)


class HoldfastConan(ConanFile):
    name = "holdfast"
    description = "Distributed locks with the interface of std::mutex, on Redis, Redlock, ZooKeeper or in memory"
    license = "MIT"
    topics = ("lock", "mutex", "distributed", "redis", "redlock", "zookeeper")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"with_redis": [True, False], "with_tls": [True, False], "with_zookeeper": [True, False],
               "with_asio": [True, False]}
    default_options = {"with_redis": True, "with_tls": False, "with_zookeeper": False, "with_asio": False}
    no_copy_source = True

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, ROOT, "include", "holdfast", "core", "version.hpp"))
        self.version = ".".join(re.findall(r"#define HOLDFAST_VERSION_\w+ (\d+)", header))

    def export_sources(self):
        root = os.path.join(self.recipe_folder, ROOT)
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "packaging/debian/*"):
            copy(self, pattern, src=root, dst=self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        if self.options.with_redis:
            self.requires("hiredis/[>=1.0 <2]", transitive_headers=True, transitive_libs=True)
        if self.options.with_tls:
            self.requires("openssl/[>=1.1.1 <4]", transitive_headers=True, transitive_libs=True)
        if self.options.with_zookeeper:
            self.requires("zookeeper-client-c/[>=3.8 <4]", transitive_headers=True, transitive_libs=True)
        if self.options.with_asio:
            self.requires("asio/[>=1.22 <2]", transitive_headers=True)

    def package_id(self):
        # The headers are the same; settings and options say what they are used with. So there is one package for all.
        self.info.clear()

    def validate(self):
        check_min_cppstd(self, 20)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["HOLDFAST_COMPONENTS"] = "core;memory;sim"
        toolchain.cache_variables["HOLDFAST_BUILD_TESTS"] = False
        toolchain.cache_variables["HOLDFAST_BUILD_EXAMPLES"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()

    def package(self):
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        # Conan's own generators say what is in the package.
        rmdir(self, os.path.join(self.package_folder, "share"))

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        core = self.cpp_info.components["core"]
        core.set_property("cmake_target_name", "holdfast::core")
        core.set_property("pkg_config_name", "holdfast")
        core.system_libs = ["pthread"]
        needs = {"memory": [], "sim": []}
        if self.options.with_redis:
            needs["redis"] = ["hiredis::hiredislib"]
            needs["redlock"] = ["redis"]
        if self.options.with_tls:
            needs["tls"] = ["openssl::openssl"]
        if self.options.with_zookeeper:
            needs["zookeeper"] = ["zookeeper-client-c::zookeeper-client-c"]
        if self.options.with_asio:
            needs["asio"] = ["asio::asio"]
        for name, requires in needs.items():
            component = self.cpp_info.components[name]
            component.set_property("cmake_target_name", f"holdfast::{name}")
            component.set_property("pkg_config_name", f"holdfast-{name}")
            component.requires = ["core", *requires]
        if self.options.with_zookeeper:
            self.cpp_info.components["zookeeper"].defines = ["THREADED"]
