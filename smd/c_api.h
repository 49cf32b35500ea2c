#ifndef SMD_C_API_H_
#define SMD_C_API_H_

/* Records tensors from C and from every language that can call C. C99; link with libsmd.
 *
 * A hook belongs to one thread at a time and to whoever created it; free it with smdebug_hook_free.
 * Strings and arrays are read during the call only. Every function may be given NULL: it then
 * reports SMDEBUG_INVALID_ARGUMENT. No function ends the process or lets a C++ exception out.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct smdebug_hook smdebug_hook;

/* What functions that return int report. Numbers never change; later versions may add some. */
enum smdebug_status {
  SMDEBUG_OK = 0,
  SMDEBUG_INVALID_ARGUMENT = 1, /* the caller's value is wrong */
  SMDEBUG_NOT_FOUND = 2,        /* the named thing does not exist */
  SMDEBUG_NOT_YET = 3,          /* it may exist later */
  SMDEBUG_END_OF_DATA = 4,      /* nothing more will come */
  SMDEBUG_TRUNCATED = 5,        /* the rest is not there (yet) */
  SMDEBUG_CORRUPT = 6,          /* the bytes contradict themselves */
  SMDEBUG_UNSUPPORTED = 7,      /* valid, but this version cannot do it */
  SMDEBUG_IO = 8,               /* the operating system said no */
  SMDEBUG_CLOSED = 9,           /* the hook was closed before */
  SMDEBUG_INTERNAL = 10         /* a bug of the library, or no memory */
};

enum smdebug_mode { SMDEBUG_TRAIN = 1, SMDEBUG_EVAL = 2, SMDEBUG_PREDICT = 3, SMDEBUG_GLOBAL = 4 };

enum smdebug_dtype {
  SMDEBUG_FLOAT16 = 0,
  SMDEBUG_FLOAT32 = 1,
  SMDEBUG_FLOAT64 = 2,
  SMDEBUG_BFLOAT16 = 3,
  SMDEBUG_FLOAT8_E4M3FN = 4,
  SMDEBUG_FLOAT8_E5M2 = 5,
  SMDEBUG_INT8 = 6,
  SMDEBUG_INT16 = 7,
  SMDEBUG_INT32 = 8,
  SMDEBUG_INT64 = 9,
  SMDEBUG_UINT8 = 10,
  SMDEBUG_UINT16 = 11,
  SMDEBUG_UINT32 = 12,
  SMDEBUG_UINT64 = 13,
  SMDEBUG_BOOL = 14,      /* one byte each */
  SMDEBUG_COMPLEX64 = 15, /* two float32 each */
  SMDEBUG_COMPLEX128 = 16 /* two float64 each */
};

/* Most axes that a tensor may have. */
#define SMDEBUG_MOST_AXES 64

/* The text of this thread's last failure, a full sentence; "" if there was none. Valid until the
 * next failure in this thread. */
const char* smdebug_last_error(void);

/* A hook that records into `out_dir`. `json` is NULL or the text that a configuration file holds:
 * {"HookParameters": {...}, "CollectionConfigurations": [...]}. NULL on failure. */
smdebug_hook* smdebug_hook_create(const char* out_dir, const char* json);

/* A hook from a configuration file; NULL: the one that SMDEBUG_CONFIG_FILE_PATH names. NULL on
 * failure. */
smdebug_hook* smdebug_hook_create_json(const char* path);

/* Sets the mode of the steps that begin from now on: an smdebug_mode. */
int smdebug_set_mode(smdebug_hook* hook, int mode);

/* Ends the current step and begins the next; with a number of the caller's, greater than the last.
 */
int smdebug_begin_step(smdebug_hook* hook);
int smdebug_begin_step_at(smdebug_hook* hook, int64_t step);
/* Ends the current step early, so that readers see it. */
int smdebug_end_step(smdebug_hook* hook);

/* 1: this tensor is saved at this step. 0: it is not, or an argument is NULL. */
int smdebug_wants(smdebug_hook* hook, const char* name);

/* Saves a tensor as the collections that hold its name want it; copies before it returns. `dtype`
 * is an smdebug_dtype, `ndim` 0 to SMDEBUG_MOST_AXES. `strides` counts elements, not bytes; they
 * may be zero or negative; NULL: C order without gaps. */
int smdebug_save(smdebug_hook* hook, const char* name, const void* data, int dtype, int ndim,
                 const int64_t* shape, const int64_t* strides);

/* The same for a tensor that is described the way DLPack does it. `dl_tensor` points to a DLTensor
 * of dlpack.h, to a DLManagedTensor, or to the struct below, which is laid out alike. The memory
 * must be readable by the CPU: others are SMDEBUG_UNSUPPORTED. The caller keeps the tensor. */
int smdebug_save_dlpack(smdebug_hook* hook, const char* name, const void* dl_tensor);

typedef struct smdebug_dl_tensor {
  void* data;
  int32_t device_type; /* 1: CPU */
  int32_t device_id;
  int32_t ndim;
  uint8_t
      dtype_code; /* 0 int, 1 unsigned, 2 float, 4 bfloat, 5 complex, 6 bool, 10 and 12 float8 */
  uint8_t dtype_bits;
  uint16_t dtype_lanes; /* 1 */
  const int64_t* shape;
  const int64_t* strides; /* in elements, or NULL */
  uint64_t byte_offset;   /* from data to the first element */
} smdebug_dl_tensor;

/* Saved at every step; the last value of a step wins. */
int smdebug_save_scalar(smdebug_hook* hook, const char* name, double value);

/* One axis of `count` UTF-8 strings, whenever the step saves anything. */
int smdebug_save_strings(smdebug_hook* hook, const char* name, const char* const* strings,
                         size_t count);

/* Ends the last step, marks the job as ended and waits until everything is written. Reports the
 * first failure of the hook's life. The second call does nothing. */
int smdebug_close(smdebug_hook* hook);

/* Closes the hook, if nobody has, and frees it. NULL is fine. */
void smdebug_hook_free(smdebug_hook* hook);

#ifdef __cplusplus
}
#endif

#endif /* SMD_C_API_H_ */
