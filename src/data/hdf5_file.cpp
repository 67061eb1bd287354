#include "data/hdf5_file.hpp"

#include <hdf5.h>

#include <algorithm>
#include <array>

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
  file_ =
      owned(H5Fcreate("memory", H5F_ACC_TRUNC, properties.id(), access.id()), H5Fclose, "creating a file in memory");
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

}  // namespace spikeloom
