// SPDX-License-Identifier: Apache-2.0
// What most test files include, compiled once.
#pragma once

#include <catch2/catch.hpp>

#include "cmake/standard_headers.hpp"
