#include "smd/rules/hit_news.h"

namespace smd::rules {

bool HitNews::is_news(const Hit& hit) {
  Known& known = by_rule_[hit.rule];
  bool is_new = false;
  for (uint32_t tensor : hit.tensors) is_new = known.tensors.insert(tensor).second || is_new;
  for (uint32_t worker : hit.workers) is_new = known.workers.insert(worker).second || is_new;
  if (++known.hits == known.next_told) {
    known.next_told *= 10;
    is_new = true;
  }
  return is_new;
}

}  // namespace smd::rules
