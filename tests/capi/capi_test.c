/* The C interface from C: a pool with indices, its backward, layouts, errors, DLPack. Exits with the number of failed checks. */
#include <cenote/cenote.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                     \
    }                                                                 \
  } while (0)

static void test_forward_and_backward(void) {
  const int64_t shape[4] = {1, 1, 4, 4};
  float x[16], y[4], g[4] = {1, 2, 3, 4}, dx[16];
  int64_t indices[4];
  const float expected[4] = {6, 8, 14, 16};
  const int64_t expected_indices[4] = {5, 7, 13, 15};
  cenote_tensor input, output;
  cenote_spec spec;
  cenote_plan *plan = NULL, *backward = NULL;
  cenote_run run;
  int i;
  for (i = 0; i < 16; ++i) x[i] = (float)(i + 1);

  cenote_tensor_init(&input, CENOTE_F32, 4, shape);
  CHECK(input.strides[0] == 16 && input.strides[2] == 4 && input.strides[3] == 1);
  cenote_spec_init(&spec, CENOTE_MAX_POOL, 2);
  spec.kernel_size = cenote_all(2);
  spec.return_indices = 1;
  CHECK(cenote_plan_create(&plan, CENOTE_FORWARD, &input, &spec, NULL) == CENOTE_OK);
  CHECK(plan != NULL);
  CHECK(cenote_plan_operand(plan, CENOTE_OUTPUT, &output) == CENOTE_OK);
  CHECK(output.rank == 4 && output.shape[2] == 2 && output.shape[3] == 2 && output.dtype == CENOTE_F32);
  CHECK(cenote_plan_operand(plan, CENOTE_INDICES, &output) == CENOTE_OK);
  CHECK(output.dtype == CENOTE_I64);
  CHECK(cenote_plan_bytes_moved(plan) == 16 * 4 + 4 * 4 + 4 * 8);
  CHECK(strlen(cenote_plan_explain(plan)) > 0 && strlen(cenote_plan_target(plan)) > 0);
  cenote_run_init(&run);
  run.input = x;
  run.output = y;
  run.indices = indices;
  run.threads = 1;
  CHECK(cenote_plan_run(plan, &run) == CENOTE_OK);
  CHECK(cenote_plan_check(plan) == CENOTE_OK);
  CHECK(memcmp(y, expected, sizeof y) == 0);
  CHECK(memcmp(indices, expected_indices, sizeof indices) == 0);

  CHECK(cenote_plan_create(&backward, CENOTE_BACKWARD, &input, &spec, NULL) == CENOTE_OK);
  cenote_run_init(&run);
  run.saved_indices = indices;
  run.grad_output = g;
  run.grad_input = dx;
  CHECK(cenote_plan_run(backward, &run) == CENOTE_OK);
  CHECK(dx[5] == 1 && dx[7] == 2 && dx[13] == 3 && dx[15] == 4 && dx[0] == 0 && dx[6] == 0);
  indices[0] = 99;
  CHECK(cenote_plan_run(backward, &run) == CENOTE_INVALID_INDEX);
  cenote_plan_destroy(plan);
  cenote_plan_destroy(backward);
}

static void test_options(void) {
  const int64_t shape[5] = {2, 3, 4, 5, 6}, kernel[3] = {1, 2, 3}, output_size[2] = {CENOTE_KEEP, 1};
  const int64_t plane[4] = {1, 2, 3, 4};
  cenote_tensor input, result;
  cenote_spec spec;
  cenote_plan_options options;
  cenote_plan* plan = NULL;
  float x[24], y[8], z[6];
  cenote_run run;
  int i;
  cenote_tensor_init(&input, CENOTE_F32, 5, shape);
  CHECK(cenote_tensor_channels_last(&input) == CENOTE_OK);
  CHECK(input.strides[1] == 1 && input.strides[4] == 3);
  cenote_spec_init(&spec, CENOTE_AVG_POOL, 3);
  spec.kernel_size = cenote_each(3, kernel);
  CHECK(cenote_plan_create(&plan, CENOTE_FORWARD, &input, &spec, NULL) == CENOTE_OK);
  CHECK(cenote_plan_operand(plan, CENOTE_OUTPUT, &result) == CENOTE_OK);
  CHECK(result.shape[2] == 4 && result.shape[3] == 2 && result.shape[4] == 2);
  cenote_plan_destroy(plan);

  /* Keeping an axis, and a result laid out by the caller. */
  for (i = 0; i < 24; ++i) x[i] = (float)i;
  cenote_tensor_init(&input, CENOTE_F32, 4, plane);
  cenote_spec_init(&spec, CENOTE_ADAPTIVE_AVG_POOL, 2);
  spec.output_size = cenote_each(2, output_size);
  CHECK(cenote_plan_create(&plan, CENOTE_FORWARD, &input, &spec, NULL) == CENOTE_OK);
  cenote_run_init(&run);
  run.input = x;
  run.output = z;
  CHECK(cenote_plan_run(plan, &run) == CENOTE_OK);
  CHECK(z[0] == 1.5F && z[1] == 5.5F && z[5] == 21.5F);
  CHECK(cenote_plan_operand(plan, CENOTE_OUTPUT, &result) == CENOTE_OK);
  cenote_plan_destroy(plan);
  result.strides[1] = 1;
  result.strides[2] = 2;
  result.strides[3] = 2;
  cenote_plan_options_init(&options);
  options.output = &result;
  CHECK(cenote_plan_create(&plan, CENOTE_FORWARD, &input, &spec, &options) == CENOTE_OK);
  run.output = y;
  CHECK(cenote_plan_run(plan, &run) == CENOTE_OK);
  CHECK(y[0] == 1.5F && y[2] == 5.5F && y[5] == 21.5F);
  cenote_plan_destroy(plan);
}

static void test_errors(void) {
  const int64_t shape[4] = {1, 1, 4, 4};
  cenote_tensor input;
  cenote_spec spec;
  cenote_plan* plan = (cenote_plan*)&shape;
  cenote_run run;
  cenote_tensor_init(&input, CENOTE_F32, 4, shape);
  cenote_spec_init(&spec, CENOTE_MAX_POOL, 2);
  spec.kernel_size = cenote_all(2);
  spec.padding = cenote_all(2);
  CHECK(cenote_plan_create(&plan, CENOTE_FORWARD, &input, &spec, NULL) == CENOTE_INVALID_ARGUMENT);
  CHECK(plan == NULL);
  CHECK(strcmp(cenote_last_error_argument(), "padding") == 0);
  CHECK(strstr(cenote_last_error(), "2") != NULL);
  spec.padding = cenote_all(0);
  spec.op = 77;
  CHECK(cenote_plan_create(&plan, CENOTE_FORWARD, &input, &spec, NULL) == CENOTE_INVALID_ARGUMENT);
  spec.op = CENOTE_MAX_POOL;
  input.dtype = 1000;
  CHECK(cenote_plan_create(&plan, CENOTE_FORWARD, &input, &spec, NULL) == CENOTE_INVALID_ARGUMENT);
  input.dtype = CENOTE_F32;
  input.rank = 9;
  CHECK(cenote_plan_create(&plan, CENOTE_FORWARD, &input, &spec, NULL) == CENOTE_INVALID_ARGUMENT);
  input.rank = 4;
  CHECK(cenote_plan_create(&plan, CENOTE_FORWARD, NULL, &spec, NULL) == CENOTE_INVALID_ARGUMENT);
  CHECK(cenote_plan_create(&plan, CENOTE_FORWARD, &input, NULL, NULL) == CENOTE_INVALID_ARGUMENT);
  CHECK(cenote_plan_create(NULL, CENOTE_FORWARD, &input, &spec, NULL) == CENOTE_INVALID_ARGUMENT);
  CHECK(cenote_plan_create(&plan, CENOTE_FORWARD, &input, &spec, NULL) == CENOTE_OK);
  cenote_run_init(&run);
  CHECK(cenote_plan_run(plan, &run) == CENOTE_INVALID_ARGUMENT);
  CHECK(strcmp(cenote_last_error_argument(), "input") == 0);
  CHECK(cenote_plan_run(plan, NULL) == CENOTE_INVALID_ARGUMENT);
  CHECK(cenote_plan_run(NULL, &run) == CENOTE_INVALID_ARGUMENT);
  cenote_plan_destroy(plan);
  cenote_plan_destroy(NULL);
  if (cenote_device_count(CENOTE_CUDA) == 0) {
    input.device_type = CENOTE_CUDA;
    CHECK(cenote_plan_create(&plan, CENOTE_FORWARD, &input, &spec, NULL) == CENOTE_DEVICE_ERROR);
    CHECK(strlen(cenote_last_error()) > 0);
  }
  CHECK(strchr(cenote_version(), '.') != NULL);
  CHECK(strlen(cenote_cpu_targets()) > 0);
  CHECK(cenote_device_count(CENOTE_CPU) == 1);
  CHECK(cenote_dtype_size(CENOTE_BF16) == 2 && cenote_dtype_size(CENOTE_I64) == 8);
}

/* The specification's structs, as another library would declare them. */
typedef struct {
  int32_t device_type, device_id;
} Dev;
typedef struct {
  uint8_t code, bits;
  uint16_t lanes;
} Type;
typedef struct {
  void* data;
  Dev device;
  int32_t ndim;
  Type dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} Plain;
typedef struct Managed {
  Plain tensor;
  void* manager;
  void (*deleter)(struct Managed*);
} Managed;
typedef struct Versioned {
  uint32_t major, minor;
  void* manager;
  void (*deleter)(struct Versioned*);
  uint64_t flags;
  Plain tensor;
} Versioned;

static int released = 0;
static void release(void* owner) { released += *(int*)owner; }

static void test_dlpack(void) {
  int64_t shape[3] = {2, 3, 4};
  float memory[25];
  int one = 1;
  Managed managed;
  Versioned versioned, *exported_versioned;
  Managed* exported;
  cenote_tensor tensor;
  void *data = NULL, *result = NULL;
  memset(&managed, 0, sizeof managed);
  managed.tensor.data = memory;
  managed.tensor.byte_offset = 4;
  managed.tensor.device.device_type = 1;
  managed.tensor.ndim = 3;
  managed.tensor.dtype.code = 2;
  managed.tensor.dtype.bits = 32;
  managed.tensor.dtype.lanes = 1;
  managed.tensor.shape = shape;
  CHECK(cenote_tensor_from_dlpack(&managed, 0, &tensor, &data) == CENOTE_OK);
  CHECK(data == memory + 1 && tensor.dtype == CENOTE_F32 && tensor.rank == 3 && tensor.strides[0] == 12 &&
        tensor.strides[2] == 1);
  managed.tensor.dtype.lanes = 4;
  CHECK(cenote_tensor_from_dlpack(&managed, 0, &tensor, &data) == CENOTE_INVALID_ARGUMENT);
  managed.tensor.dtype.lanes = 1;
  managed.tensor.dtype.code = 5;
  CHECK(cenote_tensor_from_dlpack(&managed, 0, &tensor, &data) == CENOTE_INVALID_ARGUMENT);
  managed.tensor.dtype.code = 4;
  managed.tensor.dtype.bits = 16;
  CHECK(cenote_tensor_from_dlpack(&managed, 0, &tensor, &data) == CENOTE_OK && tensor.dtype == CENOTE_BF16);
  managed.tensor.device.device_type = 7;
  CHECK(cenote_tensor_from_dlpack(&managed, 0, &tensor, &data) == CENOTE_INVALID_ARGUMENT);
  managed.tensor.device.device_type = 2;
  managed.tensor.device.device_id = 3;
  memset(&versioned, 0, sizeof versioned);
  versioned.major = 1;
  versioned.minor = 2;
  versioned.tensor = managed.tensor;
  CHECK(cenote_tensor_from_dlpack(&versioned, 1, &tensor, &data) == CENOTE_OK);
  CHECK(tensor.device_type == CENOTE_CUDA && tensor.device_index == 3);
  versioned.major = 2;
  CHECK(cenote_tensor_from_dlpack(&versioned, 1, &tensor, &data) == CENOTE_INVALID_ARGUMENT);
  CHECK(cenote_tensor_from_dlpack(NULL, 0, &tensor, &data) == CENOTE_INVALID_ARGUMENT);

  cenote_tensor_init(&tensor, CENOTE_U8, 3, shape);
  CHECK(cenote_tensor_to_dlpack(&tensor, memory, &one, release, 0, &result) == CENOTE_OK);
  exported = (Managed*)result;
  CHECK(exported->tensor.data == memory && exported->tensor.ndim == 3 && exported->tensor.dtype.code == 1 &&
        exported->tensor.dtype.bits == 8 && exported->tensor.shape[1] == 3 && exported->tensor.strides[0] == 12 &&
        exported->tensor.device.device_type == 1);
  exported->deleter(exported);
  CHECK(released == 1);
  CHECK(cenote_tensor_to_dlpack(&tensor, memory, &one, release, 1, &result) == CENOTE_OK);
  exported_versioned = (Versioned*)result;
  CHECK(exported_versioned->major == 1 && exported_versioned->flags == 0 && exported_versioned->tensor.shape[2] == 4);
  exported_versioned->deleter(exported_versioned);
  CHECK(released == 2);
}

int main(void) {
  test_forward_and_backward();
  test_options();
  test_errors();
  test_dlpack();
  if (failures == 0) puts("all checks passed");
  return failures;
}
