/* cenote's C interface: plans over plain memory, on the CPU and on NVIDIA GPUs. C99 and later, and C++.
 *
 *   cenote_tensor input;
 *   const int64_t shape[4] = {8, 64, 112, 112};
 *   cenote_tensor_init(&input, CENOTE_F32, 4, shape);
 *   cenote_spec spec;
 *   cenote_spec_init(&spec, CENOTE_MAX_POOL, 2);
 *   spec.kernel_size = cenote_all(3);
 *   spec.stride = cenote_all(2);
 *   spec.padding = cenote_all(1);
 *   cenote_plan* plan = NULL;
 *   if (cenote_plan_create(&plan, CENOTE_FORWARD, &input, &spec, NULL) != CENOTE_OK) puts(cenote_last_error());
 *   cenote_run run;
 *   cenote_run_init(&run);
 *   run.input = x;
 *   run.output = y;
 *   if (cenote_plan_run(plan, &run) != CENOTE_OK) puts(cenote_last_error());
 *   cenote_plan_destroy(plan);
 *
 * Every function is safe to call from any thread. A plan is immutable: any number of threads may run it at once. No exception
 * leaves this interface. Structs begin with their size and may grow at their end in later versions: fill them with the _init
 * functions. Names and numbers below never change their meaning. */
#ifndef CENOTE_CENOTE_H
#define CENOTE_CENOTE_H

#include <stddef.h>  // NOLINT(modernize-deprecated-headers): C
#include <stdint.h>  // NOLINT(modernize-deprecated-headers)

#if defined(__GNUC__)
#define CENOTE_C_API __attribute__((visibility("default")))
#else
#define CENOTE_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cenote_status {
  CENOTE_OK = 0,
  CENOTE_INVALID_ARGUMENT = 1, /* an argument, a shape, a dtype or a layout that the op refuses */
  CENOTE_INVALID_INDEX = 2,    /* an index handed in that points outside its plane or window */
  CENOTE_OUT_OF_MEMORY = 3,
  CENOTE_DEVICE_ERROR = 4 /* the CUDA runtime reported an error, or the build has no such device */
} cenote_status;

/* U16 and U32 hold indices of kind CENOTE_WINDOW only. */
typedef enum cenote_dtype {
  CENOTE_F32 = 0,
  CENOTE_F64 = 1,
  CENOTE_F16 = 2,
  CENOTE_BF16 = 3,
  CENOTE_I8 = 4,
  CENOTE_U8 = 5,
  CENOTE_I16 = 6,
  CENOTE_I32 = 7,
  CENOTE_I64 = 8,
  CENOTE_U16 = 9,
  CENOTE_U32 = 10
} cenote_dtype;

typedef enum cenote_device_type { CENOTE_CPU = 0, CENOTE_CUDA = 1 } cenote_device_type;

typedef enum cenote_op {
  CENOTE_MAX_POOL = 0,
  CENOTE_MIN_POOL = 1,
  CENOTE_AVG_POOL = 2,
  CENOTE_SUM_POOL = 3,
  CENOTE_LP_POOL = 4,
  CENOTE_ADAPTIVE_MAX_POOL = 5,
  CENOTE_ADAPTIVE_AVG_POOL = 6,
  CENOTE_FRACTIONAL_MAX_POOL = 7,
  CENOTE_MAX_UNPOOL = 8
} cenote_op;

typedef enum cenote_pass { CENOTE_FORWARD = 0, CENOTE_BACKWARD = 1 } cenote_pass;

/* How the place of a maximum is written down: position in the D*H*W plane of the unpadded input in 64 or 32 bits (none: -1), or
 * which tap of its whole window it is, in U8 up to 255 taps, else U16, else U32 (none: all ones). */
typedef enum cenote_index_kind { CENOTE_FLAT64 = 0, CENOTE_FLAT32 = 1, CENOTE_WINDOW = 2 } cenote_index_kind;

typedef enum cenote_padding_mode {
  CENOTE_PADDING_SYMMETRIC = 0,  /* `padding` at both ends */
  CENOTE_PADDING_ASYMMETRIC = 1, /* `padding` at the beginning, `padding_end` at the end */
  CENOTE_PADDING_SAME_UPPER = 2, /* output = ceil(input / stride), the odd cell at the end */
  CENOTE_PADDING_SAME_LOWER = 3
} cenote_padding_mode;

#define CENOTE_MAX_RANK 8
/* As an entry of output_size: keep the input's size (PyTorch's None). */
#define CENOTE_KEEP INT64_MIN

/* A tensor without its memory. Strides are in elements. */
typedef struct cenote_tensor {
  size_t size; /* of this struct */
  int32_t dtype;
  int32_t rank;
  int64_t shape[CENOTE_MAX_RANK];
  int64_t strides[CENOTE_MAX_RANK];
  int32_t device_type;
  int32_t device_index;
} cenote_tensor;

/* A per-axis argument: count entries, in D, H, W order. count 0: not given; count CENOTE_ALL_AXES: values[0] for every axis. */
#define CENOTE_ALL_AXES (-1)
typedef struct cenote_dims {
  int32_t count;
  int64_t values[5]; /* max_unpool's output_size may repeat N and C */
} cenote_dims;

/* Any op with any options. Names, defaults and rules are PyTorch's; fields an op does not have are ignored. */
typedef struct cenote_spec {
  size_t size; /* of this struct */
  int32_t op;
  int32_t dims; /* spatial axes: 1, 2 or 3 */
  cenote_dims kernel_size;
  cenote_dims stride; /* not given: kernel_size */
  cenote_dims padding;
  cenote_dims padding_end;
  int32_t padding_mode;
  int32_t ceil_mode;
  cenote_dims dilation;
  cenote_dims output_size;     /* adaptive, fractional, max_unpool */
  int32_t has_output_ratio[3]; /* fractional */
  int32_t count_include_pad;   /* 1 unless changed */
  double output_ratio[3];
  int32_t has_divisor_override;
  int32_t return_indices;
  int64_t divisor_override;
  double norm_type; /* 2 unless changed */
  int32_t index_kind;
} cenote_spec;

/* Layouts other than the default ones, null where not given. Shape and dtype must be the call's. */
typedef struct cenote_plan_options {
  size_t size; /* of this struct */
  const cenote_tensor* output;
  const cenote_tensor* indices;
  const cenote_tensor* grad_output;
  const cenote_tensor* grad_input;
  const cenote_tensor* random_samples;
  const char* target; /* one of cenote_cpu_targets; null: the best */
} cenote_plan_options;

/* The memory of one run; each pointer is to the element with index 0 in every dimension. */
typedef struct cenote_run {
  size_t size;                /* of this struct */
  const void* input;          /* forward; lp_pool's backward */
  void* output;               /* forward */
  void* indices;              /* forward with return_indices: written */
  const void* saved_indices;  /* max_unpool and the backward of the max family: read and checked */
  const void* random_samples; /* fractional_max_pool */
  const void* grad_output;    /* backward */
  void* grad_input;           /* backward */
  void* stream;               /* CUDA: the cudaStream_t to run on */
  int32_t threads;            /* CPU: how many; 0: as many as OpenMP says */
} cenote_run;

typedef struct cenote_plan cenote_plan;

typedef enum cenote_operand {
  CENOTE_INPUT = 0,
  CENOTE_OUTPUT = 1,
  CENOTE_INDICES = 2,
  CENOTE_GRAD_OUTPUT = 3,
  CENOTE_GRAD_INPUT = 4,
  CENOTE_RANDOM_SAMPLES = 5
} cenote_operand;

/* ---- describing ---------------------------------------------------------------------------------------------------------- */

/* A dense CPU tensor, last dimension fastest. rank beyond CENOTE_MAX_RANK is refused later, when a plan is made from it. */
CENOTE_C_API void cenote_tensor_init(cenote_tensor* tensor, cenote_dtype dtype, int rank, const int64_t* shape);
/* Dense strides with the channel (dimension 1) fastest; rank 3 to 5. */
CENOTE_C_API cenote_status cenote_tensor_channels_last(cenote_tensor* tensor);
CENOTE_C_API void cenote_spec_init(cenote_spec* spec, cenote_op op, int dims);
CENOTE_C_API void cenote_run_init(cenote_run* run);
CENOTE_C_API void cenote_plan_options_init(cenote_plan_options* options);
/* One number for every axis. */
CENOTE_C_API cenote_dims cenote_all(int64_t value);
/* One number each, D, H, W order. */
CENOTE_C_API cenote_dims cenote_each(int count, const int64_t* values);

/* ---- plans --------------------------------------------------------------------------------------------------------------- */

/* Checks everything that can be checked without data and chooses the kernel. For max_unpool, `input` is the pooled tensor; for
 * a backward, the forward's input. options may be null. On failure *plan is null. */
CENOTE_C_API cenote_status cenote_plan_create(cenote_plan** plan, cenote_pass pass, const cenote_tensor* input,
                                              const cenote_spec* spec, const cenote_plan_options* options);
/* Null is allowed. On CUDA, runs of the plan must have finished. */
CENOTE_C_API void cenote_plan_destroy(cenote_plan* plan);

/* Runs the op. Allocates nothing. On CUDA it is queued on run->stream, without synchronising, and may be captured in a graph.
 * There, indices and random samples are looked at by the device later: what it finds wrong with them is returned, once, by the
 * plan's next run (which then does nothing) or by cenote_plan_check. Nothing outside the results is ever touched. */
CENOTE_C_API cenote_status cenote_plan_run(const cenote_plan* plan, const cenote_run* run);
/* Does not wait: synchronise the stream first. Always CENOTE_OK on the CPU. */
CENOTE_C_API cenote_status cenote_plan_check(const cenote_plan* plan);

/* Shape, strides and dtype of an operand; rank 0 for one the plan does not have. */
CENOTE_C_API cenote_status cenote_plan_operand(const cenote_plan* plan, cenote_operand which, cenote_tensor* tensor);
/* Fewest bytes the op must move: each input read once, each result written once. */
CENOTE_C_API int64_t cenote_plan_bytes_moved(const cenote_plan* plan);
/* One line: the kernel chosen and why. Valid as long as the plan. */
CENOTE_C_API const char* cenote_plan_explain(const cenote_plan* plan);
/* The instruction set ("AVX3"), or "cuda". Valid as long as the plan. */
CENOTE_C_API const char* cenote_plan_target(const cenote_plan* plan);

/* ---- errors, version, machine --------------------------------------------------------------------------------------------- */

/* Of this thread's last call that failed: what was wrong; and the name of the argument. Never null; valid until the next
 * failure in this thread. */
CENOTE_C_API const char* cenote_last_error(void);
CENOTE_C_API const char* cenote_last_error_argument(void);

/* "0.1.0" */
CENOTE_C_API const char* cenote_version(void);
/* The instruction sets this machine has and this build knows, best first, separated by spaces. Valid forever. */
CENOTE_C_API const char* cenote_cpu_targets(void);
/* How many devices of that type there are; 0 where the build or the machine has none. */
CENOTE_C_API int cenote_device_count(cenote_device_type type);
/* Bytes of one element; 0 for no dtype. */
CENOTE_C_API size_t cenote_dtype_size(cenote_dtype dtype);

/* ---- DLPack --------------------------------------------------------------------------------------------------------------- */

/* `managed` is a DLManagedTensor*, or with versioned != 0 a DLManagedTensorVersioned* (what the capsules "dltensor" and
 * "dltensor_versioned" hold). The description and the address of its first element are read; ownership stays with the caller.
 * Refused: vector types, dtypes and devices cenote does not have, another major version. */
CENOTE_C_API cenote_status cenote_tensor_from_dlpack(const void* managed, int versioned, cenote_tensor* tensor,
                                                     void** data);
/* Makes a DLManagedTensor (or the versioned one) for somebody's memory. Its deleter calls release(owner), where release is not
 * null, and frees the struct. */
CENOTE_C_API cenote_status cenote_tensor_to_dlpack(const cenote_tensor* tensor, void* data, void* owner,
                                                   void (*release)(void* owner), int versioned, void** managed);

#ifdef __cplusplus
}
#endif

#endif /* CENOTE_CENOTE_H */
