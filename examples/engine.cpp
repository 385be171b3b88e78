// How an engine uses cenote: plans made once, memory of its own, threads of its own. No tensors, and nothing is allocated once
// the frames run.
//
//   cenote-engine [--short] [FOLDER]    FOLDER gets a picture: a frame, what two pools leave of it, where the winners were
#include "common.hpp"
#include "picture.hpp"

#include <cenote/executor.hpp>
#include <cenote/plan.hpp>

#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace {

/// The engine's threads. cenote asks two things of them: how many there are, and to run a loop.
class ThreadPool final : public cenote::Executor {
 public:
  explicit ThreadPool(int threads) {
    for (int i = 1; i < threads; ++i) {
      workers_.emplace_back([this](const std::stop_token& stop) { work(stop); });
    }
  }

  int concurrency() const noexcept override { return static_cast<int>(workers_.size()) + 1; }

  void parallel_for(std::int64_t count, Body body, void* context) const noexcept override {
    const std::lock_guard one_loop_at_a_time(loop_);
    Loop loop{body, context, count};
    {
      const std::lock_guard lock(mutex_);
      current_ = &loop;
    }
    wake_.notify_all();
    loop.help();
    std::unique_lock lock(mutex_);
    current_ = nullptr;
    idle_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  struct Loop {
    Body body;
    void* context;
    std::int64_t count;
    std::atomic<std::int64_t> next{0};
    void help() noexcept {
      for (std::int64_t i = next++; i < count; i = next++) body(context, i);
    }
  };

  void work(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (wake_.wait(lock, stop, [this] { return current_ && current_->next < current_->count; })) {
      Loop* const loop = current_;
      ++busy_;
      lock.unlock();
      loop->help();
      lock.lock();
      if (--busy_ == 0) idle_.notify_all();
    }
  }

  mutable std::mutex loop_, mutex_;
  mutable std::condition_variable_any wake_, idle_;
  mutable Loop* current_ = nullptr;
  mutable int busy_ = 0;
  std::vector<std::jthread> workers_;  // last: they stop before what they use goes
};

/// Rings that move from frame to frame, in height x width x channels, as a camera delivers them.
void draw_frame(float* pixel, int height, int width, int channels, int frame) {
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const auto dx = static_cast<float>(2 * x - width + frame), dy = static_cast<float>(2 * y - height);
      const float distance = std::sqrt(dx * dx + dy * dy);
      for (int channel = 0; channel < channels; ++channel) {
        *pixel++ = 0.5f + 0.5f * std::sin(distance / static_cast<float>(8 + channel));
      }
    }
  }
}

/// The engine's buffers hold height x width x 3; the picture takes 3 x height x width: a view turns one into the other.
void paste(example::Picture& picture, const cenote::TensorDesc& desc, float* data, std::int64_t x, std::int64_t scale) {
  cenote::TensorView view{desc, data};
  picture.paste(cenote::from_view(view, cenote::Ownership::borrow)[0], x, 8, scale);
}

int show(const example::Arguments& arguments) {
  constexpr int kHeight = 96, kWidth = 128, kChannels = 3;
  const auto frame = cenote::TensorDesc::channels_last(cenote::DType::f32, {1, kChannels, kHeight, kWidth});

  // Once, when the network is loaded: check every shape, choose every kernel. Whatever is wrong is thrown here.
  const cenote::MaxPool<2> first_pool{
      .kernel_size = 4, .return_indices = true, .index_kind = cenote::IndexKind::window};
  const cenote::AvgPool<2> second_pool{.kernel_size = 3, .stride = 2, .padding = 1, .count_include_pad = false};
  const auto first = cenote::Plan::max_pool(frame, first_pool);
  const auto second = cenote::Plan::avg_pool(first.output(), second_pool);
  const auto second_backward = cenote::Plan::avg_pool_backward(first.output(), second_pool);
  const auto first_backward = cenote::Plan::max_pool_backward(frame, first_pool);
  for (const auto* plan : {&first, &second, &second_backward, &first_backward}) {
    std::printf("%s -> %s\n  %s\n", to_string(plan->input().shape).c_str(), to_string(plan->output_shape()).c_str(),
                plan->explain().c_str());
  }

  // Memory, once. Indices of the window kind take one byte each.
  const auto floats = [](const cenote::TensorDesc& desc) { return std::vector<float>(std::size_t(desc.numel())); };
  std::vector<float> input = floats(frame), pooled = floats(first.output()), output = floats(second.output());
  std::vector<float> grad_pooled = floats(first.output()), grad_input = floats(frame);
  const std::vector<float> grad_output(output.size(), 1.0f);
  std::vector<std::uint8_t> winners(std::size_t(first.indices().numel()));
  std::printf("indices: %zu bytes, as %s\n", winners.size(), name_of(first.indices().dtype));

  // Every frame: no allocation, no exception; a failure is a Status.
  const ThreadPool threads(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  const auto forward = [&](const cenote::Executor& executor) {
    cenote::Status status =
        first.run({.input = input.data(), .output = pooled.data(), .indices = winners.data(), .executor = &executor});
    if (status.ok()) status = second.run({.input = pooled.data(), .output = output.data(), .executor = &executor});
    return status;
  };
  const int frames = arguments.brief ? 20 : 500;
  double seconds = 0;
  for (int i = 0; i < frames; ++i) {
    draw_frame(input.data(), kHeight, kWidth, kChannels, i % 50);
    const auto start = std::chrono::steady_clock::now();
    forward(threads).raise();
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  std::printf("%d frames on %d threads of the engine: %.1f us a frame\n", frames, threads.concurrency(),
              1e6 * seconds / frames);

  // Who runs a plan changes nothing in its result.
  const std::vector<float> by_threads = output;
  forward(cenote::serial_executor()).raise();
  const bool same = std::memcmp(by_threads.data(), output.data(), output.size() * sizeof(float)) == 0;
  std::printf("the same, bit for bit, on one thread: %s\n", same ? "yes" : "no");

  // Backward through both: all of the gradient arrives, at the winners only.
  second_backward.run({.grad_output = grad_output.data(), .grad_input = grad_pooled.data(), .executor = &threads})
      .raise();
  first_backward
      .run({.saved_indices = winners.data(),
            .grad_output = grad_pooled.data(),
            .grad_input = grad_input.data(),
            .executor = &threads})
      .raise();
  double arrived = 0, touched = 0;
  for (const float gradient : grad_input) {
    arrived += gradient;
    touched += gradient != 0;
  }
  const auto sent = static_cast<double>(grad_output.size());
  std::printf("gradient sent %.0f, arrived %.1f, at %.0f of %zu elements\n", sent, arrived, touched, grad_input.size());

  if (!arguments.folder.empty()) {
    constexpr int kStep = 2 * kWidth + 8;
    example::Picture sheet(4 * kStep + 8, 2 * kHeight + 16);
    paste(sheet, first.input(), input.data(), 8, 2);
    paste(sheet, first.output(), pooled.data(), 8 + kStep, 8);
    paste(sheet, second.output(), output.data(), 8 + 2 * kStep, 16);
    for (float& gradient : grad_input) gradient *= 4;  // a window's share is about 1/4
    paste(sheet, first_backward.grad_input(), grad_input.data(), 8 + 3 * kStep, 2);
    std::printf("frame, pooled, pooled twice, gradient: %s\n", sheet.write(arguments.folder / "engine").c_str());
  }
  const bool complete = std::abs(arrived - sent) < 1e-3 * sent && touched <= static_cast<double>(winners.size());
  return same && complete ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return example::run(argc, argv, show); }
