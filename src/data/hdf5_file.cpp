#include "data/hdf5_file.hpp"

#include <hdf5.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>

#include "data/float16.hpp"

namespace spikeloom {
namespace {

static_assert(std::is_same_v<hid_t, std::int64_t>);

/// The innermost message of HDF5's error stack.
herr_t innermost(unsigned depth, const H5E_error2_t* entry, void* text) {
  if (depth == 0 && entry->desc != nullptr) *static_cast<std::string*>(text) = entry->desc;
  return 0;
}

[[noreturn]] void fail(const std::string& what) {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, &reason);
  H5Eclear2(H5E_DEFAULT);
  throw Hdf5Error(reason.empty() ? what : what + " (" + reason + ")");
}

void check(herr_t status, const char* what) {
  if (status < 0) fail(what);
}

Hdf5Handle owned(hid_t id, Hdf5Handle::Close close, const std::string& what) {
  if (id < 0) fail(what);
  return {id, close};
}

/// Off for the whole library: HDF5 would print its error stack to stderr.
void silence() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

/// IEEE half, little-endian, as h5py makes it: HDF5 1.10 has no such predefined type.
Hdf5Handle float16_type() {
  Hdf5Handle type = owned(H5Tcopy(H5T_IEEE_F32LE), H5Tclose, "half precision type");
  check(H5Tset_fields(type.id(), 15, 10, 5, 0, 10), "half precision type");
  check(H5Tset_size(type.id(), 2), "half precision type");
  check(H5Tset_ebias(type.id(), 15), "half precision type");
  return type;
}

hid_t predefined_type(Hdf5Type type) {
  switch (type) {
    case Hdf5Type::float32:
      return H5T_IEEE_F32LE;
    case Hdf5Type::float64:
      return H5T_IEEE_F64LE;
    case Hdf5Type::int8:
      return H5T_STD_I8LE;
    case Hdf5Type::uint8:
      return H5T_STD_U8LE;
    case Hdf5Type::int16:
      return H5T_STD_I16LE;
    case Hdf5Type::uint16:
      return H5T_STD_U16LE;
    case Hdf5Type::int32:
      return H5T_STD_I32LE;
    case Hdf5Type::uint32:
      return H5T_STD_U32LE;
    case Hdf5Type::int64:
      return H5T_STD_I64LE;
    case Hdf5Type::uint64:
      return H5T_STD_U64LE;
    case Hdf5Type::float16:
      break;
  }
  throw Hdf5Error("no such type");
}

Hdf5Handle file_type(Hdf5Type type) {
  if (type == Hdf5Type::float16) return float16_type();
  return owned(H5Tcopy(predefined_type(type)), H5Tclose, "number type");
}

/// Creation properties: layout, and no time of creation.
Hdf5Handle creation(const Hdf5Layout& layout) {
  Hdf5Handle properties = owned(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "dataset properties");
  check(H5Pset_obj_track_times(properties.id(), false), "time stamps off");
  if (layout.chunk > 0) {
    const hsize_t chunk = layout.chunk;
    check(H5Pset_chunk(properties.id(), 1, &chunk), "chunk size");
    if (layout.deflate > 0)
      check(H5Pset_deflate(properties.id(), static_cast<unsigned>(layout.deflate)), "compression");
  }
  return properties;
}

Hdf5Handle create_dataset(hid_t file, const std::string& name, hid_t type, std::size_t size, const Hdf5Layout& layout) {
  const hsize_t extent = size;
  const hsize_t largest = layout.chunk > 0 ? H5S_UNLIMITED : extent;
  const Hdf5Handle space = owned(H5Screate_simple(1, &extent, &largest), H5Sclose, name);
  const Hdf5Handle properties = creation(layout);
  return owned(H5Dcreate2(file, name.c_str(), type, space.id(), H5P_DEFAULT, properties.id(), H5P_DEFAULT), H5Dclose,
               name);
}

std::vector<hvl_t> references(std::span<const std::span<const std::byte>> sequences, std::size_t element_bytes) {
  std::vector<hvl_t> result(sequences.size());
  std::transform(sequences.begin(), sequences.end(), result.begin(), [&](std::span<const std::byte> bytes) {
    return hvl_t{bytes.size() / element_bytes, const_cast<std::byte*>(bytes.data())};  // HDF5 only reads it
  });
  return result;
}

}  // namespace

void Hdf5Sequences::append(std::span<const std::span<const std::byte>> sequences) {
  if (sequences.empty()) return;
  const std::vector<hvl_t> elements = references(sequences, element_bytes_);
  const hsize_t start = size_;
  const hsize_t count = sequences.size();
  const hsize_t extent = start + count;
  check(H5Dset_extent(dataset_.id(), &extent), "growing an array");
  const Hdf5Handle target = owned(H5Dget_space(dataset_.id()), H5Sclose, "extent of an array");
  check(H5Sselect_hyperslab(target.id(), H5S_SELECT_SET, &start, nullptr, &count, nullptr), "part of an array");
  const Hdf5Handle source = owned(H5Screate_simple(1, &count, nullptr), H5Sclose, "extent of an array");
  check(H5Dwrite(dataset_.id(), type_.id(), source.id(), target.id(), H5P_DEFAULT, elements.data()),
        "writing sequences");
  size_ += sequences.size();
}

Hdf5Writer::Hdf5Writer() {
  silence();
  const Hdf5Handle access = owned(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "file access");
  constexpr std::size_t kGrowth = std::size_t{16} << 20;
  check(H5Pset_fapl_core(access.id(), kGrowth, false), "file in memory");
  const Hdf5Handle properties = owned(H5Pcreate(H5P_FILE_CREATE), H5Pclose, "file properties");
  check(H5Pset_obj_track_times(properties.id(), false), "time stamps off");
  // The library takes files in memory for the same one if they have the same name.
  static std::atomic<unsigned> number{0};
  const std::string name = "spikeloom-memory-" + std::to_string(number++);
  file_ = owned(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, properties.id(), access.id()), H5Fclose,
                "creating a file in memory");
}

void Hdf5Writer::create_group(const std::string& name) {
  const Hdf5Handle properties = owned(H5Pcreate(H5P_GROUP_CREATE), H5Pclose, "group properties");
  check(H5Pset_obj_track_times(properties.id(), false), "time stamps off");
  owned(H5Gcreate2(file_.id(), name.c_str(), H5P_DEFAULT, properties.id(), H5P_DEFAULT), H5Gclose, name);
}

void Hdf5Writer::write(const std::string& name, Hdf5Type type, std::span<const std::byte> bytes, Hdf5Layout layout) {
  const Hdf5Handle stored = file_type(type);
  const std::size_t size = bytes.size() / H5Tget_size(stored.id());
  const Hdf5Handle dataset = create_dataset(file_.id(), name, stored.id(), size, layout);
  if (size > 0)
    check(H5Dwrite(dataset.id(), stored.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()), "writing an array");
}

void Hdf5Writer::write_strings(const std::string& name, const std::vector<std::string>& values) {
  std::size_t width = 1;
  for (const std::string& value : values) width = std::max(width, value.size());
  std::string block;
  for (std::string value : values) {
    value.resize(width, '\0');
    block += value;
  }
  const Hdf5Handle type = owned(H5Tcopy(H5T_C_S1), H5Tclose, "text type");
  check(H5Tset_size(type.id(), width), "text type");
  check(H5Tset_strpad(type.id(), H5T_STR_NULLPAD), "text type");
  check(H5Tset_cset(type.id(), H5T_CSET_UTF8), "text type");
  const Hdf5Handle dataset = create_dataset(file_.id(), name, type.id(), values.size(), {});
  if (!values.empty())
    check(H5Dwrite(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, block.data()), "writing text");
}

Hdf5Sequences Hdf5Writer::create_sequences(const std::string& name, Hdf5Type type, Hdf5Layout layout) {
  Hdf5Sequences result;
  const Hdf5Handle base = file_type(type);
  result.element_bytes_ = H5Tget_size(base.id());
  result.type_ = owned(H5Tvlen_create(base.id()), H5Tclose, "sequence type");
  result.dataset_ = create_dataset(file_.id(), name, result.type_.id(), 0, layout);
  return result;
}

void Hdf5Writer::write_sequences(const std::string& name, Hdf5Type type,
                                 std::span<const std::span<const std::byte>> sequences, Hdf5Layout layout) {
  const Hdf5Handle base = file_type(type);
  const Hdf5Handle stored = owned(H5Tvlen_create(base.id()), H5Tclose, "sequence type");
  const Hdf5Handle dataset = create_dataset(file_.id(), name, stored.id(), sequences.size(), layout);
  const std::vector<hvl_t> elements = references(sequences, H5Tget_size(base.id()));
  if (elements.empty()) return;
  check(H5Dwrite(dataset.id(), stored.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, elements.data()), "writing sequences");
}

std::span<const std::byte> Hdf5Writer::image() {
  check(H5Fflush(file_.id(), H5F_SCOPE_GLOBAL), "finishing a file in memory");
  const ssize_t size = H5Fget_file_image(file_.id(), nullptr, 0);
  void* memory = nullptr;
  // The core driver's handle is the address of its buffer's pointer.
  if (size < 0 || H5Fget_vfd_handle(file_.id(), H5P_DEFAULT, &memory) < 0) fail("finishing a file in memory");
  return {*static_cast<const std::byte* const*>(memory), static_cast<std::size_t>(size)};
}

namespace {

/// Memory for the sequences of one read, all of it freed at the end whatever happened. HDF5 asks for it through C
/// callbacks, so nothing throws.
struct SequenceArena {
  static void* allocate(std::size_t bytes, void* self) {
    auto& arena = *static_cast<SequenceArena*>(self);
    if (bytes > arena.bytes_left) return nullptr;
    arena.bytes_left -= bytes;
    auto* memory = new (std::nothrow) std::byte[bytes];
    if (memory == nullptr) return nullptr;
    arena.blocks.emplace_back(memory);
    return memory;
  }
  static void release(void*, void*) {}

  std::size_t bytes_left = 0;
  std::vector<std::unique_ptr<std::byte[]>> blocks;
};

double widened(std::uint16_t value) { return float16_value(value); }
double widened(double value) { return value; }
std::int64_t widened(std::int64_t value) { return value; }

Hdf5Kind kind_of(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return Hdf5Kind::integer;
    case H5T_FLOAT:
      return Hdf5Kind::floating;
    default:
      return Hdf5Kind::other;
  }
}

/// Whether every part of a path exists, as an object of this file and not as a link out of it.
bool exists(hid_t file, const std::string& name) {
  for (std::size_t end = 0; end != std::string::npos;) {
    end = name.find('/', end + 1);
    const std::string part = name.substr(0, end);
    const htri_t found = H5Lexists(file, part.c_str(), H5P_DEFAULT);
    if (found < 0) fail(name);
    if (found == 0) return false;
    H5L_info_t info;
    check(H5Lget_info(file, part.c_str(), &info, H5P_DEFAULT), "link");
    if (info.type != H5L_TYPE_HARD) throw Hdf5Error(part + " is a link, not an object of this file");
  }
  return true;
}

}  // namespace

Hdf5Reader::Hdf5Reader(const std::filesystem::path& path) {
  silence();
  const Hdf5Handle access = owned(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "file access");
#if H5_VERSION_GE(1, 10, 7)
  // Nothing is written, and locks fail on some network and read-only file systems.
  check(H5Pset_file_locking(access.id(), false, true), "file access");
#endif
  file_ = owned(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose, "can't be opened as HDF5");
  file_bytes_ = std::filesystem::file_size(path);
}

bool Hdf5Reader::has(const std::string& name) const { return exists(file_.id(), name); }

Hdf5Handle Hdf5Reader::open(const std::string& name, std::size_t& size) const {
  if (!exists(file_.id(), name)) throw Hdf5Error(name + " is missing");
  Hdf5Handle dataset =
      owned(H5Dopen2(file_.id(), name.c_str(), H5P_DEFAULT), H5Dclose, name + " can't be opened as an array");
  const Hdf5Handle properties = owned(H5Dget_create_plist(dataset.id()), H5Pclose, name + ": layout");
  const H5D_layout_t layout = H5Pget_layout(properties.id());
  const bool inside = layout == H5D_COMPACT || layout == H5D_CONTIGUOUS || layout == H5D_CHUNKED;
  if (!inside || H5Pget_external_count(properties.id()) != 0) throw Hdf5Error(name + " is kept in another file");
  const Hdf5Handle space = owned(H5Dget_space(dataset.id()), H5Sclose, name + ": extent");
  hsize_t extent = 0;
  if (H5Sget_simple_extent_ndims(space.id()) != 1 || H5Sget_simple_extent_dims(space.id(), &extent, nullptr) != 1) {
    throw Hdf5Error(name + " is not an array of one dimension");
  }
  // An extent is only a number in the file: do not let it ask for memory that no such file can fill.
  if (extent > file_bytes_) {
    throw Hdf5Error(name + " claims " + std::to_string(extent) + " elements in a file of " +
                    std::to_string(file_bytes_) + " bytes");
  }
  size = extent;
  return dataset;
}

Hdf5Array Hdf5Reader::array(const std::string& name) const {
  Hdf5Array array;
  array.dataset_ = open(name, array.size_);
  array.bytes_left_ = file_bytes_;
  array.element_ = owned(H5Dget_type(array.dataset_.id()), H5Tclose, name + ": type");
  array.sequences_ = H5Tget_class(array.element_.id()) == H5T_VLEN;
  if (array.sequences_) array.element_ = owned(H5Tget_super(array.element_.id()), H5Tclose, name + ": type");
  array.kind_ = kind_of(array.element_.id());
  return array;
}

std::vector<std::string> Hdf5Reader::strings(const std::string& name) const {
  std::size_t size = 0;
  const Hdf5Handle dataset = open(name, size);
  const Hdf5Handle type = owned(H5Dget_type(dataset.id()), H5Tclose, name + ": type");
  const std::size_t width = H5Tget_size(type.id());
  if (H5Tget_class(type.id()) != H5T_STRING || H5Tis_variable_str(type.id()) != 0) {
    throw Hdf5Error(name + " is not an array of texts of fixed length");
  }
  if (width == 0 || size > file_bytes_ / width) throw Hdf5Error(name + " claims more text than the file holds");
  std::string block(size * width, '\0');
  if (size > 0) check(H5Dread(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, block.data()), "reading text");
  std::vector<std::string> result;
  for (std::size_t i = 0; i < size; ++i) {
    const std::string text = block.substr(i * width, width);
    result.push_back(text.substr(0, text.find('\0')));
  }
  return result;
}

void Hdf5Array::read_block(std::size_t begin, std::size_t count, std::int64_t type, std::int64_t transfer,
                           void* target) const {
  const hsize_t start = begin;
  const hsize_t length = count;
  const Hdf5Handle file = owned(H5Dget_space(dataset_.id()), H5Sclose, "extent of an array");
  check(H5Sselect_hyperslab(file.id(), H5S_SELECT_SET, &start, nullptr, &length, nullptr), "part of an array");
  const Hdf5Handle memory = owned(H5Screate_simple(1, &length, nullptr), H5Sclose, "extent of an array");
  check(H5Dread(dataset_.id(), type, memory.id(), file.id(), transfer, target), "reading an array");
}

std::vector<double> Hdf5Array::reals(std::size_t begin, std::size_t count) const {
  std::vector<double> values(count);
  if (count > 0) read_block(begin, count, H5T_NATIVE_DOUBLE, H5P_DEFAULT, values.data());
  return values;
}

std::vector<std::int64_t> Hdf5Array::integers(std::size_t begin, std::size_t count) const {
  std::vector<std::int64_t> values(count);
  if (count > 0) read_block(begin, count, H5T_NATIVE_INT64, H5P_DEFAULT, values.data());
  return values;
}

template <class Stored, class T>
void Hdf5Array::read_sequences(std::size_t begin, std::size_t count, std::int64_t type, Slab<T>& slab) {
  slab.values.clear();
  slab.ends.clear();
  if (count == 0) return;
  const std::size_t stored_bytes = std::max<std::size_t>(1, H5Tget_size(element_.id()));
  SequenceArena arena{bytes_left_ / stored_bytes * sizeof(Stored), {}};
  const Hdf5Handle transfer = owned(H5Pcreate(H5P_DATASET_XFER), H5Pclose, "transfer");
  check(H5Pset_vlen_mem_manager(transfer.id(), SequenceArena::allocate, &arena, SequenceArena::release, &arena),
        "transfer");
  const Hdf5Handle sequence = owned(H5Tvlen_create(type), H5Tclose, "sequence type");
  std::vector<hvl_t> elements(count);
  read_block(begin, count, sequence.id(), transfer.id(), elements.data());
  std::size_t total = 0;
  for (const hvl_t& element : elements) {
    if (element.len > bytes_left_ / stored_bytes) throw Hdf5Error("sequences are longer than the file");
    bytes_left_ -= element.len * stored_bytes;
    total += element.len;
  }
  slab.values.reserve(total);
  for (const hvl_t& element : elements) {
    const auto* values = static_cast<const Stored*>(element.p);
    for (std::size_t i = 0; i < element.len; ++i) slab.values.push_back(widened(values[i]));
    slab.ends.push_back(slab.values.size());
  }
}

void Hdf5Array::read(std::size_t begin, std::size_t count, Slab<double>& slab) {
  // HDF5 widens halves bit by bit, some 50 times slower than we do: read their bits.
  const Hdf5Handle half = float16_type();
  if (H5Tequal(element_.id(), half.id()) > 0) {
    read_sequences<std::uint16_t>(begin, count, half.id(), slab);
  } else {
    read_sequences<double>(begin, count, H5T_NATIVE_DOUBLE, slab);
  }
}

void Hdf5Array::read(std::size_t begin, std::size_t count, Slab<std::int64_t>& slab) {
  read_sequences<std::int64_t>(begin, count, H5T_NATIVE_INT64, slab);
}

}  // namespace spikeloom
