#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Looks at the Conan recipe with classes that stand for Conan's: its version, what each option requires, that the
components require only what the recipe does, and that what it exports can be configured and installed. Conan itself and
its dependencies are not tried.

    conan_recipe.py RECIPE FOLDER          e.g. packaging/conan/conanfile.py /tmp/recipe; the folder is made anew
"""

import collections
import fnmatch
import importlib.util
import itertools
import pathlib
import re
import shutil
import subprocess
import sys
import types
import unittest
import unittest.mock


def copy(_, pattern, src, dst):
    """As Conan's: every file below `src` whose path matches."""
    src = pathlib.Path(src).resolve()
    for path in [one for part in {pattern.split("/")[0]} for one in [src / part, *(src / part).rglob("*")]]:
        if path.is_file() and fnmatch.fnmatch(str(path.relative_to(src)), pattern):
            there = pathlib.Path(dst, path.relative_to(src))
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, there)


class ConanFile:
    """As much of Conan's as the recipe uses."""

    def __init__(self, folder, **options):
        self.recipe_folder = str(RECIPE.parent)
        self.export_sources_folder = self.source_folder = str(folder)
        self.options = types.SimpleNamespace(**{**self.default_options, **options})
        self.required = []
        self.cpp_info = types.SimpleNamespace(components=collections.defaultdict(component))
        self.set_version()

    def requires(self, reference, **_):
        self.required.append(reference)


def component():
    names = {}
    return types.SimpleNamespace(requires=[], system_libs=[], names=names, set_property=names.__setitem__)


def load(_, path):
    return pathlib.Path(path).read_text(encoding="utf-8")


def recipe():
    """The class of the recipe, which sees the stand-ins."""
    nothing = types.SimpleNamespace
    for name, content in {
        "conan": {"ConanFile": ConanFile},
        "conan.tools": {},
        "conan.tools.build": {"check_min_cppstd": None},
        "conan.tools.cmake": {"CMake": nothing, "CMakeToolchain": nothing, "cmake_layout": None},
        "conan.tools.files": {"copy": copy, "load": load, "rmdir": None},
    }.items():
        module = types.ModuleType(name)
        module.__dict__.update(content)
        sys.modules[name] = module
    spec = importlib.util.spec_from_file_location("conanfile", RECIPE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.HoldfastConan


class Recipe(unittest.TestCase):
    def test_the_version_is_that_of_the_headers(self):
        text = load(None, RECIPE.parent / "../../include/holdfast/core/version.hpp")
        self.assertEqual(recipe()(FOLDER).version, ".".join(re.findall(r"VERSION_[A-Z]+ (\d+)", text)))

    def test_components_require_what_the_recipe_requires(self):
        kind = recipe()
        for values in itertools.product(*kind.options.values()):
            made = kind(FOLDER, **dict(zip(kind.options, values)))
            made.requirements()
            made.package_info()
            packages = {one.split("/")[0] for one in made.required}
            components = made.cpp_info.components
            used = {one for each in components.values() for one in each.requires}
            self.assertEqual({one.split("::")[0] for one in used if "::" in one}, packages)
            self.assertLessEqual({one for one in used if "::" not in one}, set(components))
            self.assertEqual("redlock" in components, made.options.with_redis)
            for name, each in components.items():
                self.assertEqual(each.names["cmake_target_name"], f"holdfast::{name}")

    def test_one_package_serves_all_options(self):
        made = recipe()(FOLDER)
        made.info = unittest.mock.Mock()
        made.package_id()
        made.info.clear.assert_called_once_with()

    def test_what_is_exported_can_be_installed(self):
        shutil.rmtree(FOLDER, ignore_errors=True)
        made = recipe()(FOLDER / "source")
        made.export_sources()
        prefix = FOLDER / "prefix"
        options = ["-DHOLDFAST_COMPONENTS=core;memory;sim", "-DHOLDFAST_BUILD_TESTS=OFF", "-DHOLDFAST_BUILD_EXAMPLES=OFF"]
        for command in (
            ["cmake", "-S", FOLDER / "source", "-B", FOLDER / "build", *options],
            ["cmake", "--install", FOLDER / "build", "--prefix", prefix],
        ):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        here = {one.relative_to(RECIPE.parent / "../../include") for one in HEADERS}
        self.assertEqual({one.relative_to(prefix / "include") for one in (prefix / "include").rglob("*.hpp")}, here)


if __name__ == "__main__":
    RECIPE = pathlib.Path(sys.argv.pop(1)).resolve()
    FOLDER = pathlib.Path(sys.argv.pop(1)).resolve()
    HEADERS = list((RECIPE.parent / "../../include").rglob("*.hpp"))
    unittest.main()
