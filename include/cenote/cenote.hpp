// All of cenote: tensors, functions, modules and plans.
#pragma once

#include <cenote/dims.hpp>
#include <cenote/dtype.hpp>
#include <cenote/error.hpp>
#include <cenote/executor.hpp>
#include <cenote/export.hpp>
#include <cenote/functional.hpp>
#include <cenote/indices.hpp>
#include <cenote/nn.hpp>
#include <cenote/options.hpp>
#include <cenote/plan.hpp>
#include <cenote/tensor.hpp>
#include <cenote/view.hpp>
