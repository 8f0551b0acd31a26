// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Strong arithmetic types: an id is not a count, a position is not an id, and no two of them convert
/// into each other. All three are plain integers at run time (same size, trivially copyable).

#include <compare> // operator<=>
#include <limits>

namespace quire {

/// Names one thing. Ids are compared and copied, never added.
/// \tparam Tag makes the type distinct. \tparam Rep unsigned representation.
template <class Tag, class Rep>
class strong_id {
public:
  /// Underlying integer.
  using rep = Rep;
  /// The id that names nothing (all bits set); also the default.
  [[nodiscard]] static constexpr auto none() noexcept -> strong_id { return strong_id{}; }

  constexpr strong_id() noexcept = default;
  /// Names the thing with number \p value.
  explicit constexpr strong_id(Rep value) noexcept : value_{value} {}
  /// The number, for indexing arrays and crossing to a device.
  [[nodiscard]] constexpr auto value() const noexcept -> Rep { return value_; }
  /// True unless this is `none()`.
  [[nodiscard]] explicit constexpr operator bool() const noexcept { return value_ != std::numeric_limits<Rep>::max(); }
  /// Orders by number.
  friend constexpr auto operator<=>(strong_id const&, strong_id const&) noexcept = default;

private:
  Rep value_ = std::numeric_limits<Rep>::max();
};

/// An amount of one unit. Counts of the same unit add, subtract and compare.
/// \tparam Tag the unit. \tparam Rep unsigned representation.
template <class Tag, class Rep>
class strong_count {
public:
  /// Underlying integer.
  using rep = Rep;

  constexpr strong_count() noexcept = default;
  /// \p value units.
  explicit constexpr strong_count(Rep value) noexcept : value_{value} {}
  /// The plain number of units.
  [[nodiscard]] constexpr auto value() const noexcept -> Rep { return value_; }
  /// Adds \p other. \pre the sum fits `Rep`.
  constexpr auto operator+=(strong_count other) noexcept -> strong_count& {
    value_ = static_cast<Rep>(value_ + other.value_);
    return *this;
  }
  /// Removes \p other. \pre `other <= *this`.
  constexpr auto operator-=(strong_count other) noexcept -> strong_count& {
    value_ = static_cast<Rep>(value_ - other.value_);
    return *this;
  }
  /// Sum. \pre it fits `Rep`.
  friend constexpr auto operator+(strong_count a, strong_count b) noexcept -> strong_count { return a += b; }
  /// Difference. \pre `b <= a`.
  friend constexpr auto operator-(strong_count a, strong_count b) noexcept -> strong_count { return a -= b; }
  /// Orders by amount.
  friend constexpr auto operator<=>(strong_count const&, strong_count const&) noexcept = default;

private:
  Rep value_ = 0;
};

/// A place on a line measured in `Count`. Position + count = position; position - position = count.
/// \tparam Count the `strong_count` that measures distances.
template <class Count>
class strong_position {
public:
  /// Underlying integer.
  using rep = typename Count::rep;

  constexpr strong_position() noexcept = default;
  /// The place \p value units from the origin.
  explicit constexpr strong_position(rep value) noexcept : value_{value} {}
  /// Distance from the origin as a plain number.
  [[nodiscard]] constexpr auto value() const noexcept -> rep { return value_; }
  /// The place \p n further on.
  friend constexpr auto operator+(strong_position p, Count n) noexcept -> strong_position {
    return strong_position{static_cast<rep>(p.value_ + n.value())};
  }
  /// Distance from \p b to \p a. \pre `b <= a`.
  friend constexpr auto operator-(strong_position a, strong_position b) noexcept -> Count {
    return Count{static_cast<rep>(a.value_ - b.value_)};
  }
  /// Orders along the line.
  friend constexpr auto operator<=>(strong_position const&, strong_position const&) noexcept = default;

private:
  rep value_ = 0;
};

} // namespace quire
