/* SPDX-License-Identifier: MIT */
/* fuzz_open.c - opens a file and reads everything in it */
#include "config.h"
#include "gguf/file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/ignore_status.h"

#include <string.h>

static void read_value(const struct gguf_kv *kv)
{
    uint64_t u;
    int64_t i;
    double d;
    float f[4];
    struct gguf_str s;
    struct gguf_kv e;
    struct gguf_kv_iter it;
    struct gguf_error err;
    if (gguf_kv_get_uint(kv, &u, &err) == GGUF_OK &&
        gguf_kv_get_int(kv, &i, &err) == GGUF_OK)
        MUST(i >= 0 && (uint64_t)i == u);
    if (gguf_kv_get_float(kv, &d, &err) != GGUF_OK)
        MUST(err.status == GGUF_E_TYPE);
    if (gguf_kv_get_str(kv, &s, NULL) == GGUF_OK)
        MUST(s.size == kv->size);
    ignore_status(gguf_kv_get_elems_f32(kv, kv->n / 2, 4, f, &err));
    uint64_t n = 0;
    gguf_kv_iter_init(&it, kv);
    while (gguf_kv_iter_next(&it, &e)) {
        MUST(e.index == n++);
        if (e.type == GGUF_VAL_ARR)
            read_value(&e); /* nested up to the limit of 8 */
    }
    MUST(n == (kv->type == GGUF_VAL_ARR ? kv->n : 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gguf_file *f;
    struct gguf_error err;
    gguf_error_clear(&err);
    enum gguf_status st = gguf_file_open_memory(&f, data, size, NULL, &err);
    if (st != GGUF_OK) {
        MUST(!f && err.status == st && err.message[0]);
        MUST(err.offset <= size);
        return 0;
    }
    for (size_t i = 0; i < gguf_file_n_kv(f); i++)
        read_value(gguf_file_kv(f, i));
    uint64_t end = 0;
    for (size_t i = 0; i < gguf_file_n_tensors(f); i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor_by_offset(f, i);
        const uint8_t *d = gguf_file_tensor_data(f, t->index);
        MUST(t->off >= end && t->size > 0);
        end = t->off + t->size;
        MUST(d >= data && d + t->size <= data + size);
        char name[65];
        memcpy(name, t->name.data, t->name.size);
        name[t->name.size] = '\0';
        MUST(gguf_file_tensor_find(f, name) == t);
    }
    gguf_file_close(f);
    return 0;
}

void fuzz_make_seeds(void)
{
    seed_files("", 0, "", 0);
}
