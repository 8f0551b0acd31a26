// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The sequences of a cache: a fixed number of records, in use or not.

#include <quire/core/types.hpp>

#include <boost/intrusive/list.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
template <class Record>
class sequence_registry {
  using list_type =
      boost::intrusive::list<Record, boost::intrusive::member_hook<Record, decltype(Record::hook), &Record::hook>>;

public:
  /// \param groups block groups, a table for each
  sequence_registry(std::size_t sequences, std::size_t groups) : records_(sequences) {
    for (auto& record : records_) {
      record.tables.resize(groups);
      unused_.push_back(record);
    }
  }
  sequence_registry(sequence_registry const&) = delete;
  auto operator=(sequence_registry const&) -> sequence_registry& = delete;
  ~sequence_registry() {
    unused_.clear();
    live_.clear();
  }

  [[nodiscard]] auto full() const noexcept -> bool { return unused_.empty(); }
  /// The record that `begin` will take. \pre not full
  [[nodiscard]] auto next() noexcept -> Record& { return unused_.front(); }
  /// It lives, under a number of its own.
  auto begin(Record& record) noexcept -> void {
    unused_.erase(unused_.iterator_to(record));
    live_.push_back(record);
    record.number = sequence_number{++numbers_};
  }
  /// It holds nothing any more.
  auto end(Record& record) noexcept -> void {
    live_.erase(live_.iterator_to(record));
    unused_.push_front(record);
  }
  /// Oldest first.
  [[nodiscard]] auto live() noexcept -> list_type& { return live_; }
  [[nodiscard]] auto live() const noexcept -> list_type const& { return live_; }
  [[nodiscard]] auto capacity() const noexcept -> std::size_t { return records_.size(); }

private:
  std::vector<Record> records_;
  list_type unused_;
  list_type live_;
  std::uint64_t numbers_ = 0;
};
/// \endcond

} // namespace quire::detail
