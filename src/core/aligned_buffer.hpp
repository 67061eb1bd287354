// Zero-initialised storage whose first element is at a cache-line boundary, as the kernels' full-vector loads want.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace spikeloom {

inline constexpr std::size_t kCacheLine = 64;
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Owns `size` elements of a trivially copyable type. Throws std::bad_alloc when memory runs out.
template <class T>
class AlignedBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t size) : data_(allocate(size)), size_(size) { fill(T{}); }
  AlignedBuffer(const AlignedBuffer& other) : data_(allocate(other.size_)), size_(other.size_) {
    std::copy_n(other.data_, size_, data_);
  }
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~AlignedBuffer() { std::free(data_); }

  /// Makes room for at least `size` elements; what was stored is lost, and the elements are not initialised, if it has
  /// to grow.
  void reserve_discard(std::size_t size) {
    if (size <= size_) return;
    std::free(std::exchange(data_, nullptr));
    size_ = 0;
    data_ = allocate(size);
    size_ = size;
  }

  void fill(T value) { std::fill_n(data_, size_, value); }
  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  operator std::span<T>() { return {data_, size_}; }
  operator std::span<const T>() const { return {data_, size_}; }

 private:
  static T* allocate(std::size_t size) {
    if (size == 0) return nullptr;
    const std::size_t alignment = size * sizeof(T) >= kHugePage ? kHugePage : kCacheLine;
    const std::size_t bytes = (size * sizeof(T) + alignment - 1) / alignment * alignment;
    void* memory = std::aligned_alloc(alignment, bytes);
    if (!memory) throw std::bad_alloc();
    // Rows of weights are read at random: with pages of 4 KB a tile takes more of them than the first-level TLB holds.
    if (alignment == kHugePage) madvise(memory, bytes, MADV_HUGEPAGE);  // refused: slower, not wrong
    return static_cast<T*>(memory);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace spikeloom
