#include "prism/template/library/filters.h"

namespace prism::jinja {

const FilterTable& filters() {
  static const FilterTable kFilters = [] {
    FilterTable all = text_filters();
    all.merge(list_filters());
    all.merge(selection_filters());
    all.merge(number_filters());
    return all;
  }();
  return kFilters;
}

}  // namespace prism::jinja
