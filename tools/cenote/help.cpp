#include "help.hpp"

namespace cenote::tool {
namespace {

constexpr CommandHelp kHelp[] = {
    {"", "Pooling of arrays and pictures, as PyTorch computes it, with every step explained.",
     "cenote COMMAND [ARGUMENTS]",
     R"(Start here:
  cenote explain --op max --kernel 2 --size 4x4        what happens to 1..16, window by window
  cenote pool photo.png small.png --op avg --kernel 4  a picture, four times smaller
  cenote shape 3x224x224 "max k3 s2 p1" "max k2"       sizes along a network, without data
  cenote COMMAND --help                                options and examples of one command)",
     R"(Exit codes:
  0  done                           4  a result cannot be written
  1  check, bench: a wrong result   5  the op refuses these arguments for this input
  2  wrong command line             6  no such device, or it failed
  3  an input cannot be read or is not what it says
  128 + n after signal n (Ctrl-C: 130); nothing half-written is left behind.)"},
    {"pool", "Pool .npy arrays and .png pictures.", "cenote pool INPUT... OUTPUT [OPTIONS]",
     R"(Examples:
  cenote pool x.npy y.npy --op max --kernel 3 --stride 2 --padding 1
      what torch.nn.MaxPool2d(3, stride=2, padding=1) computes; x.npy is (N, C, H, W), (C, H, W) or (H, W)
  cenote pool x.npy y.npy --op max --kernel 2 --indices where.npy
      also write where each maximum came from, for `cenote unpool`
  cenote pool photo.png small.png --op avg --kernel 4
      channels are pooled one by one; the result is rounded to the picture's 8 or 16 bits
  cenote pool photos/ thumbnails/ --op adaptive-avg --output-size 128x128
      every .png and .npy of a directory, in the order of their names; several inputs work too, the last name is
      then a directory
  cenote pool volume.npy half.npy --op avg --dims 3 --kernel 2 --layout ndhwc
      three spatial axes, channels last
  gunzip -c x.npy.gz | cenote pool - - --op lp --norm-type 2 --kernel 2 > y.npy
      "-" is standard input and output)",
     R"(An array's axes are (N, C, spatial...), with N, then C left out for lower ranks; --layout nhwc: the channel is last.
Sizes are one number for all axes (3) or one for each (3x2). Files larger than memory are mapped and worked on in pieces.
The result has the input's dtype and order (C or Fortran); a picture pooled into a .npy file gives f32 (H, W, C).
Of several inputs the first that fails ends the run: results before it stay, those after it are not begun.)"},
    {"unpool", "Put pooled values back where their indices say; zeros elsewhere.",
     "cenote unpool INPUT OUTPUT --indices FILE --kernel SIZE [OPTIONS]",
     R"(Examples:
  cenote pool x.npy y.npy --op max --kernel 2 --indices i.npy
  cenote unpool y.npy z.npy --indices i.npy --kernel 2
      z has x's maxima in their places and 0 elsewhere
  cenote unpool y.npy z.npy --indices i.npy --kernel 2 --output-size 7x7
      pooling 7x7 and 6x6 both give 3x3: say which it was)",
     R"(The kind of the indices follows from their dtype: i64 is flat64, i32 is flat32, u8, u16 and u32 are window.)"},
    {"explain", "Show how an output comes about: sizes, windows, winners, indices, gradient.",
     "cenote explain [FILE] --op OP [OPTIONS]",
     R"(Examples:
  cenote explain --op max --kernel 2 --size 4x4
      the numbers 1..16; what the indices mean
  cenote explain --op max --kernel 3 --stride 2 --padding 1 --size 6x6 --svg pool.svg
      why the output is 3 and not 4; what padding does; the same as a picture
  cenote explain --op avg --kernel 3 --stride 2 --padding 1 --ceil-mode --size 4
      a row of 4; what ceil_mode does to the last window and to its divisor
  cenote explain --op max --kernel 2 --values "1 3 2 4; 5 6 1 2; 4 2 7 8; 3 5 9 4"
      your own numbers: rows end with a semicolon, slices of a 3d input with |
  cenote explain photo.png --op max --kernel 2 --crop 6x6+40+32 --plane 1
      six rows and columns of a picture's second channel, from row 40, column 32
  cenote explain --op unpool --kernel 2 --size 2x2 --output-size 6
      why unpool refuses that size)",
     "An input of up to 4096 cells can be explained; of a larger file, --crop takes a part."},
    {"shape", "Output sizes of a chain of layers, without data.", "cenote shape INPUT LAYER... [OPTIONS]",
     R"(Examples:
  cenote shape 3x224x224 "conv c64 k7 s2 p3" "max k3 s2 p1"
      the beginning of ResNet: 112x112, then 56x56
  cenote shape 1x1x28x28 "conv c32 k3 p1" "max k2" "conv c64 k3 p1" "max k2" "adaptive-avg o1"
  cenote shape 16000 "max k4" "avg k3 s2 ceil"
      one spatial axis)",
     R"(A layer is an op's name and its arguments: k kernel, s stride, p padding, d dilation, o output size, c channels
(conv only), ceil. Several numbers are joined by x: k3x2. INPUT is N x C x spatial, C x spatial or spatial sizes.)"},
    {"info", "Version, instruction sets, devices and threads.", "cenote info [--json]", R"(Example:
  cenote info --json | jq .targets)",
     ""},
    {"completion", "Print a completion script for a shell.", "cenote completion bash|zsh|fish",
     R"(Examples:
  source <(cenote completion bash)                                      this shell
  cenote completion bash > ~/.local/share/bash-completion/completions/cenote
  cenote completion zsh  > ~/.zfunc/_cenote                             with ~/.zfunc in fpath
  cenote completion fish > ~/.config/fish/completions/cenote.fish)",
     ""},
    {"check", "Compare cenote with a naive reference, for one problem or many.", "cenote check PROBLEM...", R"(Example:
  cenote check 'max2d f32 nchw n2c17 h30w31 k3x2 s2x2 p1x1 d1x1 ceil'
      every failing test prints such a line; this replays it on every instruction set of the machine)",
     ""},
    {"explain-plan", "Which kernel the library chooses for a problem, and why.", "cenote explain-plan PROBLEM...",
     R"(Example:
  cenote explain-plan 'max2d f32 nchw n8c64 h112w112 k3x3 s2x2 p1x1')",
     ""},
    {"bench", "This machine's copy bandwidth, and cenote's share of it.", "cenote bench [PROBLEM...] [OPTIONS]",
     R"(Examples:
  cenote bench --filter resnet50
      rows of the built-in suite whose names match
  cenote bench 'max2d f32 nchw n8c64 h112w112 k3x3 s2x2 p1x1')",
     ""},
};

}  // namespace

const CommandHelp* find_help(std::string_view name) {
  for (const CommandHelp& help : kHelp) {
    if (help.name == name) return &help;
  }
  return nullptr;
}

}  // namespace cenote::tool
