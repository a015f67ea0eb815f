// Streams of bytes, in the form in which modules save themselves: numbers as they lie in memory, text and
// containers after their length as 64 bits.
#ifndef DMLC_IO_H_
#define DMLC_IO_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dmlc {

class Stream {
 public:
  virtual ~Stream() = default;
  // Reads at most `size` bytes; the number that there were.
  virtual size_t Read(void* ptr, size_t size) = 0;
  virtual void Write(const void* ptr, size_t size) = 0;

  template <class T>
  void Write(const T& value);
  // Whether the stream held a whole value.
  template <class T>
  bool Read(T* value);

  template <class T>
  void WriteArray(const T* values, size_t count) {
    for (size_t i = 0; i < count; ++i) Write(values[i]);
  }
  template <class T>
  bool ReadArray(T* values, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      if (!Read(values + i)) return false;
    }
    return true;
  }
};

// How values of a type are written and read; a class may bring `void Save(Stream*) const` and `bool Load(Stream*)`.
namespace serializer {

template <class T, class = void>
struct Handler {
  static void Write(Stream* stream, const T& value) { value.Save(stream); }
  static bool Read(Stream* stream, T* value) { return value->Load(stream); }
};

template <class T>
struct Handler<T, std::enable_if_t<std::is_arithmetic<T>::value || std::is_enum<T>::value ||
                                   (std::is_trivial<T>::value && std::is_standard_layout<T>::value)>> {
  static void Write(Stream* stream, const T& value) { stream->Write(static_cast<const void*>(&value), sizeof(T)); }
  static bool Read(Stream* stream, T* value) { return stream->Read(static_cast<void*>(value), sizeof(T)) == sizeof(T); }
};

// The announced length may be wrong, so memory grows with what is really there.
template <class Container>
bool ReadBytes(Stream* stream, Container* values, uint64_t count) {
  using Item = typename Container::value_type;
  constexpr size_t kStep = size_t{1} << 20;
  values->clear();
  while (values->size() < count) {
    size_t done = values->size();
    size_t step = static_cast<size_t>(std::min<uint64_t>(count - done, kStep));
    values->resize(done + step);
    if (stream->Read(static_cast<void*>(&(*values)[done]), step * sizeof(Item)) != step * sizeof(Item)) return false;
  }
  return true;
}

template <class Container>
bool ReadBytes(Stream* stream, Container* values) {
  uint64_t count = 0;
  return stream->Read(&count) && ReadBytes(stream, values, count);
}

template <>
struct Handler<std::string> {
  static void Write(Stream* stream, const std::string& value) {
    stream->Write(static_cast<uint64_t>(value.size()));
    stream->Write(static_cast<const void*>(value.data()), value.size());
  }
  static bool Read(Stream* stream, std::string* value) { return ReadBytes(stream, value); }
};

template <class A, class B>
struct Handler<std::pair<A, B>> {
  static void Write(Stream* stream, const std::pair<A, B>& value) {
    stream->Write(value.first);
    stream->Write(value.second);
  }
  static bool Read(Stream* stream, std::pair<A, B>* value) {
    return stream->Read(&value->first) && stream->Read(&value->second);
  }
};

template <class T>
struct Handler<std::vector<T>> {
  static void Write(Stream* stream, const std::vector<T>& values) {
    stream->Write(static_cast<uint64_t>(values.size()));
    if constexpr (std::is_arithmetic<T>::value) {
      stream->Write(static_cast<const void*>(values.data()), values.size() * sizeof(T));
    } else {
      for (const T& value : values) stream->Write(value);
    }
  }
  static bool Read(Stream* stream, std::vector<T>* values) {
    if constexpr (std::is_arithmetic<T>::value) {
      return ReadBytes(stream, values);
    } else {
      uint64_t count = 0;
      if (!stream->Read(&count)) return false;
      values->clear();
      for (uint64_t i = 0; i < count; ++i) {
        T value;
        if (!stream->Read(&value)) return false;
        values->push_back(std::move(value));
      }
      return true;
    }
  }
};

template <class Map>
struct MapHandler {
  static void Write(Stream* stream, const Map& values) {
    stream->Write(static_cast<uint64_t>(values.size()));
    for (const auto& entry : values) {
      stream->Write(entry.first);
      stream->Write(entry.second);
    }
  }
  static bool Read(Stream* stream, Map* values) {
    std::vector<std::pair<typename Map::key_type, typename Map::mapped_type>> entries;
    if (!stream->Read(&entries)) return false;
    *values = Map(entries.begin(), entries.end());
    return true;
  }
};
template <class K, class V>
struct Handler<std::map<K, V>> : MapHandler<std::map<K, V>> {};
template <class K, class V>
struct Handler<std::unordered_map<K, V>> : MapHandler<std::unordered_map<K, V>> {};

}  // namespace serializer

template <class T>
void Stream::Write(const T& value) {
  serializer::Handler<T>::Write(this, value);
}

template <class T>
bool Stream::Read(T* value) {
  return serializer::Handler<T>::Read(this, value);
}

}  // namespace dmlc
#endif  // DMLC_IO_H_
