// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Every macro that changes how quire is compiled, with its default. Set them for a whole *program*
/// (a macro that differs between translation units breaks the one-definition rule).
///
/// | macro | default | effect |
/// |---|---|---|
/// | `QUIRE_UNCHECKED` | undefined | drops the O(1) contract checks |
/// | `QUIRE_AUDIT` | undefined | runs `audit()` after every operation of a cache: O(pool), for debugging |
/// | `QUIRE_CONTRACT_INCLUDE` | undefined | a header that defines `QUIRE_CONTRACT_FAIL(kind, expr)` |

/// Major version of the library.
#define QUIRE_VERSION_MAJOR 0
/// Minor version of the library; releases with the same major and minor version are compatible.
#define QUIRE_VERSION_MINOR 1
/// Patch version of the library.
#define QUIRE_VERSION_PATCH 0
