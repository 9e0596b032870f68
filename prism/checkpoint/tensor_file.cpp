#include "prism/checkpoint/tensor_file.h"

#include <cstring>
#include <set>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "prism/core/text/printable.h"

namespace prism {
namespace {

struct TypePair {
  torch::ScalarType torch;
  ElementType file;
};

constexpr TypePair kTypes[] = {
    {torch::kFloat, ElementType::f32},  {torch::kBFloat16, ElementType::bf16}, {torch::kHalf, ElementType::f16},
    {torch::kDouble, ElementType::f64}, {torch::kLong, ElementType::i64},      {torch::kInt, ElementType::i32},
    {torch::kByte, ElementType::u8},    {torch::kChar, ElementType::i8},       {torch::kBool, ElementType::boolean},
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

}  // namespace

void write_tensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                   std::map<std::string, std::string> metadata) {
  std::vector<TensorEntry> entries;
  for (const auto& [name, tensor] : tensors)
    entries.push_back({name, file_type(tensor.scalar_type()), tensor.sizes().vec(), {}});
  SafetensorsWriter writer(path, entries, std::move(metadata));
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

SafetensorsSource::SafetensorsSource(const std::filesystem::path& file_or_index) : path_(file_or_index) {
  if (path_.extension() != ".json") {
    files_.emplace_back(path_);
    for (const auto& entry : files_[0].entries()) file_of_[entry.name] = 0;
    return;
  }
  const Json index = read_json(path_.string());
  PRISM_CHECK(index.is_object() && index.contains("weight_map") && index["weight_map"].is_object() &&
                  !index["weight_map"].empty(),
              "load_safetensors", "expected a weight_map in {}; found none; restore the file.", path_.string());
  std::map<std::string, size_t> known;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    const auto name = file.is_string() ? file.get<std::string>() : "";
    PRISM_CHECK(!name.empty() && std::filesystem::path(name).filename() == name, "load_safetensors",
                "{}: expected the name of a file beside it for {}; found {}; restore the file.", path_.string(), tensor,
                short_line(to_text(file), 60));
    const auto [place, is_new] = known.try_emplace(name, files_.size());
    if (is_new) files_.emplace_back(path_.parent_path() / name);
    files_[place->second].find(tensor);  // reports one that is missing
    file_of_[tensor] = place->second;
  }
  for (const auto& file : files_)
    for (const auto& entry : file.entries())
      PRISM_CHECK(file_of_.contains(entry.name), "load_safetensors",
                  "{}: expected {}, which {} holds, in weight_map; found it missing; restore the file.", path_.string(),
                  entry.name, file.path().filename().string());
}

std::vector<std::string> SafetensorsSource::names() const {
  std::vector<std::string> names;
  for (const auto& file : files_)
    for (const auto& entry : file.entries()) names.push_back(entry.name);
  return names;
}

torch::Tensor SafetensorsSource::read(const std::string& name) const {
  const auto found = file_of_.find(name);
  // The only file names the nearest existing name.
  return read_tensor(files_[found == file_of_.end() ? 0 : found->second], name);
}

std::optional<StoredBlocks> SafetensorsSource::read_blocks(const std::string& name) const {
  const auto found = file_of_.find(name);
  if (found == file_of_.end()) return std::nullopt;
  const auto& entry = files_[found->second].find(name);
  if (entry.type != ElementType::bf16 || entry.shape.size() != 2) return std::nullopt;
  const int64_t rows = entry.shape[0], columns = entry.shape[1];
  auto* data = const_cast<std::byte*>(entry.data.data());
  return StoredBlocks{BlockType::bf16, rows, columns, torch::from_blob(data, {rows, columns * 2}, torch::kByte)};
}

void SafetensorsSource::check_whole() const {
  for (const auto& file : files_) file.check_whole();
}

void check_shape(const TensorSource& source, const std::string& name, torch::IntArrayRef expected,
                 torch::IntArrayRef found) {
  PRISM_CHECK(expected == found, "load_tensors",
              "{}: expected the shape {}; found {} in {}; name a model of the same config.json.", name,
              c10::str(expected), c10::str(found), source.path());
}

void read_tensors(const TensorSource& source, const std::vector<NamedTensor>& targets,
                  const std::function<bool(const std::string&)>& ignores) {
  torch::NoGradGuard no_gradients;
  std::set<std::string> wanted;
  for (const auto& [name, target] : targets) {
    wanted.insert(name);
    const auto values = source.read(name);
    PRISM_CHECK(target.is_floating_point() == values.is_floating_point(), "load_tensors",
                "{}: expected {} values; found {} in {}; convert them, or name another model.", name,
                target.is_floating_point() ? "floating-point" : "integer", c10::toString(values.scalar_type()),
                source.path());
    check_shape(source, name, target.sizes(), values.sizes());
    auto destination = target;
    destination.copy_(values);
  }
  source.check_whole();
  for (const auto& name : source.names())
    PRISM_CHECK(wanted.contains(name) || (ignores && ignores(name)), "load_tensors",
                "expected only the tensors of config.json; found {} as well in {}; restore one of the files.", name,
                source.path());
}

}  // namespace prism
