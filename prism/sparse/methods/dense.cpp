#include "prism/sparse/methods/dense.h"

namespace prism {
namespace {

class DenseSelector : public Selector {
 public:
  explicit DenseSelector(const BlockSizes& blocks) : blocks_(blocks) { check(blocks); }

  std::unique_ptr<SelectorState> make_state(const SelectorInput&) const override {
    return std::make_unique<NoSelectorState>();
  }
  BlockMask select(const SelectorInput& input, SelectorState&) const override {
    const SelectorLengths checked(input);
    return {blocks_.queries(), blocks_.keys(), {}, {}};
  }

 private:
  BlockSizes blocks_;
};

}  // namespace

std::unique_ptr<Selector> make_dense_selector(const DenseOptions& options) {
  return std::make_unique<DenseSelector>(options.blocks);
}

}  // namespace prism
