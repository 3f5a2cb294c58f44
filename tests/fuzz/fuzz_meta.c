/* SPDX-License-Identifier: MIT */
/* fuzz_meta.c - one encoded value: set, renamed, written, read again
 *
 * The first byte chooses the type, the rest is the value.
 */
#include "config.h"
#include "file/value.h"
#include "gguf/writer.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static void same_pair(const struct gguf_kv *a, const struct gguf_kv *b)
{
    MUST(a && b && a->type == b->type && a->elem_type == b->elem_type &&
         a->n == b->n && a->size == b->size);
    MUST(a->size == 0 || !memcmp(a->data, b->data, a->size));
}

/* Write a file in this byte order, and read it back into a list. */
static void round_trip(const struct gguf_meta *m, int big_endian)
{
    struct gguf_writer_params p = GGUF_INIT(struct gguf_writer_params);
    struct gguf_writer *w = NULL;
    struct gguf_meta *back = NULL;
    struct gguf_file *f = NULL;
    const void *header;
    size_t size;
    p.big_endian = big_endian;
    MUST(gguf_writer_create(&w, m, &p, NULL) == GGUF_OK);
    MUST(gguf_writer_header(w, &header, &size, NULL) == GGUF_OK);
    MUST(gguf_file_open_memory(&f, header, size, NULL, NULL) == GGUF_OK);
    MUST(gguf_meta_create(&back, NULL, NULL) == GGUF_OK);
    MUST(gguf_meta_copy_file(back, f, NULL) == GGUF_OK);
    MUST(gguf_meta_n_kv(back) == gguf_meta_n_kv(m));
    for (size_t i = 0; i < gguf_meta_n_kv(m); i++)
        same_pair(gguf_meta_kv(back, i), gguf_meta_kv(m, i));
    gguf_meta_destroy(back);
    gguf_file_close(f);
    gguf_writer_destroy(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gguf_meta *m;
    struct gguf_error err;
    if (size == 0)
        return 0;
    MUST(gguf_meta_create(&m, NULL, NULL) == GGUF_OK);
    MUST(gguf_meta_set_u8(m, "first", 1, NULL) == GGUF_OK);
    if (gguf_meta_set_encoded(m, "key", data[0] % (GGUF_N_VAL_TYPES + 1),
                              data + 1, size - 1, &err) == GGUF_OK) {
        MUST(gguf_meta_set_u8(m, "last", 1, NULL) == GGUF_OK);
        MUST(gguf_meta_rename(m, "key", "yek", NULL) == GGUF_OK);
        MUST(gguf_meta_remove(m, "first") == 1);
        round_trip(m, 0);
        round_trip(m, 1);
    } else {
        MUST(err.message[0] && gguf_meta_n_kv(m) == 1);
    }
    gguf_meta_destroy(m);
    return 0;
}

/* Type and encoded value of every pair of every fixture that opens. */
void fuzz_make_seeds(void)
{
    for (const struct fixture *x = fix_list("good"); x->name; x++) {
        struct fix fx;
        struct gguf_file *f;
        fix_init(&fx);
        fix_make(x, &fx);
        MUST(gguf_file_open_memory(&f, fx.data, fx.size, NULL, NULL) ==
             GGUF_OK);
        for (size_t i = 0; i < gguf_file_n_kv(f); i++) {
            const struct gguf_kv *kv = gguf_file_kv(f, i);
            uint64_t n, skip = 8 + kv->key.size + 4;
            MUST(!gg_kv_encoded_size(kv, &n));
            uint8_t *b = malloc((size_t)n);
            gg_kv_encode(kv, false, b);
            struct fix *s = new_seed();
            fix_u8(s, kv->type);
            fix_bytes(s, b + skip, (size_t)(n - skip));
            free(b);
        }
        gguf_file_close(f);
        fix_fini(&fx);
    }
}
