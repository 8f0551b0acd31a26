// SPDX-License-Identifier: Apache-2.0
// The unit that carries the precompiled header of the property tests.
