// The interface of the program that mutation tests change.
#pragma once

#include <string>
#include <vector>

namespace toy {
bool is_over(int value, int kind);
int sum_of_positive(const std::vector<int>& values);
std::string never_called(const std::string& name);
}  // namespace toy
