/* SPDX-License-Identifier: MIT */
/* status.h - statuses, errors, and conventions of all functions
 *
 * A function that can fail returns an enum gguf_status. Its last parameter is a
 * pointer to a struct gguf_error, which may be NULL. A failure fills the
 * structure; a success does not change it. The library never prints, aborts or
 * exits.
 *
 *     struct gguf_error err;
 *     if (gguf_file_open(&file, path, NULL, &err) != GGUF_OK)
 *         fprintf(stderr, "%s: %s\n", path, err.message);
 *
 * Compilers warn if a program ignores a status.
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

/* The f-th argument is a format of C99's printf(), also on Windows; the a-th is
 * the first one that it formats. */
#if defined(__clang__)
#define GGUF_PRINTF(f, a) __attribute__((format(printf, f, a)))
#elif defined(__GNUC__)
#define GGUF_PRINTF(f, a) __attribute__((format(gnu_printf, f, a)))
#else
#define GGUF_PRINTF(f, a)
#endif

/* Initializer of a structure that begins with struct_size.
 *
 * It sets struct_size to the size of the structure and all other members to 0,
 * NULL or false, which is the default of each:
 *
 *     struct gguf_file_params p = GGUF_INIT(struct gguf_file_params);
 *
 * A designated initializer of the program's own is as good:
 *
 *     struct gguf_file_params p = { .struct_size = sizeof p, .offset = 4096 };
 */
#ifdef __cplusplus
#define GGUF_INIT(type)                                                       \
    [] {                                                                      \
        type gguf_s{};                                                        \
        gguf_s.struct_size = sizeof gguf_s;                                   \
        return gguf_s;                                                        \
    }()
#else
#define GGUF_INIT(type)                                                       \
    {                                                                         \
        .struct_size = sizeof(type)                                           \
    }
#endif

/* Result of a function. Values never change. They are grouped in tens; a
 * program that does not know a value may go by its group. */
enum gguf_status {
    GGUF_OK = 0,

    /* The system. */
    GGUF_E_NOMEM = 1,     /* memory could not be allocated */
    GGUF_E_IO = 2,        /* a system call failed: err->sys_errno */
    GGUF_E_EXIST = 3,     /* the output exists and must not be replaced */
    GGUF_E_CANCELLED = 4, /* a callback stopped the job */
    GGUF_E_NOSPACE = 5,   /* the disk or the place in a file is too small */

    /* The file. */
    GGUF_E_FORMAT = 10,      /* malformed data */
    GGUF_E_TRUNCATED = 11,   /* data reaches past the end of the file */
    GGUF_E_OVERFLOW = 12,    /* a size or number does not fit its type */
    GGUF_E_LIMIT = 13,       /* a limit is exceeded */
    GGUF_E_DUPLICATE = 14,   /* a name occurs twice */
    GGUF_E_VERSION = 15,     /* the version of GGUF is not supported */
    GGUF_E_NOTFOUND = 16,    /* a key, tensor, file or shard does not exist */
    GGUF_E_TYPE = 17,        /* a value has another type than requested */
    GGUF_E_MISMATCH = 18,    /* parts do not belong together, or a file has
                              * changed */
    GGUF_E_UNSUPPORTED = 19, /* valid, and not supported by the library */

    /* The model. */
    GGUF_E_ARCH = 20,      /* the architecture cannot be evaluated */
    GGUF_E_HPARAM = 21,    /* a hyperparameter is missing or impossible */
    GGUF_E_TENSOR = 22,    /* a weight is missing or has a wrong shape */
    GGUF_E_VOCAB = 23,     /* the vocabulary is inconsistent */
    GGUF_E_NONFINITE = 24, /* a number is NaN or infinite */

    /* The graph. */
    GGUF_E_SHAPE = 30, /* shapes do not fit together */
    GGUF_E_FULL = 31,  /* a graph, context or cache is full */
    GGUF_E_OP = 32,    /* the backend cannot run an operation */

    /* The program. */
    GGUF_E_INVALID = 90 /* an argument is wrong */
};

#define GGUF_NO_OFFSET UINT64_MAX /* not a byte of a file */

/* Description of a failure.
 *
 * The structure belongs to the caller. It needs neither preparation nor
 * cleanup, and can be used for many calls. Later versions add no members to
 * this struct. */
struct gguf_error {
    enum gguf_status status; /* status that the function returned */
    int sys_errno;   /* errno of a failed system call; 0: none failed */
    uint64_t offset; /* byte of the file, counted from the begin of the
                              * GGUF data; GGUF_NO_OFFSET: no particular one */

    /* One line for people: UTF-8 without a newline. Text from files is escaped
     * in it, so it can be printed as it is. */
    char message[488];
};

/* Short English description of a status, such as "malformed file". For programs
 * that report statuses without messages. Threads: any. Since: 0.1 */
GGUF_API const char *gguf_status_string(enum gguf_status status);

/* Set *err to GGUF_OK without a message. err may be NULL. Since: 0.1 */
GGUF_API void gguf_error_clear(struct gguf_error *err);

/* Fill an error and return its status. For callbacks that fail.
 *
 * err      Error to fill. May be NULL.
 * status   Status of the failure.
 * format   Message as for printf(), cut if it does not fit. Escape text from
 *          files first: gguf_text_escape() (text.h).
 *
 * Threads: any. Since: 0.1 */
GGUF_PRINTF(3, 4)
GGUF_API enum gguf_status gguf_error_set(struct gguf_error *err,
                                         enum gguf_status status,
                                         const char *format, ...);

#ifdef __cplusplus
}
#endif
#endif
