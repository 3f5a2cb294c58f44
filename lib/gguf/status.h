/* SPDX-License-Identifier: MIT */
/* status.h - how calls of libgguf fail
 *
 * Everything that can fail returns an enum gguf_status and takes, as its last
 * parameter, a struct gguf_error that may be NULL. The innermost failure fills
 * it; the library never prints, aborts or exits.
 *
 *     struct gguf_error err;
 *     if (gguf_file_open(&file, path, NULL, &err) != GGUF_OK)
 *         fprintf(stderr, "%s: %s\n", path, err.message);
 */
#ifndef GGUF_STATUS_H
#define GGUF_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GGUF_API        __attribute__((visibility("default")))
#define GGUF_MUST_CHECK __attribute__((warn_unused_result))
#else
#define GGUF_API
#define GGUF_MUST_CHECK
#endif

/* The initialiser of a structure whose first member is struct_size: that
 * member is the structure's size, all others are 0, NULL or false, which is
 * the default of each. GGUF_..._INIT is this for one structure, and a program
 * can as well write a designated initialiser of its own:
 *
 *     struct gguf_scan_params p = { .struct_size = sizeof p, .n_ctx = 2048 };
 */
#ifdef __cplusplus
#define GGUF_INIT(type)                                                       \
    {                                                                         \
        sizeof(type)                                                          \
    }
#else
#define GGUF_INIT(type)                                                       \
    {                                                                         \
        .struct_size = sizeof(type)                                           \
    }
#endif

/* Values never change; grouped in tens. */
enum gguf_status {
    GGUF_OK = 0,

    /* the system */
    GGUF_E_NOMEM = 1,     /* an allocation failed */
    GGUF_E_IO = 2,        /* a system call failed; sys_errno says how */
    GGUF_E_EXIST = 3,     /* the output exists and may not be replaced */
    GGUF_E_CANCELLED = 4, /* a callback asked to stop */
    GGUF_E_NOSPACE = 5,   /* the file system has too little room */

    /* the file */
    GGUF_E_FORMAT = 10,      /* malformed: magic, type ids, names, offsets */
    GGUF_E_TRUNCATED = 11,   /* something reaches past the end of the file */
    GGUF_E_OVERFLOW = 12,    /* a size does not fit in 63 bits */
    GGUF_E_LIMIT = 13,       /* more than struct gguf_limits allows */
    GGUF_E_DUPLICATE = 14,   /* two keys or two tensors of one name */
    GGUF_E_VERSION = 15,     /* a version of GGUF that is not read */
    GGUF_E_NOTFOUND = 16,    /* no such key, tensor or file of a set */
    GGUF_E_TYPE = 17,        /* a value of another type than asked for */
    GGUF_E_MISMATCH = 18,    /* parts that do not belong together */
    GGUF_E_UNSUPPORTED = 19, /* well formed, but not supported here */

    /* the model */
    GGUF_E_ARCH = 20,      /* architecture not supported for evaluation */
    GGUF_E_HPARAM = 21,    /* a hyperparameter is missing or impossible */
    GGUF_E_TENSOR = 22,    /* a weight is missing or has a wrong shape */
    GGUF_E_VOCAB = 23,     /* the vocabulary is inconsistent */
    GGUF_E_NONFINITE = 24, /* NaN or infinity where a number must be */

    /* the graph */
    GGUF_E_SHAPE = 30, /* shapes that do not go together */
    GGUF_E_FULL = 31,  /* a graph, context or cache is full */
    GGUF_E_OP = 32,    /* an operation that the backend cannot run */

    GGUF_E_INVALID = 90 /* wrong argument: the caller's mistake */
};

#define GGUF_NO_OFFSET UINT64_MAX

/* Caller's storage, no cleanup needed. A call that succeeds leaves it alone.
 * Text from files is escaped in message: it can be printed as it is. It never
 * grows. */
struct gguf_error {
    enum gguf_status status;
    int sys_errno;     /* 0 unless a system call failed */
    uint64_t offset;   /* byte in the file, or GGUF_NO_OFFSET */
    char message[488]; /* one line, no trailing newline, UTF-8 */
};

/* Short English name of a status; never NULL. Any thread. Since: 0.1 */
GGUF_API const char *gguf_status_string(enum gguf_status status);

/* Set to "no error". err may be NULL. Since: 0.1 */
GGUF_API void gguf_error_clear(struct gguf_error *err);

/* Fill err, which may be NULL, and return status: for functions that the
 * library calls. The message is formatted as by printf, cut where it does not
 * fit; text from files is to be escaped (text.h). Since: 0.1 */
#ifdef __GNUC__
__attribute__((format(printf, 3, 4)))
#endif
GGUF_API enum gguf_status
gguf_error_set(struct gguf_error *err, enum gguf_status status,
               const char *format, ...);

#ifdef __cplusplus
}
#endif
#endif
