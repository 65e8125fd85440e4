// Why cells changed, as people read it in a terminal. Pure.
#pragma once

#include <span>
#include <string>

#include "gate/base/json.hpp"
#include "gate/explain/explain.hpp"

namespace weir::report {

struct ExplainStyle {
  bool color = false;
  int width = 80;
  bool checklist = false;  // add the checklist for slow engines, and unusual counts
};

// No line is wider than `width` (at least 40). Names from outside are made printable.
[[nodiscard]] std::string explain_text(std::span<const explain::Explanation> explanations,
                                       const ExplainStyle& style);

// Returns only the findings, numbered.
[[nodiscard]] std::string findings_text(std::span<const explain::Finding> findings,
                                        const ExplainStyle& style);

// {"schema": "weir.explanation/1", "findings": [...], "cells": [...]}: findings of all cells, each
// with the name of its cell; the same again cell by cell, with totals, hints and checklist.
[[nodiscard]] Json explain_json(std::span<const explain::Explanation> explanations);

}  // namespace weir::report
