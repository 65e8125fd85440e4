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

// Moves rows of a part into the group that was timed together with it. If the group's name lists
// shapes, only rows of these shapes move.
void move_part_rows(Sides& part, JoinedRoles& group) {
  const auto is_named = [](const Rows& groups, const WorkName* row) {
    return std::ranges::any_of(groups, [&](const WorkName* group_row) {
      return group_row->name.find(row->shape) != std::string::npos;
    });
  };
  const auto fits_shape = [&](const WorkName* row) {
    return is_named(group.groups.a, row) || is_named(group.groups.b, row);
  };
  const bool matches_shapes = (group.groups.b.empty() || std::ranges::any_of(part.a, fits_shape)) &&
                              (group.groups.a.empty() || std::ranges::any_of(part.b, fits_shape));
  for (Rows Sides::*side : {&Sides::a, &Sides::b}) {
    Rows& rows = part.*side;
    const auto first_taken = std::stable_partition(
        rows.begin(), rows.end(),
        [&](const WorkName* row) { return matches_shapes && !fits_shape(row); });
    (group.rows.*side).insert((group.rows.*side).end(), first_taken, rows.end());
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

// Adds all rows of one kind of work (role) as a group if only one side timed several of them
// together. Shapes that both sides run equally often stay out.
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

// Moves works that one side timed together out of `roles`, with their parts on the other side if
// it has all of them. Groups that share a part become one.
std::vector<JoinedRoles> extract_groups(ByRole& roles) {
  std::vector<JoinedRoles> extracted;
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
    std::erase_if(extracted, [&](const JoinedRoles& earlier) {
      const bool has_common_part = std::ranges::any_of(
          earlier.parts, [&](const RoleKey& part) { return group.parts.contains(part); });
      if (!has_common_part) return false;
      group.parts.insert(earlier.parts.begin(), earlier.parts.end());
      for (Sides JoinedRoles::*list : {&JoinedRoles::groups, &JoinedRoles::rows}) {
        append((group.*list).a, (earlier.*list).a);
        append((group.*list).b, (earlier.*list).b);
      }
      return true;
    });
    extracted.push_back(std::move(group));
    group_keys.push_back(key);
  }
  for (const RoleKey& key : group_keys) roles.erase(key);
  for (JoinedRoles& group : extracted) {
    for (const RoleKey& part : group.parts) move_part_rows(roles[part], group);
  }
  for (const auto& [key, rows] : roles) add_repeated_role(key, rows, extracted);
  return extracted;
}

std::vector<std::size_t> find_indices(const Rows& rows, std::span<const WorkName> side) {
  std::vector<std::size_t> indices;
  for (const WorkName* row : rows) indices.push_back(static_cast<std::size_t>(row - side.data()));
  return indices;
}

}  // namespace

// Groups works of both sides by what they do (role). Returns the groups that only one side timed
// together, as indices into `a` and `b`.
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
