/* SPDX-License-Identifier: MIT */
/* converted_file.h - reads a file that was converted from a folder */
#ifndef TESTS_CONVERT_CONVERTED_FILE_H
#define TESTS_CONVERT_CONVERTED_FILE_H

#include "gguf/dtype.h"
#include "gguf/file.h"
#include "tests/model/findings.h"
#include "tests/convert/roundtrip.h"
#include "tests/tap.h"

#include <string.h>

/* Convert the folder at dir to the file out and verify it: one test. NULL:
 * conversion failed. */
static inline struct gguf_file *
converted_file_convert(const char *dir, const char *out, const char *what)
{
    struct gguf_error e;
    struct gguf_file *f = NULL;
    struct findings found = { .n = 0 };
    gguf_error_clear(&e);
    enum gguf_status st = folder_convert(dir, out, NULL, &e);
    if (st == GGUF_OK)
        st = gguf_file_open(&f, out, NULL, &e);
    ok(st == GGUF_OK &&
           gguf_file_verify(
               f, NULL,
               (struct gguf_finding_callback){ findings_note, &found },
               &e) == GGUF_OK &&
           !found.n_error,
       "%s: a model %s %s", what, found.last, e.message);
    return f;
}

static inline bool converted_file_uint(const struct gguf_file *f,
                                       const char *key, uint64_t want)
{
    uint64_t x;
    const struct gguf_kv *kv = f ? gguf_file_kv_find(f, key) : NULL;
    return kv && gguf_kv_get_uint(kv, &x, NULL) == GGUF_OK && x == want;
}

static inline bool converted_file_text(const struct gguf_file *f,
                                       const char *key, const char *begin)
{
    struct gguf_str s;
    const struct gguf_kv *kv = f ? gguf_file_kv_find(f, key) : NULL;
    const size_t n = strlen(begin);
    return kv && gguf_kv_get_str(kv, &s, NULL) == GGUF_OK && s.size >= n &&
           !memcmp(s.data, begin, n);
}

/* Numbers of a matrix in F32; NULL: missing, or of another type or shape. */
static inline const float *converted_file_matrix(const struct gguf_file *f,
                                                 const char *name, int cols,
                                                 int rows)
{
    const struct gguf_tensor_info *t =
        f ? gguf_file_tensor_find(f, name) : NULL;
    size_t no = 0;
    while (t && gguf_file_tensor(f, no) != t)
        no++;
    if (!t || t->dtype != GGUF_DTYPE_F32 || t->ne[0] != cols ||
        t->ne[1] != rows)
        return NULL;
    const void *data = gguf_file_tensor_data(f, no);
    return data;
}

#endif
