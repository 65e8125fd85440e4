// Matches work that one side timed together with the same work that the other side timed by itself.
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

// Roles that one side timed together, with the rows of both sides.
struct JoinedRoles {
  std::set<RoleKey> parts;
  Sides groups, rows;  // `rows`: those of all parts and of the groups
};

void append(Rows& rows, const Rows& more) { rows.insert(rows.end(), more.begin(), more.end()); }

std::set<RoleKey> split_parts(const RoleKey& group) {
  std::set<RoleKey> parts;
  for (const std::string& work : text::split(group.second, '+')) parts.insert({group.first, work});
  return parts;
}

// Moves those rows of a part into the group that it may hold. Shapes decide if the group's name has
// any.
void move_part_rows(Sides& part, JoinedRoles& into) {
  const auto is_named = [](const Rows& groups, const WorkName* row) {
    return std::ranges::any_of(groups, [&](const WorkName* group_row) {
      return group_row->name.find(row->shape) != std::string::npos;
    });
  };
  const auto fits_shape = [&](const WorkName* row) {
    return is_named(into.groups.a, row) || is_named(into.groups.b, row);
  };
  const bool by_shape = (into.groups.b.empty() || std::ranges::any_of(part.a, fits_shape)) &&
                        (into.groups.a.empty() || std::ranges::any_of(part.b, fits_shape));
  for (Rows Sides::*side : {&Sides::a, &Sides::b}) {
    Rows& rows = part.*side;
    const auto first_taken =
        std::stable_partition(rows.begin(), rows.end(),
                              [&](const WorkName* row) { return by_shape && !fits_shape(row); });
    (into.rows.*side).insert((into.rows.*side).end(), first_taken, rows.end());
    rows.erase(first_taken, rows.end());
  }
}

// Returns true if some name lists several kernels of one role: "mul_mat_vec_q8_0, mul_mat_vec_f16".
bool has_repeated_role(const Rows& rows) {
  return std::ranges::any_of(rows, [](const WorkName* row) {
    return row->name.find(", ") != std::string::npos &&
           row->role.works.size() > profile::parse_role(row->role.work).works.size();
  });
}

// Adds all rows of a role if only one side timed several of them together. Shapes that both sides
// run as often stay out.
void add_repeated_role(const RoleKey& key, const Sides& rows, std::vector<JoinedRoles>& all) {
  if (rows.a.empty() || rows.b.empty()) return;
  if (has_repeated_role(rows.a) == has_repeated_role(rows.b)) return;
  const auto common_shapes = find_common_shapes(rows.a, rows.b);
  const auto is_common_shape = [&](const WorkName* row) {
    return common_shapes.contains(row->shape);
  };
  JoinedRoles joined{.parts = {key}, .groups = {}, .rows = rows};
  std::erase_if(joined.rows.a, is_common_shape);
  std::erase_if(joined.rows.b, is_common_shape);
  if (!joined.rows.a.empty() && !joined.rows.b.empty()) all.push_back(std::move(joined));
}

// Moves groups out of `roles` if the other side has each of their parts, together with these parts.
// Groups that share a part become one.
std::vector<JoinedRoles> extract_groups(ByRole& roles) {
  std::vector<JoinedRoles> all;
  std::vector<RoleKey> group_keys;
  for (const auto& [key, rows] : roles) {
    if (!rows.a.empty() && !rows.b.empty()) continue;
    JoinedRoles group{split_parts(key), rows, rows};
    const auto other_side = rows.a.empty() ? &Sides::a : &Sides::b;
    const bool has_all_parts = std::ranges::all_of(group.parts, [&](const RoleKey& part) {
      const Sides* part_rows = look_up(roles, part);
      return part_rows != nullptr && !(part_rows->*other_side).empty();
    });
    if (group.parts.size() < 2 || !has_all_parts) continue;
    std::erase_if(all, [&](const JoinedRoles& earlier) {
      const bool shares = std::ranges::any_of(
          earlier.parts, [&](const RoleKey& part) { return group.parts.contains(part); });
      if (!shares) return false;
      group.parts.insert(earlier.parts.begin(), earlier.parts.end());
      for (Sides JoinedRoles::*which : {&JoinedRoles::groups, &JoinedRoles::rows}) {
        append((group.*which).a, (earlier.*which).a);
        append((group.*which).b, (earlier.*which).b);
      }
      return true;
    });
    all.push_back(std::move(group));
    group_keys.push_back(key);
  }
  for (const RoleKey& key : group_keys) roles.erase(key);
  for (JoinedRoles& group : all) {
    for (const RoleKey& part : group.parts) move_part_rows(roles[part], group);
  }
  for (const auto& [key, rows] : roles) add_repeated_role(key, rows, all);
  return all;
}

std::vector<std::size_t> find_indices(const Rows& rows, std::span<const WorkName> side) {
  std::vector<std::size_t> indices;
  for (const WorkName* row : rows) indices.push_back(static_cast<std::size_t>(row - side.data()));
  return indices;
}

}  // namespace

// Groups rows of both sides by role, and returns the groups that only one side timed together.
std::vector<TimedTogether> timed_together(std::span<const WorkName> a,
                                          std::span<const WorkName> b) {
  ByRole roles;
  for (const WorkName& row : a) roles[{row.kind, row.role.work}].a.push_back(&row);
  for (const WorkName& row : b) roles[{row.kind, row.role.work}].b.push_back(&row);
  std::vector<TimedTogether> result;
  for (const JoinedRoles& joined : extract_groups(roles)) {
    TimedTogether& group = result.emplace_back();
    group.kind = joined.parts.begin()->first;
    for (const auto& [kind, work] : joined.parts) {
      text::append_item(group.role, "+", work);
    }
    group.a = find_indices(joined.rows.a, a);
    group.b = find_indices(joined.rows.b, b);
  }
  return result;
}

}  // namespace weir::explain
