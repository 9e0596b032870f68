#include "prism/checkpoint/tensor_file.h"

#include <cstring>
#include <set>

#include "prism/core/error.h"

namespace prism {
namespace {

struct TypePair {
  torch::ScalarType torch;
  ElementType file;
};

constexpr TypePair kTypes[] = {
    {torch::kFloat, ElementType::f32},  {torch::kBFloat16, ElementType::bf16}, {torch::kHalf, ElementType::f16},
    {torch::kDouble, ElementType::f64}, {torch::kLong, ElementType::i64},      {torch::kInt, ElementType::i32},
    {torch::kByte, ElementType::u8},    {torch::kBool, ElementType::boolean},
};

ElementType file_type(torch::ScalarType type) {
  for (const auto& pair : kTypes)
    if (pair.torch == type) return pair.file;
  throw InternalError("write_tensors", fmt::format("no safetensors type for {}", c10::toString(type)));
}

torch::ScalarType torch_type(const TensorEntry& entry, const std::filesystem::path& path) {
  for (const auto& pair : kTypes)
    if (pair.file == entry.type) return pair.torch;
  throw InputError("load_safetensors",
                   fmt::format("{}: expected a floating or integer type; found {} in {}; convert it.", entry.name,
                               element_type_name(entry.type), path.string()));
}

std::string shape_text(at::IntArrayRef shape) {
  return c10::str(shape);
}

}  // namespace

void write_tensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors) {
  std::vector<TensorEntry> entries;
  for (const auto& [name, tensor] : tensors)
    entries.push_back({name, file_type(tensor.scalar_type()), tensor.sizes().vec(), {}});
  SafetensorsWriter writer(path, entries);
  for (const auto& [name, tensor] : tensors) {
    const auto dense = tensor.detach().cpu().contiguous();
    writer.write({static_cast<const std::byte*>(dense.const_data_ptr()), dense.nbytes()});
  }
  writer.commit();
}

torch::Tensor read_tensor(const SafetensorsReader& reader, const std::string& name) {
  const auto& entry = reader.find(name);
  auto tensor = torch::empty(entry.shape, torch_type(entry, reader.path()));
  if (!entry.data.empty()) std::memcpy(tensor.mutable_data_ptr(), entry.data.data(), entry.data.size());
  reader.check_whole();
  return tensor;
}

void read_tensors(const SafetensorsReader& reader, const std::vector<NamedTensor>& targets) {
  torch::NoGradGuard no_gradients;
  std::set<std::string> wanted;
  for (const auto& [name, target] : targets) {
    wanted.insert(name);
    const auto& entry = reader.find(name);
    PRISM_CHECK(target.is_floating_point() == c10::isFloatingType(torch_type(entry, reader.path())), "load_safetensors",
                "{}: expected {} values; found {} in {}; convert them, or name another model.", name,
                target.is_floating_point() ? "floating-point" : "integer", element_type_name(entry.type),
                reader.path().string());
    PRISM_CHECK(target.sizes() == at::IntArrayRef(entry.shape), "load_safetensors",
                "{}: expected {} {}; found {} {} in {}; name a model of the same config.json.", name,
                shape_text(target.sizes()), c10::toString(target.scalar_type()), shape_text(entry.shape),
                element_type_name(entry.type), reader.path().string());
    // Copied first, because the mapped bytes may be unaligned and are read-only.
    auto values = torch::empty(entry.shape, torch_type(entry, reader.path()));
    std::memcpy(values.mutable_data_ptr(), entry.data.data(), entry.data.size());
    auto destination = target;
    destination.copy_(values);
  }
  reader.check_whole();
  for (const auto& entry : reader.entries()) {
    PRISM_CHECK(wanted.contains(entry.name), "load_safetensors",
                "expected only the tensors of config.json; found {} as well in {}; restore one of the files.",
                entry.name, reader.path().string());
  }
}

}  // namespace prism
