#include "gate/explain/timed_together.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

namespace weir::explain {
namespace {

using Rows = std::vector<const WorkName*>;

struct Sides {
  Rows a, b;
};

using RoleKey = std::pair<std::string, std::string>;  // kind and role
using ByRole = std::map<RoleKey, Sides>;

struct Joined {
  std::set<RoleKey> parts;
  Sides groups, rows;  // `rows`: of all parts, the groups too
};

void append(Rows& rows, const Rows& more) { rows.insert(rows.end(), more.begin(), more.end()); }

std::set<RoleKey> parts_of(const RoleKey& group) {
  std::set<RoleKey> parts;
  for (const std::string& work : text::split(group.second, '+')) parts.insert({group.first, work});
  return parts;
}

// Moves those rows of a part that a group may hold: by their shapes, where its name tells these.
void take_part(Sides& part, Joined& into) {
  const auto named = [](const Rows& groups, const WorkName* row) {
    return std::ranges::any_of(groups, [&](const WorkName* group) {
      return group->name.find(row->shape) != std::string::npos;
    });
  };
  const auto fits = [&](const WorkName* row) {
    return named(into.groups.a, row) || named(into.groups.b, row);
  };
  const bool by_shape = (into.groups.b.empty() || std::ranges::any_of(part.a, fits)) &&
                        (into.groups.a.empty() || std::ranges::any_of(part.b, fits));
  for (Rows Sides::*side : {&Sides::a, &Sides::b}) {
    Rows& rows = part.*side;
    const auto end = std::stable_partition(
        rows.begin(), rows.end(), [&](const WorkName* row) { return by_shape && !fits(row); });
    (into.rows.*side).insert((into.rows.*side).end(), end, rows.end());
    rows.erase(end, rows.end());
  }
}

// "mul_mat_vec_q8_0, mul_mat_vec_f16": several of one role.
bool several(const WorkName& row) {
  return row.name.find(", ") != std::string::npos &&
         row.role.works.size() > profile::role_of(row.role.work).works.size();
}

// Several of one role that one side alone timed together, with all of that role but shapes that
// both sides run as often.
void add_several(const RoleKey& key, const Sides& rows, std::vector<Joined>& all) {
  const auto any = [](const Rows& side) {
    return std::ranges::any_of(side, [](const WorkName* row) { return several(*row); });
  };
  if (rows.a.empty() || rows.b.empty() || any(rows.a) == any(rows.b)) return;
  const auto alike = [shapes = shapes_alike(rows.a, rows.b)](const WorkName* row) {
    return shapes.contains(row->shape);
  };
  Joined joined{{key}, {}, rows};
  std::erase_if(joined.rows.a, alike);
  std::erase_if(joined.rows.b, alike);
  if (!joined.rows.a.empty() && !joined.rows.b.empty()) all.push_back(std::move(joined));
}

// Takes from `roles` the groups of which the other side has each part, with these parts.
std::vector<Joined> take_groups(ByRole& roles) {
  std::vector<Joined> all;
  std::vector<RoleKey> taken;
  for (const auto& [key, rows] : roles) {
    if (!rows.a.empty() && !rows.b.empty()) continue;
    Joined one{parts_of(key), rows, rows};
    const auto other = rows.a.empty() ? &Sides::a : &Sides::b;
    const bool parts_known = std::ranges::all_of(one.parts, [&](const RoleKey& part) {
      const Sides* found = look_up(roles, part);
      return found != nullptr && !(found->*other).empty();
    });
    if (one.parts.size() < 2 || !parts_known) continue;
    std::erase_if(all, [&](const Joined& before) {
      const bool shares = std::ranges::any_of(
          before.parts, [&](const RoleKey& part) { return one.parts.contains(part); });
      if (!shares) return false;
      one.parts.insert(before.parts.begin(), before.parts.end());
      for (Sides Joined::*which : {&Joined::groups, &Joined::rows}) {
        append((one.*which).a, (before.*which).a);
        append((one.*which).b, (before.*which).b);
      }
      return true;
    });
    all.push_back(std::move(one));
    taken.push_back(key);
  }
  for (const RoleKey& key : taken) roles.erase(key);
  for (Joined& one : all) {
    for (const RoleKey& part : one.parts) take_part(roles[part], one);
  }
  for (const auto& [key, rows] : roles) add_several(key, rows, all);
  return all;
}

std::vector<std::size_t> indices_of(const Rows& rows, std::span<const WorkName> side) {
  std::vector<std::size_t> indices;
  for (const WorkName* row : rows) indices.push_back(static_cast<std::size_t>(row - side.data()));
  return indices;
}

}  // namespace

std::vector<TimedTogether> timed_together(std::span<const WorkName> a,
                                          std::span<const WorkName> b) {
  ByRole roles;
  for (const WorkName& row : a) roles[{row.kind, row.role.work}].a.push_back(&row);
  for (const WorkName& row : b) roles[{row.kind, row.role.work}].b.push_back(&row);
  std::vector<TimedTogether> found;
  for (const Joined& joined : take_groups(roles)) {
    TimedTogether& one = found.emplace_back();
    one.kind = joined.parts.begin()->first;
    for (const auto& [kind, work] : joined.parts) one.role += (one.role.empty() ? "" : "+") + work;
    one.a = indices_of(joined.rows.a, a);
    one.b = indices_of(joined.rows.b, b);
  }
  return found;
}

}  // namespace weir::explain
